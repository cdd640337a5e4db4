//! The sandbox as a whole: one engine, its pools, and the admission of calls to them.
//!
//! - `config`: its settings
//! - `sandbox`: the engine, runtime and cache that guests share
//! - `pools`: how many instances and how much memory this machine has room for
//! - `admission`: places and memory for one call
//! - `reset`: resetting the memory of an instance for the next one
//! - `settings`: the settings of wasmtime
//! - `init_engine`: the engine that runs `init`

mod admission;
mod config;
mod init_engine;
mod pools;
mod reset;
mod sandbox;
mod settings;

pub(crate) use admission::NotAdmitted;
pub use admission::{LEVELS, Pool, PoolLevel};
pub use config::{SandboxConfig, SandboxError};
pub(crate) use init_engine::InitEngine;
pub use pools::Pools;
pub use reset::Reset;
pub(crate) use sandbox::Inner;
pub use sandbox::{InUse, Sandbox};
pub(crate) use settings::WASMTIME;
pub use settings::engine_configuration;
