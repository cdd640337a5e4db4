//! Reasons why a run could not begin or did not finish.

use rlf_train::error::TrainError;
use rlf_train::run::RunError;

use crate::folder::FolderError;

/// Reasons why a run could not begin or did not finish. An interruption is not an error: see [`RunEnd`](crate::RunEnd).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunFailure {
    /// The configuration cannot be read or used.
    #[error(transparent)]
    Configuration(anyhow::Error),
    /// The folder cannot hold a new run.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// A problem of the run's folder: it holds no run, the run is in use, or it was started with other settings.
    #[error(transparent)]
    Run(#[from] RunError),
    /// A training loop stopped.
    #[error(transparent)]
    Training(#[from] TrainError),
    /// A problem of plugins, tasks, weights or anything else.
    #[error(transparent)]
    Other(#[from] anyhow::Error),
}
