//! The control of a run: SFT continued from where SFT ended, for as long as RL took. It separates the effect of RL from
//! the effect of more training time. The control is a complete run, in the folder `control` of the run.

use std::path::Path;
use std::sync::Arc;

use candle_core::Device;
use rlf_train::metrics::names;
use rlf_train::phase::{Phase, PhaseEnd};
use rlf_train::run::{Checkpoint, RunDirectory, RunSpec, config_path};
use rlf_train::sft;

use crate::config::RunConfig;
use crate::demonstrations::batches::DemonstrationBatches;
use crate::error::{ControlError, RunFailure};
use crate::folder::control_path;
use crate::history::RunHistory;
use crate::observer::RunObserver;
use crate::own_weights::Progress;
use crate::parts::RunParts;
use crate::reporter::{Moment, RunReporter};
use crate::weights;

/// Trains the control of the finished run in `path`.
pub(crate) async fn train(
    parts: &Arc<RunParts>,
    path: &Path,
    spec: &RunSpec,
    device: &Device,
    observer: RunObserver,
    reporter: &dyn RunReporter,
) -> Result<PhaseEnd, RunFailure> {
    let sft_end = finished(path, Phase::Sft)?;
    finished(path, Phase::Rl)?;
    let sft = parts.config.sft.as_ref().ok_or(ControlError::NoSft)?;
    let (sft_seconds, rl_seconds) = step_seconds(path)?;
    let mut config = sft.clone();
    config.steps = ((sft.steps as f64 * rl_seconds / sft_seconds.max(1e-9)).ceil() as u64).max(1);
    // The learning rate decays from half the peak, because the first phase has already decayed its own.
    config.optimizer.learning_rate /= 2.0;
    reporter.control_begins(config.steps, rl_seconds);
    let folder = control_path(path);
    if config_path(&folder).exists() {
        std::fs::remove_dir_all(&folder).map_err(RunFailure::io(format!(
            "cannot remove the earlier control in {}",
            folder.display()
        )))?;
    }
    let spec = RunSpec {
        config_toml: RunConfig {
            sft: Some(config.clone()),
            rl: None,
            ..parts.config.clone()
        }
        .to_toml()?,
        ..spec.clone()
    };
    let mut run = RunDirectory::create(&folder, &spec, parts.config.checkpoint.clone())?;
    parts.label_users(&mut run);
    sft_end.verify_weights()?;
    weights::keep_base(&parts.config, path, &run)?;
    let mut model = weights::of_checkpoint(parts, path, &sft_end.path, device)?;
    // Plugins ask the weights with which RL began, too.
    let progress = Progress::from(&sft_end.state);
    parts.own_weights.advance(path, progress, None)?;
    let (engine, _generator) = parts.rollout_engine(&model)?;
    let mut source = DemonstrationBatches::new(engine, parts.demonstrations()?, parts.config.seed)
        .after(sft.steps);
    if config.weighs_calls() {
        source = source.marking_calls(parts.dialogue.clone());
    }
    let mut observer = observer.with_end_of_sft(Moment::Control);
    let seed = parts.config.seed;
    let end = sft::train(
        &config,
        seed,
        &mut model,
        &mut source,
        &mut run,
        None,
        &mut observer,
    )
    .await?;
    reporter.phases_ended();
    Ok(end)
}

/// The last checkpoint of a phase. An error if the phase is not finished.
fn finished(path: &Path, phase: Phase) -> Result<Checkpoint, RunFailure> {
    let checkpoint = Checkpoint::latest_in_phase(path, phase)?;
    let finished = checkpoint.filter(|checkpoint| checkpoint.state.finished);
    Ok(finished.ok_or(ControlError::Unfinished(phase))?)
}

/// Seconds that the steps of SFT and of RL took. Evaluations are left out, because they do not train.
fn step_seconds(path: &Path) -> Result<(f64, f64), RunFailure> {
    let history = RunHistory::read(path)?;
    let seconds = |phase: Phase| -> f64 {
        history
            .phase(phase.as_str())
            .filter_map(|line| line.get(names::STEP_S)?.as_f64())
            .sum()
    };
    Ok((seconds(Phase::Sft), seconds(Phase::Rl)))
}
