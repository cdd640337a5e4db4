//! `rlf-host train CONFIG`: trains by SFT and then RL, whichever are configured, with checkpoints in each.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use console::style;
use rlf_run::{RunConfig, RunEnd, RunHistory, RunStart, TrainOptions};
use rlf_train::metrics::names;
use rlf_train::run::config_path;
use serde_json::{Map, Value};

use crate::advice::with_options;
use crate::arguments::Train;
use crate::display::{name_width, percent};
use crate::interrupt;
use crate::plugins::{configuration, sources_for_training};
use crate::progress::Progress;

/// Exit code of an interrupted run that can be resumed (EX_TEMPFAIL).
pub(crate) const INTERRUPTED: u8 = 75;

pub(crate) fn run(options: &Train) -> anyhow::Result<ExitCode> {
    let sources = sources_for_training(&options.plugins.plugins)?;
    let file = configuration(&sources, &options.config)?;
    let mut config = RunConfig::load(&file, &options.set).map_err(with_options)?;
    if let Some(output) = &options.run {
        config.output.clone_from(output);
    }
    if let Some(device) = &options.device {
        config.device.clone_from(device);
    }
    if let Some(seed) = options.seed {
        config.seed = seed;
    }
    let started = Instant::now();
    let path = config.output.clone();
    let train = TrainOptions {
        plugins: sources,
        start: match (options.resume, options.overwrite) {
            (true, _) => RunStart::Resume {
                allow_changes: options.allow_changes,
            },
            (false, true) => RunStart::Replace,
            (false, false) => RunStart::New,
        },
        control: options.control,
        interruption: interrupt::watch()?,
    };
    let progress = Arc::new(Progress::new());
    let training = rlf_run::train(config, &train, progress.clone());
    match super::runtime()?.block_on(training).map_err(with_options)? {
        RunEnd::Finished => {}
        RunEnd::Interrupted => {
            // The run's own configuration contains the settings of the command line.
            let stopped = match train.interruption.requests() {
                0 | 1 => "stopped and saved; go on",
                _ => "stopped; go on from the last checkpoint",
            };
            say!(
                "{stopped} with: rlf-host train {}{} --run {} --resume{}",
                quoted(&config_path(&path)),
                (options.plugins.plugins.iter())
                    .map(|directory| [" --plugins ", &quoted(directory)].concat())
                    .collect::<String>(),
                quoted(&path),
                if options.control { " --control" } else { "" }
            );
            return Ok(ExitCode::from(INTERRUPTED));
        }
        RunEnd::ControlInterrupted => {
            say!(
                "the control was stopped before it was done, so there is nothing to compare; the run itself is complete"
            );
            return Ok(ExitCode::from(INTERRUPTED));
        }
    }
    let report = super::report::write(&path, None)?;
    say!();
    learned(&path)?;
    if progress.worked() {
        say!("{:.0} s in all", started.elapsed().as_secs_f64());
    } else {
        say!("the run is already complete: nothing was left to do");
    }
    say!("{} {}", style("run").bold(), path.display());
    say!("{} {}", style("report").bold(), report.display());
    Ok(ExitCode::SUCCESS)
}

/// A path quoted for a shell.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "/._-+@:,=".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Prints the success rate on the test split at each evaluation, by kind of task.
fn learned(path: &Path) -> anyhow::Result<()> {
    let data = RunHistory::read(path)?;
    let moments = data.evaluations("test");
    let moment = |line: &Map<String, Value>| -> String {
        line.get(names::MOMENT)
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned()
    };
    // A column is as wide as its heading, and holds `100.0 %`.
    let cells = |cell: &dyn Fn(&Map<String, Value>) -> String| -> String {
        let cell = |line: &&Map<String, Value>| {
            format!(
                "  {:>width$}",
                cell(line),
                width = moment(line).len().max(7)
            )
        };
        moments.iter().map(cell).collect()
    };
    let kinds = moments
        .iter()
        .filter_map(|line| line.get(names::EVAL_SAMPLED_BY_KIND)?.as_object())
        .flat_map(|kinds| kinds.keys().cloned())
        .collect::<BTreeSet<String>>();
    let width = name_width(kinds.iter());
    let row = |name: &str, key: &str, kind: Option<&str>| {
        let cell = |line: &Map<String, Value>| {
            let value = line.get(key);
            let value = kind.map_or(value, |kind| value.and_then(|kinds| kinds.get(kind)));
            percent(value.and_then(Value::as_f64))
        };
        say!("  {name:<width$}{}", cells(&cell));
    };
    say!("{}", style("success on the test split").bold());
    say!("  {:<width$}{}", "", cells(&moment));
    row("greedy", names::EVAL_GREEDY, None);
    row("sampled", names::EVAL_SAMPLED, None);
    for kind in &kinds {
        row(
            &format!("  {kind}"),
            names::EVAL_SAMPLED_BY_KIND,
            Some(kind),
        );
    }
    Ok(())
}
