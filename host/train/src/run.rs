//! The run directory: the files of a training run, and how a run resumes from them.
//!
//! ```text
//! RUN/config.toml          the resolved configuration, every default written out
//! RUN/plugins.json         hashes of the components that took part, and of the data bound to them
//! RUN/inputs.json          hashes of the inputs: task files, models and recorded answers that the configuration names
//! RUN/machine.json         binary, processor and device: results are bit-identical only on the same
//! RUN/assets/              tokenizer and other files that make a checkpoint loadable
//! RUN/metrics.jsonl        one line a step, one per evaluation
//! RUN/tensorboard/         the same, as TensorBoard event files
//! RUN/trajectories/        <phase>-<step>.jsonl, with the outcome of every call
//! RUN/checkpoints/         <phase>-<step>/, and `latest`; with `rl.staleness`, older weights in <phase>-<step>/older/,
//!                          and with `rl.replay_buffer`, groups in <phase>-<step>/replay.json
//! RUN/reference/           the weights that RL began with, if a KL term needs them
//! RUN/base/                the frozen weights, if adapters are trained beside weights made from the seed
//! RUN/frozen/              <moment>/: weights of the run that plugins ask, if a model names them
//! ```
//!
//! The crate that makes a run from a configuration adds files of its own.

mod append_file;
mod checkpoint;
mod digests;
mod error;
mod frozen;
mod identity;
mod json_file;
mod layout;
mod lock;
mod machine;
mod metrics_files;
mod older;
mod whole;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;

use crate::config::CheckpointConfig;
use crate::phase::Phase;
use error::bullets;
use identity::{changes, has_input_hashes};
use json_file::{read_json, write_json};
use layout::{checkpoints_path, trajectories_path, trajectory_file};

use checkpoint::copy_assets;
pub use checkpoint::{BestValidation, Checkpoint, TrainerState, Validations};
pub(crate) use checkpoint::{OPTIMIZER, read_state, write_state};
pub use error::RunError;
pub use frozen::{FrozenMoment, FrozenWeights};
pub use identity::{Input, RunSpec, content_changes};
pub(crate) use layout::REPLAY;
pub use layout::{
    assets_path, base_path, config_path, frozen_path, is_run, machine_path, metrics_path,
    plugins_path, reference_path, trajectory_files,
};
pub use lock::lock;
pub use machine::{Machine, binary_hash, machine_changes};
pub use metrics_files::{Metrics, MetricsPosition};
pub(crate) use older::OlderWeights;
pub use rlf_files::{FolderLock, LOCK_FILE};
pub use whole::write_folder;

/// A run that was opened again.
#[derive(Debug)]
pub struct Resumed {
    /// The run.
    pub run: RunDirectory,
    /// The checkpoint to which it was cut back. None if it begins at its start.
    pub checkpoint: Option<Checkpoint>,
    /// Messages for the user, although the run continues: allowed changes, another machine, missing hashes.
    pub warnings: Vec<String>,
    /// True if the run has other settings or hashes than these, until [`RunDirectory::record`] is called.
    pub is_changed: bool,
}

/// An open run, locked for this process.
#[derive(Debug)]
pub struct RunDirectory {
    metrics: Metrics,
    keep: CheckpointConfig,
    lock: FolderLock,
    allows_changes: bool,
}

/// Creates the folders of a run that are empty at first.
fn make_folders(path: &Path) -> Result<(), RunError> {
    for folder in [
        assets_path(path),
        path.join("tensorboard"),
        trajectories_path(path),
        checkpoints_path(path),
    ] {
        fs::create_dir_all(&folder).map_err(|e| RunError::io("create", &folder, e))?;
    }
    Ok(())
}

impl RunDirectory {
    /// Begins a run in the folder `path`, which must not hold one.
    pub fn create(path: &Path, spec: &RunSpec, keep: CheckpointConfig) -> Result<Self, RunError> {
        fs::create_dir_all(path).map_err(|e| RunError::io("create", path, e))?;
        Self::create_in(lock(path)?, spec, keep)
    }

    /// Begins a run in a folder that is already locked.
    pub fn create_in(
        lock: FolderLock,
        spec: &RunSpec,
        keep: CheckpointConfig,
    ) -> Result<Self, RunError> {
        let path = lock.folder();
        if config_path(path).exists() {
            return Err(RunError::Exists {
                path: path.to_owned(),
            });
        }
        make_folders(path)?;
        for (name, bytes) in &spec.assets {
            whole::write_file(&assets_path(path).join(name), bytes)?;
        }
        spec.write_hashes(path)?;
        write_json(&machine_path(path), &spec.machine)?;
        // Last, because a folder with a configuration counts as a run.
        whole::write_file(&config_path(path), spec.config_toml.as_bytes())?;
        let metrics = Metrics::open(path, MetricsPosition::default(), Duration::ZERO)?;
        Ok(Self {
            metrics,
            keep,
            lock,
            allows_changes: false,
        })
    }

    /// Opens the run in `path` and cuts it back to its newest checkpoint, or to its start.
    ///
    /// Fails if `spec` differs from the one that the run started with; the error names every difference. With
    /// `allow_changes` the run is opened nevertheless. A run of an earlier version has no hashes of its inputs. It is
    /// accepted with a warning. In both cases [`RunDirectory::record`] makes `spec` that of the run, once the caller knows
    /// that the run can go on with it.
    pub fn resume(
        path: &Path,
        spec: &RunSpec,
        keep: CheckpointConfig,
        allow_changes: bool,
    ) -> Result<Resumed, RunError> {
        if !config_path(path).exists() {
            return Err(RunError::NoRun {
                path: path.to_owned(),
            });
        }
        let lock = lock(path)?;
        // A user may have removed some to save space.
        make_folders(path)?;
        let mut warnings = Vec::new();
        let changes = changes(path, spec)?;
        let unknown_inputs = !spec.inputs.is_empty() && !has_input_hashes(path);
        if !changes.is_empty() {
            if !allow_changes {
                return Err(RunError::Changed {
                    path: path.to_owned(),
                    changes,
                });
            }
            warnings.push(format!("resuming with changes:\n{}", bullets(&changes)));
        }
        if unknown_inputs {
            warnings.push(
                "an earlier version began the run and kept no hashes of its inputs (RUN/inputs.json); if task files or models \
                 have changed since, that is not noticed"
                    .into(),
            );
        }
        let before: Machine = read_json(&machine_path(path))?;
        if before.bits() != spec.machine.bits() {
            warnings.push(format!(
                "the run was begun by another binary or on another machine ({}, {}): it continues, but its \
                 numbers may differ in their last bits from those of an uninterrupted run",
                before.processor, before.device
            ));
        }
        let checkpoint = Checkpoint::latest(path)?;
        if let Some(checkpoint) = &checkpoint {
            // Before anything of the run is changed.
            checkpoint.verify()?;
        }
        let (position, elapsed) = match &checkpoint {
            Some(Checkpoint { state, .. }) => (state.metrics, state.elapsed),
            None => (MetricsPosition::default(), Duration::ZERO),
        };
        remove_temporaries(path)?;
        if checkpoint
            .as_ref()
            .is_none_or(|c| c.state.phase < Phase::Rl)
        {
            // RL begins again, with the weights of the checkpoint.
            remove_if_there(&reference_path(path))?;
        }
        cut_trajectories(
            path,
            checkpoint.as_ref().map(|c| (c.state.phase, c.state.step)),
        )?;
        if let Some(checkpoint) = &checkpoint {
            checkpoint.state.point_best(path, &keep)?;
        }
        let metrics = Metrics::open(path, position, elapsed)?;
        Ok(Resumed {
            run: Self {
                metrics,
                keep,
                lock,
                allows_changes: allow_changes,
            },
            checkpoint,
            warnings,
            is_changed: unknown_inputs || !changes.is_empty(),
        })
    }

    /// Makes the settings and hashes of `spec` those of the run.
    pub fn record(&self, spec: &RunSpec) -> Result<(), RunError> {
        spec.write_hashes(self.path())?;
        whole::write_file(&config_path(self.path()), spec.config_toml.as_bytes())
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.lock.folder()
    }

    /// The metrics of this run.
    pub fn metrics(&mut self) -> &mut Metrics {
        &mut self.metrics
    }

    /// The settings of checkpoints and trajectories.
    pub fn keep(&self) -> &CheckpointConfig {
        &self.keep
    }

    /// Writes `trajectories/<phase>-<step>.jsonl`, completely or not at all.
    pub fn write_trajectories<T: Serialize>(
        &self,
        phase: Phase,
        step: u64,
        records: impl IntoIterator<Item = T>,
    ) -> Result<(), RunError> {
        let path = trajectory_file(self.path(), phase, step);
        let mut lines = Vec::new();
        for record in records {
            serde_json::to_writer(&mut lines, &record)
                .map_err(|e| RunError::io("write", &path, e.into()))?;
            lines.push(b'\n');
        }
        whole::write_file(&path, &lines)
    }

    /// Writes a checkpoint. `save` writes weights and optimiser into the folder it is given. If it
    /// fails, nothing is left, and the previous checkpoint stays the newest.
    ///
    /// An unobserved state keeps its position in the metrics: lines after it are cut off when the run resumes.
    pub fn checkpoint<E: From<RunError>>(
        &mut self,
        mut state: TrainerState,
        save: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<Checkpoint, E> {
        state.elapsed = self.metrics.elapsed();
        let written = self.metrics.sync()?;
        if !state.unobserved {
            state.metrics = written;
        }
        Checkpoint::write(self.lock.folder(), state, &self.keep, save)
    }

    /// True if its user resumed it with changes allowed: what stopped it before does not stop it at once.
    pub(crate) fn allows_changes(&self) -> bool {
        self.allows_changes
    }

    /// True if the state of this phase and step is saved.
    pub(crate) fn has_checkpoint(&self, state: &TrainerState) -> bool {
        state.folder(self.path()).exists()
    }

    /// The folder of the weights that RL began with. The first call writes it with `save`; later calls
    /// check that its weights are the ones that were written.
    pub fn reference<E: From<RunError>>(
        &self,
        save: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<PathBuf, E> {
        kept(reference_path(self.path()), save)
    }

    /// The folder of the frozen weights beside which adapters are trained. It is written and checked as that of
    /// [`RunDirectory::reference`].
    pub fn base<E: From<RunError>>(
        &self,
        save: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<PathBuf, E> {
        kept(base_path(self.path()), |folder| {
            save(folder)?;
            // So that other programs, and models beside adapters, can load it.
            copy_assets(&assets_path(self.path()), folder).map_err(E::from)
        })
    }
}

/// A folder of weights that is written once, with `save`. If it exists, its weights must be the ones that were written.
fn kept<E: From<RunError>>(
    path: PathBuf,
    save: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<PathBuf, E> {
    if !path.exists() {
        whole::write_folder(&path, |folder| {
            save(folder)?;
            digests::write(folder).map_err(E::from)
        })?;
    } else if let Some(file) = digests::altered(&path, |_| true)? {
        return Err(RunError::ChangedWeights { path: file }.into());
    }
    Ok(path)
}

/// Checks the weights in a folder that a run wrote. A folder without digests, which another program wrote, passes.
pub fn verify_weights(folder: &Path) -> Result<(), RunError> {
    let is_weights = |name: &str| {
        let is_of_policy = name.starts_with("model") || name.starts_with("adapter_model");
        is_of_policy && name.ends_with(".safetensors")
    };
    match digests::altered(folder, is_weights)? {
        None => Ok(()),
        Some(path) => Err(RunError::ChangedWeights { path }),
    }
}

/// Removes the temporary files of interrupted writes and removals.
fn remove_temporaries(run: &Path) -> Result<(), RunError> {
    for folder in [
        run.to_owned(),
        checkpoints_path(run),
        trajectories_path(run),
    ] {
        let entries = fs::read_dir(&folder).map_err(|e| RunError::io("list", &folder, e))?;
        for entry in entries {
            let path = entry.map_err(|e| RunError::io("list", &folder, e))?.path();
            if rlf_files::is_partial(&path) {
                remove_if_there(&path)?;
            }
        }
    }
    Ok(())
}

fn remove_if_there(path: &Path) -> Result<(), RunError> {
    let removed = if path.is_dir() && !path.is_symlink() {
        fs::remove_dir_all(path)
    } else if path.symlink_metadata().is_ok() {
        fs::remove_file(path)
    } else {
        return Ok(());
    };
    removed.map_err(|e| RunError::io("remove", path, e))
}

/// Removes the trajectories of all steps after `last`; of all steps if it is `None`.
fn cut_trajectories(run: &Path, last: Option<(Phase, u64)>) -> Result<(), RunError> {
    for (phase, step, path) in trajectory_files(run)? {
        if last.is_none_or(|last| (phase, step) > last) {
            remove_if_there(&path)?;
        }
    }
    Ok(())
}
