//! A group: the samples of one task in one step, with their scores.

use std::sync::Arc;

use crate::score::Graded;
use crate::task::Task;
use crate::trajectory::Trajectory;

/// The samples of one task in one step.
#[derive(Debug, Clone)]
pub struct Group {
    /// The task that all of them tried.
    pub task: Arc<Task>,
    /// In sample order.
    pub trajectories: Vec<Trajectory>,
    /// One per trajectory, in order.
    pub scores: Vec<Graded>,
    /// The reward of a greedy trajectory of the task, if one was played to compare with.
    pub baseline: Option<f64>,
}
