//! The operator's configuration.

use serde::Deserialize;

/// The `[config]` table; the crate's documentation explains each key.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Config {
    pub(crate) model: String,
    pub(crate) instructions: String,
    pub(crate) max_steps: u32,
    pub(crate) max_calls_per_step: usize,
    pub(crate) max_result_chars: usize,
    pub(crate) max_tokens: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            model: String::new(),
            instructions: String::new(),
            max_steps: 6,
            max_calls_per_step: 4,
            max_result_chars: 4_000,
            max_tokens: 1_024,
        }
    }
}

impl Config {
    /// The configuration itself, if its numbers are within their limits.
    pub(crate) fn check(self) -> Result<Self, String> {
        if !(1..=50).contains(&self.max_steps) {
            return Err(format!(
                "configuration: max_steps is 1 to 50, not {}",
                self.max_steps
            ));
        }
        if !(1..=16).contains(&self.max_calls_per_step) {
            return Err(format!(
                "configuration: max_calls_per_step is 1 to 16, not {}",
                self.max_calls_per_step
            ));
        }
        if self.max_result_chars < 100 {
            return Err(format!(
                "configuration: max_result_chars is at least 100, not {}",
                self.max_result_chars
            ));
        }
        Ok(self)
    }
}
