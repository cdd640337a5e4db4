//! The operator's configuration.

use serde::Deserialize;

/// The `[config]` table; the crate's documentation explains each key.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    pub(crate) model: String,
    pub(crate) instructions: String,
    pub(crate) verbatim: bool,
    pub(crate) max_tokens: u32,
    pub(crate) max_chars: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            model: String::new(),
            instructions: String::new(),
            verbatim: true,
            max_tokens: 1_024,
            max_chars: 48_000,
        }
    }
}

impl Config {
    /// The configuration itself, if its numbers are within their limits.
    pub(crate) fn check(self) -> Result<Self, String> {
        if self.max_chars < 1_000 {
            return Err(format!(
                "configuration: max_chars is at least 1_000, not {}",
                self.max_chars
            ));
        }
        Ok(self)
    }
}
