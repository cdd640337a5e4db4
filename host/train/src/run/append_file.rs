//! Log files that are cut back to a checkpoint when a run resumes.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::PathBuf;

use super::error::RunError;

/// A file that grows by whole records and can be cut back to an earlier length.
#[derive(Debug)]
pub(crate) struct AppendFile {
    path: PathBuf,
    file: File,
    bytes: u64,
}

impl AppendFile {
    /// Opens `path` and cuts it to `bytes`.
    pub(crate) fn open(path: PathBuf, bytes: u64) -> Result<Self, RunError> {
        let open = || -> io::Result<(File, u64)> {
            let file = OpenOptions::new().create(true).append(true).open(&path)?;
            let found = file.metadata()?.len();
            if found > bytes {
                file.set_len(bytes)?;
            }
            Ok((file, found))
        };
        let (file, found) = open().map_err(|source| RunError::io("open", &path, source))?;
        if found < bytes {
            return Err(RunError::Shorter {
                path,
                found,
                expected: bytes,
            });
        }
        Ok(Self { path, file, bytes })
    }

    /// Appends one record, completely or not at all.
    pub(crate) fn append(&mut self, record: &[u8]) -> Result<(), RunError> {
        self.file.write_all(record).map_err(|source| {
            // Removes the part that was written. If that fails too, the next resume does it.
            let _ = self.file.set_len(self.bytes);
            RunError::io("append to", &self.path, source)
        })?;
        self.bytes += record.len() as u64;
        Ok(())
    }

    /// Its length.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Waits until the file is on disk, and returns its length.
    pub(crate) fn sync(&self) -> Result<u64, RunError> {
        self.file
            .sync_all()
            .map_err(|source| RunError::io("sync", &self.path, source))?;
        Ok(self.bytes)
    }
}
