//! Files and folders that are written completely or not at all.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use rlf_files::PARTIAL;

use super::error::RunError;

/// Writes `bytes` to the file `path`.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<(), RunError> {
    rlf_files::write(path, bytes).map_err(|source| RunError::io("write", path, source))
}

/// Makes the folder `path`, which is missing or empty: fills a temporary folder beside it, syncs all of it, and renames
/// it. If `fill` fails, nothing is left.
pub fn write_folder<E: From<RunError>>(
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

/// Removes a folder. At no moment does a part of it look like a whole folder.
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

/// Syncs the parent folder: a rename is on disk only after that.
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
