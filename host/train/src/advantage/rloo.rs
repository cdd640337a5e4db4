//! RLOO: the advantage of a trajectory is its reward relative to the mean of the others in its group.

use super::groups::{from_mean, per_trajectory};
use super::{AdvantageEstimator, Sample};

/// REINFORCE with the leave-one-out baseline (Ahmadian et al. 2024, "Back to Basics", arXiv:2402.14740, section 3.3):
///
/// ```text
/// A_i,t = R_i - mean(R_j, j != i)  =  G / (G - 1) * (R_i - mean(R_1..R_G))
/// ```
///
/// The baseline does not depend on the trajectory itself, so the gradient has no bias. A task counts by how much its rewards
/// differ: there is no division by their deviation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rloo;

impl AdvantageEstimator for Rloo {
    fn name(&self) -> &'static str {
        "rloo"
    }

    fn smallest_group(&self) -> usize {
        2
    }

    fn advantages(&self, batch: &[Sample]) -> Vec<Vec<f32>> {
        per_trajectory(batch, |reward, group| {
            let count = group.len() as f64;
            count / (count - 1.0) * from_mean(reward, group)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_values() {
        // Python: r - (sum(rewards) - r) / (len(rewards) - 1)
        let rewards = [1.05, 0.10, -0.15, 0.10];
        let batch = rewards.map(|reward| Sample::single_turn(0, 2, reward));
        let wanted = [1.033_333_3, -0.233_333_3, -0.566_666_7, -0.233_333_3];
        for (got, wanted) in Rloo.advantages(&batch).iter().zip(wanted) {
            assert_eq!(got.len(), 2);
            assert!(got.iter().all(|got| (got - wanted).abs() < 1e-6), "{got:?}");
        }
    }
}
