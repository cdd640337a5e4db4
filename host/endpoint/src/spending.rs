//! The cost of questions: tokens, time and money.

use serde::{Deserialize, Serialize};

/// Number of bytes that an estimate counts as one token. Most tokenizers need fewer tokens for English and code.
const BYTES_OF_A_TOKEN: usize = 3;

/// An estimate of the tokens of a text: one for every three bytes, which is more than most tokenizers need.
pub fn tokens_of(text: &str) -> u64 {
    text.len().div_ceil(BYTES_OF_A_TOKEN) as u64
}

/// Tokens and time spent on answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// Number of answers.
    pub answers: u64,
    /// Tokens of questions.
    pub prompt_tokens: u64,
    /// Tokens of answers.
    pub answer_tokens: u64,
    /// Seconds until the answers arrived.
    pub seconds: f64,
}

impl Spent {
    /// Tokens of questions and answers.
    pub fn tokens(&self) -> u64 {
        self.prompt_tokens.saturating_add(self.answer_tokens)
    }

    /// Adds what other answers took.
    pub fn add(&mut self, more: &Self) {
        self.answers += more.answers;
        self.prompt_tokens = self.prompt_tokens.saturating_add(more.prompt_tokens);
        self.answer_tokens = self.answer_tokens.saturating_add(more.answer_tokens);
        self.seconds += more.seconds;
    }

    /// The part that was spent since an earlier moment.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            answers: self.answers - earlier.answers,
            prompt_tokens: self.prompt_tokens - earlier.prompt_tokens,
            answer_tokens: self.answer_tokens - earlier.answer_tokens,
            seconds: self.seconds - earlier.seconds,
        }
    }
}

/// Prices of a million tokens, in any currency.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Price {
    /// The price of questions.
    pub prompt: f64,
    /// The price of answers.
    pub completion: f64,
}

impl Price {
    /// The cost of these numbers of tokens of questions and answers.
    pub fn cost(&self, prompt_tokens: u64, answer_tokens: u64) -> f64 {
        (prompt_tokens as f64 * self.prompt + answer_tokens as f64 * self.completion) / 1e6
    }
}
