//! Rewards of plugins. A [`RewardStack`](reward_stack::RewardStack) grades a group of trajectories, and gives each a
//! score or the reason why it has none.
//!
//! A reward plugin returns named terms. The configuration sets their weights, their gates and the condition of success.
//! Everything that a plugin returns is checked. A trajectory that could not be graded is excluded, never scored 0.
//!
//! This crate must not know how tools are called or programs run: a reward that needs either reaches them through
//! [`NestedCalls`](rlf_plugins::gates::NestedCalls). Nor must it know what training does with scores.
//!
//! | looking for | module |
//! |---|---|
//! | one reward from many plugins | [`reward_stack`] |
//! | `[rewards]` of a configuration | [`rewards_config`], [`expression`] |
//! | the formula that turns terms into a reward | `formula` |
//! | terms of `turns` that no event has | `turn_terms` |
//! | one plugin: calls, retries, grading of single trajectories | [`reward`] |
//! | the request to a plugin | [`grading`], `guest_trajectory` |
//! | a judge compared with a verifier | [`drift`] |
//! | scores and exclusions | [`rlf_dialogue::score`] |
//! | errors of a `[rewards]` table | [`error`] |
//! | rewards in a source file | `script` |
//! | loading and calling a reward plugin, for the core | `loader`: [`RewardLoader`] |
//!
//! ```no_run
//! use std::collections::BTreeMap;
//! use std::path::Path;
//!
//! use rlf_plugins::registry::Registry;
//! use rlf_rewards::RewardLoader;
//! use rlf_rewards::reward_stack::RewardStack;
//! use rlf_sandbox::{Sandbox, SandboxConfig};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let sandbox = Sandbox::new(&SandboxConfig::default())?;
//! let plugins = Path::new("target/plugins");
//! let registry = Registry::load(plugins, &BTreeMap::new(), &[&RewardLoader], &sandbox);
//! let config = "success = \"exact-match.em >= 1\"\n[[stack]]\nplugin = \"exact-match\"\nweight = 1.0\n";
//! let rewards = RewardStack::new(&registry, &rlf_config::parse(config, "rewards.toml")?)?;
//! println!("{:?}", rewards.counts());
//! # Ok(()) }
//! ```

pub mod drift;
pub mod error;
pub mod expression;
mod formula;
pub mod grading;
mod guest_trajectory;
mod loader;
pub mod reward;
pub mod reward_stack;
pub mod rewards_config;
mod script;
mod turn_terms;

pub use self::loader::RewardLoader;
