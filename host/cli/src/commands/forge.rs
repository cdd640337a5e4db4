//! `rlf-host forge`: composes and verifies environments, exports specifications, and draws their tool graph.

mod compose;
mod graph;
mod verify;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use rlf_specification::{Checked, check_file};

use crate::arguments::{Forge, ForgeCommand, ForgeEnv};
use crate::display::printable;

pub(crate) fn run(options: &Forge) -> anyhow::Result<ExitCode> {
    let command = match &options.command {
        ForgeCommand::Env(command) => command,
        ForgeCommand::Graph(graph) => return graph::run(graph, options.json),
    };
    match command {
        ForgeEnv::Compose {
            seed,
            count,
            output,
        } => compose::run(*seed, *count, output, options.json),
        ForgeEnv::Export { file, python } => export(file, python),
        ForgeEnv::Verify(verify) => verify::run(options, verify),
    }
}

fn export(file: &Path, python: &Path) -> anyhow::Result<ExitCode> {
    let Checked { program, findings } =
        check_file(file).with_context(|| format!("cannot read {}", file.display()))?;
    let Some(program) = program else {
        for finding in &findings {
            eprintln!("{}", printable(&finding.to_string()));
        }
        bail!("{} has errors; correct them first", file.display());
    };
    let text = program.to_python();
    if python == Path::new("-") {
        say!("{}", text.trim_end());
        return Ok(ExitCode::SUCCESS);
    }
    let name = &program.specification().name;
    if python.file_name().and_then(|name| name.to_str()) != Some(&format!("{name}.py")) {
        bail!(
            "{}: the file of environment {name} has to be called {name}.py",
            python.display()
        );
    }
    rlf_files::write(python, text.as_bytes())
        .with_context(|| format!("cannot write {}", python.display()))?;
    say!(
        "{}: {} operations",
        python.display(),
        program.specification().operations.len()
    );
    Ok(ExitCode::SUCCESS)
}
