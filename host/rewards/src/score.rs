//! What grading gives for one trajectory: a score, or why there is none.

use serde::{Deserialize, Serialize};

/// What a trajectory earned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// The sum of weight x term over all entries whose gate holds.
    pub reward: f64,
    /// Whether the success condition holds.
    pub success: bool,
    /// Every term of every plugin in the stack as (`plugin.term`, value), weighed or not.
    pub terms: Vec<(String, f64)>,
    /// Credit for single events.
    pub per_event: Vec<EventCredit>,
    /// Numbers for logs, as (`plugin.metric`, value).
    pub metrics: Vec<(String, f64)>,
}

/// Credit that a reward gives to one event of a trajectory.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventCredit {
    /// Index into the trajectory's events.
    pub event: usize,
    /// `plugin.term`.
    pub term: String,
    /// Finite.
    pub value: f64,
}

/// A trajectory without a score: it leaves its group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{reason}")]
pub struct Excluded {
    /// Why, in words.
    pub reason: String,
    /// What kind of reason.
    pub cause: ExclusionCause,
}

/// What kind of reason a trajectory was excluded for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExclusionCause {
    /// It was excluded before it was graded: the infrastructure failed under it.
    Rollout,
    /// A reward plugin said that it cannot grade this trajectory.
    Reward,
    /// A call to a reward plugin failed, for the whole group.
    RewardCall,
    /// The configuration names a term that its plugin does not return: no step can succeed.
    Config,
}

/// A score, or why there is none.
pub type Graded = Result<Score, Excluded>;
