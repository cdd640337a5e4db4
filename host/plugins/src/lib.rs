//! The core of plugins: finds components in a directory, decides which of them may load, prepares them and keeps them
//! in a registry.
//!
//! Plugins are components that strangers wrote. This crate compares each plugin's requests (`plugin.toml`) with the
//! operator's grants (`[plugins.<alias>]`). It turns an admitted component into a [`Plugin`](plugin::Plugin) that can
//! be called. It also has what the kinds of plugins share: the typed contract, checked tools and arguments, the ends of
//! calls, gates, and counters.
//!
//! It must not know what any kind of plugin is for. The crates `rlf-tools`, `rlf-rewards`, `rlf-environments` and
//! `rlf-interpreters` each pass a [`KindLoader`](kind::KindLoader) to the registry. It must not know models or training
//! either. `rlf-sandbox` confines the components.
//!
//! | looking for | module |
//! |---|---|
//! | the manifest, in which a plugin makes its requests | [`manifest`] |
//! | the operator's grants | [`grants`], [`programs`], [`python_environment`] |
//! | the way from a file to a plugin | see below |
//! | adding a kind of plugin | [`kind::KindLoader`], [`kind::Interface`], [`plugin::Exports`] |
//! | plugins that are one source file | [`script`] |
//! | bundles: plugins in one file | `bundle`, [`bundling`] |
//! | replacing plugins while calls run, and noticing that their files have changed | [`follower`], [`files`] |
//! | the reason why a plugin was not loaded | [`problem`] |
//! | a loaded plugin, and the text it printed | [`plugin`] |
//! | the tools of a plugin, their schemas and arguments | [`offered_tools`], [`schema`], [`arguments`] |
//! | the end of a call, and the text that the model reads about it | [`outcome`] |
//! | gates: ways out of the sandbox | [`gates`] |
//! | the contract's types, and conversions to the host's | [`bindings`], [`convert`], [`guest_json`], [`safe_text`] |
//! | the seed of a call, and its place in a trajectory | [`seed`], [`turn`] |
//! | counts for metrics | [`counters`] |
//! | full reports about plugins, for people | [`report`] |
//!
//! A plugin is loaded in these steps:
//!
//! | step | module | result |
//! |---|---|---|
//! | look for plugins in directories; earlier directories win | `discovery`, `directories` | `Place` |
//! | give each a name and its grants | `job` | `Job` |
//! | read its manifest and its code, and find the component that runs it | `candidate` | `Candidate` |
//! | compare its requests with its grants | `admission` | `Admitted` |
//! | decide how a plugin of its kind is prepared | [`kind`] | [`LoadPlan`](kind::LoadPlan) |
//! | compile it, run `init`, and check the tools that it offers | `loading` | [`Plugin`](plugin::Plugin) |
//! | keep all plugins, and the problems of those that were not loaded | [`registry`] | [`Registry`](registry::Registry) |
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
mod bundle;
pub mod bundling;
mod candidate;
pub mod convert;
pub mod counters;
mod directories;
mod discovery;
pub mod files;
pub mod follower;
pub mod gates;
pub mod grants;
pub mod guest_json;
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
pub mod script;
pub mod seed;
pub mod turn;
