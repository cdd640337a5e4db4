//! The reasons why an environment behind a URL cannot be used.

use rlf_environments::error::OpenError;
use rlf_http::FetchError;

use crate::protocol::Protocol;

/// An environment that cannot be used, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    /// A key of its table is wrong.
    #[error("[{}.{environment}] {key}: {reason}", .protocol.table())]
    Config {
        /// The protocol, which says in which table the environment is.
        protocol: Protocol,
        /// The environment.
        environment: String,
        /// The key of its table.
        key: &'static str,
        /// The mistake, and what to write instead.
        reason: String,
    },
    /// It cannot be reached, or does not answer as its protocol wants.
    #[error("[{}.{environment}] {reason}; `enabled = false` leaves it out", .protocol.table())]
    Connect {
        /// The protocol, which says in which table the environment is.
        protocol: Protocol,
        /// The environment.
        environment: String,
        /// The reason.
        reason: String,
    },
    /// The thread that asks servers cannot be started.
    #[error("cannot start a thread that asks servers of environments: {0}")]
    Thread(String),
}

impl RemoteError {
    /// The error of a wrong key.
    pub(crate) fn config(
        protocol: Protocol,
        environment: &str,
        key: &'static str,
        reason: impl Into<String>,
    ) -> Self {
        Self::Config {
            protocol,
            environment: environment.to_owned(),
            key,
            reason: reason.into(),
        }
    }

    /// The key in the configuration, dotted.
    pub fn key(&self) -> String {
        match self {
            Self::Config {
                protocol,
                environment,
                key,
                ..
            } => format!("{}.{environment}.{key}", protocol.table()),
            Self::Connect {
                protocol,
                environment,
                ..
            } => format!("{}.{environment}", protocol.table()),
            Self::Thread(_) => String::new(),
        }
    }
}

/// The reason why a request over HTTP has no answer that can be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SiteError {
    /// The server did not answer.
    #[error("{url} cannot be read: {source}")]
    Fetch { url: String, source: FetchError },
    /// The server answered with another status than 200. `detail` is empty, or the server's reason after a colon.
    #[error("{url} answered with status {status}{detail}")]
    Status {
        url: String,
        status: u16,
        detail: String,
    },
}

/// The reason why a session has not begun, in words.
#[derive(Debug)]
pub(crate) enum NotBegun {
    /// The server refused the task.
    Refused(String),
    /// There is no session for now.
    Unavailable(String),
    /// The server's answer cannot be used.
    Broke(String),
}

impl NotBegun {
    /// The error for whoever opens a session.
    pub(crate) fn of(self, environment: &str) -> OpenError {
        let environment = environment.to_owned();
        match self {
            Self::Refused(reason) => OpenError::Refused {
                environment,
                reason,
            },
            Self::Unavailable(reason) => OpenError::Unavailable {
                environment,
                reason,
            },
            Self::Broke(reason) => OpenError::Broke {
                environment,
                reason,
            },
        }
    }
}
