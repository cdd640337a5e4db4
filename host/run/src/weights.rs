//! The weights of a run's policy: those that it begins with, and those of a checkpoint.
//!
//! With `[model.lora]`, checkpoints hold adapters alone. The frozen weights beside them are those of `model.checkpoint`. If
//! there is none, the run keeps the weights that it made from the seed in its folder, because another machine could make
//! others in their last bits.

use std::path::Path;

use candle_core::Device;
use rlf_policy::Model;
use rlf_train::run::{RunDirectory, base_path, verify_weights};

use crate::checkpoint_model;
use crate::config::RunConfig;
use crate::error::{ConfigurationError, RunFailure};
use crate::parts::RunParts;

/// The policy of a run before its first step, fitted to the run's parts: from the configured checkpoint, or made from the
/// seed, with adapters if they are configured.
pub(crate) fn first(
    parts: &RunParts,
    run: &RunDirectory,
    device: &Device,
) -> Result<Model, RunFailure> {
    let config = &parts.config;
    let Some(lora) = &config.model.lora else {
        return parts.fitted(match &config.model.checkpoint {
            Some(folder) => {
                verify_weights(folder)?;
                Model::load(folder, device)?
            }
            None => made(parts, device)?,
        });
    };
    let base = match &config.model.checkpoint {
        Some(folder) => {
            verify_weights(folder)?;
            folder.clone()
        }
        None => run.base(|folder| Ok::<(), RunFailure>(made(parts, device)?.save(folder)?))?,
    };
    let frozen = Model::load_frozen(&base, device, config.precision)?;
    let model = frozen.with_lora(lora, config.seed, &base)?;
    if let Some(adapter) = &lora.adapter {
        verify_weights(adapter)?;
        model.load_adapter(adapter)?;
    }
    parts.fitted(model)
}

/// The policy of a checkpoint of the run in the folder `run`, fitted to the run's parts.
pub(crate) fn of_checkpoint(
    parts: &RunParts,
    run: &Path,
    checkpoint: &Path,
    device: &Device,
) -> Result<Model, RunFailure> {
    let model = checkpoint_model::open(
        &parts.config,
        run,
        checkpoint,
        device,
        parts.config.precision,
    )?;
    parts.fitted(model)
}

/// Keeps the frozen weights of the run in the folder `from` in another run too, which trains the same adapters further.
pub(crate) fn keep_base(
    config: &RunConfig,
    from: &Path,
    run: &RunDirectory,
) -> Result<(), RunFailure> {
    if config.model.lora.is_some() && config.model.checkpoint.is_none() {
        let base = base_path(from);
        run.base(|folder| Ok::<(), RunFailure>(Model::load(&base, &Device::Cpu)?.save(folder)?))?;
    }
    Ok(())
}

/// A model with weights that are made from the seed.
fn made(parts: &RunParts, device: &Device) -> Result<Model, RunFailure> {
    let shape = parts
        .config
        .shape(parts.tokenizer.vocab_size())?
        .ok_or_else(|| {
            ConfigurationError::value("model", "[model] has neither `checkpoint` nor `init`")
        })?;
    Ok(Model::init(&shape, parts.config.seed, device)?)
}
