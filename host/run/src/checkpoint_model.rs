//! The policy of a checkpoint of a run: whole, or adapters beside the frozen weights.

use std::path::Path;

use candle_core::Device;
use rlf_policy::Model;
use rlf_train::run::base_path;

use crate::config::RunConfig;
use crate::error::RunFailure;

/// The policy of a checkpoint of the run in the folder `run`, which has this configuration.
pub(crate) fn open(
    config: &RunConfig,
    run: &Path,
    checkpoint: &Path,
    device: &Device,
) -> Result<Model, RunFailure> {
    let Some(lora) = &config.model.lora else {
        return Ok(Model::load(checkpoint, device)?);
    };
    let base = config.model.checkpoint.clone();
    let base = base.unwrap_or_else(|| base_path(run));
    let model = Model::load(&base, device)?.with_lora(lora, config.seed, &base)?;
    model.load_adapter(checkpoint)?;
    Ok(model)
}
