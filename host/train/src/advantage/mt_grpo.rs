//! MT-GRPO: a turn's advantage is its own reward relative to the group's, plus the outcome's.

use std::collections::BTreeMap;

use super::grpo::Grpo;
use super::{AdvantageEstimator, Sample};

/// Turn-level credit (Zeng et al. 2025, "Reinforcing Multi-Turn Reasoning in LLM Agents via Turn-Level Credit Assignment",
/// arXiv:2505.11821, section 4.2). For the model tokens of turn `k` of trajectory `i`:
///
/// ```text
/// A_i    = (R_i - mean(R)) / (std(R) + eps)               over the group, as in GRPO
/// T_i,k  = (r_i,k - mean(r_.,k)) / (std(r_.,k) + eps)     over the group's trajectories with a turn after turn k
/// A_i,k  = T_i,k + A_i    before the last turn;    A_i    in the last turn
/// ```
///
/// The paper has two turns and a weight for `A_i` in the first one, which is 1 here. A trajectory without turn rewards has 0
/// for each of its turns. A last turn is not compared with others, because it is the one that answers: rewards of calls would
/// then teach never to answer. So a bad call in a turn that a limit made the last one gets no credit of its own.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct MtGrpo {
    /// The normalisation of outcomes and of turns.
    pub grpo: Grpo,
}

impl AdvantageEstimator for MtGrpo {
    fn name(&self) -> &'static str {
        "mt-grpo"
    }

    fn smallest_group(&self) -> usize {
        2
    }

    fn advantages(&self, batch: &[Sample]) -> Vec<Vec<f32>> {
        let mut by_turn: BTreeMap<(usize, usize), Vec<f64>> = BTreeMap::new();
        for sample in batch.iter().filter(|sample| !sample.excluded()) {
            for (turn, reward) in turns_before_last(sample) {
                let rewards = by_turn.entry((sample.group(), turn)).or_default();
                rewards.push(reward);
            }
        }
        let mut advantages = self.grpo.advantages(batch);
        for (sample, advantages) in batch.iter().zip(&mut advantages) {
            if sample.excluded() {
                continue;
            }
            for (turn, reward) in turns_before_last(sample) {
                let group = &by_turn[&(sample.group(), turn)];
                let credit = self.grpo.normalise(reward, group) as f32;
                for advantage in &mut advantages[sample.turns()[turn].clone()] {
                    *advantage += credit;
                }
            }
        }
        advantages
    }
}

/// The turns of a trajectory before its last one, with their rewards.
fn turns_before_last(sample: &Sample) -> impl Iterator<Item = (usize, f64)> {
    let rewards = sample.turn_rewards().unwrap_or_default();
    let earlier = sample.turns().len().saturating_sub(1);
    (0..earlier).map(|turn| (turn, rewards.get(turn).copied().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO_TURNS: [bool; 5] = [true, true, false, false, true];

    fn sample(group: usize, turns: &[f64], outcome: f64) -> Sample {
        Sample::from_mask(group, &TWO_TURNS, outcome).with_turn_rewards(turns.to_vec())
    }

    fn assert_close(got: &[f32], wanted: &[f32]) {
        assert_eq!(got.len(), wanted.len());
        for (g, w) in got.iter().zip(wanted) {
            assert!((g - w).abs() < 1e-5, "{got:?} is not {wanted:?}");
        }
    }

    #[test]
    fn golden_values() {
        // Python: both normalisations with statistics.stdev, from the formula above.
        let batch = [
            sample(0, &[1.0, 0.3], 1.0),
            sample(0, &[0.0, 0.9], 1.0),
            sample(0, &[1.0, 0.0], 0.0),
            sample(0, &[0.0, 0.0], 0.0),
        ];
        // Outcomes and first turns are both 1, 1, 0, 0 in some order: ±0.866.
        let a = 0.866_025_4;
        let advantages = MtGrpo::default().advantages(&batch);
        assert_close(&advantages[0], &[2.0 * a, 2.0 * a, 0.0, 0.0, a]);
        assert_close(&advantages[1], &[0.0, 0.0, 0.0, 0.0, a]);
        assert_close(&advantages[2], &[0.0, 0.0, 0.0, 0.0, -a]);
        assert_close(&advantages[3], &[-2.0 * a, -2.0 * a, 0.0, 0.0, -a]);
    }

    #[test]
    fn without_turn_rewards_it_is_grpo() {
        let batch = [1.0, 0.0, 0.5].map(|reward| Sample::from_mask(0, &TWO_TURNS, reward));
        assert_eq!(
            MtGrpo::default().advantages(&batch),
            Grpo::default().advantages(&batch)
        );
    }

    #[test]
    fn an_answer_does_not_make_a_call_in_the_same_turn_good() {
        // The first trajectory answers in its second turn, and the others call once more.
        let answers = sample(0, &[1.0, 0.0], 0.0);
        let three = [true, false, true, false, true];
        let calls = || Sample::from_mask(0, &three, 0.0).with_turn_rewards(vec![1.0, 1.0, 0.0]);
        for advantages in MtGrpo::default().advantages(&[answers, calls(), calls()]) {
            assert!(advantages.iter().all(|a| *a == 0.0), "{advantages:?}");
        }
    }

    #[test]
    fn a_turn_is_compared_with_trajectories_that_go_on_after_it() {
        let one_turn = Sample::single_turn(0, 2, 0.0).with_turn_rewards(vec![5.0]);
        let three = [true, false, true, false, true];
        let long = |second: f64| {
            Sample::from_mask(0, &three, 0.0).with_turn_rewards(vec![5.0, second, 0.0])
        };
        let advantages = MtGrpo::default().advantages(&[one_turn, long(1.0), long(0.0)]);
        let b = 0.707_105_8;
        assert_close(&advantages[0], &[0.0, 0.0]);
        assert_close(&advantages[1], &[0.0, 0.0, b, 0.0, 0.0]);
        assert_close(&advantages[2], &[0.0, 0.0, -b, 0.0, 0.0]);
    }
}
