//! The whole model of a run whose checkpoints hold adapters.

use std::fs;
use std::path::{Path, PathBuf};

use candle_core::Device;
use rlf_policy::SaveOptions;
use rlf_train::run::assets_path;

use crate::error::{RunFailure, SavedRunError};
use crate::saved::find;
use crate::weights;

/// Merges the adapters of a run with `[model.lora]` into its frozen weights, and writes the whole model into the folder
/// `output`, with tokenizer and chat template. `run` is the folder of the run, whose newest checkpoint is used, or of one
/// of its checkpoints. Returns the folder of the checkpoint.
///
/// # Errors
/// If the run has no adapters, if a file cannot be read or written, or if `output` is a folder that is not empty.
pub fn merge(run: &Path, output: &Path, options: &SaveOptions) -> Result<PathBuf, RunFailure> {
    let (run, config, checkpoint) = find(run)?;
    if config.model.lora.is_none() {
        return Err(SavedRunError::NoAdapters(checkpoint.path).into());
    }
    if fs::read_dir(output).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(SavedRunError::NotEmpty(output.to_owned()).into());
    }
    let policy = weights::open(&config, &run, &checkpoint.path, &Device::Cpu)?;
    policy.merged()?.save_with(output, options)?;
    let assets = assets_path(&run);
    let listing = || RunFailure::io(format!("cannot list {}", assets.display()));
    for entry in fs::read_dir(&assets).map_err(listing())? {
        let entry = entry.map_err(listing())?;
        let to = output.join(entry.file_name());
        let failed = RunFailure::io(format!("cannot write {}", to.display()));
        fs::copy(entry.path(), &to).map_err(failed)?;
    }
    Ok(checkpoint.path)
}
