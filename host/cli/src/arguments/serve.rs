//! `rlf-host serve`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::PluginDirectory;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Serve {
    #[command(subcommand)]
    pub(crate) command: Option<ServeCommand>,
    #[command(flatten)]
    pub(crate) http: ServeHttp,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ServeCommand {
    /// Serve tools and environments to one MCP client over standard input and output
    ///
    /// MCP over HTTP is at the path /mcp of `rlf-host serve`.
    Mcp(ServeMcp),
    /// Serve the policy of a run, with the protocols of OpenAI's chat completions and Anthropic's messages
    Policy(ServePolicy),
}

#[derive(Debug, Args)]
pub(crate) struct ServeMcp {
    /// Configuration file; its tables `[serve]`, `[plugins]`, `[mcp]`, `[sandbox]` and `[tools]` apply
    pub(crate) config: Option<PathBuf>,
    /// Plugin or MCP server to serve although it reaches a network, a model or a directory; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) allow: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ServePolicy {
    /// The run's directory
    pub(crate) run: PathBuf,
    /// Address and port to listen on
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8000")]
    pub(crate) listen: SocketAddr,
    /// Environment variable with the token that clients must send; needed if other machines can connect
    #[arg(long, value_name = "NAME")]
    pub(crate) token_env: Option<String>,
    /// `cpu`, `cuda`, `cuda:N` or `auto`, instead of the run's device
    #[arg(long)]
    pub(crate) device: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ServeHttp {
    /// Configuration file; its tables `[serve]`, `[plugins]`, `[mcp]`, `[sandbox]` and `[tools]` apply
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) plugins: PluginDirectory,
    /// Address and port to listen on (default: `serve.listen` of the configuration, or 127.0.0.1:8080)
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<SocketAddr>,
    /// File with the token that clients must send; needed if other machines can connect
    #[arg(long, value_name = "FILE", conflicts_with = "token_env")]
    pub(crate) token_file: Option<PathBuf>,
    /// Environment variable with the token that clients must send
    #[arg(long, value_name = "NAME")]
    pub(crate) token_env: Option<String>,
    /// Host name by which clients reach the service; may be repeated
    #[arg(long = "host", value_name = "NAME")]
    pub(crate) hosts: Vec<String>,
    /// Web origin whose pages may send requests, such as `https://lab.example.com`; may be repeated
    #[arg(long = "origin", value_name = "ORIGIN")]
    pub(crate) origins: Vec<String>,
    /// Plugin or MCP server to serve although it reaches a network, a model or a directory; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) allow: Vec<String>,
}
