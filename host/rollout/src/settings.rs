//! The settings of a rollout, and the place of each trajectory in it.

use rlf_dialogue::split::Split;
use rlf_dialogue::task::Task;
use rlf_policy::Sampler;

/// The settings of one rollout: how to sample, and the keys of all its randomness.
#[derive(Debug, Clone)]
pub struct RolloutSettings {
    /// Draws tokens. Keyed by the run's seed, and by a purpose that keeps training and evaluation apart.
    pub sampler: Sampler,
    /// The run's seed, from which tools get their randomness.
    pub seed: u64,
    /// Training step, 0 before the first.
    pub step: u64,
    /// Planned steps of the run; 0 outside training.
    pub steps: u64,
    /// The split that the tasks belong to.
    pub split: Split,
}

impl RolloutSettings {
    /// The id of a trajectory, which is unique within a run.
    pub(crate) fn trajectory_id(&self, task: &Task, index: TrajectoryIndex) -> String {
        let sample = if self.sampler.params().is_greedy() {
            "greedy".to_owned()
        } else {
            index.sample.to_string()
        };
        // With the task's number: at the border of two epochs one row may come twice in a step.
        format!(
            "{}-{}/{}:{}/{sample}",
            self.split, self.step, index.task, task.id
        )
    }
}

/// The place of a trajectory in its rollout. Everything random in the trajectory follows from it.
#[derive(Debug, Clone, Copy)]
pub struct TrajectoryIndex {
    /// The task's number: see [`NumberedTask`](rlf_dialogue::task::NumberedTask).
    pub task: u64,
    /// Index of the sample within its group.
    pub sample: u64,
}
