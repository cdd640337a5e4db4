//! Why a run could not begin, or did not end.

use rlf_train::error::TrainError;
use rlf_train::run::RunError;

use crate::folder::FolderError;

/// Reasons why a run could not begin, or did not end. An interruption is not an error: see [`RunEnd`](crate::RunEnd).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunFailure {
    /// The configuration cannot be read or used.
    #[error(transparent)]
    Configuration(anyhow::Error),
    /// The folder cannot hold a new run.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The run's own files: there is no run, it is in use, or it was begun with something else.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A training loop stopped.
    #[error(transparent)]
    Training(#[from] TrainError),
    /// Plugins, tasks, weights or anything else.
    #[error(transparent)]
    Other(#[from] anyhow::Error),
}
