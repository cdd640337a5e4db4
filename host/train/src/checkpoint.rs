//! Checkpoints: everything a run needs to go on as if it had never stopped.
//!
//! `RUN/checkpoints/<phase>-<step>/` holds the weights in Hugging Face layout (with the tokenizer
//! and the other assets, so that the folder loads anywhere), the optimiser's state and
//! `trainer.json`. A checkpoint is there whole or not at all.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::atomic;
use crate::metrics::{MetricsPosition, Phase};
use crate::run::{RunError, assets_path};

const STATE: &str = "trainer.json";
/// Raised when a field changes its meaning.
const FORMAT: u32 = 1;

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainerState {
    format: u32,
    /// The stage.
    pub phase: Phase,
    /// Steps done in it.
    pub step: u64,
    /// Whether these were all the steps the stage was to have.
    pub finished: bool,
    /// Updates the optimiser has done in this stage: steps times mini-batches times epochs, less
    /// those that had nothing to learn from.
    pub updates: u64,
    /// Items of the data consumed in this stage; data is a function of the step, so this is for
    /// people.
    pub data_position: u64,
    /// Everything random follows from it.
    pub seed: u64,
    /// Time spent, interrupted stretches left out.
    pub elapsed: Duration,
    /// How long the metrics were.
    pub metrics: MetricsPosition,
}

impl TrainerState {
    /// The state at a step; the run fills in time and metrics when it saves.
    pub fn new(phase: Phase, step: u64, seed: u64) -> Self {
        Self {
            format: FORMAT,
            phase,
            step,
            finished: false,
            updates: 0,
            data_position: 0,
            seed,
            elapsed: Duration::ZERO,
            metrics: MetricsPosition::default(),
        }
    }

    /// For ordering: phases first, then steps.
    fn place(&self) -> (Phase, u64) {
        (self.phase, self.step)
    }
}

/// A checkpoint on disk.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    /// Its folder; loads as a Hugging Face model.
    pub path: PathBuf,
    /// Where the run stood.
    pub state: TrainerState,
}

impl Checkpoint {
    /// Reads the state of the checkpoint in `path`.
    pub fn read(path: &Path) -> Result<Self, RunError> {
        let file = path.join(STATE);
        let text = fs::read_to_string(&file).map_err(|e| RunError::io("read", &file, e))?;
        let state: TrainerState = serde_json::from_str(&text).map_err(|e| RunError::Corrupt {
            path: file.clone(),
            reason: e.to_string(),
        })?;
        if state.format != FORMAT {
            let reason = format!("format {} where this binary reads {FORMAT}", state.format);
            return Err(RunError::Corrupt { path: file, reason });
        }
        Ok(Self {
            path: path.to_owned(),
            state,
        })
    }

    /// All whole checkpoints of a run, oldest first.
    pub fn all(run: &Path) -> Result<Vec<Self>, RunError> {
        let folder = run.join("checkpoints");
        let mut found = Vec::new();
        let entries = fs::read_dir(&folder).map_err(|e| RunError::io("list", &folder, e))?;
        for entry in entries {
            let path = entry.map_err(|e| RunError::io("list", &folder, e))?.path();
            // `latest` is a link to one of them; folders of other names are their owner's.
            let is_ours = path
                .file_name()
                .and_then(|name| name.to_str())
                .is_some_and(is_name);
            if is_ours && !path.is_symlink() && path.is_dir() {
                found.push(Self::read(&path)?);
            }
        }
        found.sort_by_key(|checkpoint| checkpoint.state.place());
        Ok(found)
    }

    /// The newest whole checkpoint of a run, if it has one.
    pub fn latest(run: &Path) -> Result<Option<Self>, RunError> {
        Ok(Self::all(run)?.pop())
    }

    /// The last checkpoint of a phase of a run, if it has one.
    pub fn of_phase(run: &Path, phase: Phase) -> Result<Option<Self>, RunError> {
        Ok(Self::all(run)?
            .into_iter()
            .rfind(|checkpoint| checkpoint.state.phase == phase))
    }

    /// Writes one, fills it by `save`, moves `latest` to it and removes those no longer kept.
    pub(crate) fn write<E: From<RunError>>(
        run: &Path,
        state: TrainerState,
        keep_last: usize,
        save: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<Self, E> {
        let name = name(state.phase, state.step);
        let path = run.join("checkpoints").join(&name);
        if path.exists() {
            // Only where a resumed run was allowed to go back and comes by again.
            atomic::remove_folder(&path)?;
        }
        atomic::write_folder(&path, |folder| {
            save(folder)?;
            copy_assets(&assets_path(run), folder)?;
            let file = folder.join(STATE);
            let json = serde_json::to_vec_pretty(&state).expect("plain numbers serialise");
            fs::write(&file, json).map_err(|e| RunError::io("write", &file, e))?;
            Ok::<(), E>(())
        })?;
        point_latest(run, &name)?;
        let all = Self::all(run)?;
        for old in &all[..all.len().saturating_sub(keep_last)] {
            if !old.state.finished {
                atomic::remove_folder(&old.path)?;
            }
        }
        Ok(Self { path, state })
    }
}

/// The folder of a checkpoint.
fn name(phase: Phase, step: u64) -> String {
    format!("{phase}-{step:06}")
}

/// Whether a folder is called as [`name`] calls one.
fn is_name(folder: &str) -> bool {
    folder.split_once('-').is_some_and(|(phase, step)| {
        [Phase::Sft, Phase::Rl]
            .iter()
            .any(|known| known.as_str() == phase)
            && step
                .parse()
                .is_ok_and(|number: u64| format!("{number:06}") == step)
    })
}

/// Tokenizer and friends: linked where the file system can, since they never change.
fn copy_assets(assets: &Path, folder: &Path) -> Result<(), RunError> {
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

/// `checkpoints/latest` is for people and scripts; resuming looks for the newest itself.
fn point_latest(run: &Path, name: &str) -> Result<(), RunError> {
    let link = run.join("checkpoints/latest");
    let temporary = run.join("checkpoints/.writing-latest");
    let point = || {
        let _ = fs::remove_file(&temporary);
        std::os::unix::fs::symlink(name, &temporary)?;
        fs::rename(&temporary, &link)
    };
    point().map_err(|e| RunError::io("write", &link, e))
}
