//! Demonstrations for SFT: their sources, and how they are played.

pub(crate) mod batches;
pub(crate) mod gold;
pub mod reference;
pub(crate) mod turns;

use std::sync::Arc;

use rlf_dialogue::task::Task;
use rlf_rollout::demonstrate::Demonstrator;

use crate::error::TasksError;

/// One demonstration of how a task is solved.
pub enum SftDemonstration {
    /// A demonstrator that plays the task against the real tools.
    Played(Arc<Task>, Box<dyn Demonstrator>),
    /// A conversation of a data set.
    Written(Arc<rlf_import::Demonstration>),
}

/// The demonstrations of a run, by number.
pub trait DemonstrationSet: Send + Sync {
    /// Number of demonstrations before they repeat.
    fn per_epoch(&self) -> u64;

    /// The `number`-th demonstration over all epochs. Each epoch has its own order.
    fn get(&self, number: u64) -> Result<SftDemonstration, TasksError>;
}
