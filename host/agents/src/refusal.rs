//! The refusal of a request, before it has a form.

use std::fmt::Display;

use http::StatusCode;
use rlf_dialogue::tool::CallOutcome;
use rlf_rollout::RolloutError;
use rlf_rollout::agent::TurnRefused;

/// The refusal of a request.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    /// A short name, as in OpenAI's `error.code`.
    pub(crate) code: &'static str,
    pub(crate) message: String,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
        }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_request", message)
    }

    /// Refuses a call that an infrastructure failure ended: there is nothing that the policy may read.
    pub(crate) fn without_observation(outcome: &CallOutcome) -> Self {
        let ended = outcome.ended.as_str();
        let why = format!("the call ended as `{ended}`, and the trajectory is excluded");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", why)
    }

    /// Adds the place of the mistake in the body.
    pub(crate) fn at(self, place: impl Display) -> Self {
        Self {
            message: format!("{place}: {}", self.message),
            ..self
        }
    }
}

impl From<RolloutError> for Refusal {
    fn from(error: RolloutError) -> Self {
        let status = StatusCode::SERVICE_UNAVAILABLE;
        Self::new(status, "unavailable", error.to_string())
    }
}

impl From<TurnRefused> for Refusal {
    fn from(refused: TurnRefused) -> Self {
        let (status, code) = match &refused {
            TurnRefused::Invalid(_) => (StatusCode::BAD_REQUEST, "invalid_request"),
            TurnRefused::NoTurns(_) => (StatusCode::BAD_REQUEST, "max_turns"),
            TurnRefused::TooLong(_) => (StatusCode::BAD_REQUEST, "context_length_exceeded"),
            TurnRefused::Over(_) => (StatusCode::GONE, "over"),
            TurnRefused::Unavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
        };
        Self::new(status, code, refused.to_string())
    }
}
