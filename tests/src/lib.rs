//! What the end-to-end tests share: starting the built `rlf-host` on the built plugins, and reading what it leaves.
//!
//! The tests know the command line, the files of a run and, but for `hostile`, nothing of the host's crates: what they
//! promise holds for anyone who types the same. Each file in `tests/` is one promise. `cargo xtask test --only e2e` builds the binary and the
//! plugins first; a test that finds them missing or stale says so and fails.
//!
//! ```no_run
//! use rlf_tests::Host;
//!
//! let printed = Host::new().run(["plugin", "call", "calculator", "calculate", r#"{"expression": "6*7"}"#]);
//! assert_eq!(printed.succeeded().stdout, "42\n");
//! ```

// Failing the test at hand is what they do.
#![allow(clippy::missing_panics_doc)]

mod chat;
mod data;
mod experiment;
mod host;
mod process;
mod run_folder;
mod service;

pub use chat::{ChatEndpoint, Question, Reply};
pub use data::{data, skip};
pub use experiment::Experiment;
pub use host::Host;
pub use process::{Ended, Running};
pub use run_folder::{RunFolder, without_times};
pub use service::{Answer, Client, Service};
