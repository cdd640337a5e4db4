//! The HTTP service: programs, tools and rewards for training clusters.
//!
//! A training cluster has its own engines. It needs a service that runs the code of its models, safely and by the
//! thousand. The usual protocol for that is SandboxFusion's. This crate implements it field by field, so that clients
//! only change a URL. It adds tools and rewards.
//!
//! Every client that reaches the service can run the code of an unknown model. So the service checks the client before
//! it reads a body ([`check_access`]), and limits everything that a client can enlarge. It serves a plugin that leads
//! out of the sandbox only if the operator names it.
//!
//! The crate must not know how programs are confined, how plugins are loaded, or anything of training. Interpreters,
//! tools, rewards and environments come from `rlf-interpreters`, `rlf-tools`, `rlf-rewards` and `rlf-environments`. Only
//! sessions of MCP clients and of environments are kept between requests. Any number of services can run side by side.
//!
//! | looking for | module |
//! |---|---|
//! | every setting | `config`: [`ServeConfig`] |
//! | the checks of who may send requests | `access`, `token` |
//! | the tools and rewards that are served | `exposure` |
//! | SandboxFusion's types and rules | `protocol`, `number`, `scratch` |
//! | the handlers of requests | `run_code`, `run_jupyter`, `tools`, `rewards` |
//! | MCP, over HTTP and over streams | `mcp`: [`serve_streams`] |
//! | OpenEnv | `openenv` |
//! | sessions of environments | `sessions` |
//! | queues and limits | `queue`, `service`, `body`, `server`, `connection` |
//! | answers, request names and log lines | `answer`, `request`, `metrics` |
//! | every path, and its OpenAPI description | `routes`, `route`, `openapi` |
//! | the reasons why a service does not start | `error`: [`ServeError`] |
//!
//! ```no_run
//! use std::collections::BTreeMap;
//! use std::path::Path;
//!
//! use rlf_plugins::kind::Kinds;
//! use rlf_plugins::registry::Registry;
//! use rlf_interpreters::InterpreterLoader;
//! use rlf_rewards::RewardLoader;
//! use rlf_tools::ToolLoader;
//! use rlf_tools::tool_manager::{ToolManager, ToolManagerConfig};
//! use rlf_sandbox::{Sandbox, SandboxConfig};
//! use rlf_environments::environments::{EnvironmentConfig, Environments};
//! use rlf_serve::{Offer, ServeConfig, Server};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let sandbox = Sandbox::new(&SandboxConfig::default())?;
//! const KINDS: Kinds = &[&ToolLoader, &RewardLoader, &InterpreterLoader];
//! let registry = Registry::load(Path::new("target/plugins"), &BTreeMap::new(), KINDS, &sandbox);
//! let tools = ToolManager::new(&registry, &ToolManagerConfig::default())?;
//! let offer = Offer {
//!     registry: &registry,
//!     tools,
//!     environments: Environments::new(&registry, &sandbox, &EnvironmentConfig::default()),
//!     workers: sandbox.pools().workers,
//! };
//! let server = Server::bind(ServeConfig::default(), offer).await?;
//! println!("listening on http://{}", server.address());
//! server.run(std::future::pending(), |_| {}).await;
//! # Ok(()) }
//! ```

mod access;
mod answer;
mod body;
mod config;
mod connection;
mod error;
mod exposure;
#[cfg(fuzzing)]
pub mod fuzzing;
mod mcp;
mod metrics;
mod number;
mod openapi;
mod openenv;
mod protocol;
mod queue;
mod request;
mod rewards;
mod route;
mod routes;
mod run_code;
mod run_jupyter;
mod scratch;
mod server;
mod service;
mod sessions;
mod token;
mod tools;

pub use access::check_access;
pub use config::{ServeConfig, ServeConfigError};
pub use error::ServeError;
pub use mcp::serve_streams;
pub use server::{Served, Server};
pub use service::Offer;
pub use token::TokenError;
