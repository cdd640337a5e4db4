//! The command line: the commands, and the options that several of them have. Groups of commands have a file each.

mod data;
mod env;
mod forge;
mod mcp;
mod plugin;
mod run;
mod serve;

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, RangedU64ValueParser};
use clap::{Args, Parser, Subcommand};
use rlf_policy::PublishedShape;
use rlf_run::PlannedMachine;

pub(crate) use self::data::{Data, DataCommand, Import};
pub(crate) use self::env::{Env, EnvCommand};
pub(crate) use self::forge::{
    ChainSampling, Forge, ForgeAsker, ForgeCommand, ForgeEnv, ForgeGraph, ForgeModel, ForgeNew,
    ForgeRows, ForgeTasks, ForgeVerify, RowOptions, TaskFormat, TaskStage, TaskWords,
};
pub(crate) use self::mcp::{Mcp, McpCommand};
pub(crate) use self::plugin::{
    BuildPlugin, NewKind, NewLanguage, NewPlugin, Plugin, PluginCommand, Trial,
};
pub(crate) use self::run::Run;
pub(crate) use self::serve::{Serve, ServeCommand, ServeHttp, ServeMcp, ServePolicy};

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
    /// Tell the memory and the time that a run needs, before anything is loaded
    ///
    /// Fails if the run does not fit, and says which keys to change and what each change saves. Memory is counted from the
    /// shape of the policy and the sizes of the configuration. Times are rough estimates.
    Plan(Plan),
    /// Train the variants of a configuration from the same seeds, and compare them
    ///
    /// Each table `[ablate.NAME]` of the configuration is a variant: `set` lists settings, as `--set` takes them. Runs that
    /// are complete are left as they are, so a command that was stopped goes on when it is repeated.
    Ablate(Ablate),
    /// Evaluate a run's policy on a split: greedy, sampled and pass@k, by kind of task
    ///
    /// With --endpoint, a model behind an OpenAI-compatible endpoint is measured instead of a policy. It plays the
    /// tasks of a run or of a configuration, with the same tools, environments, rewards and limits. No checkpoint is
    /// needed.
    Eval(Eval),
    /// Play one task with a run's policy and print the trajectory: turns, calls, observations, mask, rewards
    Rollout(Rollout),
    /// Play a step of RL again and compare it with what the run recorded: tokens, log-probabilities, calls, rewards, metrics
    ///
    /// The replay begins with the newest checkpoint before the step, so it also repeats the steps between the two. The run's
    /// folder is only read. Records of the replay go to a temporary folder (TMPDIR), which is removed at the end.
    ///
    /// Exit code: 0 if all is the same, 1 if something differs, 2 if the step could not be replayed.
    Replay(Replay),
    /// Write a run's report: one HTML page with curves, configuration and trajectories
    Report(Report),
    /// Write the model of a run as a folder for other programs
    ///
    /// The folder has the format of Hugging Face, with tokenizer and chat template. transformers, vLLM and SGLang load it,
    /// and so does `model.checkpoint`. Adapters of a run with `[model.lora]` are added to their frozen weights,
    /// W + alpha / rank * A B.
    Export(Export),
    /// Download a published checkpoint by name, and print its folder, for `model.checkpoint`
    ///
    /// The folder is in the cache that Python's huggingface_hub uses too, so what is there is not downloaded again. All
    /// files are of one commit. HF_TOKEN, HF_HOME and HF_ENDPOINT are obeyed.
    #[cfg(feature = "hub")]
    Download(Download),
    /// Make, try, grant, build and inspect plugins
    Plugin(Plugin),
    /// Show the tools of MCP servers, and call them
    Mcp(Mcp),
    /// Convert published data sets into tasks for RL or demonstrations for SFT
    Data(Data),
    /// Play an environment by hand, or check that it repeats from its seed and continues from a snapshot
    Env(Env),
    /// Make environments, and tasks in them, without manual work, and verify both
    Forge(Forge),
    /// Run a program in a sandbox, and exit with the program's exit code
    ///
    /// The program may be untrusted. It finds only the files that it is given: no other files, no network, no other
    /// processes and no environment variables. Its clock is virtual, so sleeping takes no real time. All randomness
    /// follows from `--seed`. If standard input is not a terminal, it is read to its end and passed to the program.
    ///
    /// Exit code: the program's own. Otherwise 124 if it ran out of time, 137 if another limit stopped it, 130 after
    /// Ctrl-C, 141 if nobody reads its output any more, and 125 if it could not be run, for example because of a wrong
    /// option or because the machine was too busy.
    Run(Run),
    /// Serve programs, tools and rewards over HTTP, with the interface of SandboxFusion, and over MCP
    ///
    /// Serves until Ctrl-C or SIGTERM, then answers the requests that it has accepted and exits. Prints one line for
    /// each request on standard error.
    Serve(Serve),
    /// Show what this machine has, and which device a configuration would use
    Doctor(Doctor),
    /// Show what the cache of compiled components holds, and make it smaller
    ///
    /// Each component is compiled once and kept in a folder. When the folder is full, the components that were not used
    /// for the longest time are removed. Everything in it can be removed at any time: it is compiled again when it is
    /// needed.
    Cache(Cache),
    /// Measure this machine's speed: tokens per second of a small policy, calls per second of the sandbox
    Bench(Bench),
    /// Prepare one component in a process with its own limits; only rlf-host starts this
    #[command(name = rlf_sandbox::prepare_process::ARGUMENT, hide = true)]
    Prepare,
    /// Run an agent, and end all processes that it started; only rlf-host starts this
    #[command(name = rlf_agents::supervisor::ARGUMENT, hide = true)]
    Supervise {
        /// The agent's program and its arguments
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
}

/// Maximum number of tasks or samples.
const MAX_COUNT: u64 = 1_000_000;

/// The directory of plugins. In a group of commands, it is also accepted after the command.
#[derive(Debug, Clone, Args)]
pub(crate) struct PluginDirectory {
    /// Add a directory of plugins: every `*/plugin.toml`, `*.wasm`, `*.py` or `*.js` in it
    ///
    /// A plugin or tool in it replaces a shipped one of the same name. If the option is given several times, the first
    /// directory wins. Shipped plugins are found beside the program, or
    /// in the directory named by RLF_PLUGINS. If RLF_PLUGINS is set but empty, no shipped plugins are used.
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) plugins: Vec<PathBuf>,
}

/// The options of a group of commands. They are also accepted after the command.
#[derive(Debug, Clone, Args)]
pub(crate) struct GroupOptions {
    #[command(flatten)]
    pub(crate) plugins: PluginDirectory,
    /// Configuration file; its `[plugins.*]`, `[sandbox]` and, for `forge`, `[writer]` and `[embeddings]` apply
    /// (default: none)
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools)] // Flags of a command line are what they are.
pub(crate) struct Train {
    /// Configuration file, or the name of one that ships with the program, such as quickstart
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
    /// After RL, train a control for comparison: continue SFT from where RL began, for as long as RL took
    #[arg(long)]
    pub(crate) control: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Plan {
    /// Configuration file, or the name of one that ships with the program, such as quickstart
    pub(crate) config: PathBuf,
    /// Plan for this GPU, which need not be here (default: the device of the configuration on this machine)
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(PlannedMachine::NAMES))]
    pub(crate) machine: Option<String>,
    /// Plan for a published shape instead of `model` of the configuration, so that no checkpoint is needed
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(PublishedShape::ALL.map(PublishedShape::name)))]
    pub(crate) shape: Option<String>,
    /// Tokens of a trajectory (default: `dialogue.context`, the most that one can have)
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<usize>::new().range(2..=1 << 24))]
    pub(crate) tokens_per_trajectory: Option<usize>,
    /// Device of this machine: cpu, cuda, cuda:N or auto (default: `device` of the configuration)
    #[arg(long, conflicts_with = "machine")]
    pub(crate) device: Option<String>,
    /// Override one key of the configuration, such as engine.slots=32; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Ablate {
    /// Configuration file with tables [ablate.NAME]
    pub(crate) config: PathBuf,
    #[command(flatten)]
    pub(crate) plugins: PluginDirectory,
    /// Folder of the runs (default: `output` of the configuration, with `-ablation` added)
    #[arg(long, value_name = "DIR")]
    pub(crate) output: Option<PathBuf>,
    /// Train each variant with these seeds, such as 1,2,3 (default: `seed` of the configuration)
    #[arg(long, value_name = "SEEDS", value_delimiter = ',', value_parser = seed)]
    pub(crate) seeds: Vec<u64>,
    /// Train only these variants; may be repeated
    #[arg(long, value_name = "NAME")]
    pub(crate) only: Vec<String>,
    /// Override one key in all variants, such as rl.steps=20; may be repeated
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,
    /// Print the table as JSON; progress goes to standard error
    #[arg(long)]
    pub(crate) json: bool,
}

/// Parses one of several seeds.
fn seed(text: &str) -> Result<u64, &'static str> {
    let seed = text.parse().ok();
    seed.ok_or("seeds are whole numbers, such as 1,2,3")
}

#[derive(Debug, Args)]
pub(crate) struct Cache {
    /// Keep at most this many MiB, and remove what was not used for the longest time; 0 removes all
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(..=1 << 30))]
    pub(crate) keep: Option<u64>,
    /// Configuration file; its `[sandbox]` names the folder and the limit (default: none)
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Eval {
    /// Folder of the run, or of one of its checkpoints. With --endpoint also a configuration file, or the name of one that ships with the program
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
    /// Sample with the generation_config.json of `model.checkpoint`, or of the run's newest checkpoint if the model was
    /// made from random weights
    #[arg(long, conflicts_with = "temperature")]
    pub(crate) generation_config: bool,
    /// Device: cpu, cuda, cuda:N or auto (default: `device` of the configuration)
    #[arg(long)]
    pub(crate) device: Option<String>,
    #[command(flatten)]
    pub(crate) measured: MeasuredModel,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A model behind an endpoint, which is measured instead of a policy.
#[derive(Debug, Args)]
pub(crate) struct MeasuredModel {
    /// Measure a model behind this OpenAI-compatible endpoint instead of a policy, such as http://127.0.0.1:8000/v1
    #[arg(long, value_name = "URL", conflicts_with_all = ["generation_config", "device"])]
    pub(crate) endpoint: Option<String>,
    /// The model, by the endpoint's name for it (default: `endpoint.model` of the configuration)
    #[arg(long, value_name = "NAME", requires = "endpoint")]
    pub(crate) model: Option<String>,
    /// Environment variable that holds the endpoint's key (default: `endpoint.key_env` of the configuration; without
    /// one, no key is sent)
    #[arg(long, value_name = "NAME", requires = "endpoint")]
    pub(crate) key_env: Option<String>,
    /// Number of questions to the endpoint at once (default: `endpoint.max_concurrent` of the configuration, or 32)
    #[arg(long, value_name = "N", requires = "endpoint")]
    pub(crate) max_concurrent: Option<u32>,
    /// With --endpoint: override one key of the configuration, such as dialogue.context=16384; may be repeated
    #[arg(long, value_name = "KEY=VALUE", requires = "endpoint")]
    pub(crate) set: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Rollout {
    /// Folder of the run, or of one of its checkpoints
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
    /// Number of the sample to print, from 0; the samples before it are played too
    #[arg(long, default_value_t = 0, value_parser = RangedU64ValueParser::<u64>::new().range(0..=9_999))]
    pub(crate) sample: u64,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// Folder of the run
    pub(crate) run: PathBuf,
    #[command(flatten)]
    pub(crate) plugins: PluginDirectory,
    /// The step of RL, from 1
    #[arg(long, value_name = "N", value_parser = step)]
    pub(crate) step: u64,
    /// Outcomes of calls that may not repeat
    #[arg(long, value_enum, default_value_t = ReplayedOutcomes::Recorded)]
    pub(crate) outcomes: ReplayedOutcomes,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Parses a step of RL.
fn step(text: &str) -> Result<u64, &'static str> {
    let step = text.parse().ok().filter(|step| *step > 0);
    step.ok_or("steps are whole numbers that count from 1")
}

/// The outcomes of calls that time stopped, or whose tools look outside of the sandbox.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum ReplayedOutcomes {
    /// As the run recorded them. Such calls are not made
    Recorded,
    /// All calls are made again
    Again,
}

#[derive(Debug, Args)]
pub(crate) struct Report {
    /// Folder of the run
    pub(crate) run: PathBuf,
    /// File to write (default: RUN/report.html)
    #[arg(long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Export {
    /// Folder of the run, whose newest checkpoint is used, or of one of its checkpoints
    pub(crate) run: PathBuf,
    /// Folder to write; it must be new or empty
    #[arg(long, value_name = "DIR")]
    pub(crate) output: PathBuf,
    /// Type of the weights: f32, or bf16, which is rounded and half as large
    #[arg(long, value_enum, default_value_t = ExportedType::F32)]
    pub(crate) dtype: ExportedType,
    /// Write an embedding that is the vocabulary head too a second time, as the head: for vLLM as an external engine
    #[arg(long)]
    pub(crate) untied: bool,
}

#[cfg(feature = "hub")]
#[derive(Debug, Args)]
pub(crate) struct Download {
    /// Owner and model, such as Qwen/Qwen3-0.6B
    pub(crate) name: String,
    /// Branch, tag or commit
    #[arg(long, default_value = "main")]
    pub(crate) revision: String,
}

/// The type of an exported model's weights.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
pub(crate) enum ExportedType {
    /// Not rounded
    F32,
    /// Rounded, and half as large
    Bf16,
}

/// Settings of a plugin on the command line. They override those of a configuration.
#[derive(Debug, Clone, Args)]
pub(crate) struct PluginBindings {
    /// Bind a data slot to a file or folder, as a configuration would; may be repeated
    #[arg(long, value_name = "SLOT=PATH")]
    pub(crate) data: Vec<String>,
    /// The plugin's `config`, as a JSON object (default: from the configuration)
    #[arg(long, value_name = "JSON")]
    pub(crate) plugin_config: Option<String>,
}

impl PluginBindings {
    /// Binds nothing.
    pub(crate) const NONE: Self = Self {
        data: Vec::new(),
        plugin_config: None,
    };
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
