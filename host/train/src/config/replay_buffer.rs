//! `[rl.replay_buffer]`.

use rlf_policy::InvalidSetting;
use serde::{Deserialize, Serialize};

use super::Algorithm;

/// `[rl.replay_buffer]`: each step also trains on groups of earlier steps. Without this table, a group trains once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ReplayBufferConfig {
    /// Number of groups of earlier steps that a step trains on besides its own, at most. Default 16.
    pub groups_per_step: usize,
    /// Number of steps for which a group is kept. Default 8.
    pub max_age: u64,
}

impl ReplayBufferConfig {
    /// Maximum number of groups that are kept. More would rarely be drawn before they are too old.
    pub fn most_groups(&self) -> usize {
        (self.groups_per_step).saturating_mul(usize::try_from(self.max_age).unwrap_or(usize::MAX))
    }
}

impl Default for ReplayBufferConfig {
    fn default() -> Self {
        Self {
            groups_per_step: 16,
            max_age: 8,
        }
    }
}

impl ReplayBufferConfig {
    /// Refuses settings that cannot be trained with, or not by this algorithm.
    pub(super) fn validate(&self, algorithm: Algorithm) -> Result<(), InvalidSetting> {
        let compares_groups_alone = matches!(
            algorithm,
            Algorithm::Grpo | Algorithm::MtGrpo | Algorithm::DrGrpo | Algorithm::Rloo
        );
        InvalidSetting::require(
            compares_groups_alone,
            "rl.replay_buffer",
            &"{...}",
            "a replayed group brings nothing but its own trajectories to compare with, and this algorithm compares with other \
             things; leave it out, or choose `grpo`, `mt-grpo`, `dr-grpo` or `rloo`",
        )?;
        InvalidSetting::require(
            (1..=100_000).contains(&self.groups_per_step),
            "rl.replay_buffer.groups_per_step",
            &self.groups_per_step,
            "must be from 1 to 100,000; leave the table out to train on each group once",
        )?;
        InvalidSetting::require(
            (1..=1000).contains(&self.max_age),
            "rl.replay_buffer.max_age",
            &self.max_age,
            "is a number of steps, from 1 to 1000",
        )
    }
}
