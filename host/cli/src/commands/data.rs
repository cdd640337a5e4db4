//! `rlf-host data import`: converts published data sets into tasks and demonstrations.

mod replay;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use rlf_dialogue::task::Task;
use rlf_import::{
    CustomerMode, Demonstration, Format, FunctionScoping, Imported, Options, Reasoning, read_tasks,
};

use crate::arguments::{Data, DataCommand, Import};
use crate::warning::warn;

/// Maximum number of bad rows that are printed. The others are only counted.
const MAX_SHOWN_ERRORS: usize = 20;

pub(crate) fn run(options: &Data) -> anyhow::Result<ExitCode> {
    match &options.command {
        DataCommand::Formats => {
            for format in rlf_import::formats() {
                let use_of = if format.is_for_sft() { "SFT" } else { "RL" };
                say!("{:<15} {use_of:<4} {}", format.as_str(), format.about());
            }
            Ok(ExitCode::SUCCESS)
        }
        DataCommand::Import(import) => run_import(import),
    }
}

/// The imported rows, in the order of the files.
#[derive(Default)]
struct Rows {
    tasks: Vec<Task>,
    demonstrations: Vec<Demonstration>,
    bad: usize,
    /// Lines printed about the rows.
    messages: Vec<String>,
}

impl Rows {
    /// Removes the tasks at these indices.
    fn leave_out(&mut self, tasks: &BTreeSet<usize>) {
        let mut index = 0..;
        self.tasks
            .retain(|_| index.next().is_some_and(|index| !tasks.contains(&index)));
        self.bad += tasks.len();
    }
}

fn run_import(import: &Import) -> anyhow::Result<ExitCode> {
    let options = options(import)?;
    let mut rows = match &import.steps_of {
        Some(run) => steps_of(&import.files, run)?,
        None => read(import, &options)?,
    };
    check_rows(import, &mut rows)?;
    let wrong = if import.replay {
        replay(import, &mut rows)?
    } else {
        0
    };
    write(import, &mut rows)?;
    // If rows go to standard output, messages must not.
    let to_stdout = rlf_files::is_standard_output(&import.output);
    for line in &rows.messages {
        if to_stdout {
            eprintln!("{line}");
        } else {
            say!("{line}");
        }
    }
    if wrong > 0 {
        warn(&format!(
            "of the tasks written, {wrong} cannot be right, as said above; --skip-bad leaves such rows out"
        ));
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// The options of the import, from the command line.
fn options(import: &Import) -> anyhow::Result<Options> {
    let from = import
        .from
        .as_deref()
        .map(str::parse::<Format>)
        .transpose()
        .map_err(|error| anyhow!("--from: {error}"))?;
    Ok(Options {
        from,
        environment: import.environment.clone(),
        scoping: match import.scoping.as_str() {
            "clean" => FunctionScoping::Clean,
            "published" => FunctionScoping::Published,
            other => bail!("--scoping {other}: write clean or published"),
        },
        steps: import.steps,
        user: match import.user.as_str() {
            "solo" => CustomerMode::Solo,
            "model" => CustomerMode::Model,
            other => bail!("--user {other}: write solo or model"),
        },
        reasoning: if import.drop_reasoning {
            Reasoning::Drop
        } else {
            Reasoning::Keep
        },
    })
}

/// Fails if the rows cannot go into one file. Leaves out rows whose id an earlier row has, if bad rows may be left out.
fn check_rows(import: &Import, rows: &mut Rows) -> anyhow::Result<()> {
    if !rows.tasks.is_empty() && !rows.demonstrations.is_empty() {
        bail!(
            "{} rows are tasks, for RL, and {} are demonstrations, for SFT, which go into files of their own: name one format with --from",
            rows.tasks.len(),
            rows.demonstrations.len()
        );
    }
    let twice = later_ones(&rows.tasks);
    if let (Some(first), false) = (twice.first(), import.skip_bad) {
        bail!(
            "two rows have the id {:?}, and a file of tasks has each id once; import them into files of their own, or leave \
             the later one out with --skip-bad",
            rows.tasks[*first].id
        );
    }
    rows.leave_out(&twice);
    let has_begun = |task: &Task| task.extra.contains_key("turns");
    if import.steps && !rows.tasks.iter().any(has_begun) {
        warn("--steps takes rows whose conversation has begun, and none of these has");
    }
    Ok(())
}

/// Replays the tasks' gold calls. Leaves out tasks that cannot be right, if bad rows may be left out. Returns the number
/// of such tasks that stay.
fn replay(import: &Import, rows: &mut Rows) -> anyhow::Result<usize> {
    let (wrong, messages) = replay::run(import, &mut rows.tasks)?;
    rows.messages.extend(messages);
    if import.skip_bad {
        rows.leave_out(&wrong);
        return Ok(0);
    }
    Ok(wrong.len())
}

/// Writes the rows to the output, and adds messages with their numbers.
fn write(import: &Import, rows: &mut Rows) -> anyhow::Result<()> {
    if rows.tasks.is_empty() && rows.demonstrations.is_empty() {
        bail!("there is no row to write");
    }
    if rows.demonstrations.is_empty() {
        rlf_import::write_tasks(&import.output, &rows.tasks)?;
        let kinds = kinds(&rows.tasks, &import.output);
        rows.messages.extend(kinds);
    } else {
        rlf_import::write_demonstrations(&import.output, &rows.demonstrations)?;
        let turns: usize = rows
            .demonstrations
            .iter()
            .map(|one| one.messages.len() - one.given)
            .sum();
        rows.messages.push(format!(
            "{} demonstrations with {turns} messages behind their prompts in {}",
            rows.demonstrations.len(),
            import.output.display()
        ));
    }
    if rows.bad > 0 {
        rows.messages.push(format!("{} rows left out", rows.bad));
    }
    Ok(())
}

/// Indices of tasks whose id an earlier task has.
fn later_ones(tasks: &[Task]) -> BTreeSet<usize> {
    let mut ids = BTreeSet::new();
    (0..tasks.len())
        .filter(|index| !ids.insert(tasks[*index].id.as_str()))
        .collect()
}

fn read(import: &Import, options: &Options) -> anyhow::Result<Rows> {
    let mut rows = Rows::default();
    let most = import.limit.unwrap_or(usize::MAX);
    let mut renamed = 0;
    let is_full = |rows: &Rows| rows.tasks.len() + rows.demonstrations.len() >= most;
    for file in &import.files {
        if is_full(&rows) {
            break;
        }
        let mut read = rlf_import::rows(file, options)?;
        for row in read.by_ref() {
            if is_full(&rows) {
                break;
            }
            match row {
                Ok(Imported::Task(task)) => rows.tasks.push(task),
                Ok(Imported::Demonstration(demonstration)) => {
                    rows.demonstrations.push(demonstration);
                }
                Err(error) if import.skip_bad && error.is_of_a_row() => {
                    rows.bad += 1;
                    if rows.bad <= MAX_SHOWN_ERRORS {
                        warn(&error.to_string());
                    }
                }
                Err(error) => {
                    return Err(error)
                        .context("nothing was written; --skip-bad leaves such rows out");
                }
            }
        }
        renamed += read.renamed();
    }
    if renamed > 0 {
        rows.messages.push(format!(
            "{renamed} rows had the id of another in their file, and have their line behind it: ID@LINE"
        ));
    }
    Ok(rows)
}

/// Makes step-level samples from a run's trajectories. `files` are the imported tasks that the run was given.
fn steps_of(files: &[std::path::PathBuf], run: &Path) -> anyhow::Result<Rows> {
    let mut tasks = Vec::new();
    for file in files {
        tasks.extend(read_tasks(file)?);
    }
    let samples = rlf_import::steps_of_run(&tasks, run)?;
    // The tasks may themselves be step-level rows, whose conversation is already under way.
    let given: BTreeSet<&str> = tasks.iter().map(|task| task.id.as_str()).collect();
    let is_given = |sample: &&Task| given.contains(sample.id.as_str());
    let tried = samples.iter().filter(is_given).count();
    let tried = format!(
        "{tried} questions were tried, and {} different ways that they had begun",
        samples.len() - tried
    );
    Ok(Rows {
        tasks: samples,
        messages: vec![tried],
        ..Rows::default()
    })
}

/// Lines with the number of written tasks of each kind.
fn kinds(tasks: &[Task], output: &Path) -> Vec<String> {
    let mut lines = vec![format!("{} tasks in {}", tasks.len(), output.display())];
    let mut kinds: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for task in tasks {
        let environment = task.environment.as_deref().unwrap_or("no environment");
        *kinds.entry((&task.source, environment)).or_default() += 1;
    }
    for ((source, environment), count) in kinds {
        lines.push(format!("  {count:>6} of {source}, in {environment}"));
    }
    lines
}
