//! The folder of the cache: private, with its own key, written file by file.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

/// Length of the key, and of an authentication code.
pub(super) const KEY_BYTES: usize = 32;

/// First characters of the name of a file that is being written.
pub(super) const PARTIAL: &str = ".new-";

/// The reason why compiled components are not cached.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CacheError {
    #[error("no folder is configured")]
    NotConfigured,
    #[error("{}: {source}", folder.display())]
    Io { folder: PathBuf, source: io::Error },
    #[error("{} is not a directory", .0.display())]
    NotADirectory(PathBuf),
    #[error("others can enter {folder}; `chmod 700 {folder}`, or name another folder", folder = .0.display())]
    Exposed(PathBuf),
}

/// The user's folder for compiled components; none if neither `XDG_CACHE_HOME` nor `HOME` names an absolute path.
pub fn user_cache() -> Option<PathBuf> {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME")
        .map(PathBuf::from)
        .or_else(home)?;
    cache
        .is_absolute()
        .then(|| cache.join("rlf-host").join("components"))
}

/// Makes the folder and its key if they are missing, and reads the key.
pub(super) fn open(folder: &Path) -> Result<[u8; KEY_BYTES], CacheError> {
    let failed = |source: io::Error| CacheError::Io {
        folder: folder.to_owned(),
        source,
    };
    if let Some(parent) = folder.parent() {
        fs::create_dir_all(parent).map_err(failed)?;
    }
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(failed(error)),
        _ => {}
    }
    let metadata = fs::symlink_metadata(folder).map_err(failed)?;
    if !metadata.is_dir() {
        return Err(CacheError::NotADirectory(folder.to_owned()));
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() || metadata.mode() & 0o077 != 0 {
        return Err(CacheError::Exposed(folder.to_owned()));
    }
    read_or_make_key(folder).map_err(failed)
}

/// Writes a file under a name that nothing else uses, readable by this user alone.
pub(super) fn write_new(folder: &Path, pieces: &[&[u8]]) -> io::Result<PathBuf> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let path = folder.join(format!(
        "{PARTIAL}{}-{}",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::Relaxed)
    ));
    let write = || {
        // A process of the same id left this file when it died, so nothing is writing it.
        let _ = fs::remove_file(&path);
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        for piece in pieces {
            file.write_all(piece)?;
        }
        // Uses the same precision as the recorded times of use, so that the two can be compared.
        file.set_modified(SystemTime::now())
    };
    write().inspect_err(|_| {
        let _ = fs::remove_file(&path);
    })?;
    Ok(path)
}

/// Opens a regular file. A pipe in its place is an error at once; opening it would wait for a writer.
pub(super) fn open_file(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file = File::options().read(true).custom_flags(flags).open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    Ok(file)
}

/// The folder's key. If two processes create one at once, both use the first one.
fn read_or_make_key(folder: &Path) -> io::Result<[u8; KEY_BYTES]> {
    let path = folder.join("key");
    if !path.exists() {
        let mut fresh = [0; KEY_BYTES];
        File::open("/dev/urandom")?.read_exact(&mut fresh)?;
        let temporary = write_new(folder, &[&fresh])?;
        File::open(&temporary)?.sync_all()?;
        // Unlike a rename, a link never replaces an existing file.
        let linked = fs::hard_link(&temporary, &path);
        fs::remove_file(&temporary)?;
        match linked {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
    }
    let file = open_file(&path)?;
    let metadata = file.metadata()?;
    if metadata.uid() != rustix::process::geteuid().as_raw() || metadata.mode() & 0o077 != 0 {
        return Err(io::Error::other(
            "others can read its `key`; remove the folder",
        ));
    }
    let mut key = [0; KEY_BYTES];
    (&file).read_exact(&mut key).map_err(|error| {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            io::Error::other("its `key` is too short; remove the folder")
        } else {
            error
        }
    })?;
    Ok(key)
}
