//! The operator's configuration.

use std::ops::RangeInclusive;

use serde::Deserialize;

/// The number of words that a summary may have.
pub(crate) const WORDS: RangeInclusive<u32> = 10..=500;

/// The `[config]` table; the crate's documentation explains each key.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    pub(crate) model: String,
    pub(crate) instructions: String,
    pub(crate) max_words: u32,
    pub(crate) max_tokens: u32,
    pub(crate) max_chars: usize,
    pub(crate) max_parts: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            model: String::new(),
            instructions: String::new(),
            max_words: 100,
            max_tokens: 512,
            max_chars: 48_000,
            max_parts: 8,
        }
    }
}

impl Config {
    /// The configuration itself, if its numbers are within their limits.
    pub(crate) fn check(self) -> Result<Self, String> {
        if !WORDS.contains(&self.max_words) {
            return Err(format!(
                "configuration: max_words is {} to {}, not {}",
                WORDS.start(),
                WORDS.end(),
                self.max_words
            ));
        }
        if !(1_000..=10_000_000).contains(&self.max_chars) {
            return Err(format!(
                "configuration: max_chars is 1_000 to 10_000_000, not {}",
                self.max_chars
            ));
        }
        if !(1..=64).contains(&self.max_parts) {
            return Err(format!(
                "configuration: max_parts is 1 to 64, not {}",
                self.max_parts
            ));
        }
        Ok(self)
    }
}
