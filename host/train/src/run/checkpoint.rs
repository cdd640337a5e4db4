//! Checkpoints: everything that a run needs to continue as if it had never stopped.
//!
//! `RUN/checkpoints/<phase>-<step>/` holds the weights in Hugging Face's layout, the tokenizer and the other assets (so
//! that the folder loads anywhere), the optimiser's state, a critic's value head and its optimiser's state if there is one,
//! `trainer.json`, `rollouts.json` if the rollouts have a state of their own, and the digests of weights and states, which
//! are checked before a run uses them. With `rl.staleness`, it also holds the weights after the steps before it, and with
//! `rl.replay_buffer` the groups that may train again, in `replay.json`. A checkpoint is written completely or not at all.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::digests;
use super::error::RunError;
use super::layout::{OLDER, REPLAY, ROLLOUTS, assets_path, checkpoints_path};
use super::metrics_files::MetricsPosition;
use super::whole;
use crate::config::CheckpointConfig;
use crate::critic::{HEAD, HEAD_OPTIMIZER};
use crate::guards::InARow;
use crate::phase::Phase;

const STATE: &str = "trainer.json";
/// The file of the optimiser's state.
pub(crate) const OPTIMIZER: &str = "optimizer.safetensors";
/// Maximum size of a state in JSON, in bytes.
const MAX_STATE_BYTES: u64 = 64 << 30;
/// Version of `trainer.json`; raised when a field changes its meaning.
const FORMAT: u32 = 1;

/// The state of a run at a step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainerState {
    format: u32,
    /// The phase.
    pub phase: Phase,
    /// Steps done in the phase.
    pub step: u64,
    /// True if the phase has no more steps after this one.
    pub finished: bool,
    /// True if the observer was not done with the step. A resumed run shows it the step again.
    #[serde(default, skip_serializing_if = "is_false")]
    pub unobserved: bool,
    /// Updates of the optimiser in this phase: steps times mini-batches times epochs, without those
    /// that had no gradient.
    pub updates: u64,
    /// Items of the data consumed in this phase. For people only: the data is a function of the step.
    pub data_position: u64,
    /// The run's seed, from which everything random follows. For people only: the configuration has it, which a resumed run
    /// compares.
    pub seed: u64,
    /// True if the phase ended before its last step, because validations became no better.
    #[serde(default, skip_serializing_if = "is_false")]
    pub ended_early: bool,
    /// The validations of this phase.
    #[serde(default, skip_serializing_if = "Validations::is_none")]
    pub validations: Validations,
    /// Steps in a row that the guards of RL count.
    #[serde(default, skip_serializing_if = "InARow::is_none")]
    pub in_a_row: InARow,
    /// The weight of the KL in the next step, if it is adaptive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kl_coefficient: Option<f64>,
    /// Time spent, without the times in which the run was interrupted.
    pub elapsed: Duration,
    /// Lengths to which a resumed run cuts the metrics files.
    pub metrics: MetricsPosition,
    /// The state of the rollouts, such as a curriculum's estimates, if they have one. It has a file of its own.
    #[serde(skip)]
    pub rollouts: Option<Value>,
}

impl TrainerState {
    /// The state at a step. The run fills in time and metrics when it saves.
    pub fn new(phase: Phase, step: u64, seed: u64) -> Self {
        Self {
            format: FORMAT,
            phase,
            step,
            finished: false,
            unobserved: false,
            updates: 0,
            data_position: 0,
            seed,
            ended_early: false,
            validations: Validations::default(),
            in_a_row: InARow::default(),
            kl_coefficient: None,
            elapsed: Duration::ZERO,
            metrics: MetricsPosition::default(),
            rollouts: None,
        }
    }

    /// The folder of its checkpoint in the run in `run`.
    pub(super) fn folder(&self, run: &Path) -> PathBuf {
        checkpoints_path(run).join(name(self.phase, self.step))
    }

    /// Points `checkpoints/best` to the best checkpoint of the phase, if it is kept.
    pub(super) fn point_best(&self, run: &Path, keep: &CheckpointConfig) -> Result<(), RunError> {
        let Some(best) = self.validations.best.filter(|_| keep.keep_best) else {
            return Ok(());
        };
        let name = name(self.phase, best.step);
        // Without it, the phase was validated before this was asked for.
        if checkpoints_path(run).join(&name).exists() {
            point(run, "best", &name)?;
        }
        Ok(())
    }

    /// The order of checkpoints: phases first, then steps.
    fn place(&self) -> (Phase, u64) {
        (self.phase, self.step)
    }
}

/// The validations of a phase, as far as they decide what is kept and when the phase ends.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Validations {
    /// The best one.
    pub best: Option<BestValidation>,
    /// Number of validations since then.
    pub since_best: u64,
}

/// The best validation of a phase. Of equal ones, the first.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BestValidation {
    /// Steps done.
    pub step: u64,
    /// The success, from 0 to 1.
    pub success: f64,
}

impl Validations {
    /// Adds the success after a step. Returns true if it is the best so far.
    pub(crate) fn add(&mut self, step: u64, success: f64) -> bool {
        let is_best = self.best.is_none_or(|best| success > best.success);
        if is_best {
            self.best = Some(BestValidation { step, success });
            self.since_best = 0;
        } else {
            self.since_best += 1;
        }
        is_best
    }

    fn is_none(&self) -> bool {
        self.best.is_none()
    }
}

/// A checkpoint on disk.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    /// Its folder; loads as a Hugging Face model.
    pub path: PathBuf,
    /// The state of the run.
    pub state: TrainerState,
}

impl Checkpoint {
    /// Reads the state of the checkpoint in `path`.
    pub fn read(path: &Path) -> Result<Self, RunError> {
        let file = path.join(STATE);
        let text = rlf_files::read_text(&file, rlf_files::MAX_TEXT_BYTES)
            .map_err(|e| RunError::io("read", &file, e))?;
        let mut state: TrainerState =
            serde_json::from_str(&text).map_err(|e| RunError::UnreadableCheckpoint {
                path: file.clone(),
                reason: e.to_string(),
            })?;
        if state.format != FORMAT {
            let reason = format!("format {} where this binary reads {FORMAT}", state.format);
            return Err(RunError::UnreadableCheckpoint { path: file, reason });
        }
        state.rollouts = read_state(path, ROLLOUTS)?;
        Ok(Self {
            path: path.to_owned(),
            state,
        })
    }

    /// Checks that the weights and the states are the ones that were written. A checkpoint without digests, of
    /// an earlier version, passes. The error names the file, and the checkpoint to go on from instead.
    pub fn verify(&self) -> Result<(), RunError> {
        self.verify_files(|_| true)
    }

    /// Like [`Checkpoint::verify`], for the policy's weights alone: an evaluation reads neither the optimiser's state nor the
    /// critic nor older weights nor groups that may train again.
    pub fn verify_weights(&self) -> Result<(), RunError> {
        self.verify_files(|name| {
            let is_state = [OPTIMIZER, HEAD, HEAD_OPTIMIZER, REPLAY].contains(&name);
            !is_state && !Path::new(name).starts_with(OLDER)
        })
    }

    fn verify_files(&self, wanted: fn(&str) -> bool) -> Result<(), RunError> {
        let Some(file) = digests::altered(&self.path, wanted)? else {
            return Ok(());
        };
        let run = self.path.parent().and_then(Path::parent);
        let mut before = run.and_then(|run| Self::all(run).ok()).unwrap_or_default();
        before.retain(|other| other.state.place() < self.state.place());
        let is_whole = |other: &Self| matches!(digests::altered(&other.path, wanted), Ok(None));
        Err(RunError::ChangedCheckpoint {
            file,
            checkpoint: self.path.clone(),
            before: before.into_iter().rfind(is_whole).map(|other| other.path),
        })
    }

    /// All checkpoints of a run, oldest first. The run may go on meanwhile.
    pub fn all(run: &Path) -> Result<Vec<Self>, RunError> {
        let folder = checkpoints_path(run);
        let mut found = Vec::new();
        let entries = fs::read_dir(&folder).map_err(|e| RunError::io("list", &folder, e))?;
        for entry in entries {
            let path = entry.map_err(|e| RunError::io("list", &folder, e))?.path();
            // `latest` and `best` are links to some of them. Folders with other names belong to the user.
            let is_ours = path
                .file_name()
                .and_then(|name| name.to_str())
                .is_some_and(is_name);
            if is_ours && !path.is_symlink() && path.is_dir() {
                match Self::read(&path) {
                    // The run that goes on has removed it since it was listed.
                    Err(_) if !path.exists() => {}
                    read => found.push(read?),
                }
            }
        }
        found.sort_by_key(|checkpoint| checkpoint.state.place());
        Ok(found)
    }

    /// The newest checkpoint of a run, if it has one.
    pub fn latest(run: &Path) -> Result<Option<Self>, RunError> {
        Ok(Self::all(run)?.pop())
    }

    /// The newest checkpoint of one phase of a run, if it has one.
    pub fn latest_in_phase(run: &Path, phase: Phase) -> Result<Option<Self>, RunError> {
        Ok(Self::all(run)?
            .into_iter()
            .rfind(|checkpoint| checkpoint.state.phase == phase))
    }

    /// The run of a checkpoint's folder, and its own path without links. None for other folders.
    pub fn run_of(folder: &Path) -> Option<(PathBuf, PathBuf)> {
        if !folder.join(STATE).is_file() {
            return None;
        }
        let path = fs::canonicalize(folder).ok()?;
        let run = path.parent()?.parent()?;
        (checkpoints_path(run) == path.parent()?).then(|| (run.to_owned(), path.clone()))
    }

    /// Writes a checkpoint: fills its folder by `save`, points `latest` to it, and `best` if it is the best, and removes
    /// checkpoints that are not kept any more.
    pub(super) fn write<E: From<RunError>>(
        run: &Path,
        state: TrainerState,
        keep: &CheckpointConfig,
        save: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<Self, E> {
        let path = state.folder(run);
        if path.exists() {
            // A resumed run was allowed to go back, and reaches this step a second time.
            whole::remove_folder(&path)?;
        }
        whole::write_folder(&path, |folder| {
            save(folder)?;
            copy_assets(&assets_path(run), folder)?;
            let file = folder.join(STATE);
            let json = serde_json::to_vec_pretty(&state).expect("plain numbers serialise");
            fs::write(&file, json).map_err(|e| RunError::io("write", &file, e))?;
            if let Some(rollouts) = &state.rollouts {
                write_state(folder, ROLLOUTS, rollouts)?;
            }
            digests::write(folder).map_err(E::from)
        })?;
        let best = state.validations.best.map(|best| (state.phase, best.step));
        let best = best.filter(|_| keep.keep_best);
        point(run, "latest", &name(state.phase, state.step))?;
        state.point_best(run, keep)?;
        let all = Self::all(run)?;
        // The one to go back to if the entropy stays low.
        let sound = all.iter().rfind(|one| one.state.in_a_row.low == 0);
        let sound = sound.map(|one| one.state.place());
        for old in &all[..all.len().saturating_sub(keep.keep_last)] {
            let place = Some(old.state.place());
            if !old.state.finished && place != best && place != sound {
                whole::remove_folder(&old.path)?;
            }
        }
        Ok(Self { path, state })
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)] // The signature is serde's.
fn is_false(value: &bool) -> bool {
    !value
}

/// Writes a state beside weights, in JSON.
pub(crate) fn write_state<T: Serialize>(
    folder: &Path,
    name: &str,
    state: &T,
) -> Result<(), RunError> {
    let file = folder.join(name);
    let written = serde_json::to_vec(state)
        .map_err(io::Error::from)
        .and_then(|json| fs::write(&file, json));
    written.map_err(|e| RunError::io("write", &file, e))
}

/// A state beside weights, if there is one.
pub(crate) fn read_state<T: DeserializeOwned>(
    folder: &Path,
    name: &str,
) -> Result<Option<T>, RunError> {
    let file = folder.join(name);
    let text = match rlf_files::read_text(&file, MAX_STATE_BYTES) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        text => text.map_err(|e| RunError::io("read", &file, e))?,
    };
    let state = serde_json::from_str(&text).map_err(|e| RunError::UnreadableCheckpoint {
        path: file,
        reason: e.to_string(),
    })?;
    Ok(Some(state))
}

/// The name of a checkpoint's folder.
fn name(phase: Phase, step: u64) -> String {
    format!("{phase}-{step:06}")
}

/// True if a folder's name is one that [`name`] gives.
fn is_name(folder: &str) -> bool {
    folder.split_once('-').is_some_and(|(phase, step)| {
        Phase::ALL.iter().any(|known| known.as_str() == phase)
            && step
                .parse()
                .is_ok_and(|number: u64| format!("{number:06}") == step)
    })
}

/// Puts the assets into the folder of some weights, as hard links if the file system allows: they never
/// change.
pub(super) fn copy_assets(assets: &Path, folder: &Path) -> Result<(), RunError> {
    let entries = fs::read_dir(assets).map_err(|e| RunError::io("list", assets, e))?;
    for entry in entries {
        let from = entry.map_err(|e| RunError::io("list", assets, e))?.path();
        let Some(name) = from.file_name().filter(|_| !rlf_files::is_partial(&from)) else {
            continue;
        };
        let to = folder.join(name);
        if to.exists() {
            continue;
        }
        if fs::hard_link(&from, &to).is_err() {
            fs::copy(&from, &to).map_err(|e| RunError::io("write", &to, e))?;
        }
    }
    Ok(())
}

/// Points `checkpoints/latest` or `checkpoints/best` to a checkpoint. The links are for people and scripts: a resuming run
/// looks for the newest checkpoint itself.
fn point(run: &Path, link: &str, name: &str) -> Result<(), RunError> {
    let temporary = checkpoints_path(run).join(format!(".writing-{link}"));
    let link = checkpoints_path(run).join(link);
    let point = || {
        let _ = fs::remove_file(&temporary);
        std::os::unix::fs::symlink(name, &temporary)?;
        fs::rename(&temporary, &link)
    };
    point().map_err(|e| RunError::io("write", &link, e))
}
