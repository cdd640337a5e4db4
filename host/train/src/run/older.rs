//! The weights after earlier steps, in the checkpoint of a later one. A run whose steps are played by older weights
//! needs them to begin those steps again.
//!
//! `<checkpoint>/older/<step>/` holds the weights in the layout of the checkpoint's own, and `rollouts.json` if the
//! rollouts had a state. It is written, checked and removed together with the checkpoint.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::checkpoint::{read_state, write_state};
use super::error::RunError;
use super::layout::{OLDER, ROLLOUTS};

/// The weights after an earlier step than that of the checkpoint that holds them.
#[derive(Debug)]
pub(crate) struct OlderWeights {
    /// Steps done.
    pub(crate) step: u64,
    /// The folder of the weights.
    pub(crate) path: PathBuf,
    /// The state of the rollouts then, if they had one.
    pub(crate) rollouts: Option<Value>,
}

impl OlderWeights {
    /// Writes the weights after `step` steps, which `save` saves, into the folder of a checkpoint in the making.
    pub(crate) fn write<E: From<RunError>>(
        checkpoint: &Path,
        step: u64,
        rollouts: Option<&Value>,
        save: impl FnOnce(&Path) -> Result<(), E>,
    ) -> Result<(), E> {
        let path = checkpoint.join(OLDER).join(format!("{step:06}"));
        fs::create_dir_all(&path).map_err(|e| RunError::io("create", &path, e))?;
        save(&path)?;
        if let Some(rollouts) = rollouts {
            write_state(&path, ROLLOUTS, rollouts)?;
        }
        Ok(())
    }

    /// All that are in the folder of a checkpoint, oldest first.
    pub(crate) fn all(checkpoint: &Path) -> Result<Vec<Self>, RunError> {
        let folder = checkpoint.join(OLDER);
        let list = |error| RunError::io("list", &folder, error);
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(list)?,
        };
        let mut found = Vec::new();
        for entry in entries {
            let path = entry.map_err(list)?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            // Folders with other names belong to the user.
            if let Some(step) = name.and_then(|name| name.parse().ok()) {
                let rollouts = read_state(&path, ROLLOUTS)?;
                found.push(Self {
                    step,
                    path,
                    rollouts,
                });
            }
        }
        found.sort_by_key(|older| older.step);
        Ok(found)
    }
}
