//! The core of plugins: finds components in a directory, decides which are let in, prepares them and keeps them in a
//! registry.
//!
//! Plugins are components that strangers wrote. This crate holds what each asks for (`plugin.toml`) against what the
//! operator grants it (`[plugins.<alias>]`), and turns those that are admitted into [`Plugin`](plugin::Plugin)s that can
//! be called. What several kinds of plugins share is here too: the typed contract, checked tools and arguments, how calls
//! end, gates, counters.
//!
//! It must not know what a kind of plugins is for. The crates `rlf-tools`, `rlf-rewards`, `rlf-environments` and
//! `rlf-interpreters` each hand a [`KindLoader`](kind::KindLoader) to the registry. It must not know how a model works or
//! what training does either, and how a component is confined is `rlf-sandbox`'s business.
//!
//! | looking for | module |
//! |---|---|
//! | what a plugin says of itself | [`manifest`] |
//! | what the operator grants it | [`grants`], [`programs`], [`python_environment`] |
//! | how plugins are found, admitted and loaded | [`discovery`], `admission`, `job`, `loading`, [`registry`] |
//! | how a kind of plugins is added | [`kind`], [`plugin::Exports`] |
//! | how plugins are replaced while calls run | [`follower`] |
//! | why a plugin is not there | [`problem`] |
//! | a loaded plugin, and what it printed | [`plugin`] |
//! | the tools it offers, their schemas and arguments | [`offered_tools`], [`schema`], [`arguments`] |
//! | how a call ended, and what the model is told | [`outcome`] |
//! | gates: ways out of the sandbox | [`gates`] |
//! | the contract's types, and the way between them and the host's | [`bindings`], [`convert`], [`safe_text`] |
//! | seeds and places of calls | [`seed`], [`turn`] |
//! | numbers for metrics | [`counters`] |
//! | everything about a plugin, for people | [`report`] |
//!
//! ```no_run
//! use std::collections::BTreeMap;
//! use std::path::Path;
//!
//! use rlf_plugins::kind::Kinds;
//! use rlf_plugins::registry::Registry;
//! use rlf_sandbox::{Sandbox, SandboxConfig};
//!
//! // `&[&rlf_tools::ToolLoader, ..]`: without any, every component is a problem of the registry.
//! const KINDS: Kinds = &[];
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let sandbox = Sandbox::new(&SandboxConfig::default())?;
//! let registry = Registry::load(Path::new("target/plugins"), &BTreeMap::new(), KINDS, &sandbox);
//! for problem in registry.problems() {
//!     eprintln!("{problem}");
//! }
//! # Ok(()) }
//! ```

mod admission;
pub mod arguments;
pub mod bindings;
pub mod convert;
pub mod counters;
mod directories;
pub mod discovery;
pub mod follower;
pub mod gates;
pub mod grants;
mod job;
pub mod kind;
mod loading;
pub mod manifest;
pub mod offered_tools;
pub mod outcome;
pub mod plugin;
pub mod problem;
pub mod programs;
pub mod python_environment;
pub mod registry;
pub mod report;
pub mod safe_text;
pub mod schema;
pub mod seed;
pub mod turn;
