//! Files written whole, and read whole within a limit; folders that one process at a time may write to.
//!
//! A file that is written exists whole or not at all. The content is written to a new file beside the target, flushed to
//! the disk, and renamed. After a crash, the old or the new file exists. A process that has the old file open keeps it. Links are followed. A new file gets the
//! permissions of the old one and, if that is allowed, its owner. The crate must not know what the files contain.
//!
//! Devices, terminals, pipes and the standard output are written to directly, because a rename would replace them by a
//! file. A machine breaks if `/dev/null` is a file.
//!
//! | looking for | module |
//! |---|---|
//! | writing | this one: [`write()`], [`write_with`] |
//! | reading a file that must not be endless, whole or in parts | `bounded`: [`read`], [`read_text`], [`open`] |
//! | the exclusive right to write into a folder | `lock`: [`FolderLock`] |
//!
//! ```
//! let folder = tempfile::tempdir()?;
//! let file = folder.path().join("rows.jsonl");
//! rlf_files::write(&file, b"{}\n")?;
//! let failed = rlf_files::write_with(&file, |out| {
//!     out.write_all(b"half of it")?;
//!     Err(std::io::Error::other("no more"))
//! });
//! assert!(failed.is_err());
//! assert_eq!(std::fs::read(&file)?, b"{}\n");
//! # Ok::<(), std::io::Error>(())
//! ```

mod bounded;
mod lock;

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::Path;

pub use bounded::{MAX_TEXT_BYTES, open, read, read_text};
pub use lock::{FolderLock, LOCK_FILE, LockError};

/// Prefix of the names of files and folders that are being written, or that were left by a crash.
pub const PARTIAL: &str = ".writing-";

/// True if `path` has the name of a file that is being written.
#[must_use]
pub fn is_partial(path: &Path) -> bool {
    path.file_name()
        .is_some_and(|name| name.as_encoded_bytes().starts_with(PARTIAL.as_bytes()))
}

/// Deletes the files in a folder that an earlier process did not finish. The folder may be missing. Call this only where
/// no other process writes.
pub fn remove_partial(folder: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if is_partial(&entry.path()) && entry.file_type()?.is_file() {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// True if a folder does not exist or holds nothing of value: only its lock, and files that were never finished.
pub fn is_unused(folder: &Path) -> io::Result<bool> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(true),
        entries => entries?,
    };
    for entry in entries {
        let entry = entry?;
        if entry.file_name() != LOCK_FILE && !is_partial(&entry.path()) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Writes `bytes` to `path`.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    write_with(path, |out| out.write_all(bytes))
}

/// Writes the output of `fill` to `path`. If `fill` fails, the old file stays.
pub fn write_with(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(there) if is_stdout(&there) => {
            let mut out = io::stdout().lock();
            fill(&mut out)?;
            out.flush()
        }
        Ok(there) if there.is_file() => replace(&path.canonicalize()?, Some(&there), fill),
        Ok(there) if there.is_dir() => Err(ErrorKind::IsADirectory.into()),
        Ok(_) => {
            let mut out = BufWriter::new(OpenOptions::new().write(true).open(path)?);
            fill(&mut out)?;
            out.flush()
        }
        Err(error) if error.kind() == ErrorKind::NotFound && path.is_symlink() => {
            Err(io::Error::new(error.kind(), "it is a link to nothing"))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => replace(path, None, fill),
        Err(error) => Err(error),
    }
}

/// True if `path` is the process's standard output, which may be a file. Output is then appended to it.
#[must_use]
pub fn is_standard_output(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|there| is_stdout(&there))
}

fn is_stdout(there: &Metadata) -> bool {
    let stdout = io::stdout().as_fd().try_clone_to_owned();
    let stdout = stdout.and_then(|stdout| File::from(stdout).metadata());
    stdout.is_ok_and(|stdout| (stdout.dev(), stdout.ino()) == (there.dev(), there.ino()))
}

/// Writes a file beside `path` and renames it. It has the permissions of the old file `there`, or else the process's
/// default.
fn replace(
    path: &Path,
    there: Option<&Metadata>,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // With `make_in`, an error does not name the temporary file, which says nothing to a user.
    let mut create = OpenOptions::new();
    create.write(true).create_new(true).mode(0o666);
    let mut beside = tempfile::Builder::new()
        .prefix(PARTIAL)
        .make_in(folder, |path| create.open(path))?;
    let mut out = BufWriter::new(beside.as_file_mut());
    fill(&mut out)?;
    out.flush()?;
    drop(out);
    if let Some(there) = there {
        // Only root may give a file away. For other users, the file is already theirs or becomes theirs.
        let _ = fchown(beside.as_file(), Some(there.uid()), Some(there.gid()));
        beside.as_file().set_permissions(there.permissions())?;
    }
    beside.as_file().sync_all()?;
    beside.persist(path)?;
    // The rename is on the disk once the folder is flushed. Some file systems cannot flush a folder, but the rename has
    // happened all the same.
    let _ = File::open(folder).and_then(|folder| folder.sync_all());
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};
    use std::path::PathBuf;
    use std::thread;

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_folder_with_a_lock_and_half_a_file_is_unused() {
        let folder = tempfile::tempdir().unwrap();
        let lock = FolderLock::take(folder.path()).unwrap();
        fs::write(folder.path().join(".writing-a1"), "{").unwrap();
        assert!(is_unused(folder.path()).unwrap());
        assert!(is_unused(&folder.path().join("missing")).unwrap());
        fs::write(folder.path().join("notes.txt"), "").unwrap();
        assert!(!is_unused(folder.path()).unwrap());
        drop(lock);
    }

    #[test]
    fn what_fails_leaves_the_old_file_and_no_rest() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        let fail = |out: &mut dyn Write| {
            out.write_all(b"half")?;
            assert_eq!(names(folder.path()).len(), 1 + usize::from(file.exists()));
            Err(io::Error::other("no more"))
        };
        write_with(&file, fail).unwrap_err();
        assert!(names(folder.path()).is_empty());
        write(&file, b"old").unwrap();
        let error = write_with(&file, fail).unwrap_err();
        assert_eq!(error.to_string(), "no more");
        assert_eq!(fs::read(&file).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["a"]);
    }

    #[test]
    fn an_error_does_not_name_the_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        let error = write(&folder.path().join("missing/a"), b"").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(!error.to_string().contains(PARTIAL), "{error}");
    }

    #[test]
    fn half_written_files_of_an_earlier_process_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", &format!("{PARTIAL}b")] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        fs::create_dir(folder.path().join(format!("{PARTIAL}c"))).unwrap();
        remove_partial(folder.path()).unwrap();
        assert_eq!(names(folder.path()), [&format!("{PARTIAL}c"), "a"]);
        remove_partial(&folder.path().join("missing")).unwrap();
    }

    #[test]
    fn what_a_crash_left_is_known_by_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        write_with(&file, |_| {
            assert!(is_partial(&folder.path().join(&names(folder.path())[0])));
            Ok(())
        })
        .unwrap();
        assert!(!is_partial(&file));
    }

    #[test]
    fn a_file_that_is_replaced_hands_on_its_permissions() {
        let folder = tempfile::tempdir().unwrap();
        let (made, file) = (folder.path().join("made"), folder.path().join("a"));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        File::create(&made).unwrap();
        write(&file, b"new").unwrap();
        assert_eq!(mode(&file), mode(&made), "as any other file");
        fs::set_permissions(&file, Permissions::from_mode(0o606)).unwrap();
        write(&file, b"newer").unwrap();
        assert_eq!(
            (mode(&file), fs::read(&file).unwrap()),
            (0o606, b"newer".to_vec())
        );
    }

    #[test]
    fn a_link_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (link, file) = (folder.path().join("link"), folder.path().join("a"));
        symlink("a", &link).unwrap();
        let error = write(&link, b"new").unwrap_err();
        assert_eq!(error.to_string(), "it is a link to nothing");
        write(&file, b"old").unwrap();
        write(&link, b"new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"new");
    }

    #[test]
    fn what_is_no_file_is_written_to_and_stays_what_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let (pipe, link) = (folder.path().join("pipe"), folder.path().join("link"));
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        symlink(&pipe, &link).unwrap();
        for path in [&pipe, &link] {
            let reader = thread::spawn({
                let pipe: PathBuf = pipe.clone();
                move || fs::read(pipe).unwrap()
            });
            write(path, b"rows").unwrap();
            assert_eq!(reader.join().unwrap(), b"rows");
            assert!(fs::metadata(path).unwrap().file_type().is_fifo());
        }
        let error = write(folder.path(), b"").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::IsADirectory);
        assert_eq!(names(folder.path()), ["link", "pipe"]);
    }
}
