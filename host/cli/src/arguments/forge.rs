//! `rlf-host forge`.

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use clap::{Args, Subcommand};

use super::{MAX_COUNT, PluginDirectoryGlobal};

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
    /// Environments: compose them, verify them before anyone trains on them, or export them
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
