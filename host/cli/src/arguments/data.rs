//! `rlf-host data`.

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use clap::{Args, Subcommand};

use super::PluginDirectory;

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
    /// to directly
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Format of all rows, one of `rlf-host data formats` (default: the format is recognised for each row)
    #[arg(long, value_name = "FORMAT")]
    pub(crate) from: Option<String>,
    /// Environment of the tasks (default: the format's own)
    #[arg(long, value_name = "NAME")]
    pub(crate) environment: Option<String>,
    /// Code that FTRL's functions can see. clean: their imports and the other functions; published: neither, as in
    /// FTRL's own executor
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
    /// Player of tau-bench's customer. solo: nobody, and the model is told what the customer knows; model: a language
    /// model
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
