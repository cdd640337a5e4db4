//! `rlf-host forge env export`: writes a specification as a Python file.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use serde_json::json;

use crate::commands::specification::program;

pub(super) fn run(file: &Path, python: &Path, as_json: bool) -> anyhow::Result<ExitCode> {
    let program = program(file)?;
    let text = program
        .to_python()
        .with_context(|| format!("cannot export {}", file.display()))?;
    if python == Path::new("-") {
        say!("{}", text.trim_end());
        return Ok(ExitCode::SUCCESS);
    }
    let specification = program.specification();
    let (name, operations) = (&specification.name, specification.operations.len());
    if python.file_name().and_then(|name| name.to_str()) != Some(&format!("{name}.py")) {
        bail!(
            "{}: the file of environment {name} has to be called {name}.py",
            python.display()
        );
    }
    rlf_files::write(python, text.as_bytes())
        .with_context(|| format!("cannot write {}", python.display()))?;
    if as_json {
        let report = json!({"environment": name, "path": python, "operations": operations});
        say!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        say!("{}: {operations} operations", python.display());
    }
    Ok(ExitCode::SUCCESS)
}
