//! `rlf-host forge`.

mod graph;
mod model;
mod new;
mod rows;
mod tasks;

pub(crate) use graph::ForgeGraph;
pub(crate) use model::{ForgeAsker, ForgeModel};
pub(crate) use new::ForgeNew;
pub(crate) use rows::ForgeRows;
pub(crate) use tasks::{ChainSampling, ForgeTasks, RowOptions, TaskFormat, TaskStage, TaskWords};

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use clap::{Args, Subcommand, ValueEnum};
use rlf_forge::compose::Vocabulary;

use super::GroupOptions;

#[derive(Debug, Args)]
pub(crate) struct Forge {
    #[command(subcommand)]
    pub(crate) command: ForgeCommand,
    #[command(flatten)]
    pub(crate) options: GroupOptions,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ForgeCommand {
    /// Compose environments, let a model write them, verify or export them
    #[command(subcommand)]
    Env(ForgeEnv),
    /// Analyse the tool graph of specifications: which output of which tool can fill which input
    ///
    /// Prints how many edges there are, and for which reasons; the inputs that nothing can fill; and how many of the
    /// chains of tools that are sampled from the graph are valid.
    Graph(ForgeGraph),
    /// Make rows in FTRL's form: questions with their own Python tools, verified by execution
    ///
    /// Writes rows.jsonl, which `rlf-host data import` reads; tasks-SPLIT.jsonl with the gold calls; demonstrations.jsonl
    /// of the training split; rejected.jsonl with the reason of every rejection; rows.json with figures; and the artefact
    /// of every stage. The same seed and options write the same bytes, and a larger count continues a smaller one: the rows
    /// that are there stay, and only new ones are verified.
    Rows(Box<ForgeRows>),
    /// Make tasks in environments: chains of tools, executed, put into words, and checked
    ///
    /// Each candidate is sampled, executed and written as the words of a user. It is kept only if a solver that knows
    /// nothing but the text reaches the goal. At the end, each task is replayed in the sandbox. If a model is named, it
    /// writes the words of the user anew, and its text must pass the same checks. A run that was stopped goes on where
    /// it was. Rejected candidates are in OUTPUT/rejected.jsonl with their reasons.
    Tasks(Box<ForgeTasks>),
    /// Write the prompts that `tasks` uses into a folder, to read and change them
    ///
    /// Use them with `tasks --prompts DIR`. Existing files are kept.
    Prompts {
        /// Folder to write to
        #[arg(long, short, value_name = "DIR")]
        output: PathBuf,
    },
    /// Print statistics of a folder of tasks, and of rejected candidates
    Stats {
        /// Folder that `forge tasks` made
        folder: PathBuf,
        /// HTML page to write (default: none)
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
    },
    /// Write the tasks of a folder as rows for training
    Export {
        /// Folder that `forge tasks` made
        folder: PathBuf,
        /// Format of the rows; may be repeated
        #[arg(long, required = true)]
        format: Vec<TaskFormat>,
        /// Folder to write FORMAT/SPLIT.jsonl to (default: the folder of the tasks)
        #[arg(long, short, value_name = "DIR")]
        output: Option<PathBuf>,
        #[command(flatten)]
        rows: RowOptions,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ForgeVerify {
    /// Specifications (`.toml`, `.json`) or folders of them, Python files or folders of them, components, or names of
    /// environments
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// Number of specifications that are played at once (default: the number of processors)
    #[arg(long, short, value_parser = RangedU64ValueParser::<usize>::new().range(1..=1_000))]
    pub(crate) jobs: Option<usize>,
    /// File of verdicts. Specifications that have not changed since are not played again (default: none)
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,
    /// Number of random calls of each walk
    #[arg(long, default_value_t = 60, value_parser = RangedU64ValueParser::<usize>::new().range(1..=100_000))]
    pub(crate) calls: usize,
    /// Number of walks from each scenario
    #[arg(long, default_value_t = 3, value_parser = RangedU64ValueParser::<usize>::new().range(1..=1_000))]
    pub(crate) walks: usize,
    /// Number of seeds with which each scenario of a specification is generated
    #[arg(long, default_value_t = 3, value_parser = RangedU64ValueParser::<u64>::new().range(1..=10_000))]
    pub(crate) seeds: u64,
    /// Seed of the walks
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Only run the static checks
    #[arg(long)]
    pub(crate) no_play: bool,
}

/// The words of composed environments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ForgeWords {
    /// Nouns and names of real businesses
    Real,
    /// Nouns and names invented for each environment: a policy can only act by reading them
    Invented,
}

impl From<ForgeWords> for Vocabulary {
    fn from(words: ForgeWords) -> Self {
        match words {
            ForgeWords::Real => Self::Real,
            ForgeWords::Invented => Self::Invented,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum ForgeEnv {
    /// Compose environments from a library of archetypes, without a language model
    ///
    /// Writes OUTPUT/Name.toml for each environment, and what was made and rejected to OUTPUT/composed.jsonl. The same
    /// seed composes the same environments, and a larger count continues a smaller one: existing files are kept.
    Compose {
        /// Seed of all draws
        #[arg(long, default_value_t = 0)]
        seed: u64,
        /// Number of environments
        #[arg(long, default_value_t = 85, value_parser = RangedU64ValueParser::<usize>::new().range(1..=10_000))]
        count: usize,
        /// Words of the environments
        #[arg(long, value_enum, default_value_t = ForgeWords::Real)]
        words: ForgeWords,
        /// Folder to write to
        #[arg(long, short, value_name = "DIR")]
        output: PathBuf,
    },
    /// Let a language model write an environment, verify the result, and ask the model to revise it
    ///
    /// A sound environment is written to OUTPUT. Every answer, round and finding is kept in OUTPUT-work, and the same
    /// command goes on where it was stopped, without asking again. The exit code is 0 if the environment is sound.
    New(Box<ForgeNew>),
    /// Write the prompts that `new` uses into a folder, to read and change them
    ///
    /// Use them with `new --prompts DIR`. Existing files are kept.
    Prompts {
        /// Folder to write to
        #[arg(long, short, value_name = "DIR")]
        output: PathBuf,
    },
    /// Check specifications without running them, then verify environments by playing them
    ///
    /// For a specification, the static checks come first; if they find an error, it is not played. Then every scenario
    /// is loaded, and random walks call every operation with valid, boundary and erroneous arguments. Many environments
    /// can be verified at once: `verify FOLDER` verifies every specification in the folder. The exit code is 0 if nothing
    /// worse than a warning was found in any of them.
    Verify(ForgeVerify),
    /// Write a specification as a Python file in EnvFactory's form, whose tools do the same
    Export {
        /// The specification (`.toml` or `.json`)
        file: PathBuf,
        /// The Python file to write, or `-` for standard output. Its name has to be that of the environment
        #[arg(long, value_name = "OUT")]
        python: PathBuf,
    },
}
