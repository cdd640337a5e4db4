//! The trait to implement to watch a run: progress, evaluations, interruption.

use async_trait::async_trait;
use rlf_policy::Model;

use crate::metrics::MetricsLine;
use crate::phase::Phase;
use crate::rollouts::BoxError;
use crate::run::Metrics;

/// An observer's decision after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NextStep {
    /// Continue the run.
    #[default]
    Continue,
    /// Save and stop the run, so that it can be resumed.
    Interrupt,
    /// As [`NextStep::Interrupt`], although the observer was not done with the step, for example because it broke off an
    /// evaluation. A resumed run shows it the step again, without the lines that it wrote this time.
    Abandon,
    /// Stop the run and save no checkpoint, for a run that nobody goes on with.
    Leave,
}

/// An observer's report on a step.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Seen {
    /// The decision about the next step.
    pub next: NextStep,
    /// The success on the validation split, from 0 to 1, if it was measured after this step.
    pub validated: Option<f64>,
}

impl From<NextStep> for Seen {
    fn from(next: NextStep) -> Self {
        Self {
            next,
            validated: None,
        }
    }
}

/// A step that is done.
pub struct StepDone<'a> {
    /// The phase.
    pub phase: Phase,
    /// Steps done in the phase, at least 1.
    pub step: u64,
    /// The step's line, which is already written. None if the step was done before the run was resumed, or was shown
    /// before.
    pub line: Option<&'a MetricsLine>,
    /// Number of steps of this phase: those that are done, if it ends early.
    pub steps: u64,
    /// The policy after the update.
    pub model: &'a Model,
    /// The run's metrics, for the observer's own lines, such as evaluations.
    pub metrics: &'a mut Metrics,
}

impl StepDone<'_> {
    /// True if the phase has no more steps.
    pub fn is_last(&self) -> bool {
        self.step >= self.steps
    }
}

/// Watches a run.
///
/// An observer runs before the step's checkpoint is written, so that its lines are part of the
/// checkpoint. Evaluations at the end of a phase belong here. Its decisions must follow from the
/// weights and the step, or a resumed run differs from an uninterrupted one
/// (interruptions, [`Observer::stops_run`] and [`Observer::step_abandoned`] excepted).
#[async_trait]
pub trait Observer: Send + Sync {
    /// Called after every step. Called again, with the step as the last one, if the phase ends early because of what the
    /// observer saw.
    async fn after_step(&mut self, step: StepDone<'_>) -> Result<Seen, BoxError>;

    /// True if the run stops after the step that was just made, as after [`NextStep::Interrupt`]. It is asked before
    /// [`Observer::after_step`]. Steps that are played ahead are then broken off first, so that evaluations do not wait
    /// for them. Default: false.
    fn stops_run(&self) -> bool {
        false
    }

    /// The last step that is worth playing, for an observer that leaves the run after it. Steps after it are not played
    /// ahead. Default: no limit.
    fn last_step(&self) -> u64 {
        u64::MAX
    }

    /// Completes when the step under way is to be abandoned. RL then breaks off the rollout, or stops before its next
    /// update. The step's updates are discarded, and a resumed run repeats it as a whole. Default: never.
    async fn step_abandoned(&self) {
        std::future::pending::<()>().await;
    }
}

/// An observer that does nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unobserved;

#[async_trait]
impl Observer for Unobserved {
    async fn after_step(&mut self, _: StepDone<'_>) -> Result<Seen, BoxError> {
        Ok(Seen::default())
    }
}
