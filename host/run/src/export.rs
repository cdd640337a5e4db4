//! The model of a run as a folder for other programs.

use std::fs;
use std::path::{Path, PathBuf};

use candle_core::Device;
use rlf_policy::{Precision, SaveOptions};
use rlf_train::run::{assets_path, write_folder};

use crate::checkpoint_model;
use crate::error::{RunFailure, SavedRunError};
use crate::saved::find;

/// Writes the model of a run into the folder `output`, with tokenizer and chat template. Adapters of a run with
/// `[model.lora]` are added to its frozen weights. `run` is the folder of the run, whose newest checkpoint is used, or of one
/// of its checkpoints. Returns the folder of the checkpoint. An export that is broken off leaves no file in `output`.
///
/// # Errors
/// If a file cannot be read or written, or if `output` is a folder that is not empty, or inside the run.
pub fn export(run: &Path, output: &Path, options: &SaveOptions) -> Result<PathBuf, RunFailure> {
    let (run, config, checkpoint) = find(run)?;
    if fs::read_dir(output).is_ok_and(|mut entries| entries.next().is_some()) {
        return Err(SavedRunError::NotEmpty(output.to_owned()).into());
    }
    let whole =
        fs::canonicalize(&run).map_err(RunFailure::io(format!("cannot open {}", run.display())))?;
    let place = std::path::absolute(output)
        .map_err(RunFailure::io(format!("cannot find {}", output.display())))?;
    // The output may not exist yet, nor its parents: the nearest one that does decides.
    let mut existing = place.ancestors().filter_map(|it| fs::canonicalize(it).ok());
    if existing.next().is_some_and(|it| it.starts_with(&whole)) {
        return Err(SavedRunError::InsideRun(output.to_owned()).into());
    }
    let policy = checkpoint_model::open(
        &config,
        &run,
        &checkpoint.path,
        &Device::Cpu,
        Precision::F32,
    )?;
    let policy = if config.model.lora.is_some() {
        policy.merged()?
    } else {
        policy
    };
    // An empty folder has its place in its parent, and a link leads to it.
    fs::create_dir_all(output)
        .map_err(RunFailure::io(format!("cannot make {}", output.display())))?;
    let output = fs::canonicalize(output)
        .map_err(RunFailure::io(format!("cannot open {}", output.display())))?;
    write_folder(&output, |folder| {
        policy.save_with(folder, options)?;
        copy_assets(&run, folder)
    })?;
    Ok(checkpoint.path)
}

/// Copies the tokenizer, the chat template and the other assets of a run.
fn copy_assets(run: &Path, to: &Path) -> Result<(), RunFailure> {
    let assets = assets_path(run);
    let listing = || RunFailure::io(format!("cannot list {}", assets.display()));
    for entry in fs::read_dir(&assets).map_err(listing())? {
        let entry = entry.map_err(listing())?;
        let to = to.join(entry.file_name());
        let failed = RunFailure::io(format!("cannot write {}", to.display()));
        fs::copy(entry.path(), &to).map_err(failed)?;
    }
    Ok(())
}
