//! The records of a step of RL: its line of metrics, and its trajectories.

use std::collections::BTreeMap;
use std::path::Path;

use rlf_dialogue::score::Score;
use rlf_dialogue::trajectory::Trajectory;
use rlf_train::metrics::names;
use rlf_train::phase::Phase;
use rlf_train::run::{metrics_path, trajectory_files};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::error::RunFailure;
use crate::history::json_lines;

/// A trajectory with its grade, as a file of a run has it.
#[derive(Deserialize)]
pub(super) struct Record {
    /// Index of the group within the step.
    pub(super) group: usize,
    pub(super) task: String,
    pub(super) score: Option<Score>,
    pub(super) excluded: Option<String>,
    pub(super) advantage: Option<f32>,
    pub(super) trajectory: Trajectory,
}

/// The trajectories of a step. None if the run in the folder `run` kept none.
pub(super) fn trajectories(run: &Path, step: u64) -> Result<Option<Vec<Record>>, RunFailure> {
    let files = trajectory_files(run)?;
    let mut files = files.iter();
    let file = files.find(|(phase, number, _)| (*phase, *number) == (Phase::Rl, step));
    file.map(|(_, _, file)| json_lines(file, usize::MAX))
        .transpose()
}

/// The lines of metrics about the steps of RL of the run in the folder `run`, by step.
pub(super) fn metrics(run: &Path) -> Result<BTreeMap<u64, Map<String, Value>>, RunFailure> {
    let lines: Vec<Map<String, Value>> = json_lines(&metrics_path(run), usize::MAX)?;
    let is_step = |line: &Map<String, Value>| {
        let phase = line.get(names::PHASE).and_then(Value::as_str);
        phase == Some(Phase::Rl.as_str()) && !line.contains_key(names::SPLIT)
    };
    let steps = lines.into_iter().filter(is_step);
    Ok(steps
        .filter_map(|line| Some((line.get(names::STEP)?.as_u64()?, line)))
        .collect())
}
