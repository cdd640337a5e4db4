//! Reinforce++-baseline: rewards relative to the group's mean, normalised over the batch.

use super::groups::{Groups, from_mean};
use super::whitening::whitened;
use super::{AdvantageEstimator, Sample};

/// Reinforce++-baseline (Hu et al. 2025, "REINFORCE++", arXiv:2501.03262, section 3), for several trajectories of each task:
///
/// ```text
/// A'_i,t = R_i - mean(R_1..R_G)                          for every model token t of trajectory i
/// A_i,t  = (A' - mean(A')) / sqrt(var(A') + 1e-8)        over all model tokens of the batch
/// ```
///
/// as verl computes it. The group's mean takes out how hard the task is. The deviation is that of the whole batch, so it
/// does not depend on the few rewards of one task. The KL penalty is in the loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReinforcePlusPlusBaseline;

impl AdvantageEstimator for ReinforcePlusPlusBaseline {
    fn name(&self) -> &'static str {
        "reinforce++-baseline"
    }

    fn smallest_group(&self) -> usize {
        2
    }

    fn advantages(&self, batch: &[Sample]) -> Vec<Vec<f32>> {
        let groups = Groups::new(batch);
        let differences = batch.iter().map(|sample| {
            let group = groups.of(sample);
            let value = group.map_or(0.0, |group| from_mean(sample.total_reward(), group));
            vec![value; sample.mask().len()]
        });
        whitened(batch, &differences.collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn golden_values() {
        // verl's compute_reinforce_plus_plus_baseline_outcome_advantage, transcribed to plain Python in double precision.
        let batch = [(0, 3, 1.0), (0, 2, 0.0), (1, 1, 0.5), (1, 2, 0.0)]
            .map(|(group, tokens, reward)| Sample::single_turn(group, tokens, reward));
        let wanted = [1.037_217_2, -1.175_512_9, 0.484_034_7, -0.622_330_3];
        let advantages = ReinforcePlusPlusBaseline.advantages(&batch);
        for (got, wanted) in advantages.iter().zip(wanted) {
            assert!(got.iter().all(|got| (got - wanted).abs() < 1e-6), "{got:?}");
        }
    }

    #[test]
    fn a_batch_without_differences_within_groups_gives_exactly_zero() {
        let batch = [(0, 0.1), (0, 0.1), (1, 0.7), (1, 0.7)]
            .map(|(group, reward)| Sample::single_turn(group, 3, reward));
        let advantages = ReinforcePlusPlusBaseline.advantages(&batch);
        assert!(advantages.iter().flatten().all(|a| *a == 0.0));
    }
}
