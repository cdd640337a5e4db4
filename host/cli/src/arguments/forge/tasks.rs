//! The options of `rlf-host forge tasks`, `stats` and `export`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use rlf_forge::tasks::output::RowSettings;

use super::model::ForgeModel;
use crate::arguments::MAX_COUNT;

/// Formats of rows for training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum TaskFormat {
    /// One row for each turn, for `[tasks]` of a configuration
    Tasks,
    /// One conversation for each task, for `tasks.demonstrations`
    Demonstrations,
    /// One row for each turn of the model, as Alpaca has them
    Alpaca,
    /// One row for each turn, as EnvFactory and verl have them
    Verl,
}

/// The options of rows in every format.
#[derive(Debug, Args)]
pub(crate) struct RowOptions {
    /// Name of the environment in the configuration that reads the rows: [plugins.NAME] (default: servers; `forge
    /// export` takes that of `forge tasks`)
    #[arg(long, value_name = "NAME", value_parser = plugin_name)]
    environment: Option<String>,
    /// Share of the training environments whose tasks go to practice.jsonl instead of train.jsonl. RL can then practise
    /// in environments without demonstrations (default: 0; `forge export` takes that of `forge tasks`)
    #[arg(long, value_name = "SHARE", value_parser = share)]
    practice: Option<f64>,
}

impl RowOptions {
    /// These options, with the settings of `before` for those that are not given.
    pub(crate) fn over(&self, before: RowSettings) -> RowSettings {
        RowSettings {
            environment: self.environment.clone().unwrap_or(before.environment),
            practice: self.practice.unwrap_or(before.practice),
        }
    }
}

/// The author of the words of tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum TaskWords {
    /// The grammar
    Grammar,
    /// A language model, under the same checks
    Model,
}

/// Strategies of sampling chains of tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ChainSampling {
    /// Take the tools that fill a tool's inputs before the tool itself
    Topology,
    /// Go from each tool to one that depends on it
    RandomWalk,
}

#[derive(Debug, Args)]
#[allow(clippy::struct_excessive_bools)] // Flags of a command line are what they are.
pub(crate) struct ForgeTasks {
    /// Specifications (`.toml`, `.json`) or folders of them; or one folder of Python files, or one such file
    #[arg(required = true, value_name = "ENV")]
    pub(crate) environments: Vec<PathBuf>,
    /// Number of tasks
    #[arg(long, default_value_t = 2_575, value_parser = RangedU64ValueParser::<usize>::new().range(1..=MAX_COUNT))]
    pub(crate) count: usize,
    /// Seed of all draws
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Folder to write to
    #[arg(long, short, value_name = "DIR")]
    pub(crate) output: PathBuf,
    /// Strategy of sampling chains of tools
    #[arg(long, value_enum, default_value_t = ChainSampling::Topology)]
    pub(crate) sampling: ChainSampling,
    /// Number of tools at which a sampled chain ends; with topology, the last tool can bring a few more
    #[arg(long, default_value_t = 10, value_parser = RangedU64ValueParser::<usize>::new().range(1..=64))]
    pub(crate) chain: usize,
    /// Maximum number of environments of a task
    #[arg(long, default_value_t = 2, value_parser = RangedU64ValueParser::<usize>::new().range(1..=3))]
    pub(crate) max_servers: usize,
    /// Maximum number of gold calls of a task
    #[arg(long, default_value_t = 12, value_parser = RangedU64ValueParser::<usize>::new().range(1..=64))]
    pub(crate) max_calls: usize,
    /// Maximum number of user turns of a task
    #[arg(long, default_value_t = 4, value_parser = RangedU64ValueParser::<usize>::new().range(1..=16))]
    pub(crate) max_turns: usize,
    /// Maximum number of gold calls of a user turn
    #[arg(long, default_value_t = 5, value_parser = RangedU64ValueParser::<usize>::new().range(1..=16))]
    pub(crate) max_turn_calls: usize,
    /// Maximum number of tools that a model is offered, unless the gold calls need more (default: all)
    #[arg(long, value_name = "COUNT")]
    pub(crate) max_tools_shown: Option<usize>,
    /// Maximum number of environments that a task offers and does not need; the number is drawn for each task
    #[arg(long, default_value_t = 0, value_name = "COUNT", value_parser = RangedU64ValueParser::<usize>::new().range(0..=8))]
    pub(crate) other_environments: usize,
    /// Probability that a tool is shown under an invented name, a different one in each task
    #[arg(long, default_value_t = 0.0, value_name = "SHARE", value_parser = share)]
    pub(crate) rename_tools: f64,
    /// Probability that a parameter is shown under an invented name, if its description says what it is
    #[arg(long, default_value_t = 0.0, value_name = "SHARE", value_parser = share)]
    pub(crate) rename_parameters: f64,
    /// Show the parameters of tools in another order in each task
    #[arg(long)]
    pub(crate) permute_parameters: bool,
    /// Let each turn after the first use a result of the turn before it; tasks have at least two turns
    #[arg(long)]
    pub(crate) linked_turns: bool,
    /// Scenarios in which tasks begin, with commas: simple, medium, complex, boundary (default: all)
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub(crate) scenarios: Vec<String>,
    /// Probability of each refinement: 0 makes plain requests, which name everything
    #[arg(long, default_value_t = 0.5, value_name = "SHARE", value_parser = share)]
    pub(crate) refine: f64,
    /// Probability of a request that only asks for information. With 0, every task changes something
    #[arg(long, default_value_t = 0.25, value_name = "SHARE", value_parser = share)]
    pub(crate) ask: f64,
    /// Probability of a refused call before a requested one in demonstrations, which then recover from it. It stays in
    /// the history and is not taught
    #[arg(long, default_value_t = 0.0, value_name = "SHARE", value_parser = share)]
    pub(crate) mistakes: f64,
    /// Leave out greetings and closing words
    #[arg(long)]
    pub(crate) terse: bool,
    /// Keep tasks of one call whose arguments are copied from the text
    #[arg(long)]
    pub(crate) keep_trivial: bool,
    /// Keep what the checks would reject, to measure what the checks are worth
    #[arg(long, conflicts_with_all = ["attempts", "min_passes"])]
    pub(crate) unchecked: bool,
    /// Number of attempts of the solver at each task
    #[arg(long, default_value_t = 4, value_parser = RangedU64ValueParser::<u32>::new().range(1..=64))]
    pub(crate) attempts: u32,
    /// Number of attempts that must reach the goal (default: all of them). With fewer, a task is kept even if its text
    /// leaves something to luck, and its difficulty is the share that failed
    #[arg(long, value_name = "COUNT", value_parser = RangedU64ValueParser::<u32>::new().range(1..=64))]
    pub(crate) min_passes: Option<u32>,
    /// Share of the environments that is held out for validation, and the same share again for the test split
    #[arg(long, default_value_t = 0.15, value_name = "SHARE", value_parser = share_of_two)]
    pub(crate) held_out_environments: f64,
    /// Share of the other environments' tools that is held out, out of those that change something
    #[arg(long, default_value_t = 0.1, value_name = "SHARE", value_parser = share)]
    pub(crate) held_out_tools: f64,
    /// Formats of rows to write; may be repeated
    #[arg(long, value_enum, default_values_t = [TaskFormat::Tasks, TaskFormat::Demonstrations])]
    pub(crate) format: Vec<TaskFormat>,
    #[command(flatten)]
    pub(crate) rows: RowOptions,
    /// Show the model tools without the names of their environments: find_books, not Library-find_books. Tools that would
    /// have the same name in one task keep both
    #[arg(long)]
    pub(crate) bare_names: bool,
    /// Do not replay the tasks in the sandbox
    #[arg(long)]
    pub(crate) no_replay: bool,
    /// Make everything anew from this stage on
    #[arg(long, value_enum, value_name = "STAGE", conflicts_with = "restart")]
    pub(crate) from: Option<TaskStage>,
    /// Make everything anew. Deletes only what `forge tasks` wrote here, and keeps a language model's answers
    #[arg(long)]
    pub(crate) restart: bool,
    /// Author of the words of tasks (default: a model if --url, --model or the table `[writer]` names one)
    #[arg(long, value_enum, value_name = "WHO")]
    pub(crate) words: Option<TaskWords>,
    #[command(flatten)]
    pub(crate) writer: ForgeModel,
    /// Maximum number of times that a text goes back to the model with the list of its faults
    #[arg(long, default_value_t = 2, value_parser = RangedU64ValueParser::<u32>::new().range(0..=100))]
    pub(crate) rounds: u32,
    /// Number of attempts of the model to solve a task from its new text alone. --min-passes of them must reach the
    /// goal (default: 1)
    #[arg(long, default_value_t = 0, value_name = "K", value_parser = RangedU64ValueParser::<u32>::new().range(0..=64))]
    pub(crate) model_attempts: u32,
    /// Maximum number of tokens of all questions and answers, answers on disk included
    #[arg(long, default_value_t = 10_000_000, value_name = "TOKENS")]
    pub(crate) max_tokens_total: u64,
    /// Make a small sample, say how long the whole would take and how large it would be, and write nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// The stages of `forge tasks`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum TaskStage {
    /// Sampled environments and chains of tools
    Chains,
    /// Executed chains
    Trajectories,
    /// The words of users
    Queries,
    /// Information flow, solver and filters
    Checks,
    /// The replay in the sandbox
    Replays,
    /// The words that a language model writes
    Texts,
}

/// Reads the name of a plugin in a configuration.
fn plugin_name(text: &str) -> Result<String, String> {
    if rlf_plugins::manifest::is_valid_name(text) {
        Ok(text.to_owned())
    } else {
        Err("no plugin can have this name; use 1 to 64 of `a-z A-Z 0-9 _ -`".to_owned())
    }
}

/// Parses a share that is taken twice, for validation and for the test split. Some must be left for training.
fn share_of_two(text: &str) -> Result<f64, String> {
    let share = share(text)?;
    if share < 0.5 {
        Ok(share)
    } else {
        Err("it is not below 0.5; as many again are for the test split".to_owned())
    }
}

/// Reads a share, from 0 to 1.
pub(super) fn share(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|_| "it is not a number".to_owned())?;
    if (0.0..=1.0).contains(&share) {
        Ok(share)
    } else {
        Err("it is not between 0 and 1".to_owned())
    }
}
