//! The files of a plugin, and what they look like from outside, to notice that they have changed.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::manifest::MANIFEST_FILE;
use crate::script;

/// Where the files of a plugin are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginFiles {
    /// The component, or the Python file.
    pub(crate) code: PathBuf,
    /// The plugin's folder, or its bare file.
    pub(crate) path: PathBuf,
}

/// Inode, length and time of each file. They show a change without reading the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileStamps(Vec<Option<(u64, u64, SystemTime)>>);

impl PluginFiles {
    /// The component, or the Python file.
    pub fn code(&self) -> &Path {
        &self.code
    }

    /// Looks at the files.
    pub fn stamps(&self) -> FileStamps {
        let stamp = |path: &Path| {
            let metadata = fs::metadata(path).ok()?;
            Some((metadata.ino(), metadata.len(), metadata.modified().ok()?))
        };
        let mut files = script::watched(&self.code);
        files.push(self.path.join(MANIFEST_FILE));
        FileStamps(files.iter().map(|path| stamp(path)).collect())
    }

    /// True if the code is there. While a file is being replaced, it may be missing.
    pub fn are_there(&self) -> bool {
        self.code.exists()
    }
}
