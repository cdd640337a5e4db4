//! Experience replay: good groups of earlier steps train again.
//!
//! Playing is most of the cost of a step, and a group that was played trains once. Tool-R1 (arXiv:2509.12867) keeps
//! good trajectories in a queue and trains on them again; Arnal et al. (arXiv:2604.08706) study how old they may be. Here
//! a group is good if its rewards differ, because only then does it tell better trajectories from worse ones.
//!
//! Older weights sampled these trajectories, so their tokens are weighed by importance: see the module `importance`.
//! Their advantages compare them with their own group, as when they were played.

use std::collections::VecDeque;
use std::path::Path;

use rlf_dialogue::group::Group;
use serde::{Deserialize, Serialize};

use crate::config::ReplayBufferConfig;
use crate::curriculum::is_constant;
use crate::error::TrainError;
use crate::minibatch::shuffled;
use crate::run::{Checkpoint, REPLAY, RunError, read_state, write_state};

/// The bound of the importance of a token if `rl.importance_cap` has none.
pub const IMPORTANCE_CAP: f64 = 2.0;

/// The place of the draws of groups among those that order a step's mini-batches.
const DRAW: u64 = u64::MAX;

/// A group that may train again.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct KeptGroup {
    /// The step that played it, from 0.
    step: u64,
    group: Group,
}

/// The good groups of the last steps, oldest first.
#[derive(Debug, Default)]
pub(crate) struct ReplayBuffer {
    /// None if nothing is kept.
    config: Option<ReplayBufferConfig>,
    kept: VecDeque<KeptGroup>,
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

    /// The groups of earlier steps that `step` trains on, and their mean age in steps. None if there are none.
    pub(crate) fn draw(&self, seed: u64, step: u64) -> Option<(Vec<Group>, f64)> {
        let config = self.config.as_ref()?;
        let mut drawn = shuffled(seed, step, DRAW, self.kept.len());
        drawn.truncate(config.groups_per_step);
        drawn.sort_unstable();
        let drawn: Vec<&KeptGroup> = drawn.into_iter().map(|i| &self.kept[i]).collect();
        let ages: u64 = drawn.iter().map(|kept| step - kept.step).sum();
        let mean_age = ages as f64 / drawn.len() as f64;
        let groups = drawn.iter().map(|kept| kept.group.clone()).collect();
        (!drawn.is_empty()).then_some((groups, mean_age))
    }

    /// Keeps the good ones of the groups that `step` played, and forgets those that are too old. Of one task, only the
    /// newest group is kept.
    pub(crate) fn add(&mut self, step: u64, groups: Vec<Group>) {
        let Some(config) = &self.config else {
            return;
        };
        for group in groups {
            if is_constant(&group) == Some(false) {
                self.kept.retain(|kept| kept.group.task.id != group.task.id);
                self.kept.push_back(KeptGroup { step, group });
            }
        }
        let next = step + 1;
        self.kept.retain(|kept| kept.step + config.max_age >= next);
    }

    /// Writes it into the folder of a checkpoint in the making.
    pub(crate) fn save(&self, checkpoint: &Path) -> Result<(), RunError> {
        if self.config.is_none() {
            return Ok(());
        }
        write_state(checkpoint, REPLAY, &self.kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::{group, scored, two_turns};

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

    fn tasks(drawn: Option<(Vec<Group>, f64)>) -> Vec<String> {
        let groups = drawn.map(|(groups, _)| groups).unwrap_or_default();
        groups
            .into_iter()
            .map(|group| group.task.id.clone())
            .collect()
    }

    #[test]
    fn only_groups_that_tell_trajectories_apart_are_kept_and_only_the_newest_of_a_task() {
        let mut buffer = buffer(9, 9);
        assert!(buffer.draw(1, 0).is_none());
        let equal = with_rewards(1, &[0.5, 0.5]);
        buffer.add(0, vec![good(0), equal, good(2), with_rewards(3, &[1.0])]);
        assert_eq!(tasks(buffer.draw(1, 1)), ["task-0", "task-2"]);
        buffer.add(1, vec![with_rewards(0, &[0.0, 0.3])]);
        let (groups, age) = buffer.draw(1, 3).unwrap();
        assert_eq!(groups[1].scores, [scored(0.0), scored(0.3)]);
        assert_eq!(age, 2.5, "task 2 is three steps old, and task 0 two");
        assert_eq!(tasks(Some((groups, age))), ["task-2", "task-0"]);
    }

    #[test]
    fn a_group_is_drawn_until_it_is_too_old() {
        let mut buffer = buffer(9, 2);
        buffer.add(0, vec![good(0)]);
        buffer.add(1, vec![good(1)]);
        assert_eq!(tasks(buffer.draw(1, 2)), ["task-0", "task-1"]);
        buffer.add(2, Vec::new());
        assert_eq!(tasks(buffer.draw(1, 3)), ["task-1"]);
        buffer.add(3, Vec::new());
        assert!(buffer.draw(1, 4).is_none());
    }

    #[test]
    fn draws_follow_from_the_seed_and_the_step_and_reach_every_group() {
        let mut buffer = buffer(3, 9);
        buffer.add(0, (0..12).map(good).collect());
        let mut seen = std::collections::BTreeSet::new();
        for step in 1..30 {
            let drawn = tasks(buffer.draw(7, step));
            assert_eq!(drawn, tasks(buffer.draw(7, step)));
            assert_eq!(drawn.len(), 3);
            seen.extend(drawn);
        }
        assert_eq!(seen.len(), 12);
        assert_ne!(tasks(buffer.draw(7, 1)), tasks(buffer.draw(8, 1)));
    }

    #[test]
    fn without_settings_nothing_is_kept() {
        let mut buffer = ReplayBuffer::new(None, None).unwrap();
        buffer.add(0, vec![good(0)]);
        assert!(buffer.draw(1, 1).is_none() && buffer.kept.is_empty());
    }
}
