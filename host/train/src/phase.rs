//! What both loops share: where a phase begins, who watches it, how it ends.

use async_trait::async_trait;
use rlf_policy::Model;

use crate::checkpoint::Checkpoint;
use crate::metrics::{Line, Metrics, Phase};
use crate::rollouts::BoxError;

/// How a phase ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PhaseEnd {
    /// All its steps are done.
    Finished,
    /// The observer asked to stop; the run can be resumed.
    Interrupted,
    /// The checkpoint resumed from lies behind it, so nothing was done.
    AlreadyDone,
}

/// What an observer wants after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Control {
    /// Go on.
    #[default]
    Continue,
    /// Save and stop the run, to be resumed.
    Interrupt,
}

/// A step that has just been done.
pub struct StepDone<'a> {
    /// What was measured; already written.
    pub line: &'a Line,
    /// Steps this phase has.
    pub steps: u64,
    /// The policy after the update.
    pub model: &'a Model,
    /// For lines of the observer's own, such as evaluations.
    pub metrics: &'a mut Metrics,
}

impl StepDone<'_> {
    /// Which stage.
    pub fn phase(&self) -> Phase {
        self.line.phase()
    }

    /// Steps done, at least 1.
    pub fn step(&self) -> u64 {
        self.line.step()
    }

    /// Whether the phase has no more steps.
    pub fn is_last(&self) -> bool {
        self.step() >= self.steps
    }
}

/// Watches a run: progress, evaluations, interruption.
///
/// It runs before the step's checkpoint is written, so that what it writes to the metrics is part of the
/// checkpoint, and evaluations at the end of a phase belong here. What it decides must follow from
/// the weights and the step, or a resumed run will not be the same as an uninterrupted one
/// ([`Control::Interrupt`] excepted).
#[async_trait]
pub trait Observer: Send {
    /// Called after every step.
    async fn after_step(&mut self, step: StepDone<'_>) -> Result<Control, BoxError>;
}

/// Watches nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

#[async_trait]
impl Observer for Unobserved {
    async fn after_step(&mut self, _: StepDone<'_>) -> Result<Control, BoxError> {
        Ok(Control::Continue)
    }
}

/// Where a phase begins, given the checkpoint the run resumed from.
pub(crate) enum Begin<'a> {
    /// It is behind us.
    Done,
    /// At its first step.
    Fresh,
    /// In its middle.
    At(&'a Checkpoint),
}

impl<'a> Begin<'a> {
    /// `steps` is what the phase is to have, which may be more than when it was finished.
    pub(crate) fn of(phase: Phase, steps: u64, resumed: Option<&'a Checkpoint>) -> Self {
        match resumed {
            Some(checkpoint) if checkpoint.state.phase > phase => Self::Done,
            Some(checkpoint) if checkpoint.state.phase == phase => {
                if checkpoint.state.step >= steps {
                    Self::Done
                } else {
                    Self::At(checkpoint)
                }
            }
            _ => Self::Fresh,
        }
    }
}
