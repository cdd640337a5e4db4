//! `rlf-host mcp`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct Mcp {
    #[command(subcommand)]
    pub(crate) command: McpCommand,
    /// Configuration file; its tables `[mcp.NAME]` and its block `mcp_servers` apply
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum McpCommand {
    /// Connect to the servers, and show their tools as models see them
    List,
    /// Call a tool and print the result
    Call {
        /// Name of the tool, as models see it
        tool: String,
        /// The tool's arguments, as a JSON object
        #[arg(default_value = "{}")]
        arguments: String,
    },
}
