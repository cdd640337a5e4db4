//! The errors of making tasks.

use std::error::Error;
use std::path::PathBuf;

use super::rejection::Reason;
use super::replay::Divergence;
use super::stage_file::FileError;
use crate::graph::GraphError;
use crate::verify::Unserved;

/// Tasks cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum PipelineError {
    /// A file cannot be used.
    #[error(transparent)]
    File(#[from] FileError),
    /// The tool graph cannot be built.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The folder was made with other options or environments.
    #[error(
        "{folder} was made with other {what}; name another folder with --output, or make it anew with --restart"
    )]
    OtherManifest {
        /// The folder.
        folder: PathBuf,
        /// The part that differs: the environments, or the options by name.
        what: String,
    },
    /// The folder has files, and no manifest that says what they were made from.
    #[error(
        "{folder} has files that were not made here, or whose manifest.json is lost; name another folder with --output"
    )]
    NoManifest {
        /// The folder.
        folder: PathBuf,
    },
    /// The manifest cannot be read.
    #[error("{path}: {source}; name another folder with --output, or delete this one")]
    Manifest {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: serde_json::Error,
    },
    /// The settings of rows cannot be read.
    #[error("{path}: {source}; delete the file, and give the options of rows again")]
    RowSettings {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: serde_json::Error,
    },
    /// Another process makes tasks in the folder.
    #[error(
        "another process makes tasks in {folder}; wait for its end, or name another folder with --output"
    )]
    InUse {
        /// The folder.
        folder: PathBuf,
    },
    /// An environment in the folder is not the one that the tasks were made in.
    #[error(
        "{file}: the environment {name} has changed since the tasks were made, or is missing; put it back, or make the tasks anew with --restart"
    )]
    OtherEnvironment {
        /// The folder of the environments.
        file: PathBuf,
        /// The environment.
        name: String,
    },
    /// Too few candidates pass. The folder has the tasks that were kept.
    #[error(
        "only {kept} of {candidates} candidates were kept; most were rejected as {}: {}",
        most.as_str(),
        most.advice()
    )]
    Fruitless {
        /// Number of tasks that were kept.
        kept: usize,
        /// Number of candidates.
        candidates: u64,
        /// The most frequent reason.
        most: Reason,
    },
    /// The machine did not serve every request.
    #[error("{0}; everything made before is kept")]
    Unserved(#[from] Unserved),
    /// The words of tasks cannot be rewritten.
    #[error("the words cannot be rewritten")]
    Words(#[source] Box<dyn Error + Send + Sync>),
    /// The real environment cannot be played at all.
    #[error("the replay in the sandbox failed")]
    Replay(#[source] Divergence),
}
