//! The files that a call leaves.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ending::LimitReached;

/// Files that a call left. Empty if none were granted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FilesReport {
    /// Content of the files that [`ScratchFiles::outputs`](crate::ScratchFiles::outputs) names, by path, if the call succeeded.
    /// A path consists of plain names with `/` between them: it is relative and stays in the directory.
    pub outputs: BTreeMap<String, Vec<u8>>,
    /// The last limit of the scratch directory that refused the guest something: one of `files.bytes`,
    /// `files.entries` and `files.depth`.
    pub refused: Option<LimitReached>,
    /// Operations that made, wrote, moved, changed or removed something in the host's directory.
    pub host_writes: u64,
    /// Bytes written to files in the host's directory.
    pub host_bytes_written: u64,
}
