//! Tools of plugins in one namespace. A [`ToolManager`](tool_manager::ToolManager) checks the calls of a turn, runs
//! them side by side, retries those that may be retried, and answers in call order.
//!
//! The end of a call is data here; other crates decide what becomes of the trajectory. This crate must not know
//! rewards, environments or interpreters. It calls the tools that an interpreter offers through
//! [`Exports`](rlf_plugins::plugin::Exports), like all others.
//!
//! | looking for | module |
//! |---|---|
//! | the calls of a turn, retries, limits | [`tool_manager`] |
//! | one tool, one attempt at a call, its permit to run | `tool` |
//! | tools of servers outside of the sandbox | `server`: [`ToolServer`] |
//! | the policy as a model that plugins are granted | `policy`: [`POLICY`] |
//! | kept results of deterministic tools | `result_cache` |
//! | files that calls leave behind | `outputs` |
//! | loading and calling a tool plugin, for the core | `loader`: [`ToolLoader`] |
//! | tools in a source file | `script` |
//! | schemas, arguments, ends of calls | [`rlf_plugins::schema`], [`rlf_plugins::arguments`], [`rlf_plugins::outcome`] |
//!
//! ```no_run
//! use std::collections::BTreeMap;
//! use std::path::Path;
//!
//! use rlf_dialogue::tool::ToolCall;
//! use rlf_plugins::registry::Registry;
//! use rlf_plugins::turn::TurnContext;
//! use rlf_sandbox::{Sandbox, SandboxConfig};
//! use rlf_tools::ToolLoader;
//! use rlf_tools::tool_manager::{ToolManager, ToolManagerConfig};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let sandbox = Sandbox::new(&SandboxConfig::default())?;
//! let plugins = Path::new("target/plugins");
//! let registry = Registry::load(plugins, &BTreeMap::new(), &[&ToolLoader], &sandbox);
//! let tools = ToolManager::new(&registry, &ToolManagerConfig::default())?;
//! let call = ToolCall {
//!     call_id: "example/0/0".into(),
//!     name: "calculate".into(),
//!     arguments: serde_json::json!({ "expression": "(2+3)*4" }),
//! };
//! let context = TurnContext { trajectory_id: "example".into(), turn: 0, seed: 0 };
//! let outcomes = tools.invoke(vec![call], &context).await;
//! println!("{:?}", outcomes[0].observation);
//! # Ok(()) }
//! ```

mod loader;
mod outputs;
mod policy;
mod result_cache;
mod script;
mod server;
mod tool;
pub mod tool_manager;

pub use self::loader::{ToolIndices, ToolLoader};
pub use self::policy::{NoPolicy, POLICY};
pub use self::server::{ServerCall, ServerLimits, ToolServer};
