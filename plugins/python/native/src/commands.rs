//! Running other programs.

use std::{
    fs::File,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

/// `program`, in an environment in which compilers write the same bytes wherever and whenever they run.
pub(crate) fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env(
        "SOURCE_DATE_EPOCH",
        crate::snapshot::WALL_TIME_S.to_string(),
    );
    command.env("LC_ALL", "C").env("TZ", "UTC");
    for variable in [
        "CC",
        "CFLAGS",
        "CPPFLAGS",
        "CXXFLAGS",
        "LDFLAGS",
        "MAKEFLAGS",
        "MAKELEVEL",
        "PYTHONPATH",
        "PYTHONHOME",
    ] {
        command.env_remove(variable);
    }
    command
}

/// Runs it to its end; an error unless it succeeds.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command
        .status()
        .with_context(|| format!("cannot start `{}`", shown(command)))?;
    if status.success() {
        return Ok(());
    }
    bail!("{status}: `{}`", shown(command))
}

/// As `run`, but what is printed goes to the file `log`, which an error names.
pub(crate) fn run_logged(command: &mut Command, log: &Path) -> Result<()> {
    let file = File::create(log).with_context(|| format!("creating {}", log.display()))?;
    command
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file);
    run(command).with_context(|| format!("what it printed is in {}", log.display()))
}

/// Returns what it prints on standard output.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot start `{}`", shown(command)))?;
    if !output.status.success() {
        bail!("{}: `{}`", output.status, shown(command));
    }
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

fn shown(command: &Command) -> String {
    let mut text = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    text
}
