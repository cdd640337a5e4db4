//! The portable build: CPython as componentize-py ships it, made without a C compiler.
//!
//! componentize-py is installed from PyPI into a venv under `target/tools`, with its version and hash fixed in
//! `plugins/python/component/requirements.txt`. It starts CPython while it builds, with hash randomisation and a
//! clock that cannot be set, so the same sources give a different component each time.

use std::{fs, path::PathBuf};

use anyhow::{Context, Result, bail};

use super::{SDK, Tier, pydantic};
use crate::{
    project::Project,
    steps::{self, say},
    venv::{self, Venv},
};

const SOURCES: &str = "plugins/python/component";
const DRIVER: &str = "plugins/python/driver";
const PACKAGES: &str = "plugins/python/packages";
const WORLD: &str = "interpreter-plugin";

/// The module that binds the driver to what componentize-py generates.
const APP: &str = "rlf_app";

/// Builds the component; returns its file.
pub(super) fn build(project: &Project) -> Result<PathBuf> {
    let requirements = project.root().join(SOURCES).join("requirements.txt");
    let venv = Venv::with(project, "componentize-py", &requirements).context(
        "the portable Python interpreter cannot be made: on a platform without a wheel of componentize-py, only the build \
         from C is possible",
    )?;
    let pydantic = pydantic::shared(project)?;
    let component = project.root().join(Tier::Portable.component());
    if let Some(folder) = component.parent() {
        fs::create_dir_all(folder)
            .with_context(|| format!("{} cannot be made", folder.display()))?;
    }
    let mut command = venv::command(project, venv.program("componentize-py"));
    command
        .args(["--quiet", "--wit-path", "wit", "--world", WORLD])
        .args(["componentize", APP])
        .args(["--python-path", SOURCES, "--python-path", DRIVER])
        .args(["--python-path", PACKAGES, "--python-path", SDK])
        .arg("--python-path")
        .arg(pydantic)
        .arg("--output")
        .arg(&component);
    say("  python: CPython 3.14 by componentize-py");
    if !steps::status(&mut command)?.success() {
        bail!(
            "componentize-py did not build a component from {APP}: the error above is the interpreter's own"
        );
    }
    Ok(component)
}
