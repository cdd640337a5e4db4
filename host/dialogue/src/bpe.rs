//! Trains a byte-level BPE tokenizer for a small model.
//!
//! Words are cut by Qwen's pattern, in which every digit is a word of its own, so numbers are spelt digit by digit. The
//! result depends only on the corpus and the options.

use aho_corasick::{AhoCorasick, MatchKind};
use serde::{Deserialize, Serialize};
use tokenizers::models::TrainerWrapper;
use tokenizers::models::bpe::{BPE, BpeTrainerBuilder};
use tokenizers::normalizers::unicode::NFC;
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{AddedToken, SplitDelimiterBehavior};

use crate::template::small;
use crate::tokenizer::{Tokenizer, TokenizerError, library_alphabet};

/// The pattern by which Qwen2 and Qwen3 cut text into words before BPE (from their `tokenizer.json`).
pub const QWEN_PATTERN: &str = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// Options of the training.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BpeOptions {
    /// Wanted size, at least the special tokens and the 256 bytes together. A small corpus may give fewer. Default 512.
    pub vocab_size: usize,
    /// Added tokens, which get the first ids in this order. Default: those of the small template.
    pub special_tokens: Vec<String>,
    /// A pair seen less often is not merged. Default 2.
    pub min_frequency: u64,
    /// Maximum length of a merged token, in bytes. Shorter ones make copying unseen names easier to learn. Default:
    /// unlimited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_token_bytes: Option<usize>,
}

impl Default for BpeOptions {
    fn default() -> Self {
        Self {
            vocab_size: 512,
            special_tokens: small::SPECIAL_TOKENS.map(str::to_owned).to_vec(),
            min_frequency: 2,
            max_token_bytes: None,
        }
    }
}

/// Maximum size of the vocabulary. No model has a larger one, and training fits into memory.
const MAX_VOCABULARY: usize = 1_000_000;

impl BpeOptions {
    /// Refuses options with which no tokenizer can be trained.
    pub fn validate(&self) -> Result<(), TokenizerError> {
        let wrong = |key, problem| Err(TokenizerError::Option { key, problem });
        let (size, specials) = (self.vocab_size, self.special_tokens.len());
        let least = 256 + specials;
        if size < least {
            let problem = format!(
                "a vocabulary of {size} is too small: 256 bytes and {specials} special tokens need {least}"
            );
            return wrong("vocab_size", problem);
        }
        if size > MAX_VOCABULARY {
            let problem = format!(
                "a vocabulary of {size} is larger than any model's; write at most {MAX_VOCABULARY}"
            );
            return wrong("vocab_size", problem);
        }
        if self.special_tokens.iter().any(String::is_empty) {
            return wrong("special_tokens", "a special token is empty".to_owned());
        }
        Ok(())
    }
}

impl Tokenizer {
    /// Trains on `corpus`. Special tokens in it separate text and are never merged into words.
    pub fn train_bpe(
        corpus: impl Iterator<Item = String> + Send,
        options: &BpeOptions,
    ) -> Result<Self, TokenizerError> {
        let fail = |error: tokenizers::Error| TokenizerError::Train(error.to_string());
        options.validate()?;
        let specials: Vec<AddedToken> = options
            .special_tokens
            .iter()
            .map(|token| AddedToken::from(token, true))
            .collect();

        let pattern = SplitPattern::Regex(QWEN_PATTERN.to_owned());
        let words = Split::new(pattern, SplitDelimiterBehavior::Isolated, false).map_err(fail)?;
        let mut tokenizer = tokenizers::Tokenizer::new(BPE::default());
        tokenizer.with_normalizer(Some(NFC)).map_err(fail)?;
        tokenizer.with_pre_tokenizer(Some(Sequence::new(vec![
            PreTokenizerWrapper::Split(words),
            PreTokenizerWrapper::ByteLevel(ByteLevel::new(false, false, false)),
        ])));
        tokenizer.with_decoder(Some(ByteLevel::new(false, false, false)));

        let separators = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(&options.special_tokens)
            .map_err(|error| TokenizerError::Train(error.to_string()))?;
        let pieces = corpus.flat_map(|text| between(&text, &separators));

        let mut trainer: TrainerWrapper = BpeTrainerBuilder::new()
            .show_progress(false)
            .vocab_size(options.vocab_size)
            .min_frequency(options.min_frequency)
            .max_token_length(options.max_token_bytes)
            .initial_alphabet(library_alphabet())
            .special_tokens(specials.clone())
            .build()
            .into();
        tokenizer.train(&mut trainer, pieces).map_err(fail)?;
        tokenizer.add_special_tokens(specials).map_err(fail)?;
        Self::wrap(tokenizer, "just trained")
    }
}

fn between(text: &str, separators: &AhoCorasick) -> Vec<String> {
    let mut pieces = Vec::new();
    let mut done = 0;
    for found in separators.find_iter(text) {
        pieces.push(text[done..found.start()].to_owned());
        done = found.end();
    }
    pieces.push(text[done..].to_owned());
    pieces
}
