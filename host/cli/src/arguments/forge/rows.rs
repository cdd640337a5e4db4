//! The arguments of `rlf-host forge rows`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::RangedU64ValueParser;
use rlf_forge::rows::Stage;
use rlf_forge::rows::options::{Complexity, DEFAULT_ROWS, Scenario};

use super::model::ForgeAsker;

/// Maximum number of rows of one run.
const MAX_ROWS: u64 = 1_000_000;

#[derive(Debug, Args)]
pub(crate) struct ForgeRows {
    /// Folder to write to; an existing run in it is continued if its options are the same
    #[arg(long, short, value_name = "DIR", required_unless_present_any = ["dry_run", "write_prompts"])]
    pub(crate) output: Option<PathBuf>,
    /// Number of verified rows
    #[arg(long, default_value_t = DEFAULT_ROWS, value_parser = RangedU64ValueParser::<usize>::new().range(1..=MAX_ROWS))]
    pub(crate) count: usize,
    /// Seed of all draws
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Take facts from this file of JSON lines (default: facts are generated from the seed)
    #[arg(long, value_name = "FILE", conflicts_with = "questions")]
    pub(crate) facts: Option<PathBuf>,
    /// Take questions with their answers from this file of JSON lines; all of them are used. A language model finds the
    /// sub-questions of those that have none
    #[arg(long, value_name = "FILE")]
    pub(crate) questions: Option<PathBuf>,
    /// Complexity of the tools: none (one parameter, no distractors), low, or published (the sizes of FTRL's data)
    #[arg(long, default_value = "published")]
    pub(crate) complexity: Complexity,
    /// Scenario: single_hop, multi_hop, parallel_single_hop or parallel_multi_hop; may be repeated (default: all)
    #[arg(long, value_name = "NAME")]
    pub(crate) scenario: Vec<Scenario>,
    /// Maximum number of gold calls of a row
    #[arg(long, value_name = "CALLS", default_value_t = 11, value_parser = RangedU64ValueParser::<usize>::new().range(1..=11))]
    pub(crate) max_calls: usize,
    /// Make one stage again, from the artefact of the stage before: facts, decompose, document, integrate, scale, deploy or
    /// verify
    #[arg(long, value_name = "STAGE")]
    pub(crate) stage: Option<Stage>,
    /// Replace the rows of the folder if they were made with other options
    #[arg(long)]
    pub(crate) restart: bool,
    /// Print what would be made, from a sample that is not verified, and write nothing
    #[arg(long, conflicts_with = "stage")]
    pub(crate) dry_run: bool,
    /// Only write the prompts for the language model into this folder, to read and change them. Existing files are kept
    #[arg(long, value_name = "DIR", conflicts_with_all = ["output", "questions", "facts", "stage", "dry_run"])]
    pub(crate) write_prompts: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) model: ForgeAsker,
}
