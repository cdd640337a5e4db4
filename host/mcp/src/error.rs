//! The reasons why a server cannot be used.

use std::error::Error;

/// Maximum length of a server's error text, in characters.
const REASON_CHARS: usize = 500;

/// A server that cannot be used, with the reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum McpError {
    /// A key of its table is wrong.
    #[error("[mcp.{server}] {key}: {reason}")]
    Config {
        /// The server.
        server: String,
        /// The key of its table.
        key: String,
        /// The mistake, and what to write instead.
        reason: String,
    },
    /// It cannot be reached, or does not answer as an MCP server does.
    #[error("[mcp.{server}] {reason}; `enabled = false` leaves it out")]
    Connect {
        /// The server.
        server: String,
        /// The reason, with what the server wrote to its standard error.
        reason: String,
    },
    /// The tools that the operator wants are not there.
    #[error("[mcp.{server}] {reason}")]
    Tools {
        /// The server.
        server: String,
        /// The key of its table.
        key: &'static str,
        /// The mistake, and what to write instead.
        reason: String,
    },
    /// A block of servers cannot be read.
    #[error("mcp_servers: {0}")]
    Block(String),
    /// The thread that asks servers cannot be started.
    #[error("cannot start a thread for MCP servers: {0}")]
    Thread(String),
}

impl McpError {
    /// The key in the configuration, dotted.
    pub fn key(&self) -> String {
        match self {
            Self::Config { server, key, .. } => format!("mcp.{server}.{key}"),
            Self::Connect { server, .. } => format!("mcp.{server}"),
            Self::Tools { server, key, .. } => format!("mcp.{server}.{key}"),
            Self::Block(_) => "mcp_servers".to_owned(),
            Self::Thread(_) => String::new(),
        }
    }
}

/// An error with its causes, short and safe to print.
pub(crate) fn reason(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = error.source();
    }
    rlf_sandbox::safe_text(text.as_bytes())
        .chars()
        .take(REASON_CHARS)
        .collect()
}
