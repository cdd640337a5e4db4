//! Grants: the data, files and real sources that an operator allows one plugin.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::wasi::files::{FileGrant, FilesError, ScratchFiles};

/// Grants of an operator to one plugin. The default grants nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Grants {
    /// Data that the plugin may read: each name is bound to a file or a directory.
    pub data: BTreeMap<String, PathBuf>,
    /// A scratch directory in memory, a new one for every call. Default: none.
    pub files: Option<ScratchFiles>,
    /// A real directory of the host, which the guest finds at `/host` and may change. It is not deterministic, because
    /// its times and listings are the machine's. It is not isolated: calls see each other's files, and those of all
    /// other programs that write there. No limit on bytes applies. Writes are counted in
    /// [`FilesReport`](crate::FilesReport). Default: none; cannot be combined with `files`.
    pub host_directory: Option<PathBuf>,
    /// Sources that are the machine's own instead of virtual and seeded. Default: none.
    pub real: RealSources,
}

impl Grants {
    /// Checks the files that are granted.
    pub(crate) fn file_grant(&self) -> Result<FileGrant, FilesError> {
        FileGrant::new(self.files.as_ref(), self.host_directory.as_deref())
    }
}

/// Real sources that a call gets after `init`. A guest that uses one is not deterministic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RealSources {
    /// The wall clock of the machine, clocks that run in real time, and real sleeping, which the call's
    /// deadline ends. Default false.
    pub clock: bool,
    /// The entropy of the machine, independent of the call's seed. Default false.
    pub random: bool,
}
