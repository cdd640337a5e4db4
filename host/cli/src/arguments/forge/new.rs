//! The options of `rlf-host forge env new`.

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueEnum};
use rlf_forge::writer::Form;

use super::model::ForgeAsker;

/// The form that a model writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ForgeForm {
    /// A specification: entities, operations and rules as data
    Specification,
    /// A Python file in EnvFactory's form
    Python,
}

impl From<ForgeForm> for Form {
    fn from(form: ForgeForm) -> Self {
        match form {
            ForgeForm::Specification => Self::Specification,
            ForgeForm::Python => Self::Python,
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct ForgeNew {
    /// The environment in a line, such as "a library that lends tools"
    pub(crate) description: String,
    /// Folder of environments to write to
    #[arg(long, short, value_name = "DIR", default_value = "environments")]
    pub(crate) output: PathBuf,
    /// Folder of the work: answers, rounds and findings (default: OUTPUT-work, beside OUTPUT)
    #[arg(long, value_name = "DIR")]
    pub(crate) work: Option<PathBuf>,
    /// Form of the environment
    #[arg(long, value_enum, default_value_t = ForgeForm::Specification)]
    pub(crate) form: ForgeForm,
    /// Maximum number of revisions
    #[arg(long, default_value_t = 3, value_parser = RangedU64ValueParser::<u32>::new().range(0..=100))]
    pub(crate) rounds: u32,
    /// Seed of the answers and of the verification; another seed gives other answers
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Print the estimate and the first question, and ask nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    #[command(flatten)]
    pub(crate) model: ForgeAsker,
}
