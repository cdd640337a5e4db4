//! What goes wrong with a run directory, said so that it can be mended.

use std::io;
use std::path::{Path, PathBuf};

/// What goes wrong with a run directory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// The file system refused.
    #[error("cannot {action} {}: {source}{}", path.display(), advice(source))]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
    /// A new run where there is one already.
    #[error("{} already holds a run; write --resume to go on with it, or name another folder", path.display())]
    Exists {
        /// The folder.
        path: PathBuf,
    },
    /// Nothing to resume.
    #[error("{} holds no run (no config.toml); without --resume a new one begins there", path.display())]
    NoRun {
        /// The folder.
        path: PathBuf,
    },
    /// Two trainers in one run would overwrite each other.
    #[error("{} is in use by another process{holder}; wait for it or stop it", path.display())]
    Locked {
        /// The folder.
        path: PathBuf,
        /// Its process id, as far as known.
        holder: String,
    },
    /// Resuming would continue another experiment than the one that was begun.
    #[error(
        "the run in {} was begun with other settings or plugins:\n{}\nundo the changes, or allow them with --allow-changes; \
         the result is then not that of an uninterrupted run", path.display(), bullets(changes)
    )]
    Changed {
        /// The folder.
        path: PathBuf,
        /// One line per difference: what, before, now.
        changes: Vec<String>,
    },
    /// A file that says what the run is cannot be read as such.
    #[error("{}: {reason}; put it back as it was: the run cannot be told from another without it", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A file of a checkpoint is not what was written.
    #[error("{}: {reason}; remove the checkpoint folder it is in to resume from the one before", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// A log lost lines that the checkpoint knows of.
    #[error(
        "{} has {found} bytes where the checkpoint knows of {expected}: it was cut or replaced since; \
         put it back, or remove the newest checkpoint to resume from the one before", path.display()
    )]
    Shorter {
        /// The file.
        path: PathBuf,
        /// Its length.
        found: u64,
        /// Its length at the checkpoint.
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

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "; free some space and go on with --resume: the last checkpoint is whole"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "; choose a folder that this user may write to"
        }
        _ => "",
    }
}

pub(super) fn bullets(lines: &[String]) -> String {
    lines
        .iter()
        .map(|line| format!("  - {line}"))
        .collect::<Vec<_>>()
        .join("\n")
}
