//! Budgets of questions, tokens and time, and what is spent of them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::spending::Spent;

/// The most that may be spent on answers. What is absent is not limited.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Budget {
    /// Number of questions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub questions: Option<u64>,
    /// Tokens of questions and answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// Sum of the times until answers arrived, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
}

/// A question would go beyond a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BudgetSpent {
    /// All questions were asked.
    #[error("{most} questions are allowed, and all of them were asked")]
    Questions {
        /// The budget.
        most: u64,
    },
    /// The next question may take more tokens than are left.
    #[error(
        "{most} tokens are allowed: {spent} are spent or on their way, and the next question may take {next}"
    )]
    Tokens {
        /// The budget.
        most: u64,
        /// Tokens spent, and tokens reserved for questions in flight.
        spent: u64,
        /// Tokens that the question and its longest answer may take.
        next: u64,
    },
    /// The time is up.
    #[error("{most} ms are allowed, and they have passed")]
    Time {
        /// The budget.
        most: u64,
    },
}

/// The account of one place: a call, a trajectory, or a run. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Ledger(Arc<Mutex<Entries>>);

#[derive(Debug, Default)]
struct Entries {
    spent: Spent,
    /// Questions in flight, and the tokens that are reserved for them.
    questions: u64,
    tokens: u64,
}

impl Ledger {
    /// The tokens, time and number of questions spent so far.
    pub fn spent(&self) -> Spent {
        self.lock().spent
    }

    /// Reserves a question that may take so many tokens. Refuses one that could go beyond the budget.
    pub fn reserve(&self, budget: &Budget, tokens: u64) -> Result<Reserved, BudgetSpent> {
        let mut entries = self.lock();
        let asked = entries.spent.answers + entries.questions;
        if let Some(most) = budget.questions.filter(|most| asked >= *most) {
            return Err(BudgetSpent::Questions { most });
        }
        let spent = entries.spent.tokens().saturating_add(entries.tokens);
        if let Some(most) = budget.tokens
            && spent.saturating_add(tokens) > most
        {
            let next = tokens;
            return Err(BudgetSpent::Tokens { most, spent, next });
        }
        let passed = entries.spent.seconds * 1e3;
        if let Some(most) = budget.time_ms.filter(|most| passed >= *most as f64) {
            return Err(BudgetSpent::Time { most });
        }
        entries.questions += 1;
        entries.tokens += tokens;
        Ok(Reserved {
            ledger: self.clone(),
            tokens,
            sent: None,
        })
    }

    /// Counts what an answer took that nobody reserved.
    pub fn add(&self, spent: &Spent) {
        self.lock().spent.add(spent);
    }

    fn lock(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A question in flight, in one ledger. What was reserved is free again when it is dropped.
#[derive(Debug)]
#[must_use]
pub struct Reserved {
    ledger: Ledger,
    tokens: u64,
    /// The instant at which the question was sent, and its tokens.
    sent: Option<(Instant, u64)>,
}

impl Reserved {
    /// Says that the question goes out. From now on it counts, with its tokens and its time, even if there is no answer.
    pub fn sent(&mut self, prompt_tokens: u64) {
        self.sent = Some((Instant::now(), prompt_tokens));
    }

    /// Counts what the answer took.
    pub fn settle(mut self, spent: &Spent) {
        self.sent = None;
        self.ledger.add(spent);
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let mut entries = self.ledger.lock();
        entries.questions -= 1;
        entries.tokens -= self.tokens;
        if let Some((since, prompt_tokens)) = self.sent {
            entries.spent.add(&Spent {
                answers: 1,
                prompt_tokens,
                answer_tokens: 0,
                seconds: since.elapsed().as_secs_f64(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(prompt_tokens: u64, answer_tokens: u64, seconds: f64) -> Spent {
        Spent {
            answers: 1,
            prompt_tokens,
            answer_tokens,
            seconds,
        }
    }

    #[test]
    fn a_budget_of_tokens_counts_what_is_on_its_way() {
        let budget = Budget {
            tokens: Some(100),
            ..Budget::default()
        };
        let ledger = Ledger::default();
        let first = ledger.reserve(&budget, 60).unwrap();
        let refused = ledger.reserve(&budget, 60).unwrap_err();
        let (most, spent, next) = (100, 60, 60);
        assert_eq!(refused, BudgetSpent::Tokens { most, spent, next });
        first.settle(&answer(10, 5, 0.1));
        assert_eq!(ledger.spent().tokens(), 15);
        drop(ledger.reserve(&budget, 85).unwrap());
        assert!(ledger.reserve(&budget, 86).is_err());
    }

    #[test]
    fn a_question_that_nobody_waited_for_counts() {
        let budget = Budget {
            questions: Some(2),
            ..Budget::default()
        };
        let ledger = Ledger::default();
        let mut given_up = ledger.reserve(&budget, 9).unwrap();
        given_up.sent(7);
        drop(given_up);
        assert_eq!((ledger.spent().answers, ledger.spent().tokens()), (1, 7));
        drop(ledger.reserve(&budget, 9).unwrap());
        let last = ledger.reserve(&budget, 9).unwrap();
        let refused = ledger.reserve(&budget, 9).unwrap_err();
        assert_eq!(refused, BudgetSpent::Questions { most: 2 });
        last.settle(&answer(1, 1, 0.0));
    }

    #[test]
    fn time_is_the_sum_of_the_answers() {
        let budget = Budget {
            time_ms: Some(1_000),
            ..Budget::default()
        };
        let ledger = Ledger::default();
        ledger
            .reserve(&budget, 1)
            .unwrap()
            .settle(&answer(1, 1, 0.7));
        ledger
            .reserve(&budget, 1)
            .unwrap()
            .settle(&answer(1, 1, 0.7));
        assert!(matches!(
            ledger.reserve(&budget, 1),
            Err(BudgetSpent::Time { .. })
        ));
    }
}
