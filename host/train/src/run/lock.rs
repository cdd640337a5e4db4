//! The lock that keeps two processes from writing into one run.

use std::fs::{self, File, TryLockError};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::error::RunError;

/// The name of the lock's file in a locked folder.
pub const LOCK_FILE: &str = ".lock";

/// The exclusive right of one process to write into a folder. It is held until it is dropped; the
/// system releases it however the process ends.
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
    // For the message above only.
    lock.set_len(0)
        .and_then(|()| write!(lock, "{}", std::process::id()))
        .map_err(io)?;
    Ok(lock)
}
