//! Typed plugins over the sandbox: which there are, what they may have, and how a rollout calls
//! them.
//!
//! Tools and rewards are components that strangers wrote. This crate finds them in a directory,
//! holds what each asks for (`plugin.toml`) against what the operator grants it
//! (`[plugins.<alias>]`), and gives rollouts two things: a [`ToolManager`](tool_manager::ToolManager)
//! that answers all calls of a turn, and a [`RewardStack`](reward_stack::RewardStack) that grades a
//! group of trajectories. How a call ended is data here; what becomes of the trajectory follows
//! from it.
//!
//! It must not know how a model works or what training does: the policy and this crate meet in
//! `rlf-rollout` only. How a component is confined is `rlf-sandbox`'s business.
//!
//! | a reader looking for | finds it in |
//! |---|---|
//! | what a plugin says of itself | [`manifest`] |
//! | what the operator lets it have | [`policy`] |
//! | how plugins are found and loaded | [`registry`] |
//! | how they are replaced while calls run | [`follower`] |
//! | what is wrong with one that is not there | [`problem`] |
//! | calls of tools | [`tool_manager`], [`schema`], [`arguments`] |
//! | programs that models wrote | [`interpreter`] |
//! | worlds that trajectories act in | [`environment`] |
//! | ways out of the sandbox | [`gates`] |
//! | how calls end, and what models are told | `outcome` |
//! | rewards | [`reward_stack`], [`rewards_config`], [`expression`], [`reward`] |
//! | how terms become a reward | `formula` |
//! | numbers for metrics | [`counters`] |
//! | everything about a plugin, for people | [`report`] |
//!
//! ```no_run
//! use std::collections::BTreeMap;
//! use std::path::Path;
//!
//! use rlf_dialogue::tool::ToolCall;
//! use rlf_plugins::registry::Registry;
//! use rlf_plugins::tool_manager::{ToolManager, ToolManagerConfig, TurnContext};
//! use rlf_sandbox::{Sandbox, SandboxConfig};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let sandbox = Sandbox::new(&SandboxConfig::default())?;
//! let registry = Registry::load(Path::new("target/plugins"), &BTreeMap::new(), &sandbox);
//! for problem in registry.problems() {
//!     eprintln!("{problem}");
//! }
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

mod admission;
pub mod arguments;
pub mod bench;
mod bindings;
mod concurrently;
mod convert;
pub mod counters;
pub mod discovery;
pub mod environment;
pub mod expression;
pub mod follower;
mod formula;
pub mod gates;
pub mod interpreter;
pub mod loading;
pub mod manifest;
mod outcome;
mod outputs;
pub mod plugin;
pub mod policy;
pub mod problem;
pub mod registry;
pub mod report;
mod result_cache;
pub mod reward;
pub mod reward_stack;
pub mod rewards_config;
mod safe_text;
pub mod schema;
pub mod seed;
pub mod tool_manager;
