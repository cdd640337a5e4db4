//! Reasons why the service cannot be started.

use std::io;
use std::net::SocketAddr;

use crate::config::ServeConfigError;

/// The reason why the service cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The table `[serve]` cannot be used.
    #[error(transparent)]
    Config(#[from] ServeConfigError),
    /// The operator allows a plugin that is not loaded.
    #[error("serve.allow: no plugin or MCP server `{plugin}` is loaded; {hint}")]
    NotLoaded {
        /// The name in `allow`.
        plugin: String,
        /// The nearest name, or the names that exist.
        hint: String,
    },
    /// A language of the protocol is to be run by an interpreter that does not exist.
    #[error(
        "serve.languages: `{name}` is to be run as `{language}`, which no interpreter runs; there are: {known}"
    )]
    NoInterpreter {
        /// The name in requests.
        name: String,
        /// The language that it is run as.
        language: String,
        /// The languages that interpreters run.
        known: String,
    },
    /// An MCP client over streams did not speak the protocol.
    #[error("the MCP client: {0}")]
    Client(String),
    /// The machine gives no randomness.
    #[error("the machine gives no randomness: {0}")]
    NoRandomness(String),
    /// The service cannot listen on the address.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The configured address.
        address: SocketAddr,
        /// The system's error.
        source: io::Error,
    },
}
