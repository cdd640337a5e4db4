//! The options of `rlf-host forge graph`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::RangedU64ValueParser;

use crate::arguments::MAX_COUNT;

#[derive(Debug, Args)]
pub(crate) struct ForgeGraph {
    /// Specifications (`.toml`, `.json`) or folders of them
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<PathBuf>,
    /// HTML page to write, to read and search in a browser (default: none)
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// Number of chains to sample with each strategy
    #[arg(long, default_value_t = 1_000, value_parser = RangedU64ValueParser::<u64>::new().range(0..=MAX_COUNT))]
    pub(crate) chains: u64,
    /// Seed of the chains
    #[arg(long, default_value_t = 0)]
    pub(crate) seed: u64,
    /// Minimum similarity of an edge (default: 0.85, for words and for embeddings)
    #[arg(long, value_name = "SCORE", value_parser = super::tasks::share)]
    pub(crate) threshold: Option<f64>,
    /// Compare names and descriptions by an embedding endpoint (default: by the words that they share)
    #[arg(long)]
    pub(crate) embeddings: bool,
    /// Base URL of the embedding endpoint (default: `embeddings.url` of the configuration)
    #[arg(long, value_name = "URL", requires = "embeddings")]
    pub(crate) url: Option<String>,
    /// The embedding model, by the endpoint's name for it (default: `embeddings.model`)
    #[arg(long, value_name = "NAME", requires = "embeddings")]
    pub(crate) model: Option<String>,
    /// Environment variable with the endpoint's key (default: `embeddings.key_env`, or no key)
    #[arg(long, value_name = "NAME", requires = "embeddings")]
    pub(crate) key_env: Option<String>,
    /// Folder that keeps embeddings (default: `rlf-host/embeddings` in the user's cache)
    #[arg(long, value_name = "DIR", requires = "embeddings")]
    pub(crate) cache: Option<PathBuf>,
    /// Maximum number of tokens of all texts that are not in the cache
    #[arg(
        long,
        default_value_t = 1_000_000,
        value_name = "TOKENS",
        requires = "embeddings"
    )]
    pub(crate) max_tokens_total: u64,
    /// Print how much would be embedded, and ask nothing
    #[arg(long, requires = "embeddings")]
    pub(crate) dry_run: bool,
}
