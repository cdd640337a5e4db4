//! `rlf-host ablate CONFIG`: trains the variants of a configuration from the same seeds, and compares them in one table.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use console::style;
use rlf_run::{Interruption, PluginSources, RunConfig, RunEnd, RunHistory, RunStart, TrainOptions};
use rlf_train::metrics::names;
use rlf_train::run::config_path;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::advice::with_options;
use crate::arguments::Ablate;
use crate::display::{name_width, percent};
use crate::interrupt;
use crate::plugins::sources;
use crate::progress::Progress;

/// A table `[ablate.NAME]` of a configuration.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Variant {
    /// Settings that make the variant, as `--set` takes them.
    #[serde(default)]
    set: Vec<String>,
}

/// The part of a configuration that is read here.
#[derive(Deserialize)]
struct Part {
    #[serde(default)]
    ablate: BTreeMap<String, Variant>,
}

/// One run to be made.
struct Planned {
    variant: String,
    seed: u64,
    folder: PathBuf,
    config: RunConfig,
}

pub(crate) fn run(options: &Ablate) -> anyhow::Result<ExitCode> {
    let sources = sources(&options.plugins.plugins);
    let file = sources.configuration(&options.config);
    let planned = plan(options, &file)?;
    let interruption = interrupt::watch()?;
    for (number, one) in planned.iter().enumerate() {
        say!(
            "{} {}, seed {} ({} of {})",
            style("variant").bold(),
            one.variant,
            one.seed,
            number + 1,
            planned.len()
        );
        if train(one, &sources, &interruption)? != RunEnd::Finished {
            say!("stopped; the same command goes on from there");
            return Ok(ExitCode::from(super::train::INTERRUPTED));
        }
        say!();
    }
    let results = results(&planned)?;
    if options.json {
        say!("{}", json!(results));
    } else {
        print(&results);
    }
    Ok(ExitCode::SUCCESS)
}

/// The runs of all variants and seeds. Every configuration is checked before any run begins.
fn plan(options: &Ablate, file: &Path) -> anyhow::Result<Vec<Planned>> {
    let text = rlf_config::read(file)?;
    let part: Part = toml::from_str(&text).with_context(|| file.display().to_string())?;
    ensure!(
        !part.ablate.is_empty(),
        "{} has no variants; add a table for each: [ablate.NAME] with set = [\"KEY=VALUE\", ..]",
        file.display()
    );
    let unknown = options
        .only
        .iter()
        .find(|name| !part.ablate.contains_key(*name));
    if let Some(unknown) = unknown {
        let names: Vec<&str> = part.ablate.keys().map(String::as_str).collect();
        bail!(
            "--only {unknown}: there is no such variant; there are: {}",
            names.join(", ")
        );
    }
    let mut planned = Vec::new();
    for (name, variant) in &part.ablate {
        ensure!(
            rlf_plugins::manifest::is_valid_name(name),
            "[ablate.{name:?}]: a name has 1 to 64 of a-z A-Z 0-9 _ -"
        );
        if !options.only.is_empty() && !options.only.contains(name) {
            continue;
        }
        let settings = [&variant.set[..], &options.set[..]].concat();
        let config = RunConfig::load(file, &settings)
            .map_err(with_options)
            .with_context(|| format!("[ablate.{name}]"))?;
        let folder = options
            .output
            .clone()
            .unwrap_or_else(|| beside(&config.output));
        let seeds = match options.seeds.as_slice() {
            [] => vec![config.seed],
            seeds => seeds.to_vec(),
        };
        for seed in seeds {
            let folder = folder.join(format!("{name}-{seed}"));
            let mut config = config.clone();
            config.seed = seed;
            config.output.clone_from(&folder);
            planned.push(Planned {
                variant: name.clone(),
                seed,
                folder,
                config,
            });
        }
    }
    Ok(planned)
}

/// The default folder of the runs: beside that of the configuration's own run.
fn beside(output: &Path) -> PathBuf {
    let name = output.file_name().unwrap_or(output.as_os_str());
    output.with_file_name(format!("{}-ablation", name.to_string_lossy()))
}

/// Trains one run, or goes on with it. A run that is complete is left as it is.
fn train(
    planned: &Planned,
    sources: &PluginSources,
    interruption: &Interruption,
) -> anyhow::Result<RunEnd> {
    let start = if config_path(&planned.folder).exists() {
        RunStart::Resume {
            allow_changes: false,
        }
    } else {
        RunStart::New
    };
    let options = TrainOptions {
        start,
        interruption: interruption.clone(),
        ..TrainOptions::new(sources.clone())
    };
    let training = rlf_run::train(planned.config.clone(), &options, Arc::new(Progress::new()));
    let end = super::runtime()?.block_on(training);
    end.map_err(with_options)
        .with_context(|| format!("variant {}, seed {}", planned.variant, planned.seed))
}

/// The last evaluation of each run on the test split: by variant and number, the values of its seeds.
type Results = BTreeMap<String, BTreeMap<String, Vec<f64>>>;

fn results(planned: &[Planned]) -> anyhow::Result<Results> {
    let mut results = Results::new();
    for one in planned {
        let history = RunHistory::read(&one.folder)?;
        let evaluations = history.evaluations("test");
        let Some(last) = evaluations.last() else {
            bail!(
                "{} has no evaluation of the test split",
                one.folder.display()
            );
        };
        let of_variant = results.entry(one.variant.clone()).or_default();
        let mut add = |name: &str, value: Option<&Value>| {
            if let Some(value) = value.and_then(Value::as_f64) {
                of_variant.entry(name.to_owned()).or_default().push(value);
            }
        };
        add("greedy", last.get(names::EVAL_GREEDY));
        add("sampled", last.get(names::EVAL_SAMPLED));
        let terms = last.get(names::EVAL_TERMS).and_then(Value::as_object);
        for (term, value) in terms.into_iter().flatten() {
            add(term, Some(value));
        }
    }
    Ok(results)
}

fn print(results: &Results) {
    let seeds = results
        .values()
        .flat_map(BTreeMap::values)
        .map(Vec::len)
        .max();
    let terms: BTreeSet<&str> = results
        .values()
        .flat_map(BTreeMap::keys)
        .map(String::as_str)
        .filter(|name| !["greedy", "sampled"].contains(name))
        .collect();
    let columns: Vec<&str> = ["greedy", "sampled"].into_iter().chain(terms).collect();
    let rows = results.iter().map(|(variant, values)| {
        let cell = |column: &&str| {
            values
                .get(*column)
                .map_or_else(|| "–".to_owned(), |values| shown(column, values))
        };
        (variant, columns.iter().map(cell).collect::<Vec<String>>())
    });
    let rows: Vec<(&String, Vec<String>)> = rows.collect();
    let widths: Vec<usize> = columns
        .iter()
        .enumerate()
        .map(|(at, column)| {
            let cells = rows.iter().map(|(_, cells)| cells[at].chars().count());
            cells.chain([column.len()]).max().unwrap_or_default()
        })
        .collect();
    let line = |cells: &mut dyn Iterator<Item = &str>| -> String {
        let padded = cells
            .zip(&widths)
            .map(|(cell, width)| format!("  {cell:>width$}"));
        padded.collect()
    };
    let of = match seeds {
        Some(seeds) if seeds > 1 => format!(": means of {seeds} seeds ± standard deviation"),
        _ => String::new(),
    };
    say!(
        "{}{of}",
        style("success and terms on the test split").bold()
    );
    let name = name_width(results.keys());
    say!("  {:<name$}{}", "", line(&mut columns.iter().copied()));
    for (variant, cells) in &rows {
        say!(
            "  {variant:<name$}{}",
            line(&mut cells.iter().map(String::as_str))
        );
    }
}

/// The mean of the seeds, with the standard deviation if there are several.
fn shown(column: &str, values: &[f64]) -> String {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares = values
        .iter()
        .map(|value| (value - mean).powi(2))
        .sum::<f64>();
    let deviation = (values.len() > 1).then(|| (squares / (count - 1.0)).sqrt());
    if matches!(column, "greedy" | "sampled") {
        let mean = percent(Some(mean));
        deviation.map_or_else(
            || mean.clone(),
            |deviation| format!("{mean} ± {:.1}", deviation * 100.0),
        )
    } else {
        deviation.map_or_else(
            || format!("{mean:.3}"),
            |deviation| format!("{mean:.3} ± {deviation:.3}"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_seeds_have_a_deviation() {
        assert_eq!(shown("sampled", &[0.5]), "50.0 %");
        assert_eq!(shown("sampled", &[0.4, 0.6]), "50.0 % ± 14.1");
        assert_eq!(shown("judge.score", &[0.25, 0.35]), "0.300 ± 0.071");
    }

    #[test]
    fn runs_lie_beside_the_configurations_own() {
        assert_eq!(
            beside(Path::new("runs/forge/run")),
            Path::new("runs/forge/run-ablation")
        );
    }
}
