//! Weights on their way to an engine.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rlf_endpoint::EndpointError;
use serde_json::Value;
use tokio::process::Command;

/// Weights on disk, where the engine reads them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SavedWeights {
    /// A folder with a whole model in Hugging Face's format.
    Model(PathBuf),
    /// A folder with adapters in PEFT's format. The engine serves the frozen weights.
    Adapter(PathBuf),
}

/// An error of whoever saves weights.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Saves the weights that the engine shall sample with. It may be called more than once.
pub type SaveWeights = Arc<dyn Fn() -> Result<SavedWeights, BoxError> + Send + Sync>;

/// The reason why an engine does not have the weights.
#[derive(Debug, thiserror::Error)]
pub(super) enum UpdateError {
    #[error("its weights could not be saved: {0}")]
    Save(BoxError),
    #[error("it could not load the weights: {0}")]
    Endpoint(#[from] EndpointError),
    #[error("it refused to load the weights: {0}")]
    Refused(String),
    #[error("external_engine.update_command: cannot run `{program}`: {source}")]
    Start {
        program: String,
        source: std::io::Error,
    },
    #[error("external_engine.update_command: `{program}` ended with {status}")]
    Failed { program: String, status: ExitStatus },
    #[error(
        "external_engine.update_command: `{program}` had not ended after {} ms; raise `timeout_ms`",
        .limit.as_millis()
    )]
    TimedOut { program: String, limit: Duration },
}

/// Fails if the body of a successful answer says that there was no success.
pub(super) fn confirmed(body: &[u8]) -> Result<(), UpdateError> {
    // Some services answer with a plain text, or with nothing.
    let answer: Value = serde_json::from_slice(body).unwrap_or_default();
    if answer["success"] != false {
        return Ok(());
    }
    let message = answer["message"].as_str().unwrap_or("it does not say why");
    Err(UpdateError::Refused(message.to_owned()))
}

/// Runs the operator's command with the folder of the weights as its last argument.
pub(super) async fn run_command(
    command: &[String],
    folder: &Path,
    limit: Duration,
) -> Result<(), UpdateError> {
    let Some((program, arguments)) = command.split_first() else {
        return Ok(());
    };
    let name = || program.clone();
    // Nothing is read from it: an engine that it starts may keep its streams open.
    let ended = Command::new(program)
        .args(arguments)
        .arg(folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .status();
    let status = tokio::time::timeout(limit, ended)
        .await
        .map_err(|_| UpdateError::TimedOut {
            program: name(),
            limit,
        })?
        .map_err(|source| UpdateError::Start {
            program: name(),
            source,
        })?;
    if status.success() {
        return Ok(());
    }
    let program = name();
    Err(UpdateError::Failed { program, status })
}
