//! Interpreters of plugins: programs written by models and rewards, notebooks, and functions as tools.
//!
//! Before it reaches this crate, a model's program is only data. [`ProgramReport`](program::ProgramReport) says how it
//! went: output, exit and files, also if it was stopped. Each program has a fresh instance. Programs make no calls, so
//! a caller that waits for one waits for no other call. Programs have their own pool.
//!
//! This crate must not know the tools of other plugins, rewards, or trajectories. The gate `execute` reaches it through
//! [`ProgramRunner`](rlf_plugins::gates::ProgramRunner), and the tool manager through
//! [`Exports`](rlf_plugins::plugin::Exports).
//!
//! | looking for | module |
//! |---|---|
//! | running programs in a language | [`interpreter`] |
//! | the languages of a plugin | [`language`] |
//! | a program, its files, and its report | [`program`] |
//! | the packages that a program imports | [`imports`] |
//! | cells that share a namespace | [`notebook`] |
//! | a program as a tool for models, `python` with an argument `code` | `tool` |
//! | a folder of functions as tools, without a component for them | [`functions`] |
//! | requests to Python files that an interpreter has loaded | [`requests`] |
//! | programs for plugins with the gate `execute` | `runner` |
//! | loading and calling an interpreter, for the core | `loader`: [`InterpreterLoader`] |
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
pub mod imports;
pub mod interpreter;
pub mod language;
mod loader;
pub mod notebook;
pub mod program;
pub mod requests;
mod runner;
mod tool;

pub use self::loader::InterpreterLoader;
