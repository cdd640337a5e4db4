//! Files and folders that are written completely or not at all.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rlf_files::PARTIAL;

use super::error::RunError;

/// Writes `bytes` to the file `path`.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> Result<(), RunError> {
    rlf_files::write(path, bytes).map_err(|source| RunError::io("write", path, source))
}

/// Makes the folder `path`, which is missing or empty: fills a temporary folder beside it, syncs all of it, and renames
/// it. If `fill` fails, nothing is left. If another process makes the same folder, it fails, and the other one goes on.
pub fn write_folder<E: From<RunError>>(
    path: &Path,
    fill: impl FnOnce(&Path) -> Result<(), E>,
) -> Result<(), E> {
    let temporary = temporary_beside(path);
    let io = |source| RunError::io("write", path, source);
    // Held until the folder has its place.
    let _held = claim_empty(&temporary).map_err(io)?;
    let write = || -> Result<(), E> {
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

/// Makes a folder, or empties one that a crash left. This process owns it until the returned file is closed.
fn claim_empty(folder: &Path) -> io::Result<File> {
    match fs::create_dir(folder) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        made => made?,
    }
    let busy = || io::Error::new(ErrorKind::ResourceBusy, "another process is writing it");
    let held = File::open(folder)?;
    held.try_lock().map_err(|refused| match refused {
        TryLockError::Error(error) => error,
        TryLockError::WouldBlock => busy(),
    })?;
    // Another process may have renamed the opened folder meanwhile. A link is none that this program made.
    let (opened, there) = (held.metadata()?, fs::symlink_metadata(folder)?);
    if (opened.dev(), opened.ino()) != (there.dev(), there.ino()) {
        return Err(busy());
    }
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() && !path.is_symlink() {
            fs::remove_dir_all(path)?;
        } else {
            fs::remove_file(path)?;
        }
    }
    Ok(held)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_another_one_is_making_is_left_to_it_and_what_a_crash_left_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model");
        let left = folder.path().join(".writing-model").join("old");
        fs::create_dir_all(&left).unwrap();
        let written = write_folder(&path, |inside| {
            assert_eq!(fs::read_dir(inside).unwrap().count(), 0);
            write_file(&inside.join("weights"), b"first")?;
            let second = write_folder(&path, |_| Ok::<(), RunError>(()));
            let second = second.unwrap_err().to_string();
            assert!(second.contains("another process is writing it"), "{second}");
            Ok::<(), RunError>(())
        });
        written.unwrap();
        assert_eq!(fs::read(path.join("weights")).unwrap(), b"first");
        assert!(!folder.path().join(".writing-model").exists());
        // A link to somebody's folder is left alone.
        let (theirs, link) = (
            folder.path().join("theirs"),
            folder.path().join(".writing-other"),
        );
        fs::create_dir(&theirs).unwrap();
        write_file(&theirs.join("kept"), b"").unwrap();
        std::os::unix::fs::symlink(&theirs, &link).unwrap();
        assert!(write_folder(&folder.path().join("other"), |_| Ok::<(), RunError>(())).is_err());
        assert!(theirs.join("kept").exists());
        // The place is taken now.
        let third = write_folder(&path, |inside| {
            write_file(&inside.join("weights"), b"third")
        });
        assert!(third.is_err());
        assert_eq!(fs::read(path.join("weights")).unwrap(), b"first");
    }
}
