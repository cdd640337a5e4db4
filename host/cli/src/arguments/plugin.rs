//! `rlf-host plugin`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::{GroupOptions, PluginBindings};

#[derive(Debug, Args)]
pub(crate) struct Plugin {
    #[command(subcommand)]
    pub(crate) command: PluginCommand,
    #[command(flatten)]
    pub(crate) options: GroupOptions,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// List every plugin found, with the problem of each one that does not load
    List,
    /// Show one plugin: exports, requests, grants with file and line, limits and cost
    ///
    /// Everything that a configuration grants is shown with its file and line. Limits that differ from the default are
    /// marked with `*`.
    ///
    /// `instance` is the cost of a fresh instance. It is measured by making instances for 50 ms, one after another and
    /// without a call; the median is printed. `init` is included if it runs in every call. "Its own" memory is what
    /// each further live instance takes: the pages it wrote to, its stack and the host's records. All other memory is
    /// shared, or untouched and not allocated.
    ///
    /// `--json` prints all of this, and the full schema of every tool.
    Inspect {
        /// The plugin's name or alias
        name: String,
        #[command(flatten)]
        bindings: PluginBindings,
    },
    /// Call a tool in its sandbox and print the result
    Call {
        /// The plugin's name or alias
        plugin: String,
        /// Name of the tool
        tool: String,
        /// The tool's arguments, as a JSON object
        #[arg(default_value = "{}")]
        arguments: String,
        /// Seed of the call's clock and randomness
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// Folder for the files that the call leaves, if `files.outputs` is granted (default: they are dropped)
        #[arg(long, value_name = "DIR")]
        outputs: Option<PathBuf>,
        #[command(flatten)]
        bindings: PluginBindings,
    },
    /// Grade one answer or one trajectory with a reward in its sandbox
    Grade {
        /// The plugin's name or alias
        plugin: String,
        /// The model's answer (default: none, as in a trajectory that gave no answer)
        #[arg(long, value_name = "TEXT")]
        answer: Option<String>,
        /// The task's reference, as JSON or plain text
        #[arg(long, value_name = "JSON")]
        reference: String,
        /// Instead of --answer: a trajectory in a file, as printed by `rlf-host rollout --json`
        #[arg(long, value_name = "FILE", conflicts_with = "answer")]
        trajectory: Option<PathBuf>,
        #[command(flatten)]
        bindings: PluginBindings,
    },
    /// Pin a plugin to its present component in the file given with --config, and open gates to it
    Grant {
        /// The plugin's name or alias
        plugin: String,
        /// Gate to open, out of those that the plugin asks for; may be repeated (default: none)
        #[arg(long = "gate", value_name = "GATE")]
        gates: Vec<String>,
    },
    /// Check a component before it goes into a plugin directory
    Check {
        /// A component, or a folder with a plugin.toml
        path: PathBuf,
        #[command(flatten)]
        bindings: PluginBindings,
    },
}
