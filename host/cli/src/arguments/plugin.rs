//! `rlf-host plugin`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

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
    /// Measure what a call costs on this machine, and compare it with starting a process for each call
    ///
    /// Measures three things: calls one after another, calls with 32 in flight, and fresh instances without a call. The
    /// times are those of whole calls: checking the arguments, a fresh instance, the call and reading its result. The
    /// process that they are compared with is `python3 -I -S -c pass`. A call that fails is not measured: it ends the
    /// command.
    Bench {
        /// The plugin's name or alias
        plugin: String,
        #[command(flatten)]
        trial: Trial,
        /// Seconds spent on each of the two measurements of calls
        #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=600))]
        seconds: u64,
        #[command(flatten)]
        bindings: PluginBindings,
    },
    /// Load a plugin whenever its files are saved, and repeat one call or one grading
    ///
    /// A plugin that does not load is shown with its problem. A component is loaded again when it has been built.
    Watch {
        /// The plugin's name or alias
        plugin: String,
        #[command(flatten)]
        trial: Trial,
        #[command(flatten)]
        bindings: PluginBindings,
    },
    /// Call tools and grade answers by hand: one command a line on standard input
    ///
    /// `help` lists the commands. The plugin is loaded again before a command if its files have been saved.
    Try {
        /// The plugin's name or alias
        plugin: String,
        #[command(flatten)]
        bindings: PluginBindings,
    },
    /// Pin a plugin to its present component in the file given with --config, and open gates to it
    ///
    /// The file is created if it does not exist.
    Grant {
        /// The plugin's name or alias
        plugin: String,
        /// Gate to open, out of those that the plugin asks for; may be repeated (default: none)
        #[arg(long = "gate", value_name = "GATE")]
        gates: Vec<String>,
    },
    /// Make a new plugin: a working example to start from
    New(NewPlugin),
    /// Build a plugin into one file that runs without its folder or an installed interpreter
    ///
    /// The file contains the plugin's component and its plugin.toml. For Python and JavaScript, the component is the
    /// interpreter, and the file also contains the source. For Rust, `cargo` builds the component first. The result is loaded
    /// once as a test, and then written.
    Build(BuildPlugin),
    /// Load one plugin by its path, without a plugin directory, and report what is wrong with it
    Check {
        /// A component, a Python or JavaScript file, or a folder with one
        path: PathBuf,
        #[command(flatten)]
        bindings: PluginBindings,
    },
}

/// One call of a tool, or one grading by a reward.
#[derive(Debug, Args)]
pub(crate) struct Trial {
    /// Name of the tool
    pub(crate) tool: Option<String>,
    /// The tool's arguments, as a JSON object
    #[arg(default_value = "{}")]
    pub(crate) arguments: String,
    /// For a reward: the model's answer (default: none, as in a trajectory that gave no answer)
    #[arg(long, value_name = "TEXT", requires = "reference")]
    pub(crate) answer: Option<String>,
    /// For a reward: the task's reference, as JSON or plain text
    #[arg(long, value_name = "JSON", conflicts_with = "tool")]
    pub(crate) reference: Option<String>,
    /// Instead of --answer: a trajectory in a file, as printed by `rlf-host rollout --json`
    #[arg(
        long,
        value_name = "FILE",
        requires = "reference",
        conflicts_with = "answer"
    )]
    pub(crate) trajectory: Option<PathBuf>,
}

/// `rlf-host plugin build`.
#[derive(Debug, Args)]
pub(crate) struct BuildPlugin {
    /// A Python or JavaScript file, the folder of a plugin, or a crate in Rust
    pub(crate) path: PathBuf,
    /// File to write (default: NAME.wasm in the current folder; for Rust, in the plugin's folder)
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Treat the path as an environment in Python: a file, or a folder with one server in each file
    #[arg(long)]
    pub(crate) environment: bool,
    #[command(flatten)]
    pub(crate) bindings: PluginBindings,
}

/// `rlf-host plugin new`.
#[derive(Debug, Args)]
pub(crate) struct NewPlugin {
    /// Name of the plugin, and of its folder
    pub(crate) name: String,
    /// Language of the plugin
    #[arg(long, visible_alias = "language", value_enum, default_value_t = NewLanguage::Python)]
    pub(crate) lang: NewLanguage,
    /// Kind of the plugin
    #[arg(long, value_enum, default_value_t = NewKind::Tool)]
    pub(crate) kind: NewKind,
    /// Folder to make it in, such as a plugin directory (default: the current one)
    #[arg(long = "in", value_name = "DIR")]
    pub(crate) folder: Option<PathBuf>,
    /// Folder of the SDK (default: the one of the clone in which this program was built)
    #[arg(long, value_name = "DIR")]
    pub(crate) sdk: Option<PathBuf>,
}

/// The language of a new plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum NewLanguage {
    /// A Python file, with nothing to build
    Python,
    /// A JavaScript file, with nothing to build
    #[value(name = "javascript")]
    JavaScript,
    /// A crate, built to a component
    Rust,
}

/// The kind of a new plugin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum NewKind {
    /// Functions that a model calls
    Tool,
    /// Terms that measure a trajectory
    Reward,
    /// A state in which a model acts through tools
    Environment,
    /// A loop that leads trajectories, in place of the program's own
    Agent,
}
