//! Makes FTRL's step-level samples from our own trajectories: every prefix of a trajectory that ends with results, with
//! the sub-answers that are still to be found. FTRL's own step-level samples are in its row format, which
//! [`Options::steps`](crate::Options::steps) reads.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use rlf_dialogue::message::plain_text;
use rlf_dialogue::trajectory::Event;
use rlf_dialogue::{Content, Message, Role, Task, Trajectory};
use serde_json::Value;

use crate::error::{ImportError, RowError};
use crate::field::Row;
use crate::file_rows::file_rows;
use crate::formats::Unsolved;

/// The prefixes of one trajectory of an FTRL task, shortest first, as tasks of one turn, without the task itself. They end
/// at a turn whose calls were not all well-formed or not all answered, because messages cannot express what the model
/// read there.
///
/// Fails if the task is not FTRL's; the error says why.
pub fn steps(task: &Task, trajectory: &Trajectory) -> Result<Vec<Task>, ImportError> {
    let fail = |message: String| ImportError::NotFtrl {
        task: task.id.clone(),
        message,
    };
    let unsolved = task.reference.get("unsolved").and_then(Value::as_object);
    let unsolved =
        unsolved.ok_or_else(|| fail("no `reference.unsolved`, so it is not FTRL's".into()))?;
    let mut unsolved = Unsolved::try_from(unsolved.clone())
        .map_err(|error| fail(format!("`reference.unsolved`: {error}")))?;
    let all = unsolved.count();
    let mut prompt = task.prompt.clone();
    let mut steps = Vec::new();
    let mut turns = 0_usize;
    let mut waiting = 0_usize;
    for event in &trajectory.events {
        match event {
            Event::Turn(turn) => {
                if waiting > 0 || turn.calls.is_empty() || !turn.malformed.is_empty() {
                    break;
                }
                turns += 1;
                waiting = turn.calls.len();
                prompt.push(Message {
                    role: Role::Assistant,
                    content: vec![Content::Text(turn.visible.clone())],
                    reasoning_content: turn.reasoning.clone(),
                    tool_calls: turn.calls.clone(),
                });
            }
            Event::Outcome(outcome) => {
                let Some(observation) = outcome.observation.as_ref().filter(|_| waiting > 0) else {
                    break;
                };
                let text = plain_text(&observation.content);
                unsolved.solve(&outcome.name, &text);
                prompt.push(Message::text(Role::Tool, text));
                waiting -= 1;
                if waiting == 0 {
                    let id = format!("{}/{turns}", trajectory.id);
                    steps.push(step(task, id, &prompt, turns, &unsolved, all));
                }
            }
            // A user's message is in between, which FTRL's conversations do not have.
            Event::User(_) => break,
        }
    }
    Ok(steps)
}

fn step(
    task: &Task,
    id: String,
    prompt: &[Message],
    turns: usize,
    unsolved: &Unsolved,
    all: usize,
) -> Task {
    let mut step = Task {
        id,
        prompt: prompt.to_vec(),
        ..task.clone()
    };
    let solved = all - unsolved.count();
    if let Some(reference) = step.reference.as_object_mut() {
        let left = Value::Object(Row::from(unsolved.clone()));
        reference.insert("unsolved".into(), left);
        // They are the calls of the whole question, and some may have been made already.
        reference.remove("calls");
    }
    step.extra.insert("turns".into(), turns.into());
    step.extra.insert(
        "solve_rate".into(),
        (solved as f64 / all.max(1) as f64).into(),
    );
    step
}

/// The step-level samples of a run: each of `tasks` that was tried, and the prefixes of its trajectories, each once.
/// `run` is a run's folder, its folder `trajectories`, or a file in it: JSON lines with trajectories, or with objects that
/// have a `trajectory`.
pub fn steps_of_run(tasks: &[Task], run: &Path) -> Result<Vec<Task>, ImportError> {
    let by_id: HashMap<&str, &Task> = tasks.iter().map(|task| (task.id.as_str(), task)).collect();
    let mut samples = Vec::new();
    let mut tried = HashSet::new();
    let mut prompts = HashSet::new();
    for file in files(run)? {
        for row in file_rows(&file)? {
            let (line, mut row) = row?;
            let fail = |message: String| ImportError::Row {
                path: file.clone(),
                line,
                source: RowError::Row(message),
            };
            let trajectory = row.get_mut("trajectory").map(Value::take).unwrap_or(row);
            let trajectory: Trajectory = serde_json::from_value(trajectory)
                .map_err(|error| fail(format!("it holds no trajectory: {error}")))?;
            let task = by_id.get(trajectory.task.as_str()).ok_or_else(|| {
                fail(format!(
                    "its task {:?} is none of the tasks given; give the file that the run has as `tasks.train`",
                    trajectory.task
                ))
            })?;
            if trajectory.excluded.is_some() {
                continue;
            }
            let prefixes = steps(task, &trajectory).map_err(|error| fail(error.to_string()))?;
            if tried.insert(trajectory.task.clone()) {
                samples.push((*task).clone());
            }
            for step in prefixes {
                // The ids of calls differ even if nothing else does.
                let said = step.prompt.iter().map(without_ids).collect::<String>();
                if prompts.insert((trajectory.task.clone(), said)) {
                    samples.push(step);
                }
            }
        }
    }
    if samples.is_empty() {
        return Err(ImportError::NoTrajectories(run.to_owned()));
    }
    Ok(samples)
}

/// The files with trajectories, sorted by name, which is the order of steps.
fn files(run: &Path) -> Result<Vec<PathBuf>, ImportError> {
    if !run.is_dir() {
        return Ok(vec![run.to_owned()]);
    }
    let within = run.join("trajectories");
    let folder = if within.is_dir() { &within } else { run };
    let read = || -> std::io::Result<Vec<PathBuf>> {
        let entries = fs::read_dir(folder)?;
        entries.map(|entry| Ok(entry?.path())).collect()
    };
    let mut files = read().map_err(|source| ImportError::Read {
        path: folder.to_owned(),
        source,
    })?;
    files.retain(|file| file.extension().is_some_and(|end| end == "jsonl"));
    files.sort();
    Ok(files)
}

/// A message as text, without the ids of its calls.
fn without_ids(message: &Message) -> String {
    let calls: Vec<(&str, &Value)> = message
        .tool_calls
        .iter()
        .map(|call| (call.name.as_str(), &call.arguments))
        .collect();
    format!(
        "{:?}\n",
        (
            message.role,
            message.plain_text(),
            &message.reasoning_content,
            calls
        )
    )
}
