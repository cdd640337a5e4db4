//! The reasons why an environment that speaks OpenEnv cannot be used.

use std::time::Duration;

use rlf_plugins::offered_tools::OfferedToolsError;
use tokio_tungstenite::tungstenite;
use url::Url;

use crate::error::SiteError;

/// The reason why a server's description of its environment cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DescriptionError {
    /// The server did not answer well.
    #[error("{0}; is it the URL of an OpenEnv server?")]
    Site(#[from] SiteError),
    /// The answer is not JSON.
    #[error("its `{path}` is no JSON: {source}")]
    Json {
        path: &'static str,
        source: serde_json::Error,
    },
    /// The description does not say how a model acts.
    #[error("its `schema` has no `action`; is it a server of OpenEnv?")]
    NoAction,
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
