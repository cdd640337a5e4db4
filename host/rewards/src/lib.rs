//! Rewards of plugins: a [`RewardStack`](reward_stack::RewardStack) grades a group of trajectories and gives each a score,
//! or the reason why there is none.
//!
//! A reward plugin returns named terms; a configuration says what they weigh, which gate them and what counts as success.
//! Nothing that a plugin returns is believed unchecked, and what nobody could grade is excluded, never scored 0.
//!
//! This crate must not know how tools are called or programs run: a reward that asks for either reaches them through
//! [`NestedCalls`](rlf_plugins::gates::NestedCalls). What training does with scores is not its business either.
//!
//! | looking for | module |
//! |---|---|
//! | a reward from many plugins | [`reward_stack`] |
//! | `[rewards]` of a configuration | [`rewards_config`], [`expression`] |
//! | how terms become a reward | `formula` |
//! | one plugin: calls, retries, grading one by one | [`reward`] |
//! | the request to a plugin | [`grading`], `guest_trajectory` |
//! | scores and exclusions | [`rlf_dialogue::score`] |
//! | why a stack cannot be used | [`error`] |
//! | how the core loads a reward plugin | [`RewardLoader`] |
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

pub mod error;
pub mod expression;
mod formula;
pub mod grading;
mod guest_trajectory;
mod loader;
pub mod reward;
pub mod reward_stack;
pub mod rewards_config;

pub use self::loader::RewardLoader;
