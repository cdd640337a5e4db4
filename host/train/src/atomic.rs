//! Files and folders that are there whole or not at all.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rlf_files::PARTIAL;

use crate::run::RunError;

/// Puts `bytes` at `path`.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<(), RunError> {
    rlf_files::write(path, bytes).map_err(|source| RunError::io("write", path, source))
}

/// Makes the folder `path` by filling a temporary one beside it, syncing all of it, and renaming.
/// If `fill` fails nothing is left.
pub(crate) fn write_folder<E: From<RunError>>(
    path: &Path,
    fill: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<(), E> {
    let temporary = temporary_beside(path);
    let io = |source| RunError::io("write", path, source);
    let write = || -> Result<(), E> {
        if temporary.exists() {
            fs::remove_dir_all(&temporary).map_err(io)?;
        }
        fs::create_dir(&temporary).map_err(io)?;
        fill(&temporary)?;
        sync_tree(&temporary).map_err(io)?;
        fs::rename(&temporary, path).map_err(io)?;
        sync_folder(path).map_err(io)?;
        Ok(())
    };
    write().inspect_err(|_| {
        let _ = fs::remove_dir_all(&temporary);
    })
}

/// Removes a folder so that at no moment half of it looks whole.
pub(crate) fn remove_folder(path: &Path) -> Result<(), RunError> {
    let temporary = temporary_beside(path);
    fs::rename(path, &temporary)
        .and_then(|()| fs::remove_dir_all(&temporary))
        .map_err(|source| RunError::io("remove", path, source))
}

fn temporary_beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{PARTIAL}{name}"))
}

/// A rename is on disk when the folder that names it is.
fn sync_folder(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => File::open(parent)?.sync_all(),
        _ => File::open(".")?.sync_all(),
    }
}

fn sync_tree(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            sync_tree(&path)?;
        } else {
            File::open(&path)?.sync_all()?;
        }
    }
    File::open(folder)?.sync_all()
}

/// A file that grows by whole records and can be cut back to a length it had.
#[derive(Debug)]
pub(crate) struct AppendFile {
    path: PathBuf,
    file: File,
    bytes: u64,
}

impl AppendFile {
    /// Opens `path`, cutting it to `bytes`.
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

    /// Appends one record, or nothing of it.
    pub(crate) fn append(&mut self, record: &[u8]) -> Result<(), RunError> {
        self.file.write_all(record).map_err(|source| {
            // Takes back the part that fitted; if even that fails, the next resume does it.
            let _ = self.file.set_len(self.bytes);
            RunError::io("append to", &self.path, source)
        })?;
        self.bytes += record.len() as u64;
        Ok(())
    }

    /// How long the file is, once all of it is on disk.
    pub(crate) fn sync(&self) -> Result<u64, RunError> {
        self.file
            .sync_all()
            .map_err(|source| RunError::io("sync", &self.path, source))?;
        Ok(self.bytes)
    }
}
