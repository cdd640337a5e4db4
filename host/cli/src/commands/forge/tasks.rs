//! `rlf-host forge tasks`: makes tasks in environments.

use std::collections::BTreeSet;
use std::error::Error;
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, bail};
use console::style;
use indicatif::{ProgressBar, ProgressStyle};
use rlf_forge::sampling::Strategy;
use rlf_forge::tasks::options::InventoryOptions;
use rlf_forge::tasks::output::{RowSettings, Written};
use rlf_forge::tasks::pipeline::{Replayer, WordsOf, sample};
use rlf_forge::tasks::replay::{Divergence, replay};
use rlf_forge::tasks::rewrite::Report;
use rlf_forge::tasks::{
    Folder, Made, Maker, Manifest, PipelineError, Progress, Stage, Statistics, TaskOptions,
    TaskRecord, make_in_words,
};
use serde_json::json;

use super::counted::counted;
use super::rewriting::Rewriting;
use super::suite::{Read, keep, read};
use super::{export, interrupt, stats};
use crate::arguments::{ChainSampling, ForgeTasks, GroupOptions, PluginBindings, TaskStage};
use crate::commands::env::find;
use crate::operator::Operator;

/// Number of tasks that a dry run makes.
const SAMPLE: usize = 64;

pub(super) fn run(forge: &GroupOptions, command: &ForgeTasks) -> anyhow::Result<ExitCode> {
    // Before environments in Python are observed, which takes long.
    possible(command)?;
    let options = options(command);
    let operator = Operator::load(forge.config.as_deref())?;
    let rewriting = Rewriting::new(command, &operator, forge.json)?;
    let folder = Folder::new(&command.output);
    if !command.dry_run {
        refuse_own_copies(&folder, &command.environments)?;
        interrupt::watch(continues(command))?;
    }
    let before = (!command.restart).then_some(&folder);
    let read = read(forge, &command.environments, before)?;
    known_scenarios(&read, &options)?;
    if command.dry_run {
        return dry_run(&read, &options, rewriting.as_ref(), forge.json);
    }
    let begun = Instant::now();
    let _lock = folder.lock()?;
    let manifest = Manifest::new(&read.suite, &options, !command.no_replay);
    if command.restart {
        folder.restart(&manifest)?;
    } else {
        folder.begin(&manifest)?;
    }
    if let Some(from) = command.from {
        folder.forget(stage(from))?;
    }
    keep(&read, &folder)?;
    let maker = Maker::new(&read.suite, &options);
    let mut reworded = None;
    let mut rewrite = |tasks: &mut [TaskRecord]| -> Result<(), Box<dyn Error + Send + Sync>> {
        if let Some(rewriting) = &rewriting {
            reworded = Some(rewriting.rewrite(&maker, &folder, tasks)?);
        }
        Ok(())
    };
    let outcome = if command.no_replay {
        run_stages(&maker, &folder, None, &mut rewrite)
    } else {
        let environments = folder.environments();
        let found = find(
            &forge.plugins.plugins,
            &operator,
            &environments,
            &PluginBindings::NONE,
        )?;
        let runtime = crate::commands::runtime()?;
        let mut replays = |tasks: &[TaskRecord]| {
            let all = async {
                let mut results = Vec::with_capacity(tasks.len());
                for task in tasks {
                    let result = replay(&found.environments, &found.name, task).await;
                    let is_general = result.as_ref().is_err_and(Divergence::is_general);
                    results.push(result);
                    if is_general {
                        break;
                    }
                }
                results
            };
            runtime.block_on(all)
        };
        run_stages(&maker, &folder, Some(&mut replays), &mut rewrite)
    };
    let (made, fruitless) = match outcome {
        Err(error @ PipelineError::Fruitless { .. }) => (kept_in(&folder)?, Some(error)),
        outcome => (outcome?, None),
    };
    let settings = command.rows.over(RowSettings::default());
    folder.write_row_settings(&settings)?;
    let written = export::write(
        &read.suite,
        &made.tasks,
        &command.format,
        &settings,
        folder.path(),
    )?;
    let reworded = rewriting.as_ref().zip(reworded.as_ref());
    report(
        &read,
        &made,
        &written,
        begun.elapsed().as_secs_f64(),
        command,
        reworded,
        forge.json,
    )?;
    if let Some(error) = fruitless {
        return Err(error).with_context(|| {
            format!(
                "--count {} was not reached; {} has {}",
                options.count,
                folder.tasks().display(),
                counted(made.tasks.len(), "task")
            )
        });
    }
    let is_whole = reworded.is_none_or(|(_, report)| report.unanswered == 0);
    Ok(if is_whole {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Says how to continue a run that was stopped. Some options would delete what it has made.
fn continues(command: &ForgeTasks) -> &'static str {
    match (command.restart, command.from) {
        (false, None) => "the same command continues",
        (true, None) => "the same command without --restart continues",
        (false, Some(_)) => "the same command without --from continues",
        (true, Some(_)) => "the same command without --restart and --from continues",
    }
}

/// The tasks that a run wrote, and the candidates that it rejected.
fn kept_in(folder: &Folder) -> anyhow::Result<Made> {
    let (tasks, rejected) = (folder.read_tasks()?, folder.read_rejected()?);
    Ok(Made {
        candidates: (tasks.len() + rejected.len()) as u64,
        tasks,
        rejected,
    })
}

/// Refuses options that no task can meet together.
fn possible(command: &ForgeTasks) -> anyhow::Result<()> {
    let wanted = min_passes(command);
    if wanted > command.attempts {
        bail!(
            "--min-passes {wanted} is more than --attempts {}, so no task could be kept; raise --attempts",
            command.attempts
        );
    }
    if command.linked_turns && (command.max_turns < 2 || command.max_calls < 2) {
        bail!("--linked-turns needs two turns with a call each; raise --max-turns and --max-calls");
    }
    let most_calls = command
        .max_calls
        .min(command.max_turn_calls * command.max_turns);
    if most_calls < 2 && !command.keep_trivial && !command.unchecked {
        bail!(
            "tasks of one call are mostly trivial and left out; raise --max-calls and --max-turn-calls, or add --keep-trivial"
        );
    }
    Ok(())
}

/// Refuses environments from the `environments` folder of the output itself, because that holds copies of others.
fn refuse_own_copies(folder: &Folder, environments: &[PathBuf]) -> anyhow::Result<()> {
    let Ok(copies) = folder.environments().canonicalize() else {
        return Ok(());
    };
    for given in environments {
        if given
            .canonicalize()
            .is_ok_and(|given| given.starts_with(&copies))
        {
            bail!(
                "{} is where --output {} keeps its copies of environments; name another folder with --output",
                given.display(),
                folder.path().display()
            );
        }
    }
    Ok(())
}

fn options(command: &ForgeTasks) -> TaskOptions {
    TaskOptions {
        count: command.count,
        seed: command.seed,
        sampling: match command.sampling {
            ChainSampling::Topology => Strategy::Topology,
            ChainSampling::RandomWalk => Strategy::RandomWalk,
        },
        chain: command.chain,
        max_servers: command.max_servers,
        max_calls: command.max_calls,
        max_turns: command.max_turns,
        max_turn_calls: command.max_turn_calls.min(command.max_calls),
        max_tools_shown: command.max_tools_shown,
        inventory: InventoryOptions {
            bare_names: command.bare_names,
            other_environments: command.other_environments,
            rename_tools: command.rename_tools,
            rename_parameters: command.rename_parameters,
            permute_parameters: command.permute_parameters,
        },
        linked_turns: command.linked_turns,
        scenarios: command.scenarios.clone(),
        refine: command.refine,
        ask: command.ask,
        mistakes: command.mistakes,
        terse: command.terse,
        keep_trivial: command.keep_trivial,
        unchecked: command.unchecked,
        attempts: command.attempts,
        min_passes: min_passes(command),
        held_out_environments: command.held_out_environments,
        held_out_tools: command.held_out_tools,
    }
}

/// Number of attempts of the solver that must reach the goal: all of them, unless the user asks for fewer.
fn min_passes(command: &ForgeTasks) -> u32 {
    command.min_passes.unwrap_or(command.attempts)
}

fn stage(stage: TaskStage) -> Stage {
    match stage {
        TaskStage::Chains => Stage::Chains,
        TaskStage::Trajectories => Stage::Trajectories,
        TaskStage::Queries => Stage::Queries,
        TaskStage::Checks => Stage::Checks,
        TaskStage::Replays => Stage::Replays,
        TaskStage::Texts => Stage::Texts,
    }
}

/// Fails if a scenario exists in none of the environments.
fn known_scenarios(read: &Read, options: &TaskOptions) -> anyhow::Result<()> {
    let environments = read.suite.environments();
    for wanted in &options.scenarios {
        if !environments
            .iter()
            .any(|one| one.scenarios.contains(wanted))
        {
            let known: BTreeSet<&str> = environments
                .iter()
                .flat_map(|one| one.scenarios.iter().map(String::as_str))
                .collect();
            let known: Vec<&str> = known.into_iter().collect();
            bail!(
                "no environment has a scenario `{wanted}`; there are {}",
                known.join(", ")
            );
        }
    }
    Ok(())
}

/// Runs the stages, with a live line on a terminal.
fn run_stages(
    maker: &Maker<'_>,
    folder: &Folder,
    replays: Option<&mut Replayer<'_>>,
    rewrite: &mut WordsOf<'_>,
) -> Result<Made, PipelineError> {
    let bar = if std::io::stderr().is_terminal() {
        let bar = ProgressBar::new(maker.options.count as u64);
        let style = "tasks {bar:30} {pos}/{len} {elapsed} (about {eta} left)  {msg}";
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style);
        }
        bar
    } else {
        ProgressBar::hidden()
    };
    let made = make_in_words(
        maker,
        folder,
        replays,
        Some(rewrite),
        |progress: Progress| {
            bar.set_position(progress.kept as u64);
            bar.set_message(format!("{} candidates", progress.candidates));
        },
    );
    bar.finish_and_clear();
    made
}

/// Makes a small sample in a temporary folder, and says what the whole would need.
fn dry_run(
    read: &Read,
    options: &TaskOptions,
    rewriting: Option<&Rewriting>,
    as_json: bool,
) -> anyhow::Result<ExitCode> {
    let begun = Instant::now();
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let folder = Folder::new(folder.path());
    folder.begin(&Manifest::new(&read.suite, options, false))?;
    let maker = Maker::new(&read.suite, options);
    let made = sample(&maker, &folder, options.count.min(SAMPLE))?;
    let seconds = begun.elapsed().as_secs_f64();
    let times = options.count as f64 / made.tasks.len() as f64;
    let size = std::fs::metadata(folder.tasks()).map_or(0, |file| file.len());
    let tools: usize = read
        .suite
        .environments()
        .iter()
        .map(|one| one.tools.len())
        .sum();
    let kept = made.tasks.len() as f64 / made.candidates.max(1) as f64;
    let splits = maker.splits.counts();
    if as_json {
        let report = json!({
            "environments": read.suite.environments().len(), "tools": tools, "splits": splits, "sampled": made.tasks.len(),
            "share_kept": kept, "estimated_seconds": seconds * times, "estimated_bytes": size as f64 * times,
            "words": rewriting.map(|rewriting| rewriting.dry_run(&maker, &made.tasks, times)).transpose()?,
        });
        say!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(ExitCode::SUCCESS);
    }
    let splits: Vec<String> = splits
        .iter()
        .map(|(split, count)| format!("{split} {count}"))
        .collect();
    say!(
        "{} environments with {tools} tools ({})",
        read.suite.environments().len(),
        splits.join(", ")
    );
    say!(
        "a sample of {} tasks took {seconds:.1} s; {:.0} % of the candidates were kept",
        made.tasks.len(),
        100.0 * kept
    );
    say!(
        "{} tasks: about {:.0} s without the replay, {:.0} MB of tasks{}",
        options.count,
        seconds * times,
        size as f64 * times / 1e6,
        if rewriting.is_none() {
            "; no model is asked, so no token is paid for"
        } else {
            ""
        }
    );
    if let Some(rewriting) = rewriting {
        rewriting.dry_run(&maker, &made.tasks, times)?;
        return Ok(ExitCode::SUCCESS);
    }
    for task in made.tasks.iter().take(3) {
        for turn in &task.turns {
            say!("  {} {}", style(&task.id).cyan(), turn.query);
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn report(
    read: &Read,
    made: &Made,
    written: &[Written],
    seconds: f64,
    command: &ForgeTasks,
    reworded: Option<(&Rewriting, &Report)>,
    as_json: bool,
) -> anyhow::Result<()> {
    let statistics = Statistics::new(&read.suite, made);
    let each = made.tasks.len() as f64 / seconds.max(1e-9);
    if as_json {
        let files = written
            .iter()
            .map(|file| json!({ "path": file.path, "rows": file.rows }));
        let left_out: Vec<_> = read.observed.iter().flat_map(|one| &one.left_out).collect();
        let report = json!({
            "output": command.output, "seconds": seconds, "tasks_per_second": each, "replayed": !command.no_replay,
            "statistics": statistics, "words": reworded.map(|(rewriting, report)| rewriting.json(report)),
            "files": files.collect::<Vec<_>>(), "left_out": left_out,
        });
        say!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(());
    }
    stats::show(&statistics);
    export::show(written);
    if let Some((rewriting, report)) = reworded {
        rewriting.show(report);
    }
    if made.tasks.is_empty() {
        return Ok(());
    }
    say!(
        "{:.1} s, {each:.0} tasks/s; {}{}",
        seconds,
        if command.unchecked {
            "not checked; "
        } else {
            ""
        },
        if command.no_replay {
            "not replayed in the sandbox"
        } else {
            "every task was replayed in the sandbox"
        }
    );
    Ok(())
}
