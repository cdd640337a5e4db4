//! Advantages: one number per sampled token, from the rewards of a batch. A positive advantage makes the
//! token likelier, a negative one less likely.
//!
//! An estimator sees the whole batch of a step, because estimators differ in the set that they average
//! over: GRPO over a group, Reinforce++ over all model tokens, RLOO over the rest of a group, PPO's GAE over
//! the future of one trajectory.

mod dr_grpo;
mod gae;
mod groups;
mod grpo;
mod mt_grpo;
#[cfg(test)]
mod papers;
mod reinforce_pp;
mod reinforce_pp_baseline;
mod remax;
mod rloo;
mod sample;
mod whitening;

pub use dr_grpo::DrGrpo;
pub use gae::Gae;
pub use grpo::Grpo;
pub use mt_grpo::MtGrpo;
pub use reinforce_pp::ReinforcePlusPlus;
pub use reinforce_pp_baseline::ReinforcePlusPlusBaseline;
pub use remax::ReMax;
pub use rloo::Rloo;
pub use sample::{Sample, SampleError};

/// The result of an estimator: one vector per sample, one entry per token.
#[derive(Debug, Clone, PartialEq)]
pub struct Estimates {
    /// The advantages: see [`AdvantageEstimator::advantages`].
    pub advantages: Vec<Vec<f32>>,
    /// The values that a critic should have given to model tokens, 0 off the mask. None if the estimator needs no critic.
    pub value_targets: Option<Vec<Vec<f32>>>,
}

/// Turns the rewards of a batch into per-token advantages.
pub trait AdvantageEstimator: Send + Sync {
    /// The name in configurations and logs.
    fn name(&self) -> &'static str;

    /// Minimum number of trajectories of a group, so that its members can be compared. Smaller groups are dropped
    /// before [`advantages`](Self::advantages) is called.
    fn smallest_group(&self) -> usize;

    /// True if it compares with a greedy trajectory of each task, which is then played besides: [`Sample::baseline`]. Default
    /// false.
    fn needs_baseline(&self) -> bool {
        false
    }

    /// True if it reads the values of a critic: [`Sample::values`]. Then it gives value targets, too. Default false.
    fn needs_values(&self) -> bool {
        false
    }

    /// The advantages: one vector per sample, one entry per token. Every entry is finite and 0 off the
    /// mask. Excluded samples have 0 throughout and take no part in any statistic.
    fn advantages(&self, batch: &[Sample]) -> Vec<Vec<f32>>;

    /// The advantages, and what a critic learns from. Default: advantages alone.
    fn estimates(&self, batch: &[Sample]) -> Estimates {
        Estimates {
            advantages: self.advantages(batch),
            value_targets: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn estimators() -> Vec<Box<dyn AdvantageEstimator>> {
        vec![
            Box::new(Grpo::default()),
            Box::new(MtGrpo::default()),
            Box::new(DrGrpo),
            Box::new(Rloo),
            Box::new(ReMax),
            Box::new(ReinforcePlusPlusBaseline),
            Box::new(ReinforcePlusPlus { gamma: 1.0 }),
            Box::new(ReinforcePlusPlus { gamma: 0.9 }),
            Box::new(Gae {
                gamma: 1.0,
                lambda: 1.0,
            }),
            Box::new(Gae {
                gamma: 0.9,
                lambda: 0.8,
            }),
        ]
    }

    /// Any batch: groups, turns of model tokens with observations between, rewards, exclusions.
    pub(super) fn batches() -> impl Strategy<Value = Vec<Sample>> {
        let sample = (
            0usize..4,
            prop::collection::vec((1usize..4, 0usize..4), 1..4),
            -2.0f64..2.0,
            prop::bool::weighted(0.2),
            prop::collection::vec((-6.0f32..0.0, -6.0f32..0.0), 24),
            prop::option::of(prop::collection::vec(-1.0f64..1.0, 3)),
        );
        prop::collection::vec(sample, 1..12).prop_map(|rows| {
            rows.into_iter()
                .map(|(group, turns, reward, excluded, log_probs, of_turns)| {
                    let mut mask = vec![false; 2];
                    for (model, observation) in turns {
                        mask.extend(std::iter::repeat_n(true, model));
                        mask.extend(std::iter::repeat_n(false, observation));
                    }
                    let (old, reference): (Vec<f32>, Vec<f32>) = mask
                        .iter()
                        .zip(log_probs.iter().cycle())
                        .map(|(_, pair)| *pair)
                        .unzip();
                    let values = old.iter().map(|p| 0.3 * p + 0.5).collect();
                    let penalties: Vec<f64> = old.iter().map(|p| 0.05 * f64::from(*p)).collect();
                    let mut sample = Sample::from_mask(group, &mask, reward);
                    // As a KL in the reward does.
                    sample.add_rewards(&penalties);
                    let sample = sample
                        .with_values(values)
                        .with_log_probs(old)
                        .with_reference_log_probs(reference)
                        .with_baseline(Some(reward / 3.0 - 0.1))
                        .with_excluded(excluded);
                    match of_turns {
                        Some(rewards) => {
                            let turns = sample.turns().len();
                            sample.with_turn_rewards(rewards[..turns].to_vec())
                        }
                        None => sample,
                    }
                })
                .collect()
        })
    }

    proptest! {
        #[test]
        fn advantages_are_finite_aligned_and_zero_off_the_mask(batch in batches()) {
            for estimator in estimators() {
                let Estimates { advantages, value_targets } = estimator.estimates(&batch);
                prop_assert_eq!(&advantages, &estimator.advantages(&batch));
                prop_assert_eq!(value_targets.is_some(), estimator.needs_values());
                prop_assert_eq!(advantages.len(), batch.len());
                for (sample, values) in batch.iter().zip(&advantages) {
                    prop_assert_eq!(values.len(), sample.mask().len());
                    for (value, seen) in values.iter().zip(sample.mask()) {
                        prop_assert!(value.is_finite());
                        prop_assert!(*value == 0.0 || (*seen && !sample.excluded()));
                    }
                }
                for (sample, targets) in batch.iter().zip(value_targets.iter().flatten()) {
                    prop_assert_eq!(targets.len(), sample.mask().len());
                    for (target, seen) in targets.iter().zip(sample.mask()) {
                        prop_assert!(target.is_finite() && (*seen || *target == 0.0));
                    }
                }
            }
        }

        #[test]
        fn what_an_excluded_trajectory_scored_changes_nothing(batch in batches(), reward in -9.0f64..9.0) {
            let changed: Vec<Sample> = batch
                .iter()
                .map(|s| {
                    let turns = vec![reward; s.turns().len()];
                    let other = s.clone().with_outcome(reward).with_turn_rewards(turns);
                    if s.excluded() { other } else { s.clone() }
                })
                .collect();
            for estimator in estimators() {
                prop_assert_eq!(estimator.advantages(&batch), estimator.advantages(&changed));
            }
        }

        #[test]
        fn the_order_of_a_batch_only_reorders_its_advantages(batch in batches()) {
            let reversed: Vec<Sample> = batch.iter().rev().cloned().collect();
            for estimator in estimators() {
                let forward = estimator.advantages(&batch);
                let mut backward = estimator.advantages(&reversed);
                backward.reverse();
                for (a, b) in forward.iter().flatten().zip(backward.iter().flatten()) {
                    prop_assert!((a - b).abs() < 1e-4, "{} {a} {b}", estimator.name());
                }
            }
        }

        #[test]
        fn observation_tokens_between_turns_change_no_advantage_and_no_value_target(batch in batches()) {
            // The same model tokens with every observation taken out.
            let bare: Vec<Sample> = batch.iter().map(Sample::without_observations).collect();
            for estimator in estimators() {
                let (with, without) = (estimator.estimates(&batch), estimator.estimates(&bare));
                let pairs = [
                    (Some(with.advantages), Some(without.advantages)),
                    (with.value_targets, without.value_targets),
                ];
                for (with, without) in pairs {
                    let rows = with.iter().flatten().zip(without.iter().flatten());
                    for (sample, (a, b)) in batch.iter().zip(rows) {
                        let model: Vec<f32> =
                            a.iter().zip(sample.mask()).filter(|(_, seen)| **seen).map(|(a, _)| *a).collect();
                        prop_assert_eq!(&model, b);
                    }
                }
            }
        }

        #[test]
        fn scaling_and_shifting_all_rewards_keeps_every_normalised_advantage(batch in batches(), scale in 0.5f64..4.0, shift in -1.0f64..1.0) {
            // Of estimators without a KL term; eps makes it approximate.
            let moved: Vec<Sample> = batch.iter().map(|s| s.clone().with_outcome(s.total_reward() * scale + shift)).collect();
            let spread_out = |group: usize| {
                let rewards: Vec<f64> = batch.iter().filter(|s| s.group() == group && !s.excluded()).map(Sample::total_reward).collect();
                let mean = rewards.iter().sum::<f64>() / rewards.len() as f64;
                rewards.iter().any(|r| (r - mean).abs() > 0.05)
            };
            let grpo = Grpo::default();
            for ((sample, a), b) in batch.iter().zip(grpo.advantages(&batch)).zip(grpo.advantages(&moved)) {
                if spread_out(sample.group()) {
                    for (a, b) in a.iter().zip(&b) {
                        prop_assert!((a - b).abs() < 1e-3, "{a} {b}");
                    }
                }
            }
        }
    }
}
