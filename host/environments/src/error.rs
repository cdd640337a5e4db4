//! The reasons why an environment session did not do as it was asked.

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
    pub(crate) fn is_infrastructure(&self) -> bool {
        matches!(self, Self::Stopped(stopped) if stopped.ended.is_infrastructure())
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
