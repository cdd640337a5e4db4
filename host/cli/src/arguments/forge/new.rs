//! The options of `rlf-host forge env new`.

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use clap::{Args, ValueEnum};
use rlf_forge::writer::Form;

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
    /// Number of revisions, at most
    #[arg(long, default_value_t = 3, value_parser = RangedU64ValueParser::<u32>::new().range(0..=100))]
    pub(crate) rounds: u32,
    /// Number of times that the model is asked for one answer, if it gives none that can be used
    #[arg(long, default_value_t = 3, value_parser = RangedU64ValueParser::<u32>::new().range(1..=100))]
    pub(crate) attempts: u32,
    /// Base URL of the endpoint, such as http://127.0.0.1:8000/v1 (default: `writer.url` of the configuration)
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// The model, by the endpoint's name for it (default: `writer.model`)
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Environment variable with the endpoint's key (default: `writer.key_env`, or no key)
    #[arg(long, value_name = "NAME")]
    pub(crate) key_env: Option<String>,
    /// Sampling temperature (default: `writer.temperature`, or 1)
    #[arg(long, value_name = "T")]
    pub(crate) temperature: Option<f64>,
    /// Folder of prompts, as `prompts` writes them; those that it lacks are the shipped ones
    #[arg(long, value_name = "DIR")]
    pub(crate) prompts: Option<PathBuf>,
    /// Tokens of all questions and answers, at most; those of answers on disk count too
    #[arg(long, default_value_t = 300_000, value_name = "TOKENS")]
    pub(crate) max_tokens_total: u64,
    /// Seconds, at most
    #[arg(long, default_value_t = 3_600, value_name = "SECONDS", value_parser = RangedU64ValueParser::<u64>::new().range(1..=2_592_000))]
    pub(crate) max_time: u64,
    /// Price of a million tokens of questions, to print costs
    #[arg(long, value_name = "PRICE", requires = "price_answer")]
    pub(crate) price_prompt: Option<f64>,
    /// Price of a million tokens of answers, to print costs
    #[arg(long, value_name = "PRICE", requires = "price_prompt")]
    pub(crate) price_answer: Option<f64>,
    /// Seed of the answers and of the verification; another one gives other answers
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Print the estimate and the first question, and ask nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}
