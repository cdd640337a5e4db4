//! The layout of a run directory.

use std::path::{Path, PathBuf};

/// The file of a checkpoint for the state of the rollouts.
pub(super) const ROLLOUTS: &str = "rollouts.json";

/// The metrics of the run in `run`: JSON lines.
pub fn metrics_path(run: &Path) -> PathBuf {
    run.join("metrics.jsonl")
}

/// The resolved configuration of the run in `run`.
pub fn config_path(run: &Path) -> PathBuf {
    run.join("config.toml")
}

/// The hashes of the plugins and data of the run in `run`.
pub(super) fn plugins_path(run: &Path) -> PathBuf {
    run.join("plugins.json")
}

/// The binary and machine with which the run in `run` was started.
pub fn machine_path(run: &Path) -> PathBuf {
    run.join("machine.json")
}

/// The folder of the files that make every checkpoint of the run in `run` loadable.
pub fn assets_path(run: &Path) -> PathBuf {
    run.join("assets")
}

/// The folder of the trajectories of the run in `run`: one file per step, ordered by name.
pub fn trajectories_path(run: &Path) -> PathBuf {
    run.join("trajectories")
}

/// The folder of the checkpoints of the run in `run`.
pub(super) fn checkpoints_path(run: &Path) -> PathBuf {
    run.join("checkpoints")
}

/// The folder of the weights that RL began with.
pub(super) fn reference_path(run: &Path) -> PathBuf {
    run.join("reference")
}

/// True if `path` holds the files that [`RunDirectory::create`](super::RunDirectory::create) writes,
/// and so may be replaced as a run.
pub fn is_run(path: &Path) -> bool {
    [config_path(path), machine_path(path), plugins_path(path)]
        .iter()
        .all(|file| file.is_file())
}
