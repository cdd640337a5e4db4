//! Tools of MCP servers: `[mcp.NAME]` of a configuration.
//!
//! Nothing here controls such a server. It is a process with the rights of this one, or a service on the network. It may
//! hang, die, send too much, or change its tools. So every call has a deadline, and every answer has a size limit. A broken
//! connection is made again after a wait. The tools are those that the server had at the beginning: a call of a tool that
//! has changed since then ends as unavailable, because the model saw the old definition. A server that fails affects only
//! its own calls.
//!
//! Names and descriptions of a server's tools are untrusted text, like those of plugins.
//!
//! It must not know models, tasks, rewards or training.
//!
//! | looking for | module |
//! |---|---|
//! | `[mcp.NAME]` of a configuration | `config`: [`McpConfig`] |
//! | an `mcpServers` block of another host | `mcp_servers`: [`add_mcp_servers`] |
//! | all servers of a process | `servers`: [`Servers`] |
//! | one server: its tools, a call | `server` |
//! | connecting, and connecting again | `connection` |
//! | the tools that a server lists | `listing` |
//! | those of the beginning, compared with later lists | `known_tools` |
//! | the thread on which servers are asked | `background` |
//! | a server that is a process | `process` |
//! | the messages of a process, and what is none | `lines` |
//! | a server that sends too many messages | `quiet` |
//! | the reason why a connection was ended | `ending` |
//! | a server behind a URL | `web` |
//! | a server's definitions and answers, as those of a plugin | `convert` |
//!
//! ```no_run
//! use std::collections::BTreeMap;
//! use rlf_mcp::{McpConfig, Servers};
//!
//! let configs: BTreeMap<String, McpConfig> = rlf_config::parse(
//!     r#"
//! [time]
//! command = "uvx"
//! args = ["mcp-server-time"]
//! tools = ["convert_time"]
//! "#,
//!     "example.toml",
//! )?;
//! let servers = Servers::connect(&configs, &|warning| eprintln!("{warning}"))?;
//! for server in servers.tool_servers() {
//!     println!("{}: {} tools", server.name(), server.tools().len());
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod background;
mod config;
mod connection;
mod convert;
mod ending;
mod error;
mod known_tools;
mod lines;
mod listing;
mod mcp_servers;
mod process;
mod quiet;
mod server;
mod servers;
mod variables;
mod web;

pub use config::McpConfig;
pub use error::McpError;
pub use mcp_servers::add_mcp_servers;
pub use process::end_processes;
pub use servers::Servers;
