//! Guards: they stop RL when further steps would teach nothing, or the wrong thing.

use rlf_policy::InvalidSetting;
use serde::{Deserialize, Serialize};

use crate::advantage::Sample;
use crate::batch::{Batch, Exclusions};

/// Limits beyond which RL stops with an error. Its checkpoints stay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct GuardsConfig {
    /// Maximum share of a step's trajectories that may be left out of training. The rest would be a biased sample. Default
    /// 0.5.
    pub max_excluded_share: f64,
    /// Least entropy of the policy, in nats per token that it samples. RL stops after [`LOW_STEPS`] steps in a row below it,
    /// because a policy that always says the same finds nothing new. Default 0: never.
    pub min_entropy: f64,
    /// Maximum number of steps in a row that teach nothing: in every group, or in the whole step if the algorithm does not
    /// compare within groups, all rewards are the same; with `remax`, all are those of the greedy trajectories. Other terms
    /// of the loss, such as KL, do not count, and neither do groups of a replay buffer. Default 20. 0 means any number.
    pub max_idle_steps: u64,
}

/// Steps in a row with too little entropy that stop RL. One step alone is noise.
pub const LOW_STEPS: u64 = 10;

impl Default for GuardsConfig {
    fn default() -> Self {
        Self {
            max_excluded_share: 0.5,
            min_entropy: 0.0,
            max_idle_steps: 20,
        }
    }
}

/// Numbers of steps in a row, as a checkpoint keeps them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InARow {
    /// Steps with less entropy than [`GuardsConfig::min_entropy`].
    pub low: u64,
    /// Steps that taught nothing.
    pub idle: u64,
}

/// The reason why a guard stops RL, and what to do about it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum GuardError {
    /// Too many trajectories were left out: the rest of the step would be a biased sample.
    #[error(
        "step {step} lost {excluded} of its {trajectories} trajectories, more than `rl.guards.max_excluded_share = {limit}` \
         allows; most frequent reasons: {reasons}. Mend what excludes them, or raise the limit, and go on with \
         `--resume --allow-changes`"
    )]
    TooManyExcluded {
        /// Counted from 1.
        step: u64,
        /// Number of trajectories that do not train.
        excluded: usize,
        /// Number of trajectories played.
        trajectories: usize,
        /// The setting.
        limit: f64,
        /// The most frequent reasons for exclusion.
        reasons: String,
    },
    /// The policy hardly explores any more.
    #[error(
        "step {step}: the entropy of the policy has been below `rl.guards.min_entropy = {limit}` nats per token for {low} \
         steps. Begin again with a lower \
         `rl.optimizer.learning_rate` or an `rl.entropy_coefficient`. Or delete the folders `checkpoints/rl-*` of steps after \
         {}, and go on with `--resume --allow-changes`. The newest checkpoint from before then was kept, if there was one",
        step.saturating_sub(*low)
    )]
    LowEntropy {
        /// Counted from 1.
        step: u64,
        /// Number of such steps in a row.
        low: u64,
        /// The setting.
        limit: f64,
    },
    /// The rewards tell nothing apart.
    #[error(
        "step {step} is number {idle} in a row that teaches nothing: its rewards tell no trajectories apart. The tasks are too easy or \
         too hard for the policy, or the rewards cannot tell its answers apart; look at some \
         in the run's folder `trajectories`, choose other tasks or rewards, or raise `rl.group_size`. \
         `--resume --allow-changes --set rl.guards.max_idle_steps=0` goes on anyway"
    )]
    Idle {
        /// Counted from 1.
        step: u64,
        /// Number of such steps.
        idle: u64,
    },
}

impl InARow {
    pub(crate) fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl GuardsConfig {
    /// True if every limit is the default.
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Refuses limits that cannot be meant.
    pub(crate) fn validate(&self) -> Result<(), InvalidSetting> {
        InvalidSetting::require(
            (0.0..=1.0).contains(&self.max_excluded_share),
            "rl.guards.max_excluded_share",
            &self.max_excluded_share,
            "is a share of a step's trajectories, from 0 to 1",
        )?;
        InvalidSetting::require(
            self.min_entropy.is_finite() && self.min_entropy >= 0.0,
            "rl.guards.min_entropy",
            &self.min_entropy,
            "must be 0 or more nats per token, such as 0.01",
        )
    }

    /// Refuses a step, counted from 1, that lost too much.
    pub(crate) fn refuse_excluded(&self, step: u64, lost: &Exclusions) -> Result<(), GuardError> {
        if lost.share() <= self.max_excluded_share {
            return Ok(());
        }
        Err(GuardError::TooManyExcluded {
            step,
            excluded: lost.excluded + lost.in_dropped_groups,
            trajectories: lost.trajectories,
            limit: self.max_excluded_share,
            reasons: lost.most_frequent_reasons(),
        })
    }

    /// The steps in a row after a step. `is_idle` is true if what it played teaches nothing.
    pub(crate) fn count(&self, row: InARow, batch: &Batch, is_idle: bool) -> InARow {
        let next = |counts: bool, before: u64| if counts { before + 1 } else { 0 };
        InARow {
            low: next(batch.sampled_entropy() < self.min_entropy, row.low),
            idle: next(is_idle, row.idle),
        }
    }

    /// Refuses to go on after a step, counted from 1, if it was one too many in a row. If a run goes on nevertheless, it has
    /// as many steps again.
    pub(crate) fn refuse_row(
        &self,
        step: u64,
        InARow { low, idle }: InARow,
    ) -> Result<(), GuardError> {
        let is_limit = |count: u64, most: u64| count > 0 && most > 0 && count.is_multiple_of(most);
        if is_limit(low, LOW_STEPS) {
            return Err(GuardError::LowEntropy {
                step,
                low,
                limit: self.min_entropy,
            });
        }
        if is_limit(idle, self.max_idle_steps) {
            return Err(GuardError::Idle { step, idle });
        }
        Ok(())
    }
}

impl Batch {
    /// The mean of -log p over all tokens that the policy sampled, in nats: an unbiased estimate of its entropy per token.
    /// Not a number if it sampled none.
    pub(crate) fn sampled_entropy(&self) -> f64 {
        mean(
            self.model_tokens()
                .map(|(log_prob, _)| -f64::from(log_prob)),
        )
    }

    /// The mean of log p - log p_ref over all tokens that the policy sampled, in nats: the estimator k1 of the KL to the
    /// reference policy. None without a reference policy.
    pub(crate) fn sampled_kl(&self) -> Option<f64> {
        let has_reference = |sample: &Sample| sample.reference_log_probs().is_some();
        self.samples.iter().any(has_reference).then(|| {
            mean(self.model_tokens().filter_map(|(log_prob, reference)| {
                Some(f64::from(log_prob) - f64::from(reference?))
            }))
        })
    }

    /// Log-probabilities of all tokens that the policy sampled: its own, and those of the reference policy.
    fn model_tokens(&self) -> impl Iterator<Item = (f32, Option<f32>)> {
        self.samples.iter().flat_map(|sample| {
            let reference = sample.reference_log_probs();
            let tokens = sample.mask().iter().zip(sample.log_probs()).enumerate();
            tokens
                .filter(|(_, (is_model, _))| **is_model)
                .map(move |(t, (_, log_prob))| (*log_prob, reference.map(|all| all[t])))
        })
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (mut sum, mut count) = (0.0, 0_usize);
    for value in values {
        sum += value;
        count += 1;
    }
    sum / count as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{group, scored, two_turns, unscored};

    /// Two groups of two trajectories with these rewards; without one, a trajectory is excluded.
    fn batch(rewards: [Option<f64>; 4]) -> Batch {
        let graded = |reward: &Option<f64>| reward.map_or_else(|| unscored("no judge"), scored);
        let groups: Vec<_> = (0..2)
            .map(|g| {
                let trajectories = (0..2).map(|i| two_turns(g, i, 11)).collect();
                let scores = rewards[2 * g..2 * g + 2].iter().map(graded).collect();
                group(g, trajectories, scores)
            })
            .collect();
        Batch::new(&groups, 1).unwrap()
    }

    #[test]
    fn a_step_that_lost_too_many_trajectories_is_refused_although_no_group_was_dropped() {
        let lost = batch([Some(1.0), None, None, Some(0.0)]).exclusions;
        assert_eq!((lost.dropped_groups, lost.share()), (0, 0.5));
        let guards = |max_excluded_share| GuardsConfig {
            max_excluded_share,
            ..GuardsConfig::default()
        };
        assert!(guards(0.5).refuse_excluded(3, &lost).is_ok());
        let said = guards(0.4)
            .refuse_excluded(3, &lost)
            .unwrap_err()
            .to_string();
        assert!(
            said.contains("step 3 lost 2 of its 4 trajectories"),
            "{said}"
        );
        assert!(
            said.contains("rl.guards.max_excluded_share = 0.4"),
            "{said}"
        );
        assert!(said.contains("2 x no judge"), "{said}");
    }

    #[test]
    fn entropy_and_kl_are_means_over_all_sampled_tokens_of_solved_groups_too() {
        let mut batch = batch([Some(1.0); 4]);
        // Log-probabilities of the trajectories' tokens, written out from the fixture.
        let tokens = |from: usize, n: usize| (from..from + n).map(|i| 0.3 + 0.37 * (i % 5) as f64);
        let all: Vec<f64> = [(2, 1), (3, 2)]
            .iter()
            .flat_map(|(first, second)| tokens(3, *first).chain(tokens(14, *second)))
            .collect();
        let expected = all.iter().sum::<f64>() / all.len() as f64;
        assert!((batch.sampled_entropy() - expected).abs() < 1e-6);
        assert_eq!(batch.sampled_kl(), None);
        for sample in &mut batch.samples {
            let reference = sample.log_probs().iter().map(|p| p - 0.25).collect();
            *sample = sample.clone().with_reference_log_probs(reference);
        }
        assert!((batch.sampled_kl().unwrap() - 0.25).abs() < 1e-6);
    }

    #[test]
    fn steps_in_a_row_without_entropy_or_update_stop_and_one_better_step_begins_anew() {
        let batch = batch([Some(1.0); 4]);
        let guards = GuardsConfig {
            min_entropy: batch.sampled_entropy() + 0.1,
            max_idle_steps: 3,
            ..GuardsConfig::default()
        };
        let mut row = InARow::default();
        for updates in [0, 0, 2, 0, 0] {
            row = guards.count(row, &batch, updates == 0);
            guards.refuse_row(1, row).unwrap();
        }
        assert_eq!(row, InARow { low: 5, idle: 2 });
        row = guards.count(row, &batch, true);
        let said = guards.refuse_row(6, row).unwrap_err().to_string();
        assert!(said.contains("step 6 is number 3 in a row"), "{said}");
        // If it goes on nevertheless, it has as many steps again.
        let refused = |idle| guards.refuse_row(9, InARow { low: 0, idle }).is_err();
        assert_eq!([3, 4, 5, 6].map(refused), [true, false, false, true]);

        let low = InARow {
            low: LOW_STEPS,
            idle: 0,
        };
        let said = guards.refuse_row(12, low).unwrap_err().to_string();
        assert!(said.contains("rl.guards.min_entropy"), "{said}");
        assert!(said.contains("of steps after 2"), "{said}");
        let off = GuardsConfig {
            max_idle_steps: 0,
            ..GuardsConfig::default()
        };
        let mut row = InARow::default();
        for _ in 0..100 {
            row = off.count(row, &batch, true);
            off.refuse_row(1, row).unwrap();
        }
    }
}
