//! The HTTP service: programs, tools and rewards for whoever trains elsewhere.
//!
//! A training cluster has engines of its own and needs one thing of others: that what its models write is run,
//! safely and by the thousand. The field's protocol for that is SandboxFusion's; this crate speaks it field by
//! field, so that its clients change a URL and nothing else, and adds tools and rewards beside it.
//!
//! A service runs what strangers' models wrote for whoever can reach it, so that who may ask is decided before a
//! body is read ([`ServeConfig`]), everything a client can make larger is bounded, and a plugin that leads out of
//! the sandbox is served only by name.
//!
//! It must not know how programs are confined or plugins loaded: interpreters, tools and rewards come from
//! `rlf-plugins`. Nothing is kept between requests; any number of such services can stand beside each other.
//!
//! | a reader looking for | finds it in |
//! |---|---|
//! | every setting | `config` |
//! | who may ask | `access`, `token` |
//! | which tools and rewards | `exposure` |
//! | SandboxFusion's types and rules | `protocol`, `number`, `scratch` |
//! | what a request does | `run_code`, `run_jupyter`, `tools`, `rewards` |
//! | waiting and limits | `queue`, `body`, `server`, `connection` |
//! | every path, and its description | `routes`, `openapi` |
//!
//! ```no_run
//! use std::collections::BTreeMap;
//! use std::path::Path;
//!
//! use rlf_plugins::registry::Registry;
//! use rlf_plugins::tool_manager::{ToolManager, ToolManagerConfig};
//! use rlf_sandbox::{Sandbox, SandboxConfig};
//! use rlf_serve::{ServeConfig, Server};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let sandbox = Sandbox::new(&SandboxConfig::default())?;
//! let registry = Registry::load(Path::new("target/plugins"), &BTreeMap::new(), &sandbox);
//! let tools = ToolManager::new(&registry, &ToolManagerConfig::default())?;
//! let workers = sandbox.pools().workers;
//! let server = Server::bind(ServeConfig::default(), &registry, tools, workers).await?;
//! println!("listening on http://{}", server.address());
//! server.run(std::future::pending(), |_| {}).await;
//! # Ok(()) }
//! ```

mod access;
mod answer;
mod body;
mod config;
mod connection;
mod exposure;
#[cfg(fuzzing)]
pub mod fuzzing;
mod metrics;
mod number;
mod openapi;
mod protocol;
mod queue;
mod rewards;
mod routes;
mod run_code;
mod run_jupyter;
mod scratch;
mod server;
mod service;
mod token;
mod tools;

pub use config::ServeConfig;
pub use server::{ServeError, Served, Server};
