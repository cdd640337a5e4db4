//! How a question ends that brings no answer.

use std::time::Duration;

/// Why there is no answer. What the server said is in it, cut short; the key never is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EndpointError {
    /// The endpoint will not answer this, however often it is asked.
    #[error("the endpoint {host} refused: status {status}{}", said(.text))]
    Refused {
        /// Its host.
        host: String,
        /// HTTP status, 3xx or 4xx.
        status: u16,
        /// What it said.
        text: String,
    },
    /// The endpoint was busy or broken, each time.
    #[error("the endpoint {host} failed{} with status {status}{}", times(*.attempts), said(.text))]
    Failed {
        /// Its host.
        host: String,
        /// How often it was asked.
        attempts: u32,
        /// HTTP status of the last attempt, 429 or 5xx.
        status: u16,
        /// What it said.
        text: String,
    },
    /// Nobody was there, or the connection broke, each time.
    #[error("the endpoint {host} gave no answer{}: {reason}", within(*.attempts))]
    Unreachable {
        /// Its host.
        host: String,
        /// How often it was tried.
        attempts: u32,
        /// What happened the last time.
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
    /// The answer is no completion.
    #[error("the endpoint {host} answered something else than a chat completion: {reason}")]
    NoCompletion {
        /// Its host.
        host: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The question or the answer is larger than can be.
    #[error("the endpoint {host}: {reason}")]
    TooLarge {
        /// Its host.
        host: String,
        /// Which, and how large.
        reason: String,
    },
    /// The question cannot be sent.
    #[error("the endpoint {host} cannot be asked: {reason}")]
    Unsendable {
        /// Its host.
        host: String,
        /// Why.
        reason: String,
    },
}

/// How often it failed, where that was more than once.
fn times(attempts: u32) -> String {
    match attempts {
        0 | 1 => String::new(),
        more => format!(" {more} times, the last"),
    }
}

/// In how many attempts it did, where there were more than one.
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
