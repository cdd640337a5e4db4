//! The rewards of a batch by group, for estimators that compare the trajectories of a group.

use std::collections::BTreeMap;

use super::Sample;

/// The rewards of each group's trajectories that count.
pub(super) struct Groups(BTreeMap<usize, Vec<f64>>);

impl Groups {
    pub(super) fn new(batch: &[Sample]) -> Self {
        let mut groups: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        for sample in batch.iter().filter(|sample| !sample.excluded()) {
            let rewards = groups.entry(sample.group()).or_default();
            rewards.push(sample.total_reward());
        }
        Self(groups)
    }

    /// The rewards of a trajectory's group, its own too; none if the trajectory does not count.
    pub(super) fn of(&self, sample: &Sample) -> Option<&[f64]> {
        let rewards = self.0.get(&sample.group()).filter(|_| !sample.excluded())?;
        Some(rewards)
    }
}

/// True if the rewards of a group are not all equal. This is compared, not computed: the rounded mean of equal numbers need
/// not be that number.
pub(super) fn differ(group: &[f64]) -> bool {
    group.iter().any(|reward| *reward != group[0])
}

pub(super) fn mean(group: &[f64]) -> f64 {
    group.iter().sum::<f64>() / group.len() as f64
}

/// The difference of a reward from the mean of its group; exactly 0 if all rewards of the group are equal.
pub(super) fn from_mean(reward: f64, group: &[f64]) -> f64 {
    if differ(group) {
        reward - mean(group)
    } else {
        0.0
    }
}

/// Gives every model token of a trajectory the same advantage, which `advantage` computes from the trajectory's reward and
/// those of its group. It is 0 where these do not differ.
pub(super) fn per_trajectory(
    batch: &[Sample],
    advantage: impl Fn(f64, &[f64]) -> f64,
) -> Vec<Vec<f32>> {
    let groups = Groups::new(batch);
    let values = batch.iter().map(|sample| {
        let group = groups.of(sample).filter(|group| differ(group));
        let value = group.map_or(0.0, |group| advantage(sample.total_reward(), group)) as f32;
        let mask = sample.mask().iter();
        mask.map(|seen| if *seen { value } else { 0.0 }).collect()
    });
    values.collect()
}
