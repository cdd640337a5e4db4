//! The temporary folder of a replay, which stands for the folder of the run.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::symlink;
use std::path::Path;

use rlf_train::run::{assets_path, base_path, frozen_path, reference_path};

use crate::error::RunFailure;
use crate::folder::{data_path, models_path};

/// Puts into `folder` what the steps of the run need: copies of what they may write to, links to what they only read.
pub(super) fn prepare(folder: &Path, run: &Path) -> Result<(), RunFailure> {
    for (from, to) in [
        (assets_path(run), assets_path(folder)),
        (models_path(run), models_path(folder)),
    ] {
        fill(&from, &to, copy)?;
    }
    // The weights of one moment are one folder.
    fill(&frozen_path(run), &frozen_path(folder), link)?;
    for (from, to) in [
        (data_path(run), data_path(folder)),
        (base_path(run), base_path(folder)),
        (reference_path(run), reference_path(folder)),
    ] {
        if from.exists() {
            let failed = format!("cannot link to {}", from.display());
            link(&from, &to).map_err(RunFailure::io(failed))?;
        }
    }
    Ok(())
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::copy(from, to)?;
    Ok(())
}

fn link(from: &Path, to: &Path) -> io::Result<()> {
    symlink(from, to)
}

/// Makes the folder `to` with what `put` makes of each entry of the folder `from`. Does nothing if there is no such
/// folder.
fn fill(from: &Path, to: &Path, put: fn(&Path, &Path) -> io::Result<()>) -> Result<(), RunFailure> {
    let work = || -> io::Result<()> {
        let entries = match fs::read_dir(from) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        fs::create_dir_all(to)?;
        for entry in entries {
            let entry = entry?;
            put(&entry.path(), &to.join(entry.file_name()))?;
        }
        Ok(())
    };
    let failed = format!("cannot copy {} to {}", from.display(), to.display());
    work().map_err(RunFailure::io(failed))
}
