//! Whole folders.

use std::{fs, path::Path};

use anyhow::{Context, Result};

/// Copies a folder with everything in it.
pub(crate) fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    let failed = || format!("{} cannot be copied to {}", from.display(), to.display());
    fs::create_dir_all(to).with_context(failed)?;
    for entry in fs::read_dir(from).with_context(failed)? {
        let entry = entry.with_context(failed)?;
        let target = to.join(entry.file_name());
        if entry.file_type().with_context(failed)?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), &target).with_context(failed)?;
        }
    }
    Ok(())
}

/// Makes an empty folder, whatever was there.
pub(crate) fn empty_folder(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)
            .with_context(|| format!("{} cannot be removed", folder.display()))?;
    }
    fs::create_dir_all(folder).with_context(|| format!("{} cannot be made", folder.display()))
}
