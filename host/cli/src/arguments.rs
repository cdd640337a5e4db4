//! The command line: the commands, and the options that several of them have. Groups of commands have a file each.

mod data;
mod env;
mod forge;
mod plugin;
mod run;
mod serve;

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use clap::{Args, Parser, Subcommand};

pub(crate) use self::data::{Data, DataCommand, Import};
pub(crate) use self::env::{Env, EnvCommand};
pub(crate) use self::forge::{
    ChainSampling, Forge, ForgeCommand, ForgeEnv, ForgeGraph, ForgeNew, ForgeRows, ForgeTasks,
    ForgeVerify, TaskFormat, TaskStage,
};
pub(crate) use self::plugin::{Plugin, PluginCommand};
pub(crate) use self::run::Run;
pub(crate) use self::serve::Serve;

/// Post-train language models for multi-turn tool use, with sandboxed tools and rewards
///
/// Set RLF_LOG=info or RLF_LOG=debug to print log messages on standard error.
#[derive(Debug, Parser)]
#[command(name = "rlf-host", version, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Train a policy from a configuration, or resume a run
    Train(Train),
    /// Evaluate a run's policy on a split: greedy, sampled and pass@k, by kind of task
    Eval(Eval),
    /// Play one task with a run's policy and print the trajectory: turns, calls, observations, mask, rewards
    Rollout(Rollout),
    /// Write a run's report: one HTML page with curves, configuration and trajectories
    Report(Report),
    /// List, inspect, call and check plugins
    Plugin(Plugin),
    /// Convert published data sets into tasks for RL or demonstrations for SFT
    Data(Data),
    /// Play an environment by hand, or check that it behaves as environments must
    Env(Env),
    /// Make environments: compose and verify them, export them, and draw their tool graph
    Forge(Forge),
    /// Run a program in a sandbox, and exit with the program's exit code
    ///
    /// The program may be untrusted. It finds only the files that it is given: no other files, no network, no other
    /// processes and no environment variables. Its clock is virtual, so sleeping takes no real time. All randomness
    /// follows from `--seed`. If standard input is not a terminal, it is read to its end and passed to the program.
    ///
    /// Exit code: the program's own. Otherwise 124 if it ran out of time, 137 if another limit stopped it, 130 after
    /// Ctrl-C, 141 if nobody reads its output any more, and 125 if it could not be run, for example because of a wrong
    /// option.
    Run(Run),
    /// Serve programs, tools and rewards over HTTP, with the interface of SandboxFusion
    ///
    /// Serves until Ctrl-C or SIGTERM, then answers the requests that it has accepted and exits. Prints one line for
    /// each request on standard error.
    Serve(Serve),
    /// Show what this machine has, and which device a configuration would use
    Doctor(Doctor),
    /// Measure this machine's speed: tokens per second of a small policy, calls per second of the sandbox
    Bench(Bench),
    /// Prepare one component in a process with its own limits; only rlf-host starts this
    #[command(name = rlf_sandbox::prepare_process::ARGUMENT, hide = true)]
    Prepare,
}

/// Largest number of tasks or samples.
const MAX_COUNT: u64 = 1_000_000;

/// The directory of plugins.
#[derive(Debug, Clone, Args)]
pub(crate) struct PluginDirectory {
    /// Add a directory of plugins: every `*/plugin.toml` or `*.wasm` in it
    ///
    /// A plugin or tool in it replaces a shipped one of the same name. Shipped plugins are found beside the program, or
    /// in the directory named by RLF_PLUGINS. If RLF_PLUGINS is set but empty, no shipped plugins are used.
    #[arg(long, value_name = "DIR")]
    pub(crate) plugins: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools)] // Flags of a command line are what they are.
pub(crate) struct Train {
    /// Configuration file, for example configs/quickstart.toml
    pub(crate) config: PathBuf,
    #[command(flatten)]
    pub(crate) plugins: PluginDirectory,
    /// Folder of the run (default: `output` of the configuration)
    #[arg(long, value_name = "DIR")]
    pub(crate) run: Option<PathBuf>,
    /// Device: cpu, cuda, cuda:N or auto (default: `device` of the configuration)
    #[arg(long)]
    pub(crate) device: Option<String>,
    /// Seed of all randomness (default: `seed` of the configuration)
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Override one key of the configuration, such as rl.steps=20; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Continue from the run's last checkpoint
    #[arg(long)]
    pub(crate) resume: bool,
    /// With --resume: continue even if the configuration or a plugin has changed
    #[arg(long, requires = "resume")]
    pub(crate) allow_changes: bool,
    /// Replace an existing run in the folder
    #[arg(long, conflicts_with = "resume")]
    pub(crate) overwrite: bool,
    /// After RL, also continue SFT from the same start for as long as RL took, for comparison
    #[arg(long)]
    pub(crate) control: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Eval {
    /// Folder of the run
    pub(crate) run: PathBuf,
    #[command(flatten)]
    pub(crate) plugins: PluginDirectory,
    /// Split: train, validation or test
    #[arg(long, default_value = "test")]
    pub(crate) split: String,
    /// Number of tasks (default: `eval.tasks` of the configuration)
    #[arg(long, value_parser = RangedU64ValueParser::<usize>::new().range(1..=MAX_COUNT))]
    pub(crate) tasks: Option<usize>,
    /// Samples per task (default: `eval.samples` of the configuration)
    #[arg(long, value_parser = RangedU64ValueParser::<usize>::new().range(1..=MAX_COUNT))]
    pub(crate) samples: Option<usize>,
    /// Sampling temperature
    #[arg(long, default_value_t = 1.0)]
    pub(crate) temperature: f32,
    /// Sample with the settings in the checkpoint's generation_config.json
    #[arg(long, conflicts_with = "temperature")]
    pub(crate) generation_config: bool,
    /// Device: cpu, cuda, cuda:N or auto (default: `device` of the configuration)
    #[arg(long)]
    pub(crate) device: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Rollout {
    /// Folder of the run
    pub(crate) run: PathBuf,
    #[command(flatten)]
    pub(crate) plugins: PluginDirectory,
    /// The task: its index in the split, or its id
    #[arg(long, default_value = "0")]
    pub(crate) task: String,
    /// Split: train, validation or test
    #[arg(long, default_value = "test")]
    pub(crate) split: String,
    /// Sampling temperature; 0 is greedy
    #[arg(long, default_value_t = 1.0)]
    pub(crate) temperature: f32,
    /// Number of the sample to print, from 0; the samples before it are drawn too
    #[arg(long, default_value_t = 0, value_parser = RangedU64ValueParser::<u64>::new().range(0..=9_999))]
    pub(crate) sample: u64,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Report {
    /// Folder of the run
    pub(crate) run: PathBuf,
    /// File to write (default: RUN/report.html)
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

/// The directory of plugins, also accepted after the subcommand.
#[derive(Debug, Clone, Args)]
pub(crate) struct PluginDirectoryGlobal {
    /// Add a directory of plugins: every `*/plugin.toml` or `*.wasm` in it
    ///
    /// A plugin or tool in it replaces a shipped one of the same name. Shipped plugins are found beside the program, or
    /// in the directory named by RLF_PLUGINS. If RLF_PLUGINS is set but empty, no shipped plugins are used.
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) plugins: Option<PathBuf>,
}

/// Settings of a plugin on the command line. They override those of a configuration.
#[derive(Debug, Clone, Args)]
pub(crate) struct PluginBindings {
    /// Bind a data slot to a file or folder, as a configuration would; may be repeated
    #[arg(long, value_name = "NAME=FILE")]
    pub(crate) data: Vec<String>,
    /// The plugin's `config`, as a JSON object (default: from the configuration)
    #[arg(long, value_name = "JSON")]
    pub(crate) plugin_config: Option<String>,
}

<<<<<<< HEAD
impl PluginBindings {
    /// Binds nothing.
    pub(crate) const NONE: Self = Self {
        data: Vec::new(),
        plugin_config: None,
    };
=======
#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// List every plugin found, with the problem of each one that does not load
    List,
    /// Show one plugin: exports, requests, grants with file and line, limits and cost
    ///
    /// Everything that a configuration grants is shown with its file and line. Limits that differ from the default are
    /// marked with `*`.
    ///
    /// `instance` is the measured cost of a fresh instance: the median over 50 ms in which instances are made one after
    /// another and nothing is called in them. `init` is included if it runs in every call. "Its own" memory is what
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

#[derive(Debug, Args)]
pub(crate) struct Data {
    #[command(subcommand)]
    pub(crate) command: DataCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum DataCommand {
    /// Read files of a published format; write tasks for RL or demonstrations for SFT
    Import(Box<Import>),
    /// List the formats that can be imported
    Formats,
}

#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools)] // Flags of a command line are what they are.
pub(crate) struct Import {
    /// JSON lines or one JSON array; also Parquet if rlf-host was built with it
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// File to write, as JSON lines. An existing file is replaced once all rows are read; a pipe or device is written
    /// to
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Format of all rows, one of `rlf-host data formats` (default: recognised for each row)
    #[arg(long, value_name = "FORMAT")]
    pub(crate) from: Option<String>,
    /// Environment of the tasks (default: the format's own)
    #[arg(long, value_name = "NAME")]
    pub(crate) environment: Option<String>,
    /// Code that FTRL's functions can see: clean (imports and the other functions) or published (neither, as published)
    #[arg(long, default_value = "clean", value_name = "clean|published")]
    pub(crate) scoping: String,
    /// Import FTRL's step-level rows, whose conversation is already under way, as tasks of one turn
    #[arg(long)]
    pub(crate) steps: bool,
    /// Make FTRL's step-level samples from a run's trajectories: RUN, or one file in RUN/trajectories
    ///
    /// FILE is then the tasks that the run was given.
    #[arg(long, value_name = "RUN")]
    pub(crate) steps_of: Option<PathBuf>,
    /// Player of tau-bench's customer: solo (none; the model is given what the customer knows) or model
    #[arg(long, default_value = "solo", value_name = "solo|model")]
    pub(crate) user: String,
    /// Leave out the reasoning of demonstrated turns
    #[arg(long)]
    pub(crate) drop_reasoning: bool,
    /// Import at most this many rows (default: all)
    #[arg(long, value_parser = RangedU64ValueParser::<usize>::new().range(1..=100_000_000))]
    pub(crate) limit: Option<usize>,
    /// Leave out bad rows: unreadable, with the id of another row, or found wrong by --replay
    #[arg(long)]
    pub(crate) skip_bad: bool,
    /// Play the gold calls of every task in its environment, and store the first and last state in its reference
    #[arg(long)]
    pub(crate) replay: bool,
    /// With --replay: configuration file whose `[plugins.*]` tables define the environments
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) plugins: PluginDirectory,
}

#[derive(Debug, Args)]
pub(crate) struct Env {
    #[command(subcommand)]
    pub(crate) command: EnvCommand,
    #[command(flatten)]
    pub(crate) plugins: PluginDirectoryGlobal,
    /// Configuration file; its `[plugins.*]` and `[sandbox]` apply (default: none)
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
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
        /// Open the task of this scenario of the environment
        #[arg(long, value_name = "ID")]
        scenario: Option<String>,
        /// Seed of all randomness (default: the scenario's, or 0)
        #[arg(long)]
        seed: Option<u64>,
        #[command(flatten)]
        bindings: PluginBindings,
    },
    /// Play an environment's scenarios and check that it behaves as environments must
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

#[derive(Debug, Args)]
pub(crate) struct Forge {
    #[command(subcommand)]
    pub(crate) command: ForgeCommand,
    #[command(flatten)]
    pub(crate) plugins: PluginDirectoryGlobal,
    /// Configuration file; its `[plugins.*]` and `[sandbox]` apply (default: none)
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ForgeCommand {
    /// Environments: verify them before anyone trains on them, or export them
    #[command(subcommand)]
    Env(ForgeEnv),
    /// Draw the tool graph of specifications: which output of which tool can fill which input
    ///
    /// Prints how many edges there are, and for which reasons; the inputs that nothing can fill; and how many of the
    /// chains of tools that are sampled from the graph are valid.
    Graph(ForgeGraph),
}

#[derive(Debug, Args)]
pub(crate) struct ForgeGraph {
    /// Specifications (`.toml`, `.json`)
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// HTML page to write, to read and search in a browser (default: none)
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Number of chains to sample in each way
    #[arg(long, default_value_t = 1_000, value_parser = RangedU64ValueParser::<u64>::new().range(0..=MAX_COUNT))]
    pub(crate) chains: u64,
    /// Seed of the chains
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ForgeEnv {
    /// Compose environments from a library of archetypes, without a language model
    ///
    /// Writes OUTPUT/Name.toml for each environment, and what was made and rejected to OUTPUT/composed.jsonl. The same
    /// seed composes the same environments, and a larger count continues a smaller one: files that are there are kept.
    Compose {
        /// Seed of all draws
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// Number of environments
        #[arg(long, default_value_t = 85, value_parser = RangedU64ValueParser::<usize>::new().range(1..=10_000))]
        count: usize,
        /// Folder to write to
        #[arg(long, short, value_name = "DIR")]
        output: PathBuf,
    },
    /// Let a language model write an environment from a description, verify it, and have it revised
    ///
    /// A sound environment is written to OUTPUT. Every answer, round and finding is kept in OUTPUT-work, and the same
    /// command goes on where it was stopped, without asking again. The exit code is 0 if the environment is sound.
    New(Box<ForgeNew>),
    /// Write the prompts that `new` uses into a folder, to read and change them
    ///
    /// Use them with `new --prompts DIR`. A file that is there is kept.
    Prompts {
        /// Folder to write to
        #[arg(long, short, value_name = "DIR")]
        output: PathBuf,
    },
    /// Check specifications without running them, then verify environments by playing them
    ///
    /// For a specification, the static checks come first; if they find an error, it is not played. Then every scenario
    /// is loaded, and random walks call every operation with valid, boundary and erroneous arguments. The exit code says
    /// whether nothing worse than a warning was found.
    Verify {
        /// Specifications (`.toml`, `.json`), Python files or folders of them, components, or names of environments
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Number of random calls of each walk
        #[arg(long, default_value_t = 60, value_parser = RangedU64ValueParser::<usize>::new().range(1..=100_000))]
        calls: usize,
        /// Number of walks from each scenario
        #[arg(long, default_value_t = 3, value_parser = RangedU64ValueParser::<usize>::new().range(1..=1_000))]
        walks: usize,
        /// Number of seeds with which each scenario of a specification is generated
        #[arg(long, default_value_t = 3, value_parser = RangedU64ValueParser::<u64>::new().range(1..=10_000))]
        seeds: u64,
        /// Seed of the walks
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// Only run the static checks
        #[arg(long)]
        no_play: bool,
    },
    /// Write a specification as a Python file in EnvFactory's form, which behaves the same
    Export {
        /// The specification (`.toml` or `.json`)
        file: PathBuf,
        /// The Python file to write, or `-` for standard output. Its name has to be that of the environment
        #[arg(long, value_name = "OUT")]
        python: PathBuf,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// Configuration file; its tables `[serve]`, `[plugins]`, `[sandbox]` and `[tools]` apply
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) plugins: PluginDirectory,
    /// Address and port to listen on (default: `serve.listen` of the configuration, or 127.0.0.1:8080)
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<SocketAddr>,
    /// File with the token that clients must send; needed if other machines can connect
    #[arg(long, value_name = "FILE", conflicts_with = "token_env")]
    pub(crate) token_file: Option<PathBuf>,
    /// Environment variable with that token
    #[arg(long, value_name = "NAME")]
    pub(crate) token_env: Option<String>,
    /// Host name by which clients reach the service; may be repeated
    #[arg(long = "host", value_name = "NAME")]
    pub(crate) hosts: Vec<String>,
    /// Web origin whose pages may send requests, such as `https://lab.example.com`; may be repeated
    #[arg(long = "origin", value_name = "ORIGIN")]
    pub(crate) origins: Vec<String>,
    /// Plugin to serve although it reaches a network, a model or a directory; may be repeated
    #[arg(long, value_name = "PLUGIN")]
    pub(crate) allow: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// File of the program, or `-` for standard input
    pub(crate) script: PathBuf,
    /// Arguments of the program
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<String>,
    /// Language of the program (default: by the file's extension; python for standard input)
    #[arg(long, visible_alias = "language")]
    pub(crate) lang: Option<String>,
    #[command(flatten)]
    pub(crate) plugins: PluginDirectory,
    /// Configuration file; its `[sandbox]` and `[plugins.*]` apply (default: none)
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Limit in milliseconds of CPU time, and separately of virtual time (default: as configured, or 10000)
    #[arg(long, value_name = "MS", value_parser = RangedU64ValueParser::<u64>::new().range(1..=86_400_000))]
    pub(crate) time_ms: Option<u64>,
    /// Limit of memory, such as 64MiB; at most 4GiB (default: as configured, or 256MiB)
    #[arg(long, value_name = "BYTES", value_parser = crate::arguments::memory)]
    pub(crate) memory: Option<u64>,
    /// Limit of output on each stream, such as 1MiB (default: as configured, or 16MiB)
    #[arg(long, value_name = "BYTES", value_parser = crate::arguments::bytes)]
    pub(crate) output: Option<u64>,
    /// Limit of all files of the program together, such as 32MiB (default: as configured, or 16MiB)
    #[arg(long, value_name = "BYTES", value_parser = crate::arguments::bytes)]
    pub(crate) files: Option<u64>,
    /// Seed of all randomness
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Give the program a file, under its own name or another; may be repeated
    #[arg(long = "file", value_name = "PATH[=NAME]")]
    pub(crate) given: Vec<String>,
    /// Keep a file that the program leaves, under its own name or another; may be repeated
    #[arg(long = "fetch", value_name = "NAME[=PATH]")]
    pub(crate) fetched: Vec<String>,
}

/// Parses a number of bytes, such as `4096`, `64KiB`, `16MiB` or `1GiB`.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let units = [("KiB", 10), ("MiB", 20), ("GiB", 30)];
    let (number, shift) = units
        .iter()
        .find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, *shift)))
        .unwrap_or((text, 0));
    let number: u64 = number
        .trim()
        .parse()
        .map_err(|_| "write a number of bytes, such as 4096 or 64MiB".to_owned())?;
    number
        .checked_mul(1 << shift)
        .filter(|bytes| *bytes > 0)
        .ok_or_else(|| "the number of bytes must be at least 1, and below 2^64".to_owned())
}

/// Parses a number of bytes for a program's memory, whose addresses have 32 bits.
pub(crate) fn memory(text: &str) -> Result<u64, String> {
    bytes(text).and_then(|bytes| {
        if bytes <= 4 << 30 {
            Ok(bytes)
        } else {
            Err("a program can address 4GiB at the most".to_owned())
        }
    })
>>>>>>> writer
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Configuration file, to show the device and pools that it would use
    pub(crate) config: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Bench {
    #[command(flatten)]
    pub(crate) plugins: PluginDirectory,
    /// Threads that train and decode (default: one per core)
    #[arg(long)]
    pub(crate) workers: Option<usize>,
}
