//! `rlf-host ablate CONFIG`: trains the variants of a configuration from the same seeds, and compares them.

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

use crate::advice::{with_ablate_options, with_options};
use crate::arguments::Ablate;
use crate::display::{name_width, percent};
use crate::interrupt;
use crate::output;
use crate::plugins::{configuration, sources_for_training};
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
    let sources = sources_for_training(&options.plugins.plugins)?;
    let file = configuration(&sources, &options.config)?;
    let planned = plan(options, &file)?;
    let interruption = interrupt::watch()?;
    output::keep_for_result(options.json);
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
    output::keep_for_result(false);
    if options.json {
        say!("{}", json!(results));
    } else {
        print(&results, &options.seeds);
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
    let mut seeds = BTreeSet::new();
    if let Some(twice) = options.seeds.iter().find(|seed| !seeds.insert(*seed)) {
        bail!("--seeds names {twice} twice; name each seed once");
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
    end.map_err(with_ablate_options)
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

/// The metrics of the first table, which are shares.
const SUCCESS: [&str; 2] = ["greedy", "sampled"];

/// Prints a table of success with a row for each variant and seed, and a table of terms with a column for each variant.
fn print(results: &Results, seeds: &[u64]) {
    let of = match seeds.len() {
        0 | 1 => String::new(),
        count => format!(": means of {count} seeds ± standard deviation"),
    };
    let mut rows = Vec::new();
    for (variant, values) in results {
        let cells = SUCCESS.map(|metric| shown(metric, values.get(metric)));
        rows.push((variant.clone(), cells.into()));
        if seeds.len() < 2 {
            continue;
        }
        for (at, seed) in seeds.iter().enumerate() {
            let cell = |metric: &str| {
                // If a seed has no value, it is not known which one.
                let values = values
                    .get(metric)
                    .filter(|known| known.len() == seeds.len());
                percent(values.map(|values| values[at]))
            };
            rows.push((format!("  seed {seed}"), SUCCESS.map(cell).into()));
        }
    }
    say!("{}{of}", style("success on the test split").bold());
    table(&SUCCESS, &rows);

    let terms: BTreeSet<&String> = results
        .values()
        .flat_map(BTreeMap::keys)
        .filter(|metric| !SUCCESS.contains(&metric.as_str()))
        .collect();
    if terms.is_empty() {
        return;
    }
    let variants: Vec<&str> = results.keys().map(String::as_str).collect();
    let rows = terms.into_iter().map(|term| {
        let cells = results.values().map(|values| shown(term, values.get(term)));
        (term.clone(), cells.collect())
    });
    say!();
    say!("{}{of}", style("terms on the test split").bold());
    table(&variants, &rows.collect::<Vec<_>>());
}

/// Prints the titles of columns, and rows of a name and its cells.
fn table(titles: &[&str], rows: &[(String, Vec<String>)]) {
    let name = name_width(rows.iter().map(|(name, _)| name));
    let line = |name_of: &str, cells: &mut dyn Iterator<Item = &str>| {
        let padded = cells.enumerate().map(|(at, cell)| {
            let cells = rows.iter().map(|(_, cells)| cells[at].chars().count());
            let width = cells.chain([titles[at].len()]).max().unwrap_or_default();
            format!("  {cell:>width$}")
        });
        say!("  {name_of:<name$}{}", padded.collect::<String>());
    };
    line("", &mut titles.iter().copied());
    for (name, cells) in rows {
        line(name, &mut cells.iter().map(String::as_str));
    }
}

/// The mean of the seeds, with the standard deviation if there are several.
fn shown(metric: &str, values: Option<&Vec<f64>>) -> String {
    let Some(values) = values else {
        return "–".to_owned();
    };
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares = values
        .iter()
        .map(|value| (value - mean).powi(2))
        .sum::<f64>();
    let deviation = (values.len() > 1).then(|| (squares / (count - 1.0)).sqrt());
    if SUCCESS.contains(&metric) {
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
        let shown = |metric, values: &[f64]| shown(metric, Some(&values.into()));
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
