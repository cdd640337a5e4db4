//! What of the learner goes into a checkpoint, and when.

use rlf_policy::{AdamW, AdamWConfig, Model};

use crate::checkpoint::TrainerState;
use crate::error::TrainError;
use crate::metrics::Phase;
use crate::phase::{Begin, Control, PhaseEnd};
use crate::run::RunDirectory;

const OPTIMIZER: &str = "optimizer.safetensors";

/// Saves where a checkpoint is due, and says whether the phase ends here.
pub(crate) fn after_step(
    state: &mut TrainerState,
    steps: u64,
    control: Control,
    run: &mut RunDirectory,
    model: &Model,
    optimizer: &AdamW,
) -> Result<Option<PhaseEnd>, TrainError> {
    state.finished = state.step >= steps;
    let due = state.step.is_multiple_of(run.keep().every);
    if due || state.finished || control == Control::Interrupt {
        run.checkpoint(state.clone(), |folder| {
            model.save(folder)?;
            optimizer.save(&folder.join(OPTIMIZER), model)?;
            Ok::<(), TrainError>(())
        })?;
    }
    Ok(match control {
        Control::Interrupt => Some(PhaseEnd::Interrupted),
        _ if state.finished => Some(PhaseEnd::Finished),
        Control::Continue => None,
    })
}

/// Optimiser and state at the first step, or as they were at the checkpoint.
pub(crate) fn begin(
    begin: &Begin<'_>,
    phase: Phase,
    seed: u64,
    model: &Model,
    config: AdamWConfig,
) -> Result<(AdamW, TrainerState), TrainError> {
    Ok(match begin {
        Begin::At(checkpoint) => {
            let optimizer = AdamW::load(&checkpoint.path.join(OPTIMIZER), model, config)?;
            (optimizer, checkpoint.state.clone())
        }
        Begin::Fresh | Begin::Done => (
            AdamW::new(model, config)?,
            TrainerState::new(phase, 0, seed),
        ),
    })
}

/// The policy that RL began with, frozen: saved into the run the first time, so that a resumed run
/// has the same one.
pub(crate) fn reference(run: &RunDirectory, model: &Model) -> Result<Model, TrainError> {
    let folder = run.reference(|folder| {
        model.save(folder)?;
        Ok::<(), TrainError>(())
    })?;
    let mut reference = Model::load(&folder, model.device())?;
    // Its log-probabilities are compared with the policy's, so it must compute as the policy does.
    reference.limit_vocabulary(model.vocabulary())?;
    reference.use_operators(model.operators())?;
    Ok(reference)
}
