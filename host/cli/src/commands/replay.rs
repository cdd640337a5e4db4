//! `rlf-host replay RUN --step N`: plays a step of RL again and prints what differs from the run's record.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::Context as _;
use rlf_run::replay::{Difference, Replayed, ReplayedCalls};
use rlf_run::{Replay, RunReporter, Silent};
use serde_json::json;

use crate::advice::with_options;
use crate::arguments::{self, ReplayedOutcomes};
use crate::display::printable;
use crate::interrupt;
use crate::plugins::sources;
use crate::progress::Progress;

/// Exit code if the step could not be replayed. 1 says that something differs.
pub(crate) const NOT_REPLAYED: u8 = 2;

/// Maximum number of differences that are printed, of trajectories and of metrics each.
const MAX_SHOWN: usize = 10;

pub(crate) fn run(options: &arguments::Replay) -> anyhow::Result<ExitCode> {
    interrupt::exit_with_servers()?;
    let plugins = sources(&options.plugins.plugins)?;
    let calls = match options.outcomes {
        ReplayedOutcomes::Recorded => ReplayedCalls::Repeatable,
        ReplayedOutcomes::Again => ReplayedCalls::All,
    };
    let progress = Progress::new();
    let folder = tempfile::tempdir().context("cannot make a temporary folder (TMPDIR)")?;
    interrupt::remove_at_signal(folder.path());
    let (run, step) = (&options.run, options.step);
    let replay = Replay::open(run, step, calls, &plugins, folder, &progress);
    let replay = replay.map_err(with_options)?;
    let start = start(&replay, options);
    let reporter: Arc<dyn RunReporter> = if options.json {
        Arc::new(Silent)
    } else {
        say!("{start}");
        Arc::new(progress)
    };
    let replayed = super::runtime()?.block_on(replay.play(reporter.clone()));
    reporter.phases_ended();
    let replayed = replayed.map_err(with_options)?;
    if options.json {
        let result = json!({"same": replayed.is_same(), "replay": replayed});
        say!("{}", serde_json::to_string_pretty(&result)?);
    } else {
        print(&replayed, options.step);
    }
    Ok(if replayed.is_same() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Says with which weights the replay begins, and about how long it takes.
fn start(replay: &Replay, options: &arguments::Replay) -> String {
    let (first, last) = (replay.first_step(), options.step);
    let steps = if first == last {
        format!("step {last}")
    } else {
        format!("steps {first} to {last}")
    };
    let weights = replay.checkpoint().map_or_else(
        || "its first weights".to_owned(),
        |path| path.display().to_string(),
    );
    format!(
        "replaying {steps} from {weights}; in the run, that took {:.0} s",
        replay.seconds()
    )
}

fn print(replayed: &Replayed, step: u64) {
    let compared = &replayed.compared;
    if replayed.recorded_calls > 0 {
        say!(
            "calls with recorded outcomes, which were not made again: {}",
            replayed.recorded_calls
        );
    }
    if compared.trajectories.is_none() {
        say!(
            "the run kept no trajectories of step {} (checkpoint.trajectories_every), so only its metrics are compared",
            compared.step
        );
    }
    if replayed.is_same() {
        say!("step {step} is the same: {}", counts(replayed));
        print_list("changed since the run was made", &replayed.changes);
        return;
    }
    say!("step {} differs from what was recorded", compared.step);
    if compared.step < step {
        say!(
            "step {step} was not played: its weights follow from step {}",
            compared.step
        );
    }
    let differences = compared.differences.iter();
    let (of_trajectories, of_step): (Vec<_>, Vec<_>) =
        differences.partition(|difference| difference.trajectory.is_some());
    for differences in [of_trajectories, of_step] {
        for difference in differences.iter().take(MAX_SHOWN) {
            say!("  {}", described(difference));
        }
        if differences.len() > MAX_SHOWN {
            say!("  and {} more like these", differences.len() - MAX_SHOWN);
        }
    }
    let reasons: Vec<String> = [&replayed.changes[..], &replayed.reasons].concat();
    if reasons.is_empty() {
        say!(
            "binary, machine, plugins and task files are those of the run, so the reason is not known"
        );
    }
    print_list("likely reasons", &reasons);
}

fn print_list(title: &str, lines: &[String]) {
    if !lines.is_empty() {
        say!("{title}:");
    }
    for line in lines {
        say!("  {}", printable(line));
    }
}

fn counts(replayed: &Replayed) -> String {
    let compared = &replayed.compared;
    let metrics = format!("{} metrics", compared.metrics);
    match compared.trajectories {
        None => metrics,
        Some(trajectories) => format!(
            "{trajectories} trajectories with {} sampled tokens and their log-probabilities, calls, rewards and \
             advantages, and {metrics}",
            compared.tokens
        ),
    }
}

fn described(difference: &Difference) -> String {
    let Difference {
        trajectory,
        what,
        recorded,
        replayed,
    } = difference;
    let place = trajectory.as_ref().map_or_else(String::new, |place| {
        format!("task {}, sample {}: ", place.task, place.sample)
    });
    printable(&format!(
        "{place}{what}: recorded {recorded}, replayed {replayed}"
    ))
}
