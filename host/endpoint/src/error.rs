//! Reasons that a question has no answer.

use std::time::Duration;

/// Reason that there is no answer. It has the beginning of the server's text, never the key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// The endpoint will not answer this, however often it is asked.
    #[error("the endpoint {host} refused: status {status}{}", said(.text))]
    Refused {
        /// Its host.
        host: String,
        /// HTTP status, 3xx or 4xx.
        status: u16,
        /// The beginning of its text.
        text: String,
    },
    /// The endpoint was busy or broken, each time.
    #[error("the endpoint {host} failed{} with status {status}{}", times(*.attempts), said(.text))]
    Failed {
        /// Its host.
        host: String,
        /// Number of attempts.
        attempts: u32,
        /// HTTP status of the last attempt, 429 or 5xx.
        status: u16,
        /// The beginning of its text.
        text: String,
    },
    /// The endpoint could not be reached, or the connection broke, each time.
    #[error("the endpoint {host} gave no answer{}: {reason}", within(*.attempts))]
    Unreachable {
        /// Its host.
        host: String,
        /// Number of attempts.
        attempts: u32,
        /// The last failure.
        reason: String,
    },
    /// The answer was not complete in time.
    #[error("the endpoint {host} had not answered after {} ms; raise `timeout_ms` or lower `max_concurrent`", .after.as_millis())]
    TimedOut {
        /// Its host.
        host: String,
        /// `timeout_ms`.
        after: Duration,
    },
    /// The answer is not a completion.
    #[error("the endpoint {host} answered something else than a chat completion: {reason}")]
    NoCompletion {
        /// Its host.
        host: String,
        /// The mistake in it.
        reason: String,
    },
    /// The question or the answer is larger than can be.
    #[error("the endpoint {host}: {reason}")]
    TooLarge {
        /// Its host.
        host: String,
        /// Which of the two, and its size.
        reason: String,
    },
    /// The question cannot be sent.
    #[error("the endpoint {host} cannot be asked: {reason}")]
    Unsendable {
        /// Its host.
        host: String,
        /// The reason.
        reason: String,
    },
}

/// Number of failures, if there was more than one.
fn times(attempts: u32) -> String {
    match attempts {
        0 | 1 => String::new(),
        more => format!(" {more} times, the last"),
    }
}

/// Number of attempts, if there was more than one.
fn within(attempts: u32) -> String {
    match attempts {
        0 | 1 => String::new(),
        more => format!(" in {more} attempts"),
    }
}

fn said(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        format!(", and said {text:?}")
    }
}
