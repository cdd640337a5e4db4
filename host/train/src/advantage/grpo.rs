//! GRPO: the advantage of a trajectory is its reward relative to the other rewards of its group.

use super::groups::{differ, mean, per_trajectory};
use super::{AdvantageEstimator, Sample};

/// Group-normalised advantages (Shao et al. 2024, "DeepSeekMath", arXiv:2402.03300, section 4.1.2):
///
/// ```text
/// A_i,t = (R_i - mean(R_1..R_G)) / (std(R_1..R_G) + eps)     for every model token t of trajectory i
/// ```
///
/// with the unbiased deviation, as TRL and verl compute it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Grpo {
    /// Number added to the deviation, so that the quotient stays finite if the rewards of a group hardly differ.
    /// Default 1e-6.
    pub eps: f64,
}

impl Default for Grpo {
    fn default() -> Self {
        Self { eps: 1e-6 }
    }
}

impl AdvantageEstimator for Grpo {
    fn name(&self) -> &'static str {
        "grpo"
    }

    fn smallest_group(&self) -> usize {
        2
    }

    fn advantages(&self, batch: &[Sample]) -> Vec<Vec<f32>> {
        per_trajectory(batch, |reward, group| self.normalise(reward, group))
    }
}

impl Grpo {
    /// The advantage of a reward in its group.
    pub(super) fn normalise(self, reward: f64, group: &[f64]) -> f64 {
        if !differ(group) {
            return 0.0;
        }
        let mean = mean(group);
        let squares = group.iter().map(|other| (other - mean).powi(2));
        let variance = squares.sum::<f64>() / (group.len() as f64 - 1.0);
        (reward - mean) / (variance.sqrt() + self.eps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_tokens(rewards: &[f64]) -> Vec<f32> {
        let batch: Vec<Sample> = rewards
            .iter()
            .map(|r| Sample::single_turn(0, 3, *r))
            .collect();
        let advantages = Grpo::default().advantages(&batch);
        for values in &advantages {
            assert!(
                values.iter().all(|v| v == &values[0]),
                "every model token gets the same"
            );
        }
        advantages.iter().map(|values| values[0]).collect()
    }

    fn assert_close(got: &[f32], wanted: &[f32]) {
        assert_eq!(got.len(), wanted.len());
        for (g, w) in got.iter().zip(wanted) {
            assert!((g - w).abs() < 1e-6, "{got:?} is not {wanted:?}");
        }
    }

    #[test]
    fn golden_values() {
        // torch: (r - r.mean()) / (r.std() + 1e-6)
        assert_close(
            &first_tokens(&[1.05, 0.10, -0.15, 0.10]),
            &[1.462_435, -0.330_227, -0.801_980, -0.330_227],
        );
        assert_close(
            &first_tokens(&[1.0, 0.0, 0.0, 0.0]),
            &[1.499_997, -0.499_999, -0.499_999, -0.499_999],
        );
    }

    #[test]
    fn an_equal_group_gives_exactly_zero() {
        for reward in [0.0, 0.1, 1.0, -3.3, 1e9] {
            for size in 2..9 {
                assert_eq!(first_tokens(&vec![reward; size]), vec![0.0; size]);
            }
        }
    }

    #[test]
    fn groups_do_not_see_each_other() {
        let batch = vec![
            Sample::single_turn(0, 1, 1.0),
            Sample::single_turn(1, 1, 100.0),
            Sample::single_turn(0, 1, 0.0),
            Sample::single_turn(1, 1, 100.0),
        ];
        let advantages = Grpo::default().advantages(&batch);
        // [1, 0]: mean 0.5, unbiased deviation sqrt(0.5).
        assert_close(&advantages[0], &[0.707_105_8]);
        assert_close(&advantages[2], &[-0.707_105_8]);
        assert_eq!((advantages[1][0], advantages[3][0]), (0.0, 0.0));
    }

    #[test]
    fn an_excluded_member_leaves_the_statistics_of_its_group() {
        let batch = vec![
            Sample::single_turn(0, 1, 1.0),
            Sample::single_turn(0, 1, 0.0),
            Sample::single_turn(0, 1, -50.0).with_excluded(true),
        ];
        let advantages = Grpo::default().advantages(&batch);
        assert_close(&advantages[0], &[0.707_105_8]);
        assert_close(&advantages[2], &[0.0]);
    }
}
