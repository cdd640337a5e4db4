//! Limits of tokens and time.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rlf_endpoint::{Price, Spent};
use serde::Serialize;

use super::error::AskError;

/// Limits of all questions together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Limit on the tokens of all questions and answers. Answers read from disk count too. Default 300,000.
    pub tokens: u64,
    /// Limit on the time since the first question to the model. Default one hour.
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            tokens: 300_000,
            time: Duration::from_hours(1),
        }
    }
}

/// A number of questions with their tokens, estimated.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Total {
    /// Number of questions.
    pub questions: u64,
    /// Tokens of questions.
    pub prompt_tokens: u64,
    /// Tokens of answers.
    pub answer_tokens: u64,
    /// The price of these tokens, if prices are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

impl Total {
    /// Tokens of questions and answers.
    pub fn tokens(&self) -> u64 {
        self.prompt_tokens + self.answer_tokens
    }

    /// The total with its price.
    #[must_use]
    pub fn priced(self, price: Option<Price>) -> Self {
        let cost = price.map(|price| price.cost(self.prompt_tokens, self.answer_tokens));
        Self { cost, ..self }
    }

    /// Adds a question.
    pub(crate) fn add(&mut self, prompt_tokens: u64, answer_tokens: u64) {
        self.questions += 1;
        self.prompt_tokens += prompt_tokens;
        self.answer_tokens += answer_tokens;
    }
}

/// Counts what is spent, and says when to stop.
#[derive(Debug)]
pub struct Account {
    limits: Limits,
    /// The time of the first question to the model.
    begun: OnceLock<Instant>,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    spent: Spent,
    /// Tokens that are reserved for questions in flight.
    reserved: u64,
}

/// The tokens that are reserved for a question in flight. They are free again when it is dropped.
#[derive(Debug)]
pub(super) struct Reserved<'a> {
    account: &'a Account,
    tokens: u64,
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        self.account.lock().reserved -= self.tokens;
    }
}

impl Account {
    /// An account whose time begins with the first question.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            begun: OnceLock::new(),
            kept: Mutex::default(),
        }
    }

    /// The tokens and time spent so far.
    pub fn spent(&self) -> Spent {
        self.lock().spent
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The time that is left: before the first question, the whole limit.
    pub fn time_left(&self) -> Duration {
        let spent = self.begun.get().map(Instant::elapsed);
        self.limits.time.saturating_sub(spent.unwrap_or_default())
    }

    /// Adds what answers cost.
    pub(crate) fn add(&self, more: &Spent) {
        self.lock().spent.add(more);
    }

    /// Reserves the tokens of the next question. Refuses a question that could go beyond a limit.
    pub(super) fn admit(&self, stage: &str, next: u64) -> Result<Reserved<'_>, AskError> {
        if self.time_left().is_zero() {
            return Err(self.out_of_time(stage));
        }
        let mut kept = self.lock();
        let spent = kept.spent.tokens() + kept.reserved;
        if spent.saturating_add(next) > self.limits.tokens {
            return Err(AskError::OutOfTokens {
                stage: stage.to_owned(),
                limit: self.limits.tokens,
                spent,
                next,
            });
        }
        kept.reserved += next;
        self.begun.get_or_init(Instant::now);
        Ok(Reserved {
            account: self,
            tokens: next,
        })
    }

    /// The error that says that the time is up.
    pub(crate) fn out_of_time(&self, stage: &str) -> AskError {
        AskError::OutOfTime {
            stage: stage.to_owned(),
            limit: self.limits.time,
        }
    }
}
