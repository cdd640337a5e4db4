//! Keeps the files that a call left in its scratch directory, if the operator wants them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cap_std::ambient_authority;
use cap_std::fs::Dir;

/// Maximum number of characters of a call's id in the name of its folder.
const MAX_NAME: usize = 80;

/// A folder with one folder for each call that left files.
#[derive(Debug)]
pub(crate) struct Outputs {
    folder: PathBuf,
}

impl Outputs {
    pub(crate) fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
        }
    }

    /// Writes the files of one call. They replace those that a call with the same id left in an earlier run. Returns
    /// their place, for the record of the call.
    pub(crate) async fn keep(
        self: Arc<Self>,
        call_id: &str,
        files: BTreeMap<String, Vec<u8>>,
    ) -> io::Result<String> {
        let folder = self.folder.join(folder_name(call_id));
        // A disk may be slow, and this may run on a rollout's thread.
        let kept = tokio::task::spawn_blocking(move || {
            write(&folder, &files)?;
            Ok(format!("kept {} in {}", listed(&files), folder.display()))
        });
        kept.await.map_err(io::Error::other)?
    }
}

/// Creates a folder with these files and no others.
fn write(folder: &Path, files: &BTreeMap<String, Vec<u8>>) -> io::Result<()> {
    let parent = folder.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(parent)?;
    let beside = tempfile::Builder::new()
        .prefix(".keeping-")
        .tempdir_in(parent)?;
    // The paths come from the guest. They are plain names, and nothing is written through a link either.
    let directory = Dir::open_ambient_dir(beside.path(), ambient_authority())?;
    for (path, bytes) in files {
        if let Some(parent) = Path::new(path).parent() {
            directory.create_dir_all(parent)?;
        }
        directory.write(path, bytes)?;
    }
    match fs::symlink_metadata(folder) {
        Ok(there) if there.is_dir() => fs::remove_dir_all(folder)?,
        Ok(_) => fs::remove_file(folder)?,
        Err(_) => {}
    }
    fs::rename(beside.keep(), folder)
}

/// Lists the files with their sizes, for people.
pub(crate) fn listed(files: &BTreeMap<String, Vec<u8>>) -> String {
    const SHOWN: usize = 10;
    let mut listed: Vec<String> = files
        .iter()
        .take(SHOWN)
        .map(|(path, bytes)| format!("{path} ({} bytes)", bytes.len()))
        .collect();
    if files.len() > SHOWN {
        listed.push(format!("{} more", files.len() - SHOWN));
    }
    listed.join(", ")
}

/// Turns a call's id into one file name. Ids contain names from data sets. Characters that are not plain are replaced,
/// and a hash distinguishes ids that then look the same.
fn folder_name(call_id: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let name: String = call_id
        .chars()
        .map(|c| if plain(c) { c } else { '_' })
        .take(MAX_NAME)
        .collect();
    let hash = blake3::hash(call_id.as_bytes()).to_hex();
    format!("{name}-{}", &hash[..8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn files_are_kept_under_the_name_of_their_call_and_nowhere_else() {
        let folder = tempfile::tempdir().unwrap();
        let outputs = Arc::new(Outputs::new(&folder.path().join("outputs")));
        let stale = BTreeMap::from([("stale".to_owned(), b"of a run that was killed".to_vec())]);
        let earlier = Arc::clone(&outputs).keep("../../etc/0/1", stale).await;
        assert!(earlier.unwrap().starts_with("kept stale (24 bytes) in "));
        let files = BTreeMap::from([
            ("plots/a.svg".to_owned(), b"<svg/>".to_vec()),
            ("report.txt".to_owned(), b"42".to_vec()),
        ]);
        let said = outputs.keep("../../etc/0/1", files).await.unwrap();
        assert!(
            said.starts_with("kept plots/a.svg (6 bytes), report.txt (2 bytes) in "),
            "{said}"
        );
        let calls: Vec<_> = std::fs::read_dir(folder.path().join("outputs"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert_eq!(calls.len(), 1);
        assert_eq!(
            std::fs::read(calls[0].join("plots/a.svg")).unwrap(),
            b"<svg/>"
        );
        assert_eq!(std::fs::read(calls[0].join("report.txt")).unwrap(), b"42");
        assert!(!calls[0].join("stale").exists());
        assert_ne!(folder_name("a/b"), folder_name("a.b"));
    }
}
