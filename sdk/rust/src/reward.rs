//! Rewards: a function from a task and a trajectory to named terms.
//!
//! ```
//! use rlf_plugin::{Task, Terms, Trajectory, plugin, reward};
//!
//! #[reward]
//! fn brevity(_task: &Task, trajectory: &Trajectory) -> Terms {
//!     let tokens: u32 = trajectory.turns().map(|turn| turn.tokens).sum();
//!     Terms::new().term("brevity", 1.0 / (1.0 + f64::from(tokens)))
//! }
//!
//! plugin!(reward: brevity);
//! # fn main() {}
//! ```
//!
//! A reward knows nothing of weights and gates: it measures, and the operator's configuration weighs its terms. A
//! term should be between 0 and 1 if that makes sense. A reward may also take `&Grading` (split, step, seed) and the
//! state of an `init` function, and return a `Result`: an `Err` excludes the trajectory from its group and does not
//! score it 0. With `&[Trajectory]` instead of `&Trajectory` it grades the whole group at once and returns a `Vec`,
//! in order.
//! Scores read structured turns, never raw text. The host extracted [`Trajectory::answer`](crate::Trajectory) from
//! the model's own words, and the output of tools is in [`Event::Outcome`]. So text that a tool returned cannot earn
//! a reward for the model.

use std::fmt::Display;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{
    CallResult, Error, Event, Grading, Metric, ModelTurn, ReferenceError, Score, Task, Term,
    Trajectory,
};

/// A reward that `#[reward]` makes from a function.
pub trait Reward {
    /// One result per trajectory of the group, in order.
    fn grade(
        task: &Task,
        group: &[Trajectory],
        grading: &Grading,
    ) -> Result<Vec<Result<Score, Error>>, Error>;
}

/// A reward's scores for one trajectory.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Terms {
    named: Vec<(String, f64)>,
    per_event: Vec<(u32, String, f64)>,
    metrics: Vec<(String, f64)>,
}

impl Terms {
    /// A score without terms.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a term, which must be finite. Configurations refer to it as `plugin.name`.
    #[must_use]
    pub fn term(mut self, name: impl Into<String>, value: f64) -> Self {
        self.named.push((name.into(), value));
        self
    }

    /// Credits one event, by its index in [`Trajectory::events`](crate::Trajectory).
    #[must_use]
    pub fn at_event(mut self, event: u32, name: impl Into<String>, value: f64) -> Self {
        self.per_event.push((event, name.into(), value));
        self
    }

    /// Adds a number for the trainer's logs that is not part of the reward.
    #[must_use]
    pub fn metric(mut self, name: impl Into<String>, value: f64) -> Self {
        self.metrics.push((name.into(), value));
        self
    }

    /// The value of a term, for tests.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.named
            .iter()
            .find(|(candidate, _)| candidate == name)
            .map(|(_, value)| *value)
    }
}

/// A value that a reward function may return for one trajectory.
pub trait IntoScore {
    /// The score, or the reason why the trajectory is excluded.
    fn into_score(self) -> Result<Score, Error>;
}

impl IntoScore for Terms {
    fn into_score(self) -> Result<Score, Error> {
        let term = |name, value| Term { name, value };
        Ok(Score {
            terms: self
                .named
                .into_iter()
                .map(|(name, value)| term(name, value))
                .collect(),
            per_event: self
                .per_event
                .into_iter()
                .map(|(event, name, value)| (event, term(name, value)))
                .collect(),
            metrics: self
                .metrics
                .into_iter()
                .map(|(name, value)| Metric { name, value })
                .collect(),
        })
    }
}

impl<E: Display> IntoScore for Result<Terms, E> {
    fn into_score(self) -> Result<Score, Error> {
        self.map_err(crate::internal)?.into_score()
    }
}

impl Task {
    /// The reference as JSON.
    pub fn reference_value(&self) -> Result<Value, ReferenceError> {
        serde_json::from_str(&self.reference)
            .map_err(|error| ReferenceError::NotJson(error.to_string()))
    }

    /// The answers that the reference accepts; see [`accepted_answers`](crate::accepted_answers).
    pub fn accepted_answers(&self) -> Result<Vec<String>, ReferenceError> {
        crate::accepted_answers(&self.reference_value()?)
    }

    /// A named value of the task's data set, if it exists and is JSON.
    pub fn extra_value(&self, name: &str) -> Option<Value> {
        let (_, json) = self.extra.iter().find(|(candidate, _)| candidate == name)?;
        serde_json::from_str(json).ok()
    }
}

impl Trajectory {
    /// The model's turns, in order.
    pub fn turns(&self) -> impl Iterator<Item = &ModelTurn> {
        self.events.iter().filter_map(|event| {
            if let Event::Turn(turn) = event {
                Some(turn)
            } else {
                None
            }
        })
    }

    /// The reason why an environment gave no final state or no verdict.
    pub fn unjudged(&self) -> Option<String> {
        self.extra_value("unjudged")
    }

    /// The environment's step rewards, in order: the index of an event, and the reward of the call that ended there,
    /// or of the text that was said there.
    pub fn step_rewards(&self) -> Vec<(u32, f64)> {
        let said: Option<Vec<(u32, f64)>> = self.extra_value("step-rewards-of-words");
        let called = (0_u32..).zip(&self.events).filter_map(|(index, event)| {
            let Event::Outcome(outcome) = event else {
                return None;
            };
            Some((index, outcome.step_reward?))
        });
        let mut rewards: Vec<(u32, f64)> = called.chain(said.unwrap_or_default()).collect();
        rewards.sort_by_key(|(index, _)| *index);
        rewards
    }

    /// A value, by name, that the host adds to the contract's records.
    fn extra_value<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        let (_, json) = self.extra.iter().find(|(candidate, _)| candidate == name)?;
        serde_json::from_str(json).ok()
    }

    /// The outcomes of the calls, in order.
    pub fn outcomes(&self) -> impl Iterator<Item = &CallResult> {
        self.events.iter().filter_map(|event| {
            if let Event::Outcome(outcome) = event {
                Some(outcome)
            } else {
                None
            }
        })
    }
}
