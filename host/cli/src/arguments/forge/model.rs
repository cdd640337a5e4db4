//! The options of commands that ask a language model.

use std::path::PathBuf;

use clap::Args;
use clap::builder::RangedU64ValueParser;

#[derive(Debug, Args)]
pub(crate) struct ForgeModel {
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
    /// Folder of prompts that replace the shipped ones. `forge prompts`, `forge env prompts` and `forge rows
    /// --write-prompts` write them
    #[arg(long, value_name = "DIR")]
    pub(crate) prompts: Option<PathBuf>,
    /// Time limit of the whole run, in seconds
    #[arg(long, default_value_t = 3_600, value_name = "SECONDS", value_parser = RangedU64ValueParser::<u64>::new().range(1..=2_592_000))]
    pub(crate) max_time: u64,
    /// Price of a million tokens of questions, to print costs
    #[arg(long, value_name = "PRICE", requires = "price_answer", value_parser = price)]
    pub(crate) price_prompt: Option<f64>,
    /// Price of a million tokens of answers, to print costs
    #[arg(long, value_name = "PRICE", requires = "price_prompt", value_parser = price)]
    pub(crate) price_answer: Option<f64>,
}

/// The options of commands that ask a model again until its answer can be used.
#[derive(Debug, Args)]
pub(crate) struct ForgeAsker {
    #[command(flatten)]
    pub(crate) endpoint: ForgeModel,
    /// Maximum number of attempts for one answer, answers on disk included
    #[arg(long, default_value_t = 3, value_parser = RangedU64ValueParser::<u32>::new().range(1..=100))]
    pub(crate) attempts: u32,
    /// Maximum number of tokens of all questions and answers, answers on disk included
    #[arg(long, default_value_t = 300_000, value_name = "TOKENS")]
    pub(crate) max_tokens_total: u64,
}

/// Reads a price.
fn price(text: &str) -> Result<f64, String> {
    let price: f64 = text.parse().map_err(|_| "it is not a number".to_owned())?;
    if price.is_finite() && price >= 0.0 {
        Ok(price)
    } else {
        Err("it is negative or not finite".to_owned())
    }
}
