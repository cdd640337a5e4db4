//! Errors of a question.

use std::time::Duration;

/// The reason why a question has no answer. It may contain the start of the server's text, never the key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// The endpoint refuses this question. A retry would not help.
    #[error("the endpoint {host} refused: status {status}{}{}", quotation(.text), hint(*.status))]
    Refused {
        /// The endpoint's host.
        host: String,
        /// HTTP status, 3xx or 4xx.
        status: u16,
        /// The start of the server's text.
        text: String,
    },
    /// The endpoint was busy or failed at every attempt.
    #[error("the endpoint {host} failed{} with status {status}{}", times(*.attempts), quotation(.text))]
    Failed {
        /// The endpoint's host.
        host: String,
        /// Number of attempts.
        attempts: u32,
        /// HTTP status of the last attempt, 429 or 5xx.
        status: u16,
        /// The start of the server's text.
        text: String,
    },
    /// At every attempt, the endpoint could not be reached or the connection broke.
    #[error("the endpoint {host} gave no answer{}: {reason}", within(*.attempts))]
    Unreachable {
        /// The endpoint's host.
        host: String,
        /// Number of attempts.
        attempts: u32,
        /// The last failure.
        reason: String,
    },
    /// The answer was not complete in time.
    #[error("the endpoint {host} had not answered after {} ms; raise `timeout_ms` or lower `max_concurrent`", .after.as_millis())]
    TimedOut {
        /// The endpoint's host.
        host: String,
        /// `timeout_ms`.
        after: Duration,
    },
    /// The answer is not a completion.
    #[error("the endpoint {host} answered something else than a chat completion: {reason}")]
    NoCompletion {
        /// The endpoint's host.
        host: String,
        /// The mistake in the answer.
        reason: String,
    },
    /// The answer has no text, because a content filter of the endpoint removed it. A retry would not help.
    #[error(
        "the endpoint {host} refused: its content filter removed the answer (finish_reason `content_filter`)"
    )]
    Filtered {
        /// The endpoint's host.
        host: String,
    },
    /// The answer has not one vector for each text.
    #[error("the endpoint {host} answered something else than an embedding of each text: {reason}")]
    NoEmbeddings {
        /// The endpoint's host.
        host: String,
        /// The mistake in the answer.
        reason: String,
    },
    /// The question or the answer is too large.
    #[error("the endpoint {host}: {reason}")]
    TooLarge {
        /// The endpoint's host.
        host: String,
        /// Names the question or the answer, with its size.
        reason: String,
    },
    /// The question cannot be sent.
    #[error("the endpoint {host} cannot be asked: {reason}")]
    Unsendable {
        /// The endpoint's host.
        host: String,
        /// The reason.
        reason: String,
    },
}

impl EndpointError {
    /// True if every other question would end in the same way: the key, the model or the address is wrong.
    pub fn meets_every_question(&self) -> bool {
        match self {
            // The other refusals are of one question: it is too long, or a filter refuses its text.
            Self::Refused { status, .. } => !matches!(*status, 400 | 408 | 409 | 413 | 422),
            Self::Unsendable { .. } => true,
            _ => false,
        }
    }
}

/// The number of failures, for messages, if there was more than one.
fn times(attempts: u32) -> String {
    match attempts {
        0 | 1 => String::new(),
        more => format!(" {more} times, the last"),
    }
}

/// The number of attempts, for messages, if there was more than one.
fn within(attempts: u32) -> String {
    match attempts {
        0 | 1 => String::new(),
        more => format!(" in {more} attempts"),
    }
}

/// The usual mistake behind a status.
fn hint(status: u16) -> &'static str {
    match status {
        404 => "; does the base URL lack its path, such as `/v1`?",
        _ => "",
    }
}

fn quotation(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!(", and said {text:?}")
    }
}
