//! The reasons why an environment behind a URL cannot be used.

use std::time::Duration;

use rlf_http::FetchError;
use rlf_plugins::offered_tools::OfferedToolsError;
use tokio_tungstenite::tungstenite;
use url::Url;

/// An environment that cannot be used, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenEnvError {
    /// A key of its table is wrong.
    #[error("[openenv.{environment}] {key}: {reason}")]
    Config {
        /// The environment.
        environment: String,
        /// The key of its table.
        key: &'static str,
        /// The mistake, and what to write instead.
        reason: String,
    },
    /// It cannot be reached, or does not answer as OpenEnv does.
    #[error("[openenv.{environment}] {reason}; `enabled = false` leaves it out")]
    Connect {
        /// The environment.
        environment: String,
        /// The reason.
        reason: String,
    },
    /// The thread that asks servers cannot be started.
    #[error("cannot start a thread for OpenEnv: {0}")]
    Thread(String),
}

impl OpenEnvError {
    /// The error of a wrong key.
    pub(crate) fn config(environment: &str, key: &'static str, reason: impl Into<String>) -> Self {
        Self::Config {
            environment: environment.to_owned(),
            key,
            reason: reason.into(),
        }
    }

    /// The key in the configuration, dotted.
    pub fn key(&self) -> String {
        match self {
            Self::Config {
                environment, key, ..
            } => format!("openenv.{environment}.{key}"),
            Self::Connect { environment, .. } => format!("openenv.{environment}"),
            Self::Thread(_) => String::new(),
        }
    }
}

/// The reason why a server's description of its environment cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DescriptionError {
    /// The server did not answer.
    #[error("{url} cannot be read: {source}")]
    Fetch { url: String, source: FetchError },
    /// The server answered with another status than 200.
    #[error("{url} answered with status {status}; is it the URL of an OpenEnv server?")]
    Status { url: String, status: u16 },
    /// The answer is not JSON.
    #[error("{url} is no JSON: {source}")]
    Json {
        url: String,
        source: serde_json::Error,
    },
    /// The description does not say how a model acts.
    #[error("{url} has no `action`; is it a server of OpenEnv?")]
    NoAction { url: String },
    /// A model cannot write such actions.
    #[error("its actions cannot be offered as a tool: {0}")]
    Action(#[from] OfferedToolsError),
}

/// The reason why the tools that a server lists cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ToolListError {
    /// The server's own reason.
    #[error("it does not list its tools: {0}")]
    Refused(String),
    /// The list is not in MCP's form.
    #[error("it lists its tools in another form than MCP's: {0}")]
    Form(#[from] serde_json::Error),
    /// A tool cannot be offered to a model.
    #[error(transparent)]
    Tools(#[from] OfferedToolsError),
}

/// The reason why a message has no answer. The connection is closed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConnectionError {
    /// There is no connection.
    #[error("{base} cannot be reached: {source}")]
    Unreachable {
        base: Url,
        source: Box<tungstenite::Error>,
    },
    /// The server closed it.
    #[error("it closed the connection")]
    Closed,
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Broke(#[source] Box<tungstenite::Error>),
    /// There was no answer within a time limit.
    #[error("it did not answer within {} ms", .0.as_millis())]
    Late(Duration),
    /// The server spoke out of turn.
    #[error("it sent an answer that nobody had asked for")]
    Unasked,
    /// The answer cannot be read. `begins` is its beginning.
    #[error("its answer is none of OpenEnv's: {source}; it begins with {begins:?}")]
    Unreadable {
        begins: String,
        source: serde_json::Error,
    },
}
