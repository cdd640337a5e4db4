//! The policy of a checkpoint of a run: whole, or adapters beside the frozen weights.

use std::path::Path;

use candle_core::Device;
use rlf_policy::{Model, Precision};
use rlf_train::run::base_path;

use crate::config::RunConfig;
use crate::error::RunFailure;

/// The policy of a checkpoint of the run in the folder `run`, which has this configuration. Frozen weights are loaded for
/// this precision.
pub(crate) fn open(
    config: &RunConfig,
    run: &Path,
    checkpoint: &Path,
    device: &Device,
    precision: Precision,
) -> Result<Model, RunFailure> {
    let Some(lora) = &config.model.lora else {
        return Ok(Model::load(checkpoint, device)?);
    };
    let base = config.model.checkpoint.clone();
    let base = base.unwrap_or_else(|| base_path(run));
    let model =
        Model::load_frozen(&base, device, precision)?.with_lora(lora, config.seed, &base)?;
    model.load_adapter(checkpoint)?;
    Ok(model)
}
