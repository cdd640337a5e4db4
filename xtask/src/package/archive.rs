//! The archive of a release: the program, the plugins and the configurations in one folder; and the checksums.

use std::{fs, path::Path};

use anyhow::{Context, Result};

use super::{Files, LICENCES, pack};
use crate::{
    folders::{copy_folder, empty_folder},
    host,
    project::Project,
    steps::{self, say},
    venv::Venv,
};

/// Documents in an archive.
const DOCUMENTS: [&str; 4] = ["README.md", "CHANGELOG.md", "SECURITY.md", "LICENSE"];

/// The file with the checksums.
const CHECKSUMS: &str = "SHA256SUMS";

/// Makes the archive for a target in the folder `results`.
pub(super) fn make(
    project: &Project,
    tools: &Venv,
    triple: &str,
    version: &str,
    files: &Files,
    results: &Path,
) -> Result<()> {
    let name = format!("rlf-host-{version}-{triple}");
    let folder = project.root().join("target/archive").join(&name);
    empty_folder(&folder)?;
    fs::copy(&files.program, folder.join(host::BINARY))
        .with_context(|| format!("{} cannot be copied", files.program.display()))?;
    for document in DOCUMENTS {
        fs::copy(project.root().join(document), folder.join(document))
            .with_context(|| format!("{document} cannot be copied"))?;
    }
    fs::copy(&files.licences, folder.join(LICENCES))
        .context("the licence texts cannot be copied")?;
    copy_folder(&files.plugins, &folder.join("plugins"))?;
    copy_folder(&project.root().join("configs"), &folder.join("configs"))?;
    let result = results.join(format!("{name}.tar.gz"));
    let mut pack = pack(project, tools, "archive");
    steps::output(pack.arg(&folder).arg(&result))?;
    say(&format!("  {}", project.display(&result)));
    Ok(())
}

/// Writes the checksums of everything in the folder `results`.
pub(super) fn checksums(project: &Project, tools: &Venv, results: &Path) -> Result<()> {
    let lines = steps::output(
        pack(project, tools, "checksums")
            .arg(results)
            .arg(CHECKSUMS),
    )?;
    say(lines.trim_end());
    Ok(())
}
