//! The size limit of the cache: the least recently used entries make room for new ones.
//!
//! Other processes may use the same folder. An entry that one of them has open stays readable to it. An entry that is
//! gone when it is needed is compiled again.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::folder::PARTIAL;

/// Ending of the name of an entry.
pub(super) const EXTENSION: &str = "cwasm";

/// Age from which a partial file is assumed to be left by a process that died.
const MAX_PARTIAL_AGE: Duration = Duration::from_hours(1);

/// The contents of a folder of compiled components.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CacheUsage {
    /// Number of entries.
    pub entries: usize,
    /// Size of all entries together.
    pub bytes: u64,
    /// The time of the last use of the entry that has not been used for the longest time.
    pub oldest_use: Option<SystemTime>,
}

/// Measures a folder of compiled components. A folder that does not exist is empty.
pub fn cache_usage(folder: &Path) -> io::Result<CacheUsage> {
    let entries = match entries(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        entries => entries?,
    };
    Ok(CacheUsage {
        entries: entries.len(),
        bytes: entries.iter().map(|(_, bytes, _)| bytes).sum(),
        oldest_use: entries.first().map(|(used, _, _)| *used),
    })
}

/// Removes the entries of a folder of compiled components that were used least recently, until the others have
/// `max_bytes` together. Programs that run keep what they have loaded.
pub fn shrink_cache(folder: &Path, max_bytes: u64) -> io::Result<()> {
    match evict(folder, max_bytes) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

/// Removes the entries that were used least recently, until the others have `max_bytes` together.
pub(super) fn evict(folder: &Path, max_bytes: u64) -> io::Result<()> {
    let entries = entries(folder)?;
    let mut total: u64 = entries.iter().map(|(_, bytes, _)| bytes).sum();
    for (_, bytes, path) in entries {
        if total <= max_bytes {
            break;
        }
        remove(&path)?;
        tracing::debug!(entry = %path.display(), bytes, "a compiled component made room for others");
        total -= bytes;
    }
    Ok(())
}

/// Lists the entries with the time of their last use and their size, least recently used first. Removes files that
/// processes left half-written when they died.
fn entries(folder: &Path) -> io::Result<Vec<(SystemTime, u64, PathBuf)>> {
    let mut entries = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        // Removed by another process since.
        let Ok(metadata) = fs::symlink_metadata(&path) else {
            continue;
        };
        let used = metadata.modified()?;
        let name = path.file_name().unwrap_or_default().as_encoded_bytes();
        if path.extension().is_some_and(|found| found == EXTENSION) {
            entries.push((used, metadata.len(), path));
        } else if name.starts_with(PARTIAL.as_bytes())
            && used.elapsed().is_ok_and(|age| age > MAX_PARTIAL_AGE)
        {
            remove(&path)?;
        }
    }
    entries.sort_unstable();
    Ok(entries)
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
