//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use clap::{Args, Parser, Subcommand};

/// Post-train language models for multi-turn tool use, with tools and rewards in sandboxes.
///
/// Set RLF_LOG=info (or debug) to see what happens inside.
#[derive(Debug, Parser)]
#[command(name = "rlf-host", version, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Train a policy as a configuration says, from the start or from where a run stopped
    Train(Train),
    /// Measure a run's policy on a split: greedy, sampled and pass@k, by kind of task
    Eval(Eval),
    /// Play one task and print the trajectory: turns, calls, observations, mask, rewards
    Rollout(Rollout),
    /// Write a run's report: one HTML page with curves, configuration and trajectories
    Report(Report),
    /// List, inspect, call and check plugins
    Plugin(Plugin),
    /// Make published data sets' files the project's own: tasks, or demonstrations
    Data(Data),
    /// Try an environment by hand, or check that it keeps its promises
    Env(Env),
    /// Run a program in a sandbox: what it prints, and its exit code
    ///
    /// Runs a program that a model, or anybody, wrote. It finds no files but those it is given, no network, no other
    /// process and no environment; its clock is virtual, so sleeping takes no time, and everything random follows from
    /// `--seed`. Standard input is handed to it, to its end, where that is no terminal.
    ///
    /// Exit code: the program's own; 124 where it was out of time, 137 where another limit stopped it, 130 at Ctrl-C, 141
    /// where nobody reads what it prints, 125 where it could not be run, for a wrong option of this command too.
    Run(Run),
    /// Serve programs, tools and rewards over HTTP, as SandboxFusion does
    ///
    /// Serves until Ctrl-C or SIGTERM, then answers what it took. One line for each request goes to standard error.
    Serve(Serve),
    /// Say what this machine has, and which device a configuration would use
    Doctor(Doctor),
    /// Say how fast this machine is: tokens per second of a small policy, calls per second of the sandbox
    Bench(Bench),
    /// Prepare one component under limits of its own; started by this program alone
    #[command(name = rlf_sandbox::prepare_process::ARGUMENT, hide = true)]
    Prepare,
}

/// Largest number of tasks or samples.
const MAX_COUNT: u64 = 1_000_000;

/// Directories of plugins.
#[derive(Debug, Clone, Args)]
pub(crate) struct PluginDirectory {
    /// Directory of plugins beside the shipped ones: every `*/plugin.toml` or `*.wasm` in it
    ///
    /// A plugin or a tool in it wins over a shipped one of its name. The shipped plugins are found beside the program, or
    /// in the directory that RLF_PLUGINS names; if that is empty, they are left out.
    #[arg(long, value_name = "DIR")]
    pub(crate) plugins: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools)] // Flags of a command line are what they are.
pub(crate) struct Train {
    /// The configuration, for example configs/quickstart.toml
    pub(crate) config: PathBuf,
    #[command(flatten)]
    pub(crate) plugins: PluginDirectory,
    /// The run's folder, instead of the configuration's `output`
    #[arg(long, value_name = "DIR")]
    pub(crate) run: Option<PathBuf>,
    /// cpu, cuda, cuda:N or auto, instead of the configuration's `device`
    #[arg(long)]
    pub(crate) device: Option<String>,
    /// The seed, instead of the configuration's `seed`
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Change one setting: KEY=VALUE, such as rl.steps=20; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Go on from the run's last checkpoint
    #[arg(long)]
    pub(crate) resume: bool,
    /// With --resume: go on although the configuration or a plugin changed
    #[arg(long, requires = "resume")]
    pub(crate) allow_changes: bool,
    /// Replace a run that is already there
    #[arg(long, conflicts_with = "resume")]
    pub(crate) overwrite: bool,
    /// After training, also continue SFT from the same start for as long as RL took
    #[arg(long)]
    pub(crate) control: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Eval {
    /// The run directory
    pub(crate) run: PathBuf,
    #[command(flatten)]
    pub(crate) plugins: PluginDirectory,
    /// train, validation or test
    #[arg(long, default_value = "test")]
    pub(crate) split: String,
    /// Number of tasks, instead of the configuration's `eval.tasks`
    #[arg(long, value_parser = RangedU64ValueParser::<usize>::new().range(1..=MAX_COUNT))]
    pub(crate) tasks: Option<usize>,
    /// Samples per task, instead of the configuration's `eval.samples`
    #[arg(long, value_parser = RangedU64ValueParser::<usize>::new().range(1..=MAX_COUNT))]
    pub(crate) samples: Option<usize>,
    /// Sampling temperature
    #[arg(long, default_value_t = 1.0)]
    pub(crate) temperature: f32,
    /// Sample with the values in the checkpoint's generation_config.json
    #[arg(long, conflicts_with = "temperature")]
    pub(crate) generation_config: bool,
    /// cpu, cuda, cuda:N or auto, instead of the configuration's `device`
    #[arg(long)]
    pub(crate) device: Option<String>,
    /// Print JSON for programs
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Rollout {
    /// The run directory
    pub(crate) run: PathBuf,
    #[command(flatten)]
    pub(crate) plugins: PluginDirectory,
    /// Index of a task of the split, or a task's id
    #[arg(long, default_value = "0")]
    pub(crate) task: String,
    /// train, validation or test
    #[arg(long, default_value = "test")]
    pub(crate) split: String,
    /// Sampling temperature; 0 is greedy
    #[arg(long, default_value_t = 1.0)]
    pub(crate) temperature: f32,
    /// Which sample of the task to draw; those before it are drawn too
    #[arg(long, default_value_t = 0, value_parser = RangedU64ValueParser::<u64>::new().range(0..=9_999))]
    pub(crate) sample: u64,
    /// Print JSON for programs
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Report {
    /// The run directory
    pub(crate) run: PathBuf,
    /// File of the page; RUN/report.html by default
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Plugin {
    #[command(subcommand)]
    pub(crate) command: PluginCommand,
    #[command(flatten)]
    pub(crate) plugins: PluginDirectoryGlobal,
    /// A configuration whose `[plugins.*]` tables bind data and grants
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON for programs
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

/// Directories of plugins; also after the subcommand.
#[derive(Debug, Clone, Args)]
pub(crate) struct PluginDirectoryGlobal {
    /// Directory of plugins beside the shipped ones: every `*/plugin.toml` or `*.wasm` in it
    ///
    /// A plugin or a tool in it wins over a shipped one of its name. The shipped plugins are found beside the program, or
    /// in the directory that RLF_PLUGINS names; if that is empty, they are left out.
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) plugins: Option<PathBuf>,
}

/// Settings of a plugin on the command line; they win over those of a configuration.
#[derive(Debug, Clone, Args)]
pub(crate) struct PluginBindings {
    /// Bind data without a configuration: NAME=FILE, may be repeated
    #[arg(long, value_name = "NAME=FILE")]
    pub(crate) data: Vec<String>,
    /// The plugin's `config` as a JSON object
    #[arg(long, value_name = "JSON")]
    pub(crate) plugin_config: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PluginCommand {
    /// Every plugin that is found, and what is wrong with those that do not load
    List,
    /// One plugin on one screen: what it exports, asks for and is granted, by which line, its limits and its cost
    ///
    /// Everything that a configuration grants is shown with the file and line that grant it. Limits that are not the
    /// default are marked with `*`. `instance` is measured: fresh instances are made one after another for 50 ms with
    /// nothing called in them, `init` included where it runs in every call; of their times the median. Of the memory
    /// that one begins with, "its own" is what the machine has to find for each of several that are alive together:
    /// pages it wrote to, its stack and the host's records; the rest is shared, or not there until it is touched.
    /// `--json` has all of it, and the full schema of every tool.
    Inspect {
        /// Its name, or the alias a configuration gives it
        name: String,
        #[command(flatten)]
        bindings: PluginBindings,
    },
    /// Call a tool in its sandbox
    Call {
        /// The plugin's name or alias
        plugin: String,
        /// The tool
        tool: String,
        /// Its arguments as a JSON object
        #[arg(default_value = "{}")]
        arguments: String,
        /// Seed of the call's clock and randomness
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// Folder for the files that the call leaves (`files.outputs` of its grants)
        #[arg(long, value_name = "DIR")]
        outputs: Option<PathBuf>,
        #[command(flatten)]
        bindings: PluginBindings,
    },
    /// Grade an answer with a reward, in its sandbox
    Grade {
        /// The plugin's name or alias
        plugin: String,
        /// The model's answer; leave it out for a trajectory without one
        #[arg(long, value_name = "TEXT")]
        answer: Option<String>,
        /// The task's reference as JSON, or as plain text
        #[arg(long, value_name = "JSON")]
        reference: String,
        /// Instead of `--answer`: a trajectory as `rlf-host rollout --json` prints it
        #[arg(long, value_name = "FILE", conflicts_with = "answer")]
        trajectory: Option<PathBuf>,
        #[command(flatten)]
        bindings: PluginBindings,
    },
    /// Pin a plugin to what it is now in the configuration given with --config, and open gates to it
    Grant {
        /// The plugin's name or alias
        plugin: String,
        /// Open these gates, of those that the plugin asks for: may be repeated
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
    /// Read files of a published format and write tasks, for RL, or demonstrations, for SFT
    Import(Box<Import>),
    /// The formats that are read
    Formats,
}

#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools)] // Flags of a command line are what they are.
pub(crate) struct Import {
    /// JSON lines, or one JSON array; Parquet where rlf-host is built with it
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// File of the rows, as JSON lines; a file that is there is replaced when all rows are read, a
    /// pipe or device is written to
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// The format of all rows (`rlf-host data formats`); recognised row by row by default
    #[arg(long, value_name = "FORMAT")]
    pub(crate) from: Option<String>,
    /// The environment that the tasks live in, in place of the format's own
    #[arg(long, value_name = "NAME")]
    pub(crate) environment: Option<String>,
    /// The code around FTRL's functions that they see: clean, or as the published executor runs them
    #[arg(long, default_value = "clean", value_name = "clean|published")]
    pub(crate) scoping: String,
    /// Take FTRL's step-level rows, whose conversation has begun, as tasks of one turn
    #[arg(long)]
    pub(crate) steps: bool,
    /// Make FTRL's step-level samples of the trajectories that a run kept (its folder, or a file of `trajectories` in it);
    /// FILE is then the tasks it was given
    #[arg(long, value_name = "RUN")]
    pub(crate) steps_of: Option<PathBuf>,
    /// The speaker for tau-bench's customer: solo, or a model
    #[arg(long, default_value = "solo", value_name = "solo|model")]
    pub(crate) user: String,
    /// Leave the reasoning of demonstrated turns out
    #[arg(long)]
    pub(crate) drop_reasoning: bool,
    /// At most so many rows
    #[arg(long, value_parser = RangedU64ValueParser::<usize>::new().range(1..=100_000_000))]
    pub(crate) limit: Option<usize>,
    /// Leave rows out that cannot be read, that have another's id, or that --replay says are wrong
    #[arg(long)]
    pub(crate) skip_bad: bool,
    /// Make the gold calls of every task in its environment, and keep where they begin and lead to
    #[arg(long)]
    pub(crate) replay: bool,
    /// With --replay: the configuration whose `[plugins.*]` are the environments
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
    /// A configuration whose `[plugins.*]` and `[sandbox]` hold
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON for programs
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum EnvCommand {
    /// Play an environment by hand: one command a line from standard input
    ///
    /// Commands: list, NAME {ARGUMENTS} to call a tool, say TEXT, state, diff, snapshot FILE, restore FILE, undo,
    /// verify REFERENCE, quit; `help` explains them. What each call changed is shown after it. From a pipe, the exit code
    /// says whether every command could be carried out.
    Try {
        /// A Python file or a folder of them, a component, or the name of an environment
        path: PathBuf,
        /// The task that opens the session: JSON, or @FILE. Default: the environment's own first state
        #[arg(long, value_name = "JSON", conflicts_with = "scenario")]
        task: Option<String>,
        /// Open the task of one of its scenarios
        #[arg(long, value_name = "ID")]
        scenario: Option<String>,
        /// Seed of everything random; the scenario's, or 0
        #[arg(long)]
        seed: Option<u64>,
        #[command(flatten)]
        bindings: PluginBindings,
    },
    /// Play an environment's scenarios and see that it keeps its promises
    ///
    /// The same seed gives the same bytes, a session restored from a snapshot goes on as the first one, asking for state,
    /// snapshot or verdict changes nothing, every scenario ends in the state that it expects, and no tool breaks on
    /// arguments that its schema allows.
    Check {
        /// A Python file or a folder of them, a component, or the name of an environment
        path: PathBuf,
        /// Calls of each tool with generated arguments
        #[arg(long, default_value_t = 20, value_parser = RangedU64ValueParser::<usize>::new().range(0..=100_000))]
        inputs: usize,
        #[command(flatten)]
        bindings: PluginBindings,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Serve {
    /// A configuration: its tables [serve], [plugins], [sandbox] and [tools] are looked at
    pub(crate) config: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) plugins: PluginDirectory,
    /// Address and port, instead of the configuration's `serve.listen` (127.0.0.1:8080)
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<SocketAddr>,
    /// File with the token that clients have to send; needed unless only this machine is listened to
    #[arg(long, value_name = "FILE", conflicts_with = "token_env")]
    pub(crate) token_file: Option<PathBuf>,
    /// Environment variable with the token
    #[arg(long, value_name = "NAME")]
    pub(crate) token_env: Option<String>,
    /// A name that clients reach the service by; may be repeated
    #[arg(long = "host", value_name = "NAME")]
    pub(crate) hosts: Vec<String>,
    /// A web origin whose pages may ask, such as https://lab.example.com; may be repeated
    #[arg(long = "origin", value_name = "ORIGIN")]
    pub(crate) origins: Vec<String>,
    /// A plugin that is served although it leads to a network, a model or a directory; may be repeated
    #[arg(long, value_name = "PLUGIN")]
    pub(crate) allow: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The program's file, or `-` for standard input
    pub(crate) script: PathBuf,
    /// The program's arguments
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub(crate) arguments: Vec<String>,
    /// Its language; by default what its file's extension says, and python for standard input
    #[arg(long, visible_alias = "language")]
    pub(crate) lang: Option<String>,
    #[command(flatten)]
    pub(crate) plugins: PluginDirectory,
    /// A configuration whose `[sandbox]` and `[plugins.*]` hold
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// CPU time, and again time as the program sees it, in milliseconds
    #[arg(long, value_name = "MS", value_parser = RangedU64ValueParser::<u64>::new().range(1..=86_400_000))]
    pub(crate) time_ms: Option<u64>,
    /// Memory in bytes, or such as 64MiB; at most 4GiB
    #[arg(long, value_name = "BYTES", value_parser = crate::arguments::memory)]
    pub(crate) memory: Option<u64>,
    /// The most it may print on one stream, in bytes, or such as 1MiB
    #[arg(long, value_name = "BYTES", value_parser = crate::arguments::bytes)]
    pub(crate) output: Option<u64>,
    /// The most that its files may hold together, in bytes, or such as 16MiB
    #[arg(long, value_name = "BYTES", value_parser = crate::arguments::bytes)]
    pub(crate) files: Option<u64>,
    /// Seed of everything random
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Give it a file, under its own name or another: PATH or PATH=NAME; may be repeated
    #[arg(long = "file", value_name = "PATH[=NAME]")]
    pub(crate) given: Vec<String>,
    /// Take a file that it leaves, under its own name or another: NAME or NAME=PATH; may be repeated
    #[arg(long = "fetch", value_name = "NAME[=PATH]")]
    pub(crate) fetched: Vec<String>,
}

/// Bytes as people write them: `4096`, `64KiB`, `16MiB`, `1GiB`.
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
        .ok_or_else(|| "that is none, or too many".to_owned())
}

/// Bytes of memory for a program, whose addresses have 32 bits.
pub(crate) fn memory(text: &str) -> Result<u64, String> {
    bytes(text).and_then(|bytes| {
        if bytes <= 4 << 30 {
            Ok(bytes)
        } else {
            Err("a program can address 4GiB at the most".to_owned())
        }
    })
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// A configuration, to say which device and pools it would use
    pub(crate) config: Option<PathBuf>,
    /// Print JSON for programs
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Bench {
    #[command(flatten)]
    pub(crate) plugins: PluginDirectory,
    /// Threads that train and decode; one per core by default
    #[arg(long)]
    pub(crate) workers: Option<usize>,
}
