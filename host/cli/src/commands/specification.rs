//! Reading specifications from files.

use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use rlf_specification::{Checked, Format, Program, check_text};

use crate::display::printable;

/// Reads and checks a specification. Its findings have lines.
pub(crate) fn checked(file: &Path) -> anyhow::Result<Checked> {
    let Some(format) = Format::from_path(file) else {
        bail!(
            "{}: specifications end in .toml or .json; `rlf-host forge env compose` makes some",
            file.display()
        );
    };
    let text = rlf_files::read_text(file, rlf_files::MAX_TEXT_BYTES)
        .with_context(|| format!("cannot read {}", file.display()))?;
    Ok(check_text(&text, format))
}

/// Reads and compiles a specification. If it has errors, the message lists all of them.
pub(crate) fn program(file: &Path) -> anyhow::Result<Program> {
    let Checked { program, findings } = checked(file)?;
    program.ok_or_else(|| {
        let errors = findings.iter().filter(|finding| finding.is_error());
        let errors: Vec<String> = errors
            .map(|finding| format!("  {}", printable(&finding.to_string())))
            .collect();
        anyhow!("{} has errors:\n{}", file.display(), errors.join("\n"))
    })
}

/// The given files, and those of the given folders that can be specifications.
pub(crate) fn expanded(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            let found = in_folder(path)?;
            if found.is_empty() {
                bail!(
                    "{} has no specifications; they end in .toml or .json",
                    path.display()
                );
            }
            files.extend(found);
        } else if path.exists() {
            files.push(path.clone());
        } else {
            bail!("there is no file or folder {}", path.display());
        }
    }
    Ok(files)
}

/// The files of a folder that can be specifications, by name.
pub(crate) fn in_folder(folder: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let cannot = || format!("cannot read {}", folder.display());
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(cannot)? {
        let file = entry.with_context(cannot)?.path();
        if file.is_file() && Format::from_path(&file).is_some() {
            files.push(file);
        }
    }
    files.sort();
    Ok(files)
}
