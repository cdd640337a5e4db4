//! The commands for a fresh machine and for contributors: `cargo xtask quickstart`, `test`, `lint`, `plugins`, `python`,
//! `bench`, `conformance`, `clients`, `cuda`, `gpu-check`.
//!
//! All builds go through this crate, so that every command uses the same packages, features and profile. Otherwise
//! cargo would compile wasmtime and candle a second time. For the same reason this crate depends on neither: it calls
//! `cargo` and the `rlf-host` binary and knows nothing of tools, policies or training.
//!
//! | looking for | module |
//! |---|---|
//! | a command | [`quickstart`], [`mod@test`], [`lint`], [`plugins`], [`python`], [`mod@bench`], [`conformance`], [`clients`], [`cuda`], [`gpu_check`], [`modules`], [`package`] |
//! | the steps of a command, and what they print | [`steps`] |
//! | paths of the repository; requirements of a machine | [`project`], [`machine`] |
//! | building the host; one set of features for everything | [`host`], [`features`], [`metadata`] |
//! | guests, and how each is built | [`discovery`], [`guests`], [`with_c`], [`component`], [`reproducible`] |
//! | the record of what built plugins were made from | [`manifest`] |
//! | tests that were skipped | [`skipped`] |
//! | packages of PyPI that a command runs | `venv` |
//!
//! It is also a library for tests that run plugins: [`plugins::ready`] gives the folder of built plugins, or reports
//! which of them are older than their sources.
//!
//! ```no_run
//! use xtask::{guests::Family, plugins, project::Project};
//!
//! let project = Project::find()?;
//! let folder = plugins::ready(&project, Family::FirstParty)?;
//! println!("{} runs plugins of {}", project.binary().display(), folder.display());
//! # Ok::<(), anyhow::Error>(())
//! ```

pub mod bench;
pub mod clients;
pub mod component;
pub mod conformance;
pub mod cuda;
pub mod discovery;
pub mod features;
mod folders;
pub mod gpu_check;
pub mod guests;
pub mod host;
pub mod lint;
pub mod machine;
pub mod manifest;
pub mod metadata;
pub mod modules;
pub mod package;
pub mod plugins;
pub mod project;
pub mod python;
pub mod quickstart;
pub mod reproducible;
pub mod skipped;
pub mod steps;
pub mod test;
mod venv;
pub mod with_c;
