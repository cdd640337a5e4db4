//! What is left of a call's files.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::ending::LimitReached;

/// What became of a call's files. Empty where none were granted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FilesReport {
    /// Content of the files that [`ScratchFiles::outputs`] names, by path, if the call succeeded.
    /// A path has plain names with `/` between them: it is relative and leads nowhere else.
    pub outputs: BTreeMap<String, Vec<u8>>,
    /// The last limit of the scratch directory for which the guest was refused something: one of
    /// `files.bytes`, `files.entries` and `files.depth`.
    pub refused: Option<LimitReached>,
    /// What was made, written, moved, changed or removed in the host's directory, in operations.
    pub host_writes: u64,
    /// Bytes written to files in the host's directory.
    pub host_bytes_written: u64,
}
