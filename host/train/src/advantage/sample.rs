//! One trajectory as advantage estimators see it: its loss mask, its turns and its rewards per token.

use std::ops::Range;

use rlf_dialogue::score::Score;
use rlf_dialogue::trajectory::{SampledTokens, Segment, TrainingSequence, Trajectory};

/// The reason why a trajectory cannot be trained on.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SampleError {
    /// A segment was not sampled by the policy, so it lacks the log-probabilities that the ratio needs.
    #[error("trajectory {id}: {source}")]
    NotTrainable {
        /// The trajectory's id.
        id: String,
        /// The segment that was not sampled.
        source: rlf_dialogue::trajectory::NotTrainable,
    },
    /// A sequence begins with a model token, which then has no probability.
    #[error(
        "trajectory {id}: sequence {sequence} begins with a model token; a prompt must come first"
    )]
    NoPrompt {
        /// The trajectory's id.
        id: String,
        /// Index of the sequence within the trajectory.
        sequence: usize,
    },
    /// The number of turns that the rewards grade is not that of the trajectory.
    #[error(
        "trajectory {id}: the rewards grade {rewards} turns, but the model has {turns}; this is a fault of the program"
    )]
    Turns {
        /// The trajectory's id.
        id: String,
        /// Turns of the model with tokens.
        turns: usize,
        /// Turns with a reward.
        rewards: usize,
    },
    /// The reward, or that of a turn, is not a number or too large. Rewards are averaged over the batch, so one would spoil
    /// all of it.
    #[error(
        "trajectory {id}: the reward is {reward}, not a number from -1e30 to 1e30; mend the reward plugin or its weight"
    )]
    Reward {
        /// The trajectory's id.
        id: String,
        /// The reward.
        reward: f64,
    },
}

/// The largest reward. Advantages are 32-bit numbers, and hold differences of such rewards.
const LARGEST: f64 = 1e30;

/// One trajectory: its sequences one after the other, `[tokens]` in every vector.
///
/// The loss mask follows from the provenance of each token and cannot be set by hand outside of tests.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    group: usize,
    mask: Vec<bool>,
    turns: Vec<Range<usize>>,
    rewards: Vec<f64>,
    turn_rewards: Option<Vec<f64>>,
    log_probs: Vec<f32>,
    reference_log_probs: Option<Vec<f32>>,
    values: Option<Vec<f32>>,
    baseline: Option<f64>,
    excluded: bool,
}

impl Sample {
    /// The sample of a graded trajectory of the group with index `group`, and the token sequences that it
    /// trains on.
    pub fn from_graded(
        group: usize,
        trajectory: &Trajectory,
        score: &Score,
    ) -> Result<(Self, Vec<SampledTokens>), SampleError> {
        Self::from_sequences(group, &trajectory.id, &trajectory.sequences, score)
    }

    /// As [`Self::from_graded`], from the id of a trajectory and its sequences.
    pub(crate) fn from_sequences(
        group: usize,
        id: &str,
        trained: &[TrainingSequence],
        score: &Score,
    ) -> Result<(Self, Vec<SampledTokens>), SampleError> {
        let id = || id.to_owned();
        let rewards = std::iter::once(&score.reward).chain(score.turn_rewards.iter().flatten());
        let mut rewards = rewards.copied();
        if let Some(reward) = rewards.find(|reward| !(-LARGEST..=LARGEST).contains(reward)) {
            return Err(SampleError::Reward { id: id(), reward });
        }
        let mut sequences = Vec::with_capacity(trained.len());
        let (mut mask, mut log_probs, mut turns) = (Vec::new(), Vec::new(), Vec::new());
        for (index, sequence) in trained.iter().enumerate() {
            let tokens = sequence
                .sampled()
                .map_err(|source| SampleError::NotTrainable { id: id(), source })?;
            if tokens.mask.as_slice().first() == Some(&true) {
                return Err(SampleError::NoPrompt {
                    id: id(),
                    sequence: index,
                });
            }
            let mut start = mask.len();
            for segment in sequence.segments() {
                match segment {
                    Segment::Prompt(ids) | Segment::Observation(ids) => start += ids.len(),
                    Segment::Model(model) => {
                        if !model.is_empty() {
                            turns.push(start..start + model.len());
                        }
                        start += model.len();
                    }
                }
            }
            mask.extend_from_slice(tokens.mask.as_slice());
            log_probs.extend_from_slice(&tokens.log_probs);
            sequences.push(tokens);
        }
        let mut sample = Self::build(group, mask, turns, score.reward);
        sample.log_probs = log_probs;
        if let Some(rewards) = &score.turn_rewards {
            if rewards.len() != sample.turns.len() {
                let (turns, rewards) = (sample.turns.len(), rewards.len());
                return Err(SampleError::Turns {
                    id: id(),
                    turns,
                    rewards,
                });
            }
            sample.turn_rewards = Some(rewards.clone());
        }
        Ok((sample, sequences))
    }

    /// A trajectory of one turn without prompt or observations, for examples and tests.
    pub fn single_turn(group: usize, model_tokens: usize, reward: f64) -> Self {
        let turns = std::iter::once(0..model_tokens)
            .filter(|turn| !turn.is_empty())
            .collect();
        Self::build(group, vec![true; model_tokens], turns, reward)
    }

    /// Puts `reward` on the last model token, because the outcome is known only then.
    fn build(group: usize, mask: Vec<bool>, turns: Vec<Range<usize>>, reward: f64) -> Self {
        let mut rewards = vec![0.0; mask.len()];
        if let Some(last) = mask.iter().rposition(|seen| *seen) {
            rewards[last] = reward;
        }
        Self {
            group,
            turns,
            rewards,
            turn_rewards: None,
            log_probs: vec![0.0; mask.len()],
            reference_log_probs: None,
            values: None,
            baseline: None,
            excluded: false,
            mask,
        }
    }

    /// Sets the reward of a greedy trajectory of the same task.
    #[must_use]
    pub fn with_baseline(mut self, baseline: Option<f64>) -> Self {
        self.baseline = baseline;
        self
    }

    /// Adds to the reward of each model token, `[tokens]`.
    pub(crate) fn add_rewards(&mut self, rewards: &[f64]) {
        let tokens = self.rewards.iter_mut().zip(rewards).zip(&self.mask);
        for ((own, reward), _) in tokens.filter(|(_, seen)| **seen) {
            *own += reward;
        }
    }

    /// Adds to the reward on the last model token.
    pub(crate) fn add_outcome(&mut self, reward: f64) {
        if let Some(last) = self.mask.iter().rposition(|seen| *seen) {
            self.rewards[last] += reward;
        }
    }

    /// Excludes the trajectory from every statistic and from the loss, or includes it again.
    #[must_use]
    pub fn with_excluded(mut self, excluded: bool) -> Self {
        self.excluded = excluded;
        self
    }

    /// Replaces the log-probabilities, `[tokens]`. Only those of model tokens are read.
    ///
    /// # Panics
    /// If the length is not that of the mask.
    #[must_use]
    pub(crate) fn with_log_probs(mut self, log_probs: Vec<f32>) -> Self {
        let tokens = self.mask.len();
        assert_eq!(log_probs.len(), tokens, "one log-probability per token");
        self.log_probs = log_probs;
        self
    }

    /// Adds log-probabilities of a frozen reference policy, `[tokens]`. Only those of model tokens are read.
    ///
    /// # Panics
    /// If the length is not that of the mask.
    #[must_use]
    pub fn with_reference_log_probs(mut self, log_probs: Vec<f32>) -> Self {
        assert_eq!(
            log_probs.len(),
            self.mask.len(),
            "one reference log-probability per token"
        );
        self.reference_log_probs = Some(log_probs);
        self
    }

    /// Adds a critic's values, `[tokens]`, which [`Gae`](super::Gae) reads. Only those of model tokens are read.
    ///
    /// # Panics
    /// If the length is not that of the mask.
    #[must_use]
    pub fn with_values(mut self, values: Vec<f32>) -> Self {
        assert_eq!(values.len(), self.mask.len(), "one value per token");
        self.values = Some(values);
        self
    }

    /// Index of the group: trajectories of one task in one step.
    pub fn group(&self) -> usize {
        self.group
    }

    /// True on model tokens.
    pub fn mask(&self) -> &[bool] {
        &self.mask
    }

    /// The range of each turn's model tokens, for the credit of single turns.
    pub fn turns(&self) -> &[Range<usize>] {
        &self.turns
    }

    /// The rewards per token: the outcome on the last model token, 0 elsewhere; minus the KL where it is in the reward.
    pub fn rewards(&self) -> &[f64] {
        &self.rewards
    }

    /// One reward per turn, if the rewards grade turns. [`MtGrpo`](super::MtGrpo) and [`Gae`](super::Gae) read them.
    pub fn turn_rewards(&self) -> Option<&[f64]> {
        self.turn_rewards.as_deref()
    }

    /// The log-probabilities of the tokens under the policy that played, 0 off the mask: those recorded when they were
    /// sampled, or those of training with `rl.importance_cap`.
    pub fn log_probs(&self) -> &[f32] {
        &self.log_probs
    }

    /// The log-probabilities under the frozen reference policy, at the same temperature.
    pub fn reference_log_probs(&self) -> Option<&[f32]> {
        self.reference_log_probs.as_deref()
    }

    /// The reward of a greedy trajectory of the same task, if one was played.
    pub fn baseline(&self) -> Option<f64> {
        self.baseline
    }

    /// The values of a critic, if [`Sample::with_values`] added them.
    pub fn values(&self) -> Option<&[f32]> {
        self.values.as_deref()
    }

    /// True if the trajectory is excluded.
    pub fn excluded(&self) -> bool {
        self.excluded
    }

    /// The sum of all rewards.
    pub fn total_reward(&self) -> f64 {
        self.rewards.iter().sum()
    }

    /// Number of model tokens.
    pub fn model_tokens(&self) -> usize {
        self.mask.iter().filter(|seen| **seen).count()
    }
}

#[cfg(test)]
impl Sample {
    pub(crate) fn from_mask(group: usize, mask: &[bool], reward: f64) -> Self {
        let mut turns: Vec<Range<usize>> = Vec::new();
        for i in (0..mask.len()).filter(|i| mask[*i]) {
            match turns.last_mut() {
                Some(turn) if turn.end == i => turn.end += 1,
                _ => turns.push(i..i + 1),
            }
        }
        Self::build(group, mask.to_vec(), turns, reward)
    }

    pub(crate) fn with_turn_rewards(mut self, rewards: Vec<f64>) -> Self {
        assert_eq!(rewards.len(), self.turns.len(), "one reward per turn");
        self.turn_rewards = Some(rewards);
        self
    }

    pub(crate) fn with_outcome(mut self, reward: f64) -> Self {
        let turns = self.turns.clone();
        let fresh = Self::build(self.group, self.mask.clone(), turns, reward);
        self.rewards = fresh.rewards;
        self
    }

    pub(crate) fn without_observations(&self) -> Self {
        fn kept<T: Copy>(numbers: &[T], mask: &[bool]) -> Vec<T> {
            let seen = numbers.iter().zip(mask).filter(|(_, seen)| **seen);
            seen.map(|(number, _)| *number).collect()
        }
        let keep = |numbers: &[f32]| kept(numbers, &self.mask);
        let mut end = 0;
        let turns = self.turns.iter().map(|turn| {
            let start = end;
            end += turn.len();
            start..end
        });
        let (turns, mask) = (turns.collect(), vec![true; self.model_tokens()]);
        let mut bare = Self::build(self.group, mask, turns, 0.0);
        bare.rewards = kept(&self.rewards, &self.mask);
        bare.turn_rewards.clone_from(&self.turn_rewards);
        bare.log_probs = keep(&self.log_probs);
        bare.reference_log_probs = self.reference_log_probs.as_deref().map(keep);
        bare.values = self.values.as_deref().map(keep);
        bare.with_baseline(self.baseline)
            .with_excluded(self.excluded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::two_turns;

    fn graded(reward: f64, turns: Option<Vec<f64>>) -> Result<Sample, SampleError> {
        let score = Score {
            reward,
            turn_rewards: turns,
            ..Score::default()
        };
        Sample::from_graded(0, &two_turns(0, 0, 11), &score).map(|(sample, _)| sample)
    }

    #[test]
    fn rewards_of_turns_are_as_many_as_the_turns() {
        let sample = graded(1.0, Some(vec![0.5, -0.5])).unwrap();
        assert_eq!(sample.turn_rewards(), Some(&[0.5, -0.5][..]));
        assert_eq!(graded(1.0, None).unwrap().turn_rewards(), None);
        let error = graded(1.0, Some(vec![0.5])).unwrap_err();
        assert!(
            matches!(
                error,
                SampleError::Turns {
                    turns: 2,
                    rewards: 1,
                    ..
                }
            ),
            "{error}"
        );
    }

    #[test]
    fn rewards_that_are_no_numbers_or_too_large_are_refused() {
        for bad in [f64::NAN, f64::INFINITY, -1e31] {
            for (reward, turns) in [(bad, None), (1.0, Some(vec![0.0, bad]))] {
                let error = graded(reward, turns).unwrap_err();
                assert!(matches!(error, SampleError::Reward { .. }), "{error}");
            }
        }
    }
}
