//! The run directory: what a training run leaves behind, and how it is picked up again.
//!
//! ```text
//! RUN/config.toml          the resolved configuration, every default written out
//! RUN/plugins.json         hash of every component that took part, and of the data bound to it
//! RUN/machine.json         binary, processor and device: results are bit-identical only on the same
//! RUN/assets/              tokenizer and whatever else makes a checkpoint loadable
//! RUN/metrics.jsonl        one line a step, one per evaluation
//! RUN/tensorboard/         the same as event files
//! RUN/trajectories/        <phase>-<step>.jsonl, with the outcome of every call
//! RUN/checkpoints/         <phase>-<step>/, and `latest`
//! RUN/reference/           the weights RL began with, where a KL term needs them
//! ```

mod error;

use std::collections::BTreeMap;
use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::atomic;
use crate::checkpoint::{Checkpoint, TrainerState};
use crate::config::CheckpointConfig;
use crate::metrics::{Metrics, MetricsPosition, Phase};

pub use crate::machine::Machine;
pub use error::RunError;
use error::bullets;

/// The metrics of the run in `run`: JSON lines.
pub fn metrics_path(run: &Path) -> PathBuf {
    run.join("metrics.jsonl")
}

/// The resolved configuration of the run in `run`.
pub fn config_path(run: &Path) -> PathBuf {
    run.join("config.toml")
}

/// The folder of what every checkpoint of the run in `run` needs to be loadable.
pub fn assets_path(run: &Path) -> PathBuf {
    run.join("assets")
}

/// What differs between the plugins that took part in the run in `run` and `now`, one sentence each.
pub fn plugin_changes(run: &Path, now: &BTreeMap<String, String>) -> Result<Vec<String>, RunError> {
    let before: BTreeMap<String, String> = read_json(&run.join("plugins.json"))?;
    Ok(differences("plugin ", &before, now))
}

/// Where, and with which binary, the run in `run` was begun.
pub fn record_path(run: &Path) -> PathBuf {
    run.join("machine.json")
}

/// Whether `path` holds what [`RunDirectory::create`] leaves, and so may be replaced as a run.
pub fn is_run(path: &Path) -> bool {
    [
        config_path(path),
        record_path(path),
        path.join("plugins.json"),
    ]
    .iter()
    .all(|file| file.is_file())
}

/// The folder of the trajectories of the run in `run`: one file per step, in the order of names.
pub fn trajectories_path(run: &Path) -> PathBuf {
    run.join("trajectories")
}

/// What makes a run that run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunSpec {
    /// The resolved configuration as TOML, every default written out.
    pub config_toml: String,
    /// Hashes of everything that took part beside the binary: components by alias, and data bound
    /// to them by a name of the caller's.
    pub plugins: BTreeMap<String, String>,
    /// Where it runs.
    pub machine: Machine,
    /// Files that every checkpoint needs to be loadable: `tokenizer.json` and its configuration.
    pub assets: Vec<(String, Vec<u8>)>,
}

/// The right to write into a folder, of one process at a time. Held until it is dropped; the system
/// takes it back however the process ends.
#[derive(Debug)]
pub struct RunLock {
    path: PathBuf,
    _file: File,
}

impl RunLock {
    /// Locks the folder `path`, which must exist.
    pub fn take(path: &Path) -> Result<Self, RunError> {
        Ok(Self {
            path: path.to_owned(),
            _file: lock(path)?,
        })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// An open run. One process at a time.
#[derive(Debug)]
pub struct RunDirectory {
    metrics: Metrics,
    keep: CheckpointConfig,
    lock: RunLock,
}

/// The folders of a run, beside those that come with what is in them.
fn make_folders(path: &Path) -> Result<(), RunError> {
    for folder in ["assets", "tensorboard", "trajectories", "checkpoints"] {
        let folder = path.join(folder);
        fs::create_dir_all(&folder).map_err(|e| RunError::io("create", &folder, e))?;
    }
    Ok(())
}

impl RunDirectory {
    /// Begins a run in `path`, which must not hold one.
    pub fn create(path: &Path, spec: &RunSpec, keep: CheckpointConfig) -> Result<Self, RunError> {
        fs::create_dir_all(path).map_err(|e| RunError::io("create", path, e))?;
        Self::create_in(RunLock::take(path)?, spec, keep)
    }

    /// Begins a run in a folder that is already locked.
    pub fn create_in(
        lock: RunLock,
        spec: &RunSpec,
        keep: CheckpointConfig,
    ) -> Result<Self, RunError> {
        let path = lock.path();
        if config_path(path).exists() {
            return Err(RunError::Exists {
                path: path.to_owned(),
            });
        }
        make_folders(path)?;
        for (name, bytes) in &spec.assets {
            atomic::write_file(&assets_path(path).join(name), bytes)?;
        }
        write_json(&path.join("plugins.json"), &spec.plugins)?;
        write_json(&record_path(path), &spec.machine)?;
        // Last: a folder with a configuration is a run.
        atomic::write_file(&config_path(path), spec.config_toml.as_bytes())?;
        let metrics = Metrics::open(path, MetricsPosition::default(), Duration::ZERO)?;
        Ok(Self {
            metrics,
            keep,
            lock,
        })
    }

    /// Opens the run in `path` and cuts it back to its newest checkpoint, or to its beginning.
    ///
    /// Refuses where `spec` differs from what the run was begun with, naming every difference,
    /// unless `allow_changes`: then the run takes the new settings from here on.
    pub fn resume(
        path: &Path,
        spec: &RunSpec,
        keep: CheckpointConfig,
        allow_changes: bool,
    ) -> Result<(Self, Option<Checkpoint>), RunError> {
        if !config_path(path).exists() {
            return Err(RunError::NoRun {
                path: path.to_owned(),
            });
        }
        let lock = RunLock::take(path)?;
        // Some may have been removed to save space.
        make_folders(path)?;
        let changes = changes(path, spec)?;
        if !changes.is_empty() {
            if !allow_changes {
                return Err(RunError::Changed {
                    path: path.to_owned(),
                    changes,
                });
            }
            tracing::warn!("resuming with changes:\n{}", bullets(&changes));
            write_json(&path.join("plugins.json"), &spec.plugins)?;
            atomic::write_file(&config_path(path), spec.config_toml.as_bytes())?;
        }
        let before: Machine = read_json(&record_path(path))?;
        if before.bits() != spec.machine.bits() {
            tracing::warn!(
                "the run was begun by another binary or on another machine ({}, {}): it goes on, but its \
                 numbers may differ in their last bits from those of an uninterrupted run",
                before.processor,
                before.device
            );
        }
        let checkpoint = Checkpoint::latest(path)?;
        let (position, elapsed) = match &checkpoint {
            Some(Checkpoint { state, .. }) => (state.metrics, state.elapsed),
            None => (MetricsPosition::default(), Duration::ZERO),
        };
        remove_temporaries(path)?;
        if checkpoint
            .as_ref()
            .is_none_or(|c| c.state.phase < Phase::Rl)
        {
            // Of an RL phase that is played again from its beginning.
            remove_if_there(&path.join("reference"))?;
        }
        cut_trajectories(
            path,
            checkpoint.as_ref().map(|c| (c.state.phase, c.state.step)),
        )?;
        let metrics = Metrics::open(path, position, elapsed)?;
        Ok((
            Self {
                metrics,
                keep,
                lock,
            },
            checkpoint,
        ))
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        self.lock.path()
    }

    /// Where lines about this run go.
    pub fn metrics(&mut self) -> &mut Metrics {
        &mut self.metrics
    }

    /// What is kept, and how often.
    pub fn keep(&self) -> &CheckpointConfig {
        &self.keep
    }

    /// Writes `trajectories/<phase>-<step>.jsonl`, whole or not at all.
    pub fn write_trajectories<T: Serialize>(
        &self,
        phase: Phase,
        step: u64,
        records: impl IntoIterator<Item = T>,
    ) -> Result<(), RunError> {
        let path = trajectories_path(self.path()).join(format!("{phase}-{step:06}.jsonl"));
        let mut lines = Vec::new();
        for record in records {
            serde_json::to_writer(&mut lines, &record)
                .map_err(|e| RunError::io("write", &path, e.into()))?;
            lines.push(b'\n');
        }
        atomic::write_file(&path, &lines)
    }

    /// Writes a checkpoint. `save` puts weights and optimiser into the folder it is given; if it
    /// fails, nothing is left and the checkpoint before stays the newest.
    pub fn checkpoint<E: From<RunError>>(
        &mut self,
        mut state: TrainerState,
        save: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<Checkpoint, E> {
        state.elapsed = self.metrics.elapsed();
        state.metrics = self.metrics.sync()?;
        Checkpoint::write(self.lock.path(), state, self.keep.keep_last, save)
    }

    /// The folder of the weights that RL began with: written by `save` the first time it is asked
    /// for, the same ever after.
    pub fn reference<E: From<RunError>>(
        &self,
        save: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<PathBuf, E> {
        let path = self.path().join("reference");
        if !path.exists() {
            atomic::write_folder(&path, save)?;
        }
        Ok(path)
    }
}

/// What a locked folder holds, beside what else is in it.
pub const LOCK_FILE: &str = ".lock";

fn lock(path: &Path) -> Result<File, RunError> {
    let file = path.join(LOCK_FILE);
    let io = |source| RunError::io("lock", &file, source);
    let mut lock = File::options()
        .create(true)
        .truncate(false)
        .read(true)
        .write(true)
        .open(&file)
        .map_err(io)?;
    match lock.try_lock() {
        Ok(()) => {}
        Err(TryLockError::Error(source)) => return Err(io(source)),
        Err(TryLockError::WouldBlock) => {
            let holder = fs::read_to_string(&file).unwrap_or_default();
            let holder = match holder.trim() {
                "" => String::new(),
                id => format!(" (process {id})"),
            };
            return Err(RunError::Locked {
                path: path.to_owned(),
                holder,
            });
        }
    }
    // For the message above; the lock itself does not depend on it.
    lock.set_len(0)
        .and_then(|()| write!(lock, "{}", std::process::id()))
        .map_err(io)?;
    Ok(lock)
}

fn changes(path: &Path, spec: &RunSpec) -> Result<Vec<String>, RunError> {
    let file = config_path(path);
    let before = fs::read_to_string(&file).map_err(|e| RunError::io("read", &file, e))?;
    let settings = |text: &str| -> Result<BTreeMap<String, String>, RunError> {
        let mut table: toml::Table =
            text.parse()
                .map_err(|e: toml::de::Error| RunError::Damaged {
                    path: file.clone(),
                    reason: e.to_string(),
                })?;
        // Where the run lies is not what it is: a run that was moved is still the same.
        table.remove("output");
        // Nor is how many threads compute it: that changes no result.
        table.remove("workers");
        for phase in ["sft", "rl"] {
            if let Some(toml::Value::Table(phase)) = table.get_mut(phase) {
                phase.remove("workers");
            }
        }
        let mut flat = BTreeMap::new();
        flatten("", &toml::Value::Table(table), &mut flat);
        Ok(flat)
    };
    let mut changes = differences("", &settings(&before)?, &settings(&spec.config_toml)?);
    changes.extend(plugin_changes(path, &spec.plugins)?);
    Ok(changes)
}

fn flatten(key: &str, value: &toml::Value, flat: &mut BTreeMap<String, String>) {
    match value {
        toml::Value::Table(table) => {
            for (name, value) in table {
                let key = if key.is_empty() {
                    name.clone()
                } else {
                    format!("{key}.{name}")
                };
                flatten(&key, value, flat);
            }
        }
        value => {
            flat.insert(key.to_owned(), value.to_string());
        }
    }
}

fn differences(
    what: &str,
    before: &BTreeMap<String, String>,
    now: &BTreeMap<String, String>,
) -> Vec<String> {
    let keys: std::collections::BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    keys.into_iter()
        .filter_map(|key| match (before.get(key), now.get(key)) {
            (Some(before), Some(now)) if before == now => None,
            (Some(before), Some(now)) => Some(format!("{what}{key}: was {before}, is {now}")),
            (Some(before), None) => Some(format!("{what}{key}: was {before}, is gone")),
            (None, now) => Some(format!("{what}{key}: is new, {}", now.map_or("", |v| v))),
        })
        .collect()
}

/// Removes what interrupted writes and removals left.
fn remove_temporaries(run: &Path) -> Result<(), RunError> {
    for folder in [
        run.to_owned(),
        run.join("checkpoints"),
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

/// Removes trajectories of steps after `place`.
fn cut_trajectories(run: &Path, place: Option<(Phase, u64)>) -> Result<(), RunError> {
    let folder = trajectories_path(run);
    let entries = fs::read_dir(&folder).map_err(|e| RunError::io("list", &folder, e))?;
    for entry in entries {
        let path = entry.map_err(|e| RunError::io("list", &folder, e))?.path();
        let of = path.file_stem().and_then(|stem| {
            let (phase, step) = stem.to_str()?.split_once('-')?;
            let phase = [Phase::Sft, Phase::Rl]
                .into_iter()
                .find(|p| p.as_str() == phase)?;
            Some((phase, step.parse::<u64>().ok()?))
        });
        if of.is_some_and(|of| place.is_none_or(|place| of > place)) {
            remove_if_there(&path)?;
        }
    }
    Ok(())
}

fn write_json<T: Serialize>(path: &Path, value: &T) -> Result<(), RunError> {
    let mut json =
        serde_json::to_vec_pretty(value).map_err(|e| RunError::io("write", path, e.into()))?;
    json.push(b'\n');
    atomic::write_file(path, &json)
}

fn read_json<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<T, RunError> {
    let text = fs::read_to_string(path).map_err(|e| RunError::io("read", path, e))?;
    serde_json::from_str(&text).map_err(|e| RunError::Damaged {
        path: path.to_owned(),
        reason: e.to_string(),
    })
}
