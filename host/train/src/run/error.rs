//! Errors of a run directory, with what to do about them.

use std::io;
use std::path::{Path, PathBuf};

/// An error of a run directory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The file system refused.
    #[error("cannot {action} {}: {source}{}", path.display(), advice(action, source))]
    Io {
        /// The attempted action.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
    /// The folder of a new run already holds one.
    #[error("{} already holds a run; continue it, or name another folder", path.display())]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// The folder holds no run to resume.
    #[error("{} holds no run that could be resumed (no config.toml)", path.display())]
    NoRun {
        /// The folder.
        path: PathBuf,
    },
    /// Another process uses the run.
    #[error("{} is in use by another process{holder}; wait for it or stop it", path.display())]
    Locked {
        /// The folder.
        path: PathBuf,
        /// The process id of its holder, if known.
        holder: String,
    },
    /// The run was started with other settings, plugins or inputs, so resuming would mix two experiments.
    #[error(
        "the run in {} was begun with other settings, plugins, task files or models:\n{}\nundo the changes and put \
         files back as they were, or allow the changes; the result is then not that of an uninterrupted run", path.display(), bullets(changes)
    )]
    Changed {
        /// The folder.
        path: PathBuf,
        /// One line per difference: what, before, now.
        changes: Vec<String>,
    },
    /// A file that identifies the run cannot be parsed.
    #[error("{}: {reason}; put it back as it was: the run cannot be told from another without it", path.display())]
    UnreadableIdentity {
        /// The file.
        path: PathBuf,
        /// The mistake.
        reason: String,
    },
    /// A file of a checkpoint cannot be parsed.
    #[error("{}: {reason}; remove the checkpoint folder it is in to resume from the one before", path.display())]
    UnreadableCheckpoint {
        /// The file.
        path: PathBuf,
        /// The mistake.
        reason: String,
    },
    /// The weights or the optimiser's state of a checkpoint are not the ones that were written.
    #[error(
        "{} is not as it was written: its content does not have the digest in BLAKE3SUMS beside it; the disk or a copy \
         changed it. {}", file.display(), instead(checkpoint, before.as_deref())
    )]
    ChangedCheckpoint {
        /// The file.
        file: PathBuf,
        /// The folder of the checkpoint.
        checkpoint: PathBuf,
        /// The newest earlier checkpoint that is as it was written.
        before: Option<PathBuf>,
    },
    /// The weights that RL began with, or the frozen ones beside adapters, are not the ones that were written.
    #[error(
        "{} is not as it was written: its content does not have the digest in BLAKE3SUMS beside it; put it back from a copy, \
         because the run needs these weights as they were", path.display()
    )]
    ChangedWeights {
        /// The file.
        path: PathBuf,
    },
    /// The weights that RL began with are gone.
    #[error(
        "{} is missing: it has the weights that RL began with, to which the KL is measured. Put it back from a copy, or resume \
         with `--allow-changes --set rl.kl_coefficient=0`", path.display()
    )]
    NoReference {
        /// The folder.
        path: PathBuf,
    },
    /// Weights of the run that plugins ask are not the ones that were written.
    #[error(
        "{} is not as it was written: its content does not have the digest in BLAKE3SUMS beside it; put it back from a copy, \
         because plugins ask these weights", path.display()
    )]
    ChangedFrozen {
        /// The file.
        path: PathBuf,
    },
    /// A log is shorter than it was at the checkpoint.
    #[error(
        "{} has {found} bytes where the checkpoint knows of {expected}: it was cut or replaced since; \
         put it back, or remove the newest checkpoint to resume from the one before", path.display()
    )]
    Shorter {
        /// The file.
        path: PathBuf,
        /// The log's length.
        found: u64,
        /// The log's length at the checkpoint.
        expected: u64,
    },
}

impl RunError {
    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io {
            action,
            path: path.to_owned(),
            source,
        }
    }
}

fn advice(action: &str, error: &io::Error) -> &'static str {
    match error.kind() {
        _ if action == "read" => "",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free some space and resume the run: the last checkpoint is whole"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "; choose a folder that this user may write to"
        }
        _ => "",
    }
}

/// The way to go on without the folder of a checkpoint.
fn instead(checkpoint: &Path, before: Option<&Path>) -> String {
    let checkpoint = checkpoint.display();
    match before {
        Some(before) => format!(
            "Put the file back from a copy, or remove the folder {checkpoint} to go on from {}",
            before.display()
        ),
        None => format!(
            "Put the file back from a copy; no earlier checkpoint is left, so without {checkpoint} the run begins again"
        ),
    }
}

pub(super) fn bullets(lines: &[String]) -> String {
    lines
        .iter()
        .map(|line| format!("  - {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}
