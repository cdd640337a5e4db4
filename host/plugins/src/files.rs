//! The files of a plugin: their paths, their limit, and their sizes and times, which show that they have changed.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::manifest::MANIFEST_FILE;
use crate::script;

/// Maximum size of a component, in bytes. A larger one is refused unread. A Python interpreter with its standard
/// library is about 30 MB, one with numpy and similar packages 270 MB.
pub const MAX_COMPONENT_BYTES: u64 = 512 << 20;

/// The paths of a plugin's files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginFiles {
    /// The component, or the main source file.
    pub(crate) code: PathBuf,
    /// The plugin's folder, or its bare file.
    pub(crate) path: PathBuf,
}

/// Inode, length and time of each file. They show a change without reading the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileStamps(Vec<Option<(u64, u64, SystemTime)>>);

impl PluginFiles {
    /// The component, or the main source file.
    pub fn code(&self) -> &Path {
        &self.code
    }

    /// Reads the inode, length and time of each file.
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
