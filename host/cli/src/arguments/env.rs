//! `rlf-host env`.

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use clap::{Args, Subcommand};

use super::{GroupOptions, PluginBindings};

#[derive(Debug, Args)]
pub(crate) struct Env {
    #[command(subcommand)]
    pub(crate) command: EnvCommand,
    #[command(flatten)]
    pub(crate) options: GroupOptions,
}

#[derive(Debug, Subcommand)]
pub(crate) enum EnvCommand {
    /// Play an environment by hand: one command a line from standard input
    ///
    /// Commands: list, NAME {ARGUMENTS} to call a tool, say TEXT, state, diff, snapshot FILE, restore FILE, undo,
    /// verify REFERENCE, quit; `help` explains them. The changes that each call made are shown after it. If standard
    /// input is not a terminal, the exit code says whether every command succeeded.
    Try {
        /// A specification, a Python file, a folder of either, a component, or the name of an environment
        path: PathBuf,
        /// Task that opens the session: JSON, or @FILE (default: the environment's own first state)
        #[arg(long, value_name = "JSON", conflicts_with = "scenario")]
        task: Option<String>,
        /// Open the session with the task of this scenario
        #[arg(long, value_name = "ID")]
        scenario: Option<String>,
        /// Seed of all randomness (default: the scenario's, or 0)
        #[arg(long)]
        seed: Option<u64>,
        #[command(flatten)]
        bindings: PluginBindings,
    },
    /// Play an environment's scenarios, and check that it repeats from its seed and continues from a snapshot
    ///
    /// Checks that the same seed gives the same bytes; that a session restored from a snapshot continues like the first
    /// one; that asking for state, snapshot or verdict changes nothing; that every scenario ends in the state that it
    /// expects; and that no tool breaks on arguments that its schema allows.
    Check {
        /// A specification, a Python file, a folder of either, a component, or the name of an environment
        path: PathBuf,
        /// Number of calls of each tool with generated arguments
        #[arg(long, default_value_t = 20, value_parser = RangedU64ValueParser::<usize>::new().range(0..=100_000))]
        inputs: usize,
        #[command(flatten)]
        bindings: PluginBindings,
    },
}
