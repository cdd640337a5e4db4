//! Packages of PyPI, each in a virtual environment under `target/tools`, with versions and hashes fixed in a file.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail};

use crate::{
    manifest,
    project::Project,
    steps::{self, say},
};

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

/// A virtual environment.
pub(crate) struct Venv {
    folder: PathBuf,
}

impl Venv {
    /// The one called `name` with the packages of `requirements`. It is made if it does not exist yet.
    pub(crate) fn with(project: &Project, name: &str, requirements: &Path) -> Result<Self> {
        let wanted = fs::read(requirements)
            .with_context(|| format!("{} cannot be read", requirements.display()))?;
        // Other requirements have another folder; a venv that was not finished lacks the mark file.
        let name = format!("{name}-{}", &manifest::hash(&wanted)[..12]);
        let venv = Self {
            folder: project.root().join("target/tools").join(name),
        };
        let mark = venv.folder.join("complete");
        if !mark.is_file() {
            say(&format!(
                "  python: a venv in {}",
                project.display(&venv.folder)
            ));
            venv.make(project)?;
            venv.install(project, requirements)?;
            fs::write(&mark, "")
                .with_context(|| format!("{} cannot be written", mark.display()))?;
        }
        Ok(venv)
    }

    /// The path of a program in it.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        let bin = if cfg!(windows) { "Scripts" } else { "bin" };
        let program = self.folder.join(bin).join(name);
        program.with_extension(env::consts::EXE_EXTENSION)
    }

    /// `PATH` with its programs first.
    pub(crate) fn path(&self) -> Result<std::ffi::OsString> {
        let own = self.folder.join("bin");
        let others = env::var_os("PATH").unwrap_or_default();
        Ok(env::join_paths(
            std::iter::once(own).chain(env::split_paths(&others)),
        )?)
    }

    /// The folder with its packages.
    pub(crate) fn packages(&self, project: &Project) -> Result<PathBuf> {
        let mut python = command(project, self.program("python"));
        python.args([
            "-c",
            "import sysconfig; print(sysconfig.get_path('purelib'))",
        ]);
        Ok(steps::output(&mut python)?.trim().into())
    }

    fn make(&self, project: &Project) -> Result<()> {
        let python = find_python(project)?;
        let mut command = command(project, &python);
        command.args(["-m", "venv", "--clear"]).arg(&self.folder);
        if !steps::status(&mut command)?.success() {
            bail!(
                "{python} could not make a venv in {}",
                self.folder.display()
            );
        }
        Ok(())
    }

    fn install(&self, project: &Project, requirements: &Path) -> Result<()> {
        let mut command = command(project, self.program("python"));
        command
            .args(["-m", "pip", "install", "--quiet", "--require-hashes"])
            .args(["--no-deps", "--only-binary", ":all:"])
            .args(["--disable-pip-version-check", "--requirement"])
            .arg(requirements);
        if !steps::status(&mut command)?.success() {
            bail!(
                "pip did not install what {} lists: if PyPI cannot be reached, name an index that has it in PIP_INDEX_URL",
                project.display(requirements)
            );
        }
        Ok(())
    }
}

/// A python3 that can make a venv: the one in `PYTHON`, or the first of the usual names that works.
fn find_python(project: &Project) -> Result<String> {
    let works = |python: &str| {
        let mut python = command(project, python);
        steps::output(python.args(["-c", PROBE])).is_ok()
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
        "a Python 3.10 or newer with venv and ensurepip is needed: on Debian \
         or Ubuntu `apt-get install python3-venv`; name one with another name in PYTHON",
    )
}

/// A Python command that ignores the caller's venv and Python folders.
pub(crate) fn command(project: &Project, program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = project.command(program);
    for name in ["VIRTUAL_ENV", "PYTHONHOME", "PYTHONPATH"] {
        command.env_remove(name);
    }
    command.env("PYTHONDONTWRITEBYTECODE", "1");
    command
}
