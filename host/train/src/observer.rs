//! The trait to implement to watch a run: progress, evaluations, interruption.

use async_trait::async_trait;
use rlf_policy::Model;

use crate::metrics::Line;
use crate::phase::Phase;
use crate::rollouts::BoxError;
use crate::run::Metrics;

/// An observer's decision after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Control {
    /// Continue the run.
    #[default]
    Continue,
    /// Save and stop the run, so that it can be resumed.
    Interrupt,
}

/// A step that has just been done.
pub struct StepDone<'a> {
    /// The step's line, which is already written.
    pub line: &'a Line,
    /// Number of steps of this phase.
    pub steps: u64,
    /// The policy after the update.
    pub model: &'a Model,
    /// The run's metrics, for the observer's own lines, such as evaluations.
    pub metrics: &'a mut Metrics,
}

impl StepDone<'_> {
    /// The phase.
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

/// Watches a run.
///
/// An observer runs before the step's checkpoint is written, so that its lines are part of the
/// checkpoint. Evaluations at the end of a phase belong here. Its decisions must follow from the
/// weights and the step, or a resumed run differs from an uninterrupted one
/// ([`Control::Interrupt`] and [`Observer::abandons_step`] excepted).
#[async_trait]
pub trait Observer: Send {
    /// Called after every step.
    async fn after_step(&mut self, step: StepDone<'_>) -> Result<Control, BoxError>;

    /// Whether the step under way is abandoned: RL asks before each of its updates, so that nobody waits for more than one.
    /// The step's updates are discarded, and a resumed run repeats it as a whole. Default: no.
    fn abandons_step(&self) -> bool {
        false
    }
}

/// An observer that does nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

#[async_trait]
impl Observer for Unobserved {
    async fn after_step(&mut self, _: StepDone<'_>) -> Result<Control, BoxError> {
        Ok(Control::Continue)
    }
}
