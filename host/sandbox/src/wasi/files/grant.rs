//! Grant of a scratch directory, as an operator configures it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::path;

/// A scratch directory: empty at the start of every call, in memory, gone at its end.
///
/// Every field may be left out of a configuration; unknown keys are errors. A limit that is reached
/// is an ordinary error to the guest (`ENOSPC`, `EDQUOT`), which may continue. The last one is in
/// [`FilesReport::refused`](crate::FilesReport).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ScratchFiles {
    /// Its absolute path in the guest. Default `/work`; `/` makes relative paths work.
    pub at: String,
    /// Bytes that its files may have together, holes included. Default 16 MiB. The host needs at most about twice that
    /// memory.
    pub bytes: u64,
    /// Files and directories that it may have, removed ones that are still open included. Default 1,000.
    pub entries: u64,
    /// Names that a path may have: `a/b.txt` has two. Default 16, at most 256.
    pub depth: u32,
    /// Paths that the host keeps when the call succeeds: files, and directories with everything below them; `/` for
    /// all. Default: none.
    pub outputs: Vec<String>,
}

impl Default for ScratchFiles {
    fn default() -> Self {
        Self {
            at: "/work".to_owned(),
            bytes: 16 << 20,
            entries: 1_000,
            depth: 16,
            outputs: Vec::new(),
        }
    }
}

/// The reason why files cannot be given as granted, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilesError {
    /// The path of the scratch directory is not absolute or not plain.
    #[error("at = {0:?} is no absolute path of plain names; write one such as \"/work\"")]
    At(String),
    /// The scratch directory could hold nothing.
    #[error("entries and depth must be at least 1")]
    NoRoom,
    /// The scratch directory is too large or too deep.
    #[error(
        "entries = {entries} and depth = {depth} are too many; write at most {MAX_ENTRIES} and {MAX_DEPTH}"
    )]
    TooMany {
        /// Files and directories that it may have.
        entries: u64,
        /// Names that a path in it may have.
        depth: u32,
    },
    /// An output is not a path in the scratch directory.
    #[error(
        "outputs: {0:?} is no path in the directory; write one such as \"report.txt\" or \"plots/\", or \"/\" for \
         everything"
    )]
    Output(String),
    /// The host directory does not exist.
    #[error("the host directory {} is not there or is no directory; correct its path", .0.display())]
    NoHostDirectory(PathBuf),
    /// Both kinds of directory are granted.
    #[error("a scratch directory and a host directory are both granted; keep one of them")]
    Both,
}

impl ScratchFiles {
    /// Refuses settings that cannot work.
    pub(crate) fn check(&self) -> Result<(), FilesError> {
        let inside = self.at.strip_prefix('/');
        if inside.is_none_or(|inside| !inside.is_empty() && !is_plain(inside)) {
            return Err(FilesError::At(self.at.clone()));
        }
        if self.entries == 0 || self.depth == 0 {
            return Err(FilesError::NoRoom);
        }
        if self.entries > MAX_ENTRIES || self.depth > MAX_DEPTH {
            return Err(FilesError::TooMany {
                entries: self.entries,
                depth: self.depth,
            });
        }
        let bad = |output: &&String| *output != "/" && !is_plain(output.trim_end_matches('/'));
        match self.outputs.iter().find(bad) {
            None => Ok(()),
            Some(output) => Err(FilesError::Output(output.clone())),
        }
    }

    /// True if the host keeps the file of that path.
    pub(crate) fn keeps(&self, file: &str) -> bool {
        self.outputs.iter().any(|output| {
            let below = |rest: &str| rest.starts_with('/');
            output == "/"
                || output == file
                || file
                    .strip_prefix(output.trim_end_matches('/'))
                    .is_some_and(below)
        })
    }
}

/// Limit of `entries`. One entry costs the host about 300 bytes, without its content.
const MAX_ENTRIES: u64 = 1_000_000;
const MAX_DEPTH: u32 = 256;

/// One or more names with a `/` between them, none of them `.` or `..`.
fn is_plain(path: &str) -> bool {
    path::Path::parse(path).is_ok() && path.split('/').all(|name| !matches!(name, "" | "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_may_be_left_out_and_unknown_ones_are_errors() {
        let files: ScratchFiles = serde_json::from_str(r#"{"bytes": 1024}"#).unwrap();
        assert_eq!(files.bytes, 1024);
        assert_eq!(files.at, "/work");
        assert_eq!(files.check(), Ok(()));
        let error = serde_json::from_str::<ScratchFiles>(r#"{"size": 1}"#).unwrap_err();
        assert!(
            error.to_string().contains("unknown field `size`"),
            "{error}"
        );
    }

    #[test]
    fn a_grant_that_cannot_work_says_what_to_write() {
        let with = |change: fn(&mut ScratchFiles)| {
            let mut files = ScratchFiles::default();
            change(&mut files);
            files.check()
        };
        assert_eq!(with(|files| files.at = "/".into()), Ok(()));
        assert_eq!(
            with(|files| files.outputs = vec!["/".into(), "a/b/".into()]),
            Ok(())
        );
        for bad in ["", "work", "/work/", "//", "/a/../b", "/a\0"] {
            let files = ScratchFiles {
                at: bad.to_owned(),
                ..ScratchFiles::default()
            };
            assert!(matches!(files.check(), Err(FilesError::At(_))), "{bad:?}");
        }
        for bad in ["", "/a", "../a", "a//b", "./a", "a\0", "//"] {
            let files = ScratchFiles {
                outputs: vec![bad.to_owned()],
                ..ScratchFiles::default()
            };
            assert!(
                matches!(files.check(), Err(FilesError::Output(_))),
                "{bad:?}"
            );
        }
        assert!(with(|files| files.entries = 0).is_err());
        assert!(with(|files| files.depth = 257).is_err());
    }

    #[test]
    fn outputs_are_files_and_whole_directories() {
        let keeps = |outputs: &[&str], file| {
            let outputs = outputs.iter().map(|&output| output.to_owned()).collect();
            ScratchFiles {
                outputs,
                ..ScratchFiles::default()
            }
            .keeps(file)
        };
        assert!(!keeps(&[], "a"));
        assert!(keeps(&["/"], "a/b"));
        assert!(keeps(&["a"], "a") && !keeps(&["a"], "ab"));
        assert!(keeps(&["a/"], "a/b/c") && keeps(&["a"], "a/b") && !keeps(&["a/"], "ab/c"));
        assert!(!keeps(&["a/"], "a"), "a file where a directory was named");
    }
}
