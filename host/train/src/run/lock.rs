//! The lock that keeps two processes from writing into one run.

use std::path::Path;

use rlf_files::{FolderLock, LOCK_FILE, LockError};

use super::error::RunError;

/// Takes the exclusive right to write into the run at `path`, a folder that exists.
pub fn lock(path: &Path) -> Result<FolderLock, RunError> {
    FolderLock::take(path).map_err(|error| match error {
        LockError::Io(source) => RunError::io("lock", &path.join(LOCK_FILE), source),
        LockError::Held { process } => RunError::Locked {
            path: path.to_owned(),
            holder: process.map_or_else(String::new, |id| format!(" (process {id})")),
        },
    })
}
