//! Environments of plugins: a session for each trajectory that acts in one.
//!
//! An environment is a plugin of its own kind, or files in Python that an interpreter plugin has loaded (`environment` of
//! its grants). Either way a session has an instance of its own while a trajectory acts in it, so that nothing one
//! trajectory does is visible to another. Calls of one session run one by one in call order. What a session was opened
//! with, its last snapshot and the calls since then are kept outside of the instance: a call that is stopped has no
//! effect, and a session that waits can make room for others.
//!
//! This crate must not know rewards, tools outside of environments, or how a trajectory is generated. It uses
//! `rlf-interpreters`, because a session of an environment in Python is an interpreter's notebook.
//!
//! | looking for | module |
//! |---|---|
//! | the environments of a run, and how a session is opened | [`environments`] |
//! | what a trajectory does in its session | [`session`] |
//! | one session with or without an instance | `slot` |
//! | which sessions have an instance | [`pool`] |
//! | requests to an instance, of a component or in Python | `request`, `live`, `component`, `python` |
//! | its messages and verdicts, checked | `contract` |
//! | what a session is kept as | [`snapshot`] |
//! | what changed between two states | [`difference`] |
//! | an environment's promises, tried on its own scenarios | [`check`] |
//! | an environment's files in Python | [`rlf_plugins::python_environment`] |
//! | how the core loads an environment | [`EnvironmentLoader`] |
//!
//! ```no_run
//! use std::collections::BTreeMap;
//! use std::path::Path;
//!
//! use rlf_environments::EnvironmentLoader;
//! use rlf_environments::environments::{EnvironmentConfig, Environments};
//! use rlf_plugins::registry::Registry;
//! use rlf_sandbox::{Sandbox, SandboxConfig};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let sandbox = Sandbox::new(&SandboxConfig::default())?;
//! let plugins = Path::new("target/plugins");
//! let registry = Registry::load(plugins, &BTreeMap::new(), &[&EnvironmentLoader], &sandbox);
//! let environments = Environments::new(&registry, &sandbox, &EnvironmentConfig::default());
//! let session = environments.open("shop", "example", &serde_json::json!({}), 0).await?;
//! for tool in session.tools() {
//!     println!("{}", tool.name);
//! }
//! # Ok(()) }
//! ```

pub mod check;
mod component;
mod contract;
pub mod difference;
pub mod environments;
mod live;
mod loader;
pub mod pool;
mod python;
mod request;
pub mod session;
mod slot;
pub mod snapshot;

pub use self::loader::EnvironmentLoader;
