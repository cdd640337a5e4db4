//! Dr. GRPO: GRPO without the division by the group's deviation.

use super::groups::{from_mean, per_trajectory};
use super::{AdvantageEstimator, Sample};

/// Advantages of "GRPO done right" (Liu et al. 2025, "Understanding R1-Zero-Like Training", arXiv:2503.20783, section 3.2):
///
/// ```text
/// A_i,t = R_i - mean(R_1..R_G)     for every model token t of trajectory i
/// ```
///
/// Division by the deviation would favour tasks that are nearly always solved or nearly never. The paper also divides the
/// loss by a constant in place of each trajectory's length. `token-mean` does that up to a factor that all tokens of an
/// update share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrGrpo;

impl AdvantageEstimator for DrGrpo {
    fn name(&self) -> &'static str {
        "dr-grpo"
    }

    fn smallest_group(&self) -> usize {
        2
    }

    fn advantages(&self, batch: &[Sample]) -> Vec<Vec<f32>> {
        per_trajectory(batch, from_mean)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_values() {
        // Python: r - mean(rewards)
        let batch = [1.05, 0.10, -0.15, 0.10].map(|reward| Sample::single_turn(0, 2, reward));
        let wanted = [0.775, -0.175, -0.425, -0.175];
        for (got, wanted) in DrGrpo.advantages(&batch).iter().zip(wanted) {
            assert!(got.iter().all(|got| (got - wanted).abs() < 1e-6), "{got:?}");
        }
    }

    #[test]
    fn a_task_with_other_rewards_counts_more() {
        let batch: Vec<Sample> = [(0, 1.0), (0, 0.0), (1, 0.1), (1, 0.0)]
            .map(|(group, reward)| Sample::single_turn(group, 1, reward))
            .into();
        let advantages = DrGrpo.advantages(&batch);
        assert!((advantages[0][0] - 10.0 * advantages[2][0]).abs() < 1e-6);
    }
}
