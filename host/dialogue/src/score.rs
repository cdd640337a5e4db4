//! The result of grading one trajectory: a score, or the reason why it has no score.

use serde::{Deserialize, Serialize};

/// The rewards' result for one trajectory.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Score {
    /// The sum of weight x term over all entries whose gate holds: training maximises it.
    pub reward: f64,
    /// True if the configured success condition holds. It is only reported, and is not part of the loss. A curriculum
    /// draws tasks by it.
    pub success: bool,
    /// Every term of every reward plugin as (`plugin.term`, value), weighted or not.
    pub terms: Vec<(String, f64)>,
    /// Credit for single events.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub per_event: Vec<EventCredit>,
    /// Numbers for logs, as (`plugin.metric`, value).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<(String, f64)>,
    /// One reward for each turn in which the model produced a token, if the rewards grade turns: the sum of weight x
    /// per-event term over the events of the turn. Turn-level credit reads them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_rewards: Option<Vec<f64>>,
}

/// Credit that a reward gives to one event of a trajectory. Files hold it as
/// `[event, term, value]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "(usize, String, f64)", into = "(usize, String, f64)")]
pub struct EventCredit {
    /// Index into the trajectory's events.
    pub event: usize,
    /// `plugin.term`.
    pub term: String,
    /// Finite.
    pub value: f64,
}

impl From<(usize, String, f64)> for EventCredit {
    fn from((event, term, value): (usize, String, f64)) -> Self {
        Self { event, term, value }
    }
}

impl From<EventCredit> for (usize, String, f64) {
    fn from(credit: EventCredit) -> Self {
        (credit.event, credit.term, credit.value)
    }
}

/// The reason why a trajectory has no score. An excluded trajectory leaves its group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{reason}")]
pub struct Excluded {
    /// The reason, in words.
    pub reason: String,
    /// The kind of reason.
    pub cause: ExclusionCause,
}

/// The kind of reason for which a trajectory was excluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExclusionCause {
    /// An infrastructure failure excluded it during the rollout, before grading.
    Rollout,
    /// A reward plugin reported that it cannot grade this trajectory.
    Reward,
    /// A call to a reward plugin failed, for the whole group.
    RewardCall,
    /// The configuration names a term that its plugin does not return: no step can succeed.
    Config,
}

/// A score, or the reason why there is none.
pub type Graded = Result<Score, Excluded>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_score_keeps_its_form_in_files() {
        let credit = EventCredit {
            event: 3,
            term: "judge.step".into(),
            value: 0.25,
        };
        let score = Score {
            reward: 1.5,
            success: true,
            terms: vec![("em.score".into(), 1.0)],
            per_event: vec![credit],
            metrics: vec![("em.tokens".into(), 7.0)],
            turn_rewards: Some(vec![0.5, 1.0]),
        };
        let text = r#"{"reward":1.5,"success":true,"terms":[["em.score",1.0]],"per_event":[[3,"judge.step",0.25]],"metrics":[["em.tokens",7.0]],"turn_rewards":[0.5,1.0]}"#;
        assert_eq!(serde_json::to_string(&score).unwrap(), text);
        assert_eq!(serde_json::from_str::<Score>(text).unwrap(), score);

        let bare = r#"{"reward":0.0,"success":false,"terms":[]}"#;
        assert_eq!(serde_json::to_string(&Score::default()).unwrap(), bare);
        assert_eq!(
            serde_json::from_str::<Score>(bare).unwrap(),
            Score::default()
        );
    }
}
