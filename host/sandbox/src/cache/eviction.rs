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

/// Removes the entries that were used least recently, until the others have `max_bytes` together.
pub(super) fn evict(folder: &Path, max_bytes: u64) -> io::Result<()> {
    let mut entries: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
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

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
