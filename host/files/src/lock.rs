//! Folders that one process at a time may write to.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The name of the lock's file in a locked folder.
pub const LOCK_FILE: &str = ".lock";

/// The exclusive right of one process to write into a folder. It is held until it is dropped; the system releases it
/// however the process ends.
#[derive(Debug)]
pub struct FolderLock {
    folder: PathBuf,
    _file: File,
}

/// The reason why a folder is not locked.
#[derive(Debug)]
pub enum LockError {
    /// Another process holds the lock.
    Held {
        /// The id of that process, if it is known.
        process: Option<u32>,
    },
    /// The lock's file cannot be opened, locked or written.
    Io(io::Error),
}

impl From<io::Error> for LockError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl FolderLock {
    /// Locks `folder`, which must exist.
    pub fn take(folder: &Path) -> Result<Self, LockError> {
        let path = folder.join(LOCK_FILE);
        let mut file = File::options()
            .create(true)
            .truncate(false)
            .read(true)
            .write(true)
            .open(&path)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::Error(error)) => return Err(error.into()),
            Err(TryLockError::WouldBlock) => {
                let holder = fs::read_to_string(&path).unwrap_or_default();
                let process = holder.trim().parse().ok();
                return Err(LockError::Held { process });
            }
        }
        // Only for the message of another process.
        file.set_len(0)?;
        write!(file, "{}", std::process::id())?;
        let folder = folder.to_owned();
        Ok(Self {
            folder,
            _file: file,
        })
    }

    /// The folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_locked_once_and_says_by_whom() {
        let folder = tempfile::tempdir().unwrap();
        let lock = FolderLock::take(folder.path()).unwrap();
        assert_eq!(lock.folder(), folder.path());
        let holder = match FolderLock::take(folder.path()) {
            Err(LockError::Held { process }) => process,
            other => panic!("{other:?}"),
        };
        assert_eq!(holder, Some(std::process::id()));
        drop(lock);
        FolderLock::take(folder.path()).unwrap();
    }

    #[test]
    fn a_folder_that_is_missing_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let missing = FolderLock::take(&folder.path().join("missing"));
        assert!(matches!(missing, Err(LockError::Io(_))));
    }
}
