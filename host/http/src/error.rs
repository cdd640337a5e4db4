//! Errors: rules that cannot be used, and fetches without an answer.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// Rules that contradict themselves, or that this machine cannot keep.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    /// A key of `hosts` that is not the exact name of a host.
    #[error("http host `{host}`: {reason}")]
    Host {
        /// The host, as written in the rules.
        host: String,
        /// The mistake, and what to write instead.
        reason: String,
    },
    /// A secret that cannot be read, or that no request may use.
    #[error("http secret `{name}`: {reason}")]
    Secret {
        /// The secret's key in the rules.
        name: String,
        /// The mistake, and how to correct it. It never contains a part of the secret.
        reason: String,
    },
    /// A limit that would stop every fetch, or that protects from nothing.
    #[error("http `{name} = {value}`: {reason}")]
    Limit {
        /// The limit's key in the rules.
        name: &'static str,
        /// The limit's value in the rules.
        value: u64,
        /// The mistake, and what to write instead.
        reason: String,
    },
    /// The certificates for https hosts cannot be read.
    #[error("http certificates{}: {reason}", .path.as_ref().map(|path| format!(" {}", path.display())).unwrap_or_default())]
    Certificates {
        /// The file that the rules name, if they name one.
        path: Option<PathBuf>,
        /// The mistake, and how to correct it.
        reason: String,
    },
}

/// A fetch without an answer. Its text may be shown to a plugin and a model. It contains no secret, no address that a
/// name leads to, and no path of the machine.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The operator's HTTP rules refuse the request. Nothing was sent.
    #[error("{0}")]
    Denied(String),
    /// The request cannot be sent because of its URL, its method or a header.
    #[error("{0}")]
    Invalid(String),
    /// The request, the answer or the number of requests is larger than the rules allow.
    #[error("{reason} ({limit})")]
    Exhausted {
        /// Describes what was too large or too many.
        reason: &'static str,
        /// The limit.
        limit: FetchLimit,
    },
    /// The network, the name or the server failed; trying again later may help.
    #[error("{0}")]
    Unavailable(String),
    /// The answer was not complete in time.
    #[error("`{host}` had not answered in full after {} ms ({by})", .waited.as_millis())]
    Timeout {
        /// The host that was asked.
        host: String,
        /// Time waited, without queueing.
        waited: Duration,
        /// The limit that ended it.
        by: TimedOutBy,
    },
}

impl FetchError {
    pub(crate) fn exhausted(
        reason: &'static str,
        name: &'static str,
        value: u64,
        used: u64,
    ) -> Self {
        Self::Exhausted {
            reason,
            limit: FetchLimit { name, value, used },
        }
    }
}

/// The time limit that ended a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimedOutBy {
    /// `timeout_ms` of the rules. The call that fetched has time left.
    Rules,
    /// The deadline of the call that fetched.
    Deadline,
}

impl fmt::Display for TimedOutBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rules => "timeout_ms of the HTTP rules",
            Self::Deadline => "the deadline of the call",
        })
    }
}

/// A limit that a fetch exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchLimit {
    /// Its key in [`HttpRules`](crate::HttpRules), such as `max_response_bytes`.
    pub name: &'static str,
    /// Its value, in the unit that the key names.
    pub value: u64,
    /// The amount that was used or asked for, in the same unit. If the answer was not read to its end, the actual
    /// amount may be larger.
    pub used: u64,
}

impl fmt::Display for FetchLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}, used {}", self.name, self.value, self.used)
    }
}
