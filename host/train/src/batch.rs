//! The batch that estimators and losses see, from graded groups. Trajectories that are left out are
//! counted.

use std::collections::BTreeMap;

use rlf_dialogue::group::Group;
use rlf_dialogue::score::Score;
use rlf_dialogue::trajectory::{SampledTokens, TrainingSequence};

use crate::advantage::{AdvantageEstimator, Sample, SampleError};

/// One step's trajectories, ready for training. Vectors run over all trajectories of all groups, in
/// order, excluded ones included.
#[derive(Debug, Clone)]
pub struct Batch {
    /// The samples for the advantage estimator.
    pub samples: Vec<Sample>,
    /// The token sequences of each trajectory, in order; concatenated they are its sample's tokens.
    pub sequences: Vec<Vec<SampledTokens>>,
    /// The trajectories and groups that were left out.
    pub exclusions: Exclusions,
}

/// The trajectories and groups that a step lost. Silent exclusion biases training, so all of it is logged.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exclusions {
    /// Number of trajectories played.
    pub trajectories: usize,
    /// Number of trajectories that were not scored.
    pub excluded: usize,
    /// Number of scored trajectories whose group was dropped.
    pub in_dropped_groups: usize,
    /// Number of groups played.
    pub groups: usize,
    /// Number of groups left with too few trajectories to compare.
    pub dropped_groups: usize,
    /// Number of excluded trajectories by reason.
    pub reasons: BTreeMap<String, usize>,
}

impl Exclusions {
    /// Share of the trajectories that do not train.
    pub fn share(&self) -> f64 {
        (self.excluded + self.in_dropped_groups) as f64 / self.trajectories.max(1) as f64
    }

    /// Share of the groups that do not train.
    pub fn dropped_share(&self) -> f64 {
        self.dropped_groups as f64 / self.groups.max(1) as f64
    }

    /// The three most frequent reasons, as text.
    pub fn most_frequent_reasons(&self) -> String {
        let mut reasons: Vec<(&String, &usize)> = self.reasons.iter().collect();
        reasons.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
        let shown = reasons
            .iter()
            .take(3)
            .map(|(reason, count)| format!("{count} x {reason}"));
        shown.collect::<Vec<_>>().join("; ")
    }
}

impl Batch {
    /// Leaves out trajectories without a score, then groups with fewer than `smallest_group` scored ones.
    pub fn new(groups: &[Group], smallest_group: usize) -> Result<Self, SampleError> {
        let (mut samples, mut sequences) = (Vec::new(), Vec::new());
        let mut exclusions = Exclusions {
            groups: groups.len(),
            ..Exclusions::default()
        };
        for (index, group) in groups.iter().enumerate() {
            let first = samples.len();
            for (member, trajectory) in group.trajectories.iter().enumerate() {
                let score = group.scores.get(member);
                let reason = match (&trajectory.excluded, score) {
                    (Some(reason), _) => Some(reason.as_str()),
                    (None, None) => Some("it was not graded"),
                    (None, Some(Err(excluded))) => Some(excluded.reason.as_str()),
                    (None, Some(Ok(_))) if trajectory.model_tokens() == 0 => {
                        Some("the model produced no token: the prompt fills the context")
                    }
                    (None, Some(Ok(_))) => None,
                };
                let unscored = Score::default();
                let score = match (reason, score) {
                    (None, Some(Ok(score))) => score,
                    _ => &unscored,
                };
                let (sample, tokens) = Sample::from_graded(index, trajectory, score)?;
                if let Some(reason) = reason {
                    exclusions.excluded += 1;
                    *exclusions.reasons.entry(reason.to_owned()).or_default() += 1;
                }
                let sample = sample.with_baseline(group.baseline);
                samples.push(sample.with_excluded(reason.is_some()));
                sequences.push(tokens);
            }
            let left = samples[first..]
                .iter()
                .filter(|sample| !sample.excluded())
                .count();
            if left < smallest_group {
                exclusions.dropped_groups += 1;
                exclusions.in_dropped_groups += left;
                for sample in &mut samples[first..] {
                    *sample = sample.clone().with_excluded(true);
                }
            }
        }
        exclusions.trajectories = samples.len();
        Ok(Self {
            samples,
            sequences,
            exclusions,
        })
    }

    /// The batch of groups of which every trajectory trains. Each trajectory has an id, its sequences and its score.
    pub(crate) fn of_scored<'a, G>(groups: impl IntoIterator<Item = G>) -> Result<Self, SampleError>
    where
        G: IntoIterator<Item = (&'a str, &'a [TrainingSequence], &'a Score)>,
    {
        let (mut samples, mut sequences) = (Vec::new(), Vec::new());
        let mut exclusions = Exclusions::default();
        for (index, group) in groups.into_iter().enumerate() {
            exclusions.groups += 1;
            for (id, trained, score) in group {
                let (sample, tokens) = Sample::from_sequences(index, id, trained, score)?;
                samples.push(sample);
                sequences.push(tokens);
            }
        }
        exclusions.trajectories = samples.len();
        Ok(Self {
            samples,
            sequences,
            exclusions,
        })
    }

    /// True if the rewards tell some trajectories apart for this algorithm: one from the greedy trajectory of its task, if the
    /// algorithm compares with that; else two of one group, or any two of the batch if it does not compare within groups.
    /// Excluded ones do not count.
    pub(crate) fn tells_apart(&self, estimator: &dyn AdvantageEstimator) -> bool {
        let mut counted = self.samples.iter().filter(|sample| !sample.excluded());
        if estimator.needs_baseline() {
            let differs = |one: &Sample| {
                one.baseline()
                    .is_some_and(|greedy| greedy != one.total_reward())
            };
            return counted.any(differs);
        }
        let within_groups = estimator.smallest_group() > 1;
        let most_turns = self.samples.iter().map(|one| one.turns().len()).max();
        // The first reward of a group, and of each turn in it.
        let mut first: BTreeMap<(usize, Option<usize>), f64> = BTreeMap::new();
        let mut differs = |key, reward: f64| *first.entry(key).or_insert(reward) != reward;
        counted.any(|sample| {
            let group = if within_groups { sample.group() } else { 0 };
            let rewards = sample.turn_rewards().unwrap_or_default();
            // Within a group, a turn is compared with the same turn of others, if it is not the last (MT-GRPO). Without
            // groups, the rewards of all turns add up (PPO), and a turn that is missing adds 0.
            let turns = if within_groups {
                sample.turns().len().saturating_sub(1)
            } else {
                most_turns.unwrap_or(0)
            };
            differs((group, None), sample.total_reward())
                || (0..turns)
                    .any(|t| differs((group, Some(t)), rewards.get(t).copied().unwrap_or(0.0)))
        })
    }

    /// Indices of the trajectories that train.
    pub fn trained(&self) -> Vec<usize> {
        (0..self.samples.len())
            .filter(|i| !self.samples[*i].excluded())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advantage::{Gae, MtGrpo};

    #[test]
    fn rewards_of_turns_tell_apart_where_the_algorithm_compares_them() {
        let sample = |turns: &[f64]| {
            let mask: Vec<bool> = turns.iter().flat_map(|_| [false, true]).collect();
            Sample::from_mask(0, &mask, 0.5).with_turn_rewards(turns.to_vec())
        };
        let turns = MtGrpo::default();
        let sums = Gae {
            gamma: 1.0,
            lambda: 1.0,
        };
        for (batch, of_turns, of_sums) in [
            (vec![vec![1.0, 1.0], vec![1.0, 1.0]], false, false),
            // Turns after which others follow, of trajectories that are not the first, too.
            (
                vec![vec![1.0], vec![1.0, 0.0, 1.0], vec![1.0, 0.5, 1.0]],
                true,
                true,
            ),
            // The last turn has no reward of its own.
            (vec![vec![1.0, 1.0], vec![1.0, 0.0]], false, true),
            // One more turn adds a reward, or nothing.
            (vec![vec![1.0, 1.0], vec![1.0, 1.0, 1.0]], false, true),
            (vec![vec![0.0, 0.0], vec![0.0, 0.0, 0.0]], false, false),
        ] {
            let batch = Batch {
                samples: batch.iter().map(|turns| sample(turns)).collect(),
                sequences: Vec::new(),
                exclusions: Exclusions::default(),
            };
            let found = (batch.tells_apart(&turns), batch.tells_apart(&sums));
            assert_eq!(found, (of_turns, of_sums), "{:?}", batch.samples);
        }
    }
}
