//! Experience replay: good groups of earlier steps train again.
//!
//! Playing is most of the cost of a step, and a group that was played trains once. Tool-R1 (arXiv:2509.12867) keeps
//! good trajectories in a queue and trains on them again. Arnal et al. (arXiv:2604.08706) study how old they may be. Here
//! a group is good if its rewards differ, because only then does it tell better trajectories from worse ones.
//!
//! Older weights sampled these trajectories, so their tokens are weighed by importance: see the module `importance`.
//! Their advantages compare them with their own group.

use std::collections::VecDeque;
use std::path::Path;

use rlf_dialogue::group::Group;
use rlf_dialogue::score::Score;
use rlf_dialogue::trajectory::TrainingSequence;
use serde::{Deserialize, Serialize};

use crate::batch::Batch;
use crate::config::{IMPORTANCE_CAP, ReplayBufferConfig};
use crate::error::TrainError;
use crate::minibatch::shuffled;
use crate::run::{Checkpoint, REPLAY, RunError, read_state, write_state};
use crate::training_set::{StepModels, TrainingSet};

/// The place of the draws of groups among those that order a step's mini-batches.
const DRAW: u64 = u64::MAX;

/// A group that may train again.
#[derive(Debug, Serialize, Deserialize)]
struct KeptGroup {
    /// The step that played it, from 0.
    step: u64,
    /// Id of its task.
    task: String,
    trajectories: Vec<KeptTrajectory>,
}

/// The parts of a trajectory that training reads.
#[derive(Debug, Serialize, Deserialize)]
struct KeptTrajectory {
    id: String,
    sequences: Vec<TrainingSequence>,
    score: Score,
}

/// The good groups of the last steps, oldest first.
#[derive(Debug, Default)]
pub(crate) struct ReplayBuffer {
    /// None if nothing is kept.
    config: Option<ReplayBufferConfig>,
    kept: VecDeque<KeptGroup>,
}

/// Groups of earlier steps that a step trains on.
pub(crate) struct ReplayedGroups {
    pub(crate) set: TrainingSet,
    pub(crate) count: usize,
    /// Their mean age in steps.
    pub(crate) age: f64,
}

impl ReplayBuffer {
    /// The buffer of a run with these settings: that of the checkpoint `resumed`, or an empty one.
    pub(crate) fn new(
        config: Option<&ReplayBufferConfig>,
        resumed: Option<&Checkpoint>,
    ) -> Result<Self, TrainError> {
        let kept = match (config, resumed) {
            (Some(_), Some(checkpoint)) => read_state(&checkpoint.path, REPLAY)?,
            _ => None,
        };
        Ok(Self {
            config: config.cloned(),
            kept: kept.unwrap_or_default(),
        })
    }

    /// Draws the groups that `step` replays, and computes what the loss reads of them. None if nothing is kept.
    pub(crate) fn replay(
        &self,
        seed: u64,
        step: u64,
        models: &StepModels<'_>,
    ) -> Result<Option<ReplayedGroups>, TrainError> {
        let drawn = self.draw(seed, step);
        if drawn.is_empty() {
            return Ok(None);
        }
        let mut batch = Batch::of_scored(drawn.iter().map(|group| {
            let trajectories = group.trajectories.iter();
            trajectories.map(|one| (one.id.as_str(), one.sequences.as_slice(), &one.score))
        }))?;
        if let Some(overlong) = models.config.overlong {
            overlong.punish(&mut batch);
        }
        let cap = models.config.importance_cap.unwrap_or(IMPORTANCE_CAP);
        let ages: u64 = drawn
            .iter()
            .map(|group| step.saturating_sub(group.step))
            .sum();
        Ok(Some(ReplayedGroups {
            set: TrainingSet::new(batch, Some(cap), models)?,
            count: drawn.len(),
            age: ages as f64 / drawn.len() as f64,
        }))
    }

    /// The groups that `step` replays, oldest first.
    fn draw(&self, seed: u64, step: u64) -> Vec<&KeptGroup> {
        let Some(config) = &self.config else {
            return Vec::new();
        };
        // A resumed run may have a lower limit than the one that kept them.
        let is_young = |group: &&KeptGroup| group.step + config.max_age >= step;
        let young: Vec<&KeptGroup> = self.kept.iter().filter(is_young).collect();
        let mut drawn = shuffled(seed, step, DRAW, young.len());
        drawn.truncate(config.groups_per_step);
        drawn.sort_unstable();
        drawn.into_iter().map(|i| young[i]).collect()
    }

    /// Keeps the good ones of the groups that `step` played, and forgets those that are too old or too many. Of one task,
    /// only the newest good group is kept.
    pub(crate) fn add(&mut self, step: u64, groups: Vec<Group>) {
        let Some(config) = &self.config else {
            return;
        };
        for group in groups {
            let task = group.task.id.clone();
            if let Some(trajectories) = trained_if_good(group) {
                self.kept.retain(|kept| kept.task != task);
                self.kept.push_back(KeptGroup {
                    step,
                    task,
                    trajectories,
                });
            }
        }
        let next = step + 1;
        self.kept.retain(|kept| kept.step + config.max_age >= next);
        let superfluous = self.kept.len().saturating_sub(config.most_groups());
        self.kept.drain(..superfluous);
    }

    /// Writes the buffer into the folder of an unfinished checkpoint.
    pub(crate) fn save(&self, checkpoint: &Path) -> Result<(), RunError> {
        if self.config.is_none() {
            return Ok(());
        }
        write_state(checkpoint, REPLAY, &self.kept)
    }
}

/// The trajectories of a group that train. None if their rewards are all the same.
fn trained_if_good(group: Group) -> Option<Vec<KeptTrajectory>> {
    let graded = group.trajectories.into_iter().zip(group.scores);
    let kept = graded.filter_map(|(trajectory, score)| {
        let score = score.ok()?;
        let trains = trajectory.excluded.is_none() && trajectory.model_tokens() > 0;
        trains.then_some(KeptTrajectory {
            id: trajectory.id,
            sequences: trajectory.sequences,
            score: Score {
                reward: score.reward,
                turn_rewards: score.turn_rewards,
                ..Score::default()
            },
        })
    });
    let kept: Vec<KeptTrajectory> = kept.collect();
    let first = kept.first()?.score.reward;
    let differ = kept.iter().any(|one| one.score.reward != first);
    differ.then_some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{group, scored, two_turns, unscored};

    fn buffer(groups_per_step: usize, max_age: u64) -> ReplayBuffer {
        let config = ReplayBufferConfig {
            groups_per_step,
            max_age,
        };
        ReplayBuffer::new(Some(&config), None).unwrap()
    }

    /// A group of the task with this index, whose trajectories have these rewards.
    fn with_rewards(task: usize, rewards: &[f64]) -> Group {
        let trajectories = (0..rewards.len()).map(|i| two_turns(task, i, 11)).collect();
        group(
            task,
            trajectories,
            rewards.iter().map(|r| scored(*r)).collect(),
        )
    }

    fn good(task: usize) -> Group {
        with_rewards(task, &[1.0, 0.0])
    }

    fn tasks(buffer: &ReplayBuffer, seed: u64, step: u64) -> Vec<&str> {
        let drawn = buffer.draw(seed, step).into_iter();
        drawn.map(|group| group.task.as_str()).collect()
    }

    #[test]
    fn only_groups_that_tell_trajectories_apart_are_kept_and_only_the_newest_of_a_task() {
        let mut buffer = buffer(9, 9);
        let equal = with_rewards(1, &[0.5, 0.5]);
        let mut unscored_winner = good(4);
        unscored_winner.scores[0] = unscored("the judge was unavailable");
        let alone = with_rewards(3, &[1.0]);
        buffer.add(0, vec![good(0), equal, good(2), alone, unscored_winner]);
        assert_eq!(tasks(&buffer, 1, 1), ["task-0", "task-2"]);
        buffer.add(
            1,
            vec![with_rewards(0, &[0.0, 0.3]), with_rewards(2, &[0.0, 0.0])],
        );
        assert_eq!(tasks(&buffer, 1, 3), ["task-2", "task-0"]);
        let newest = &buffer.draw(1, 3)[1].trajectories;
        let rewards: Vec<f64> = newest.iter().map(|one| one.score.reward).collect();
        assert_eq!(rewards, [0.0, 0.3]);
    }

    #[test]
    fn a_group_is_drawn_until_it_is_too_old_or_newer_ones_are_enough() {
        let mut buffer = buffer(9, 2);
        buffer.add(0, vec![good(0)]);
        buffer.add(1, vec![good(1)]);
        assert_eq!(tasks(&buffer, 1, 2), ["task-0", "task-1"]);
        buffer.add(2, Vec::new());
        assert_eq!(tasks(&buffer, 1, 3), ["task-1"]);
        buffer.add(3, Vec::new());
        assert!(tasks(&buffer, 1, 4).is_empty());
        // Two steps of nine groups are at most 18.
        buffer.add(4, (0..20).map(good).collect());
        assert_eq!(buffer.kept.len(), 18);
        assert_eq!(buffer.kept[0].task, "task-2");
    }

    #[test]
    fn draws_follow_from_the_seed_and_the_step_and_reach_every_group() {
        let mut buffer = buffer(3, 99);
        buffer.add(0, (0..12).map(good).collect());
        let mut seen = std::collections::BTreeSet::new();
        for step in 1..30 {
            let drawn = tasks(&buffer, 7, step);
            assert_eq!(drawn, tasks(&buffer, 7, step));
            assert_eq!(drawn.len(), 3);
            seen.extend(drawn);
        }
        assert_eq!(seen.len(), 12);
        assert_ne!(tasks(&buffer, 7, 1), tasks(&buffer, 8, 1));
    }

    #[test]
    fn a_checkpoint_has_nothing_but_what_training_reads() {
        let mut buffer = buffer(3, 9);
        let mut group = good(0);
        group.trajectories[0].answer = Some("a long text".into());
        buffer.add(0, vec![group]);
        let folder = tempfile::tempdir().unwrap();
        buffer.save(folder.path()).unwrap();
        let text = std::fs::read_to_string(folder.path().join(REPLAY)).unwrap();
        assert!(
            text.contains("log_probs") && !text.contains("a long text"),
            "{text}"
        );
        let read: Option<VecDeque<KeptGroup>> = read_state(folder.path(), REPLAY).unwrap();
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }

    #[test]
    fn without_settings_nothing_is_kept() {
        let mut buffer = ReplayBuffer::new(None, None).unwrap();
        buffer.add(0, vec![good(0)]);
        assert!(buffer.kept.is_empty());
    }
}
