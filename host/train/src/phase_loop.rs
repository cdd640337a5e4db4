//! The frame of both training loops: where a phase begins, when it is saved, what learns, and the reference policy.

use futures_util::FutureExt;
use rlf_policy::{AdamW, Model, OptimizerConfig};

use crate::ahead::Ahead;
use crate::critic::{Critic, CriticConfig};
use crate::error::TrainError;
use crate::metrics::MetricsLine;
use crate::observer::{NextStep, Observer, Seen, StepDone};
use crate::older_policies::OlderPolicies;
use crate::phase::{Phase, PhaseEnd};
use crate::replay_buffer::ReplayBuffer;
use crate::run::{
    Checkpoint, OPTIMIZER, RunDirectory, RunError, TrainerState, Validations, reference_path,
};

/// The configured course of a phase.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Course {
    /// Number of steps.
    pub(crate) steps: u64,
    /// Number of validations in a row without a new best success after which the phase ends early. 0: any number.
    pub(crate) patience: u64,
}

impl Course {
    fn ends_early(self, validations: &Validations) -> bool {
        self.patience > 0 && validations.since_best >= self.patience
    }
}

/// Parts of a phase that its checkpoints hold besides the model's weights.
pub(crate) struct Learner {
    /// The optimiser of the model's weights.
    pub(crate) policy: AdamW,
    /// The critic of PPO.
    pub(crate) critic: Option<Critic>,
    /// The policies that play with `rl.staleness`. None at first.
    pub(crate) older: OlderPolicies,
    /// The groups that train again with `rl.replay_buffer`. None at first.
    pub(crate) replay: ReplayBuffer,
}

/// The optimiser, the critic if `critic` has settings for one, and the trainer's state with which a phase begins: those of
/// the checkpoint `resumed` if it is within the phase, else new ones. None if the phase is already done. The course may be
/// longer than when the phase finished.
pub(crate) fn start(
    phase: Phase,
    course: Course,
    resumed: Option<&Checkpoint>,
    seed: u64,
    model: &Model,
    config: OptimizerConfig,
    critic: Option<&CriticConfig>,
) -> Result<Option<(Learner, TrainerState)>, TrainError> {
    let Some(Checkpoint { path, state }) = resumed.filter(|point| point.state.phase >= phase)
    else {
        let critic = critic.map(|critic| Critic::new(critic, config, model));
        let learner = Learner {
            policy: AdamW::new(model, config)?,
            critic: critic.transpose()?,
            older: OlderPolicies::default(),
            replay: ReplayBuffer::default(),
        };
        return Ok(Some((learner, TrainerState::new(phase, 0, seed))));
    };
    let ended_early = state.ended_early && course.ends_early(&state.validations);
    let finished = (state.step >= course.steps || ended_early) && !state.unobserved;
    if state.phase > phase || finished {
        return Ok(None);
    }
    let critic = critic.map(|critic| Critic::load(path, critic, config, model));
    let learner = Learner {
        policy: AdamW::load(&path.join(OPTIMIZER), model, config)?,
        critic: critic.transpose()?,
        older: OlderPolicies::default(),
        replay: ReplayBuffer::default(),
    };
    Ok(Some((learner, state.clone())))
}

/// Ends a step whose line is written: shows it to the observer, and saves a checkpoint if one is due. Returns how the
/// phase ends if it ends here. `line` is None for a step that was done before the run was resumed. `ahead` has the steps
/// that are under way meanwhile.
#[allow(clippy::too_many_arguments)] // Each is a different part of the run.
pub(crate) async fn after_step(
    observer: &mut dyn Observer,
    ahead: &mut Ahead,
    line: Option<&MetricsLine>,
    course: Course,
    state: &mut TrainerState,
    run: &mut RunDirectory,
    model: &Model,
    learner: &Learner,
) -> Result<Option<PhaseEnd>, TrainError> {
    state.metrics = run.metrics().position();
    let mut seen = show(observer, ahead, line, course.steps, state, run, model).await?;
    let mut validations = state.validations;
    let success = seen.validated;
    let is_best = success.is_some_and(|success| validations.add(state.step, success));
    let ends_early = course.ends_early(&validations)
        && state.step < course.steps
        && seen.next != NextStep::Abandon;
    if ends_early {
        seen = show(observer, ahead, None, state.step, state, run, model).await?;
    }
    let next = seen.next;
    state.unobserved = next == NextStep::Abandon;
    if !state.unobserved {
        // A resumed run sees an abandoned step again.
        state.validations = validations;
        state.ended_early = ends_early;
    }
    state.finished = (state.step >= course.steps || state.ended_early) && !state.unobserved;
    let due = state.step.is_multiple_of(run.keep().every) || is_best && run.keep().keep_best;
    let saves = due || state.finished || next != NextStep::Continue;
    if saves && next != NextStep::Leave {
        save(state, run, model, learner)?;
    }
    Ok(match next {
        NextStep::Interrupt | NextStep::Abandon | NextStep::Leave => Some(PhaseEnd::Interrupted),
        _ if state.finished => Some(PhaseEnd::Finished),
        NextStep::Continue => None,
    })
}

/// Shows the last step to the observer, as one of `steps`. If no further step is played, those under way are broken off
/// first, because an evaluation waits for them.
async fn show(
    observer: &mut dyn Observer,
    ahead: &mut Ahead,
    line: Option<&MetricsLine>,
    steps: u64,
    state: &TrainerState,
    run: &mut RunDirectory,
    model: &Model,
) -> Result<Seen, TrainError> {
    let (phase, step) = (state.phase, state.step);
    let stops = observer.stops_run();
    if stops || step >= steps {
        ahead.break_off();
    }
    let done = StepDone {
        phase,
        step,
        line,
        steps,
        model,
        metrics: run.metrics(),
    };
    let seen = observer.after_step(done).await;
    let mut seen = seen.map_err(|source| TrainError::Observer {
        phase,
        step,
        source,
    })?;
    if stops && seen.next == NextStep::Continue {
        seen.next = NextStep::Interrupt;
    }
    Ok(seen)
}

/// True if the observer abandons the step under way.
pub(crate) fn is_abandoned(observer: &dyn Observer) -> bool {
    observer.step_abandoned().now_or_never().is_some()
}

/// Ends a phase inside a step, whose updates are discarded: the run resumes from its newest checkpoint. If the step has
/// made no update yet, the weights are those after `state.step` steps, and are saved first.
pub(crate) fn abandon_step(
    updates: u64,
    state: &TrainerState,
    run: &mut RunDirectory,
    model: &Model,
    learner: &Learner,
) -> Result<PhaseEnd, TrainError> {
    if updates == 0 && state.step > 0 && !run.has_checkpoint(state) {
        save(state, run, model, learner)?;
    }
    Ok(PhaseEnd::Interrupted)
}

fn save(
    state: &TrainerState,
    run: &mut RunDirectory,
    model: &Model,
    learner: &Learner,
) -> Result<(), TrainError> {
    run.checkpoint(state.clone(), |folder| {
        model.save(folder)?;
        learner.policy.save(&folder.join(OPTIMIZER), model)?;
        if let Some(critic) = &learner.critic {
            critic.save(folder)?;
        }
        learner.replay.save(folder)?;
        learner.older.save(folder, state.step)
    })?;
    Ok(())
}

/// Refuses a loss with which no update can be made.
pub(crate) fn refuse_not_finite(phase: Phase, step: u64, loss: f64) -> Result<(), TrainError> {
    if loss.is_finite() {
        return Ok(());
    }
    Err(TrainError::NotFinite { phase, step, loss })
}

/// The reference policy: a frozen copy of the policy that RL began with. It is saved into the run before the first of RL's
/// steps, of which `steps` are done, so that a resumed run has the same one. Of a policy with adapters, it saves and copies
/// those alone.
pub(crate) fn reference(
    run: &RunDirectory,
    model: &Model,
    steps: u64,
) -> Result<Model, TrainError> {
    let path = reference_path(run.path());
    if steps > 0 && !path.exists() {
        return Err(RunError::NoReference { path }.into());
    }
    let folder = run.reference(|folder| {
        model.save(folder)?;
        Ok::<(), TrainError>(())
    })?;
    // Its log-probabilities are compared with the policy's, so it must use the same operators and numbers.
    Ok(model.reload_frozen(&folder)?)
}
