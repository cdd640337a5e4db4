//! The layout of a run directory.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::error::RunError;
use crate::phase::Phase;

/// The file of a checkpoint for the state of the rollouts.
pub(super) const ROLLOUTS: &str = "rollouts.json";

/// The file of a checkpoint for the groups that may train again.
pub(crate) const REPLAY: &str = "replay.json";

/// The folder of a checkpoint for the weights after earlier steps.
pub(super) const OLDER: &str = "older";

/// The metrics of the run in `run`: JSON lines.
pub fn metrics_path(run: &Path) -> PathBuf {
    run.join("metrics.jsonl")
}

/// The resolved configuration of the run in `run`.
pub fn config_path(run: &Path) -> PathBuf {
    run.join("config.toml")
}

/// The hashes of the plugins and data of the run in `run`.
pub fn plugins_path(run: &Path) -> PathBuf {
    run.join("plugins.json")
}

/// The hashes of the inputs of the run in `run`.
pub(super) fn inputs_path(run: &Path) -> PathBuf {
    run.join("inputs.json")
}

/// The binary and machine with which the run in `run` was started.
pub fn machine_path(run: &Path) -> PathBuf {
    run.join("machine.json")
}

/// The folder of the files that make every checkpoint of the run in `run` loadable.
pub fn assets_path(run: &Path) -> PathBuf {
    run.join("assets")
}

/// The folder of the trajectories of the run in `run`.
pub(super) fn trajectories_path(run: &Path) -> PathBuf {
    run.join("trajectories")
}

/// The file of the trajectories of one step.
pub(super) fn trajectory_file(run: &Path, phase: Phase, step: u64) -> PathBuf {
    trajectories_path(run).join(format!("{phase}-{step:06}.jsonl"))
}

/// The files of the trajectories of the run in `run` with their phases and steps, oldest first.
pub fn trajectory_files(run: &Path) -> Result<Vec<(Phase, u64, PathBuf)>, RunError> {
    let folder = trajectories_path(run);
    let list = |source| RunError::io("list", &folder, source);
    let entries = match fs::read_dir(&folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries.map_err(list)?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry.map_err(list)?.path();
        let place = path.file_name().and_then(|name| {
            let (phase, step) = name.to_str()?.strip_suffix(".jsonl")?.split_once('-')?;
            let phase = Phase::ALL.into_iter().find(|p| p.as_str() == phase)?;
            Some((phase, step.parse().ok()?))
        });
        files.extend(place.map(|(phase, step)| (phase, step, path)));
    }
    files.sort();
    Ok(files)
}

/// The folder of the checkpoints of the run in `run`.
pub(super) fn checkpoints_path(run: &Path) -> PathBuf {
    run.join("checkpoints")
}

/// The folder of the frozen weights of the run in `run`, if adapters are trained beside weights that were made from the
/// seed.
pub fn base_path(run: &Path) -> PathBuf {
    run.join("base")
}

/// The folder of the weights with which RL began in the run in `run`, if a KL term needs them.
pub fn reference_path(run: &Path) -> PathBuf {
    run.join("reference")
}

/// The folder of the weights of the run in `run` that plugins ask.
pub fn frozen_path(run: &Path) -> PathBuf {
    run.join("frozen")
}

/// True if `path` holds the files that [`RunDirectory::create`](super::RunDirectory::create) writes,
/// and so may be replaced as a run.
pub fn is_run(path: &Path) -> bool {
    [config_path(path), machine_path(path), plugins_path(path)]
        .iter()
        .all(|file| file.is_file())
}
