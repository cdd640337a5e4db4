//! `rlf-host forge stats`: counts what a folder of tasks has.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use console::style;
use rlf_forge::tasks::{Folder, Made, Rejected, Statistics, TaskRecord};

use super::counted::counted;
use super::suite::from_folder;

pub(super) fn run(folder: &Path, html: Option<&Path>, as_json: bool) -> anyhow::Result<ExitCode> {
    let folder = Folder::new(folder);
    let suite = from_folder(&folder)?;
    let unfinished = "`rlf-host forge tasks` has not finished this folder";
    let tasks = folder.read_tasks().context(unfinished)?;
    let made = made(tasks, folder.read_rejected().context(unfinished)?);
    let statistics = Statistics::new(&suite, &made);
    if let Some(html) = html {
        let title = format!("Tasks in the folder {}", folder.path().display());
        rlf_files::write(html, statistics.to_html(&title).as_bytes())
            .with_context(|| format!("cannot write {}", html.display()))?;
    }
    if as_json {
        say!("{}", serde_json::to_string_pretty(&statistics)?);
    } else {
        show(&statistics);
        if let Some(html) = html {
            say!("{}", html.display());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The result of a run. Each of its candidates became a task or was rejected.
fn made(tasks: Vec<TaskRecord>, rejected: Vec<Rejected>) -> Made {
    Made {
        candidates: (tasks.len() + rejected.len()) as u64,
        tasks,
        rejected,
    }
}

/// Prints the counts.
pub(super) fn show(counts: &Statistics) {
    say!(
        "{} {}, {}, {}; {} of {}, {} of {}",
        style("tasks").bold(),
        counted(counts.tasks, "task"),
        counted(counts.turns, "turn"),
        counted(counts.calls, "call"),
        counts.environments_used,
        counted(counts.environments, "environment"),
        counts.tools_used,
        counted(counts.tools, "tool")
    );
    if counts.tasks > 0 {
        of_tasks(counts);
    }
    let rejected: usize = counts.rejected.values().flat_map(BTreeMap::values).sum();
    say!(
        "rejected: {rejected} of {} candidates ({:.1} %)",
        counts.candidates,
        100.0 * rejected as f64 / counts.candidates.max(1) as f64
    );
    for (stage, reasons) in &counts.rejected {
        let reasons: BTreeMap<&str, usize> = reasons
            .iter()
            .map(|(reason, count)| (reason.as_str(), *count))
            .collect();
        line(&format!("  {}", stage.as_str()), &reasons);
    }
}

/// Prints the counts of the tasks, of which there is at least one.
fn of_tasks(counts: &Statistics) {
    line("split", &counts.by_split);
    line("unseen in training", &counts.by_unseen);
    line("domain", &counts.by_domain);
    line("environments of a task", &counts.by_servers);
    line("calls of a task", &counts.by_calls);
    line("turns of a task", &counts.by_turns);
    line("implicitness", &counts.by_implicit);
    line("words", &counts.by_author);
    line("difficulty", &counts.by_difficulty);
    say!(
        "templates of words: {}; the most frequent one has {:.2} % of the tasks",
        counts.templates,
        100.0 * counts.most_frequent_template
    );
    if let Some((tool, share)) = counts.most_requested() {
        say!(
            "requested tools: {}; the most frequent one, {tool}, has {:.1} % of the requests",
            counts.by_requested.len(),
            100.0 * share
        );
    }
}

fn line<K: std::fmt::Display>(name: &str, counts: &BTreeMap<K, usize>) {
    let counts: Vec<String> = counts
        .iter()
        .map(|(key, count)| format!("{key} {count}"))
        .collect();
    say!("{name}: {}", counts.join(", "));
}

#[cfg(test)]
mod tests {
    use rlf_forge::tasks::{Reason, Stage};

    use super::*;

    #[test]
    fn a_run_that_kept_nothing_had_as_many_candidates_as_it_rejected() {
        let rejected = |candidate| Rejected {
            candidate,
            stage: Stage::Chains,
            reason: Reason::InvalidChain,
            detail: "it has no source".to_owned(),
        };
        assert_eq!(
            made(Vec::new(), vec![rejected(0), rejected(1)]).candidates,
            2
        );
    }
}
