//! The request to a reward plugin: a task, a group of its trajectories, and the step of the run.

use rlf_dialogue::split::Split;
use rlf_dialogue::task::Task;
use rlf_dialogue::trajectory::Trajectory;
use rlf_plugins::bindings::{reward, types};
use rlf_plugins::seed;

use crate::guest_trajectory::{task_to_guest, trajectory_to_guest};

/// The time of a grading: its split and its step. Rewards with a schedule need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grading {
    /// The task's split.
    pub split: Split,
    /// Index of the run's step, from 0.
    pub step: u64,
    /// Number of planned steps of the run; 0 outside training.
    pub steps: u64,
    /// Seed of the run. The seed of each call to a reward is derived from it, the step, the task and the plugin.
    pub seed: u64,
}

/// A group in the contract's types, created once for all plugins.
pub(crate) struct GradingRequest {
    task: reward::Task,
    group: Vec<reward::Trajectory>,
    /// Number of events of each trajectory, to check the indices of per-event credit.
    events: Vec<usize>,
    grading: Grading,
}

impl GradingRequest {
    pub(crate) fn new(task: &Task, group: &[&Trajectory], grading: Grading) -> Self {
        Self {
            task: task_to_guest(task),
            group: group
                .iter()
                .map(|trajectory| trajectory_to_guest(trajectory))
                .collect(),
            events: group
                .iter()
                .map(|trajectory| trajectory.events.len())
                .collect(),
            grading,
        }
    }

    /// The request for only one trajectory of the group.
    pub(crate) fn alone(&self, index: usize) -> Self {
        Self {
            task: self.task.clone(),
            group: vec![self.group[index].clone()],
            events: vec![self.events[index]],
            grading: self.grading,
        }
    }

    /// The request for one empty trajectory of the same task.
    pub(crate) fn idle(&self) -> Self {
        let group = self.group.first().map(|trajectory| reward::Trajectory {
            events: vec![],
            answer: None,
            final_state: None,
            verdict: None,
            extra: vec![],
            ..trajectory.clone()
        });
        Self {
            task: self.task.clone(),
            group: group.into_iter().collect(),
            events: vec![0],
            grading: self.grading,
        }
    }

    pub(crate) fn task(&self) -> &reward::Task {
        &self.task
    }

    pub(crate) fn group(&self) -> &[reward::Trajectory] {
        &self.group
    }

    /// The number of events of each trajectory.
    pub(crate) fn events(&self) -> &[usize] {
        &self.events
    }

    /// The time of the grading.
    pub(crate) fn when(&self) -> Grading {
        self.grading
    }

    pub(crate) fn seed(&self, plugin: &str) -> u64 {
        let step = self.grading.step.to_string();
        seed::derive(self.grading.seed, "grade", &[plugin, &step, &self.task.id])
    }

    pub(crate) fn grading(&self, seed: u64) -> reward::Grading {
        reward::Grading {
            split: self.grading.split.to_string(),
            step: self.grading.step,
            steps: self.grading.steps,
            seed,
        }
    }
}

/// A guest's answer to a grading request.
pub(crate) type GradingResult = Result<Vec<Result<reward::Score, types::Error>>, types::Error>;
