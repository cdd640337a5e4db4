//! The Python package: its files in one folder, and the wheel made from them.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail};

use super::{Files, LICENCES, Target};
use crate::{
    folders::{copy_folder, empty_folder},
    guests::Family,
    project::Project,
    steps::{self, say},
    venv::{self, Venv},
};

/// The sources of the package.
const SOURCES: &str = "host/python";
const PACKAGE: &str = "rlf_host";
/// The tags of a library for the stable ABI of Python 3.10, which serves all later versions.
const PYTHON_TAGS: [&str; 4] = ["--python-tag", "cp310", "--abi-tag", "abi3"];

/// Lays the package out in `target/python`, by links to its sources and to the usual build. `PYTHONPATH=target/python`
/// imports it, and an edit of its sources is seen at once. Returns the folder.
pub fn lay_out_built(project: &Project) -> Result<PathBuf> {
    let here = if cfg!(target_os = "macos") {
        Target::ArmMac
    } else {
        Target::X86Linux
    };
    let files = Files {
        program: project.binary(),
        library: project.binary().with_file_name(here.library()),
        plugins: Family::FirstParty.built(project),
        licences: PathBuf::new(),
    };
    let folder = project.root().join("target/python");
    arrange(project, &files, &folder, |from, to| {
        symlink(from, to).with_context(|| format!("{} cannot be linked", to.display()))
    })?;
    Ok(folder)
}

/// Puts the package's files into `folder`; `place` puts one file or folder there.
fn arrange(
    project: &Project,
    files: &Files,
    folder: &Path,
    place: impl Fn(&Path, &Path) -> Result<()>,
) -> Result<()> {
    let package = folder.join(PACKAGE);
    let [bin, share] = [package.join("bin"), package.join("share/rlf-host")];
    empty_folder(folder)?;
    for made in [&bin, &share] {
        fs::create_dir_all(made).with_context(|| format!("{} cannot be made", made.display()))?;
    }
    let sources = project.root().join(SOURCES).join(PACKAGE);
    let entries =
        fs::read_dir(&sources).with_context(|| format!("{} cannot be read", sources.display()))?;
    for entry in entries {
        let name = entry?.file_name();
        if name != "__pycache__" {
            place(&sources.join(&name), &package.join(&name))?;
        }
    }
    place(&files.library, &package.join("_native.abi3.so"))?;
    place(&files.program, &bin.join("rlf-host"))?;
    place(&files.plugins, &share.join("plugins"))?;
    place(&project.root().join("configs"), &share.join("configs"))
}

/// Checks that a library asks for no library of Python: it takes the interpreter's symbols from the process that loads it.
fn check_symbols(library: &Path) -> Result<()> {
    let bytes =
        fs::read(library).with_context(|| format!("{} cannot be read", library.display()))?;
    let named = b"libpython";
    if bytes.windows(named.len()).any(|bytes| bytes == named) {
        bail!(
            "{} is linked with a library of Python, which most machines do not have; pyo3's feature `extension-module` \
             keeps it out",
            library.display()
        );
    }
    Ok(())
}

/// Makes the wheel of a target in the folder `results`.
pub(super) fn wheel(
    project: &Project,
    tools: &Venv,
    target: Target,
    files: &Files,
    results: &Path,
) -> Result<()> {
    check_symbols(&files.library)?;
    let folder = project.root().join("target/wheel").join(target.triple());
    arrange(project, files, &folder, |from, to| {
        if from.is_dir() {
            return copy_folder(from, to);
        }
        fs::copy(from, to).with_context(|| format!("{} cannot be copied", from.display()))?;
        Ok(())
    })?;
    for (from, to) in [
        ("host/python/pyproject.toml", "pyproject.toml"),
        ("host/python/setup.py", "setup.py"),
        ("host/python/README.md", "README.md"),
        ("LICENSE", "LICENSE"),
    ] {
        fs::copy(project.root().join(from), folder.join(to))
            .with_context(|| format!("{from} cannot be copied"))?;
    }
    fs::copy(&files.licences, folder.join(LICENCES))
        .context("the licence texts cannot be copied")?;
    let run = |arguments: &[&str]| -> Result<String> {
        let mut command = venv::command(project, tools.program("python"));
        // The same files give the same bytes.
        command.env("SOURCE_DATE_EPOCH", "315532800");
        steps::output(command.arg("-m").args(arguments).current_dir(&folder))
    };
    run(&[
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--wheel-dir",
        "made",
        ".",
    ])?;
    let pure = only_file(&folder.join("made"))?;
    let platform = target.platform();
    let tags = ["--remove", "--platform-tag", &platform];
    run(&[
        &["wheel", "tags"],
        &PYTHON_TAGS[..],
        &tags,
        &[&pure.to_string_lossy()],
    ]
    .concat())?;
    let wheel = only_file(&folder.join("made"))?;
    if target.is_linux() {
        let audit = run(&["auditwheel", "show", &wheel.to_string_lossy()])?;
        if !audit.contains(&platform) {
            bail!("the wheel is tagged {platform}, and auditwheel says:\n{audit}");
        }
    }
    let name = wheel.file_name().context("a wheel has a name")?;
    let result = results.join(name);
    fs::copy(&wheel, &result).with_context(|| format!("{} cannot be written", result.display()))?;
    say(&format!("  {}", project.display(&result)));
    Ok(())
}

/// The only file of a folder.
fn only_file(folder: &Path) -> Result<PathBuf> {
    let entries: std::io::Result<Vec<_>> = fs::read_dir(folder)?.collect();
    match entries?.as_slice() {
        [one] => Ok(one.path()),
        some => bail!("{} has {} files, not one", folder.display(), some.len()),
    }
}
