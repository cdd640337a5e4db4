//! ReMax: the advantage of a trajectory is its reward relative to that of a greedy one.

use super::{AdvantageEstimator, Sample};

/// REINFORCE with the reward of a greedy trajectory as the baseline (Li et al. 2024, "ReMax", arXiv:2310.10505, algorithm 1):
///
/// ```text
/// A_i,t = R_i - R(greedy trajectory of the same task)
/// ```
///
/// The baseline does not depend on the trajectory itself, so the gradient has no bias. A group of one works. Each task costs
/// one more trajectory, which is not trained on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReMax;

impl AdvantageEstimator for ReMax {
    fn name(&self) -> &'static str {
        "remax"
    }

    fn smallest_group(&self) -> usize {
        1
    }

    fn needs_baseline(&self) -> bool {
        true
    }

    fn advantages(&self, batch: &[Sample]) -> Vec<Vec<f32>> {
        let advantage = |sample: &Sample| match sample.baseline() {
            Some(baseline) if !sample.excluded() => (sample.total_reward() - baseline) as f32,
            _ => 0.0,
        };
        let values = batch.iter().map(|sample| {
            let value = advantage(sample);
            let mask = sample.mask().iter();
            mask.map(|seen| if *seen { value } else { 0.0 }).collect()
        });
        values.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Arithmetic from the formula of the paper (algorithm 1): 1 - 0.25, 0 - 0.25 and 0.5 - 0.5.
    #[test]
    fn the_advantage_is_the_distance_from_the_greedy_trajectory_of_the_task() {
        let sample = |group, reward, baseline| {
            Sample::single_turn(group, 2, reward).with_baseline(Some(baseline))
        };
        let batch = [
            sample(0, 1.0, 0.25),
            sample(0, 0.0, 0.25),
            sample(1, 0.5, 0.5),
        ];
        let wanted = [[0.75, 0.75], [-0.25, -0.25], [0.0, 0.0]];
        assert_eq!(ReMax.advantages(&batch), wanted.map(Vec::from));
    }

    #[test]
    fn without_a_baseline_there_is_no_advantage() {
        let batch = [Sample::single_turn(0, 1, 1.0)];
        assert_eq!(ReMax.advantages(&batch), [[0.0]]);
    }
}
