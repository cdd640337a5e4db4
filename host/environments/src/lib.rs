//! Environments: a session for each trajectory that acts in one.
//!
//! An environment is a plugin of its own kind, or files in Python that an interpreter plugin has loaded (`environment`
//! of its grants). In both cases a session has its own instance while a trajectory acts in it, so no trajectory sees
//! the effects of another. Calls of one session run one after the other, in call order. The session's origin, its last
//! snapshot and the calls since then are kept outside the instance. So a call that is stopped has no effect, and a
//! waiting session can make room for others.
//!
//! This crate must not know rewards, tools outside environments, or how a trajectory is generated. It uses
//! `rlf-interpreters`, because a session of an environment in Python is a notebook of an interpreter.
//!
//! | looking for | module |
//! |---|---|
//! | the environments of a run, and opening a session | [`environments`] |
//! | a trajectory's session | [`session`] |
//! | the actions in a session of a plugin, and of a server | `plugin_session`, `served_session` |
//! | environments on servers outside of the sandbox | [`server`] |
//! | the tools that a session offers, and the check of a call | `offered` |
//! | the reasons why a session did not do as it was asked | [`error`] |
//! | one session with or without an instance; it takes and restores snapshots | `slot` |
//! | the limit on sessions that have an instance | [`pool`] |
//! | requests to an instance, of a component or in Python | `request`, `live`, `component`, `python`, `contract` |
//! | the kept form of a session | [`snapshot`] |
//! | the changes between two states | [`difference`] |
//! | checks of an environment's promises on its own scenarios | [`check`] |
//! | an environment's files in Python | [`rlf_plugins::python_environment`] |
//! | loading an environment, for the core | `loader`: [`EnvironmentLoader`] |
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
pub mod error;
mod live;
mod loader;
mod offered;
mod plugin_session;
pub mod pool;
mod python;
mod request;
mod served_session;
pub mod server;
pub mod session;
mod slot;
pub mod snapshot;

pub use self::loader::EnvironmentLoader;
