//! The portable build: CPython as componentize-py ships it, made in seconds without a C compiler.
//!
//! componentize-py is installed from PyPI into a venv under `target/tools`, with its version and hash fixed in
//! `plugins/python/component/requirements.txt`. It starts CPython while it builds, with hash randomisation and a
//! clock that cannot be set, so the same sources give a different component each time.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use super::{SDK, Tier};
use crate::{
    manifest,
    project::Project,
    steps::{self, say},
};

const SOURCES: &str = "plugins/python/component";
const DRIVER: &str = "plugins/python/driver";
const PACKAGES: &str = "plugins/python/packages";
const WORLD: &str = "interpreter-plugin";

/// The module that binds the driver to what componentize-py generates.
const APP: &str = "rlf_app";

/// Names of programs that may be a python3: first the plain name, which the machine's owner chose, then the newest
/// version.
const PYTHONS: [&str; 7] = [
    "python3",
    "python",
    "python3.14",
    "python3.13",
    "python3.12",
    "python3.11",
    "python3.10",
];

/// A program that succeeds if a venv can be made.
const PROBE: &str = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))";

/// Builds the component; returns its file.
pub(super) fn build(project: &Project) -> Result<PathBuf> {
    let program = componentize_py(project)?;
    let component = project.root().join(Tier::Portable.component());
    if let Some(folder) = component.parent() {
        fs::create_dir_all(folder)
            .with_context(|| format!("{} cannot be made", folder.display()))?;
    }
    let mut command = python_command(project, &program);
    command
        .args(["--quiet", "--wit-path", "wit", "--world", WORLD])
        .args(["componentize", APP])
        .args(["--python-path", SOURCES, "--python-path", DRIVER])
        .args(["--python-path", PACKAGES, "--python-path", SDK])
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

/// The path of `componentize-py`, in a venv that is made if it does not exist yet.
fn componentize_py(project: &Project) -> Result<PathBuf> {
    let requirements = project.root().join(SOURCES).join("requirements.txt");
    let wanted = fs::read(&requirements)
        .with_context(|| format!("{} cannot be read", requirements.display()))?;
    // Other requirements have another folder; a venv that was not finished lacks the mark file.
    let name = format!("componentize-py-{}", &manifest::hash(&wanted)[..12]);
    let venv = project.root().join("target/tools").join(name);
    let bin = venv.join(if cfg!(windows) { "Scripts" } else { "bin" });
    let mark = venv.join("complete");
    if !mark.is_file() {
        say(&format!("  python: a venv in {}", project.display(&venv)));
        make_venv(project, &venv)?;
        install(project, &bin, &requirements)?;
        fs::write(&mark, "").with_context(|| format!("{} cannot be written", mark.display()))?;
    }
    Ok(bin
        .join("componentize-py")
        .with_extension(env::consts::EXE_EXTENSION))
}

fn make_venv(project: &Project, venv: &Path) -> Result<()> {
    let python = find_python(project)?;
    let mut command = python_command(project, &python);
    command.args(["-m", "venv", "--clear"]).arg(venv);
    if !steps::status(&mut command)?.success() {
        bail!("{python} could not make a venv in {}", venv.display());
    }
    Ok(())
}

fn install(project: &Project, bin: &Path, requirements: &Path) -> Result<()> {
    let python = bin
        .join("python")
        .with_extension(env::consts::EXE_EXTENSION);
    let mut command = python_command(project, &python);
    command
        .args(["-m", "pip", "install", "--quiet", "--require-hashes"])
        .args(["--no-deps", "--only-binary", ":all:"])
        .args(["--disable-pip-version-check", "--requirement"])
        .arg(requirements);
    if !steps::status(&mut command)?.success() {
        bail!(
            "pip did not install what {} lists: if PyPI cannot be reached, name an index that has it in PIP_INDEX_URL; \
             on a platform without a wheel of componentize-py, only the build from C is possible",
            project.display(requirements)
        );
    }
    Ok(())
}

/// A python3 that can make a venv: the one in `PYTHON`, or the first of the usual names that works.
fn find_python(project: &Project) -> Result<String> {
    let works = |python: &str| {
        let mut command = python_command(project, python);
        steps::output(command.args(["-c", PROBE])).is_ok()
    };
    if let Ok(python) = env::var("PYTHON") {
        if works(&python) {
            return Ok(python);
        }
        bail!(
            "PYTHON names `{python}`, which is not a Python 3.10 or newer with the modules venv and ensurepip"
        );
    }
    let found = PYTHONS.into_iter().find(|python| works(python));
    found.map(str::to_owned).context(
        "the Python interpreter's component needs a Python 3.10 or newer with venv and ensurepip to be built: on Debian \
         or Ubuntu `apt-get install python3-venv`; name one with another name in PYTHON",
    )
}

/// A Python command that ignores the caller's venv and Python folders.
fn python_command(project: &Project, program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = project.command(program);
    for name in ["VIRTUAL_ENV", "PYTHONHOME", "PYTHONPATH"] {
        command.env_remove(name);
    }
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command
}
