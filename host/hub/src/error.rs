//! The errors of downloads.

use std::path::PathBuf;

use hf_hub::api::sync::ApiError;
use rlf_policy::PolicyError;

/// The reason why a checkpoint was not downloaded.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    /// A name that no model can have.
    #[error(
        "{name:?} at {revision:?} cannot be a model; write OWNER/MODEL, such as Qwen/Qwen3-0.6B, and the name of a branch, a \
         tag or a commit"
    )]
    Name {
        /// The name asked for.
        name: String,
        /// The revision asked for.
        revision: String,
    },
    /// No place for files.
    #[error("no home folder is known to keep the files in; set HF_HOME to a folder")]
    NoHome,
    /// A model that does not exist, or that may not be read.
    #[error(
        "{name} at {revision} was not found at {endpoint}. Check the name and the revision. If the model is private or asks for \
         consent, set HF_TOKEN to a token that may read it."
    )]
    NotFound {
        /// The name asked for.
        name: String,
        /// The revision asked for.
        revision: String,
        /// The hub.
        endpoint: String,
    },
    /// A model whose files are of no use here.
    #[error(
        "{0} has no checkpoint that can be loaded: config.json and files in the format safetensors are needed"
    )]
    NoCheckpoint(String),
    /// A model of another architecture, or a file that cannot be read.
    #[error(transparent)]
    Policy(#[from] PolicyError),
    /// A request that failed.
    #[error("{what} could not be downloaded: {source}; what has arrived is kept, so ask again")]
    Request {
        /// The file or the hub.
        what: String,
        /// The reason.
        source: Box<ApiError>,
    },
    /// A file that is not the announced one.
    #[error("the hub announced {0} and sent something else, which was removed; ask again")]
    Damaged(String),
    /// A file that arrived and cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
}

impl HubError {
    pub(crate) fn request(what: &str, source: ApiError) -> Self {
        Self::Request {
            what: what.to_owned(),
            source: Box::new(source),
        }
    }
}
