//! Copies of the policy that plugins ask while training goes on: its weights at the start, when RL began, and later.
//!
//! `RUN/frozen/<moment>/` holds the weights in Hugging Face's layout, the assets and the digests, as a checkpoint does. It
//! is written completely or not at all.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::checkpoint::{Checkpoint, copy_assets};
use super::digests;
use super::error::RunError;
use super::layout::{assets_path, frozen_path};
use super::whole;
use crate::phase::Phase;

/// A moment of a run whose weights are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FrozenMoment {
    /// Before the first step.
    Start,
    /// After so many steps of RL. 0: when RL began.
    Rl(u64),
}

impl fmt::Display for FrozenMoment {
    /// The name of its folder.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Start => f.write_str("start"),
            Self::Rl(steps) => write!(f, "{}-{steps:06}", Phase::Rl),
        }
    }
}

/// The frozen weights of the run in a folder.
#[derive(Debug, Clone)]
pub struct FrozenWeights {
    run: PathBuf,
}

impl FrozenWeights {
    /// The frozen weights of the run in `run`. Nothing is read or written yet.
    pub fn of(run: &Path) -> Self {
        Self {
            run: run.to_owned(),
        }
    }

    fn folder(&self, moment: FrozenMoment) -> PathBuf {
        frozen_path(&self.run).join(moment.to_string())
    }

    /// Keeps the weights of a moment, which `save` writes. They replace those of an earlier attempt. Returns their folder.
    pub fn keep<E: From<RunError>>(
        &self,
        moment: FrozenMoment,
        save: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<PathBuf, E> {
        let (all, path) = (frozen_path(&self.run), self.folder(moment));
        fs::create_dir_all(&all).map_err(|e| RunError::io("create", &all, e))?;
        if path.exists() {
            whole::remove_folder(&path)?;
        }
        whole::write_folder(&path, |folder| {
            save(folder)?;
            copy_assets(&assets_path(&self.run), folder)?;
            digests::write(folder).map_err(E::from)
        })?;
        Ok(path)
    }

    /// The folder of the weights of a moment, after a check that they are as they were written: the kept ones, or those of a
    /// checkpoint of that moment. None if the run has neither.
    pub fn find(&self, moment: FrozenMoment) -> Result<Option<PathBuf>, RunError> {
        let path = self.folder(moment);
        if path.exists() {
            return match digests::altered(&path, |_| true)? {
                Some(path) => Err(RunError::ChangedFrozen { path }),
                None => Ok(Some(path)),
            };
        }
        let FrozenMoment::Rl(steps) = moment else {
            return Ok(None);
        };
        let of_moment = |checkpoint: &Checkpoint| {
            let state = &checkpoint.state;
            match state.phase {
                // RL begins with the weights with which SFT ended.
                Phase::Sft => steps == 0 && state.finished,
                Phase::Rl => steps > 0 && state.step == steps,
            }
        };
        let checkpoint = Checkpoint::all(&self.run)?.into_iter().rfind(of_moment);
        let Some(checkpoint) = checkpoint else {
            return Ok(None);
        };
        checkpoint.verify_weights()?;
        Ok(Some(checkpoint.path))
    }

    /// Removes the weights of all moments except these, and what an interrupted write left.
    pub fn forget_except(&self, needed: &BTreeSet<FrozenMoment>) -> Result<(), RunError> {
        let all = frozen_path(&self.run);
        let needed: BTreeSet<PathBuf> = needed.iter().map(|moment| self.folder(*moment)).collect();
        let list = |error| RunError::io("list", &all, error);
        let entries = match fs::read_dir(&all) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            entries => entries.map_err(list)?,
        };
        for entry in entries {
            let path = entry.map_err(list)?.path();
            if path.is_dir() && !needed.contains(&path) {
                whole::remove_folder(&path)?;
            }
        }
        Ok(())
    }
}
