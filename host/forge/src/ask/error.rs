//! Errors of questions.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use rlf_endpoint::EndpointError;

/// The reason why an answer cannot be used, in words for the model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unusable(String);

impl Unusable {
    /// A reason.
    pub fn new(why: impl Into<String>) -> Self {
        Self(why.into())
    }

    /// The reason why an answer that was cut short by the limit of tokens cannot be used.
    pub(super) fn after_cut(self) -> Self {
        Self(format!("{self} (it was cut at `max_tokens`; be shorter)"))
    }
}

/// The reason why a question has no answer. Earlier answers are kept on disk.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The endpoint gave none.
    #[error("{stage}: {error}")]
    Endpoint {
        /// The stage.
        stage: String,
        /// The endpoint's error.
        error: EndpointError,
    },
    /// No answer could be used.
    #[error("{stage}: none of {attempts} answers can be used; the last: {why}; it is in {}", file.display())]
    Unusable {
        /// The stage.
        stage: String,
        /// Number of answers, those on disk included.
        attempts: u32,
        /// The reason of the last one.
        why: Unusable,
        /// The last answer.
        file: PathBuf,
    },
    /// The next question could go beyond the limit of tokens.
    #[error(
        "{stage}: the limit of {limit} tokens ends here: {spent} are spent or on their way, and the next question can take {next}"
    )]
    OutOfTokens {
        /// The stage.
        stage: String,
        /// The limit, in tokens.
        limit: u64,
        /// Tokens spent, and tokens reserved for questions in flight.
        spent: u64,
        /// Tokens that the next question and its longest answer may take.
        next: u64,
    },
    /// The time is up.
    #[error("{stage}: the limit of {} s ends here", limit.as_secs())]
    OutOfTime {
        /// The stage.
        stage: String,
        /// The limit of time.
        limit: Duration,
    },
    /// An answer on disk cannot be read, or a new one cannot be written.
    #[error("cannot {action} the answer {}: {source}", path.display())]
    Disk {
        /// Read or write.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}
