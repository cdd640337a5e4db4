//! Interpreters of plugins: programs that models and rewards have written, notebooks, and functions as tools.
//!
//! A program that a model wrote is data until it is here. How it went is in a [`ProgramReport`](program::ProgramReport): the
//! output, the exit, the files, also where it had to be stopped. Each program has a fresh instance. Programs make no calls,
//! so a caller that waits for one waits for nobody else, and they have a pool of their own.
//!
//! This crate must not know tools of other plugins, rewards, or trajectories. The gate `execute` reaches it through
//! [`ProgramRunner`](rlf_plugins::gates::ProgramRunner), and the tool manager through
//! [`Exports`](rlf_plugins::plugin::Exports).
//!
//! | looking for | module |
//! |---|---|
//! | running programs in a language | [`interpreter`] |
//! | the languages of a plugin | [`language`] |
//! | a program, its files, and how it ended | [`program`] |
//! | cells that share a namespace | [`notebook`] |
//! | a program as a model's tool, `python` with an argument `code` | `tool` |
//! | a folder of functions as tools, with no component built for them | [`functions`] |
//! | programs for plugins with the gate `execute` | `runner` |
//! | how the core loads an interpreter | [`InterpreterLoader`] |
//!
//! ```no_run
//! use std::collections::BTreeMap;
//! use std::path::Path;
//!
//! use rlf_interpreters::InterpreterLoader;
//! use rlf_interpreters::interpreter::{Interpreters, ProgramOptions};
//! use rlf_interpreters::program::Program;
//! use rlf_plugins::registry::Registry;
//! use rlf_sandbox::{Sandbox, SandboxConfig};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let sandbox = Sandbox::new(&SandboxConfig::default())?;
//! let plugins = Path::new("target/plugins");
//! let registry = Registry::load(plugins, &BTreeMap::new(), &[&InterpreterLoader], &sandbox);
//! let interpreters = Interpreters::new(&registry);
//! let python = interpreters.get("python").ok_or("no plugin runs Python")?;
//! let program = Program { code: "print(6 * 7)".into(), ..Program::default() };
//! let report = python.run(program, ProgramOptions::default()).await?;
//! println!("{}", report.stdout.captured().text);
//! # Ok(()) }
//! ```

pub mod functions;
pub mod interpreter;
pub mod language;
mod loader;
pub mod notebook;
pub mod program;
mod runner;
mod tool;

pub use self::loader::InterpreterLoader;
