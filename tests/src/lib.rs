//! Shared parts of the end-to-end tests: they start the built `rlf-host` on the built plugins and read the files that
//! it leaves.
//!
//! The tests use the command line and the files of a run. Except `hostile`, they use nothing of the host's crates, so
//! a user who types the same gets the same. Each file in `tests/` is one promise. `cargo xtask test --only e2e`
//! builds the binary and the plugins first. A test that finds them missing or stale reports this and fails.
//!
//! ```no_run
//! use rlf_tests::Host;
//!
//! let printed = Host::new().run(["plugin", "call", "calculator", "calculate", r#"{"expression": "6*7"}"#]);
//! assert_eq!(printed.succeeded().stdout, "42\n");
//! ```

// These functions are meant to fail the running test.
#![allow(clippy::missing_panics_doc)]

mod chat;
mod data;
mod experiment;
mod host;
mod plugin_folder;
mod process;
mod run_folder;
mod service;

pub use chat::{ChatEndpoint, Question, Reply};
pub use data::{data, skip};
pub use experiment::Experiment;
pub use host::{Host, component_cache};
pub use plugin_folder::PluginFolder;
pub use process::{Ended, Running};
pub use run_folder::{RunFolder, without_times};
pub use service::{Answer, Client, Service};
