//! The reasons why a session was not opened, or did not do as it was asked.

use rlf_dialogue::tool::Ended;
use rlf_plugins::bindings::types;
use rlf_plugins::convert::{ContractError, error_text};
use rlf_plugins::offered_tools::{MAX_TOOLS, OfferedToolsError};
use rlf_sandbox::Stopped;

/// The reason why a session did not do as it was asked.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// The environment refused.
    #[error("{}", error_text(.0))]
    Refused(types::Error),
    /// The environment was stopped while it worked on the request. The session is as it was before.
    #[error(transparent)]
    Stopped(#[from] Stopped),
    /// The session cannot come back.
    #[error("{0}")]
    Lost(String),
    /// The environment's answer is against the contract.
    #[error("broke the contract: {0}")]
    Contract(String),
    /// The session is on a server, and nothing there can be undone.
    #[error("an environment behind a URL has no snapshots")]
    NoSnapshots,
    /// The model's words did not reach the environment, or its reply cannot be used.
    #[error("the environment did not hear the model out: {why}")]
    NotHeard {
        /// The end of the attempt.
        ended: Ended,
        /// The reason, in words.
        why: String,
    },
}

impl SessionError {
    /// True if the machine had no room or no time for the request. This says nothing about the environment.
    pub fn is_infrastructure(&self) -> bool {
        matches!(self, Self::Stopped(stopped) if stopped.ended.is_infrastructure())
    }
}

/// The reason why a session could not be opened.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum OpenError {
    /// No plugin or server is an environment of this name.
    #[error("there is no environment `{name}`{hint}")]
    NoSuchEnvironment {
        /// The name that was asked for.
        name: String,
        /// The reason why it is missing, or the names that exist.
        hint: String,
    },
    /// The environment refused the task.
    #[error("environment `{environment}` does not open the task: {reason}")]
    Refused {
        /// The environment's name.
        environment: String,
        /// The environment's own explanation.
        reason: String,
    },
    /// An infrastructure failure: the session got no room or no time.
    #[error("environment `{environment}` could not open the task: {reason}")]
    Unavailable {
        /// The environment's name.
        environment: String,
        /// The reason.
        reason: String,
    },
    /// The environment broke, or violated the contract.
    #[error("environment `{environment}` broke while it opened the task: {reason}")]
    Broke {
        /// The environment's name.
        environment: String,
        /// The reason.
        reason: String,
    },
}

impl OpenError {
    /// The error of a request that was not refused: the machine is to blame, or else the environment.
    pub(crate) fn stopped(environment: &str, error: &SessionError) -> Self {
        let (environment, reason) = (environment.to_owned(), error.to_string());
        if error.is_infrastructure() {
            Self::Unavailable {
                environment,
                reason,
            }
        } else {
            Self::Broke {
                environment,
                reason,
            }
        }
    }
}

/// The reason why the tools or messages at the start of a session cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OfferError {
    #[error("its `setup` names no `servers` with tools, and brings no `functions`")]
    NoServers,
    #[error(
        "it offers {0} tools; at most {MAX_TOOLS} are taken: let the task name some of its servers, as in \
         {{\"servers\": {{\"NAME\": {{}}}}}}, or load one file in place of its folder"
    )]
    TooManyTools(usize),
    #[error(transparent)]
    Tools(OfferedToolsError),
    #[error("broke the contract: {0}")]
    Message(ContractError),
}

impl From<OfferedToolsError> for OfferError {
    fn from(error: OfferedToolsError) -> Self {
        match error {
            OfferedToolsError::TooMany(count) => Self::TooManyTools(count),
            other => Self::Tools(other),
        }
    }
}
