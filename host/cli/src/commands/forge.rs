//! `rlf-host forge`: makes environments, rows and tasks, verifies and exports them, and draws tool graphs.

mod asking;
mod compose;
mod export;
mod graph;
mod interpreter;
mod new;
mod prompts;
mod rows;
mod stats;
mod suite;
mod tasks;
mod verify;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use rlf_forge::writer::PROMPTS;
use rlf_specification::{Checked, Format, check_text};

use crate::arguments::{Forge, ForgeCommand, ForgeEnv};
use crate::display::printable;

pub(crate) fn run(options: &Forge) -> anyhow::Result<ExitCode> {
    let command = match &options.command {
        ForgeCommand::Env(command) => command,
        ForgeCommand::Graph(graph) => return graph::run(graph, options.json),
        ForgeCommand::Rows(rows) => return rows::run(rows, options),
        ForgeCommand::Tasks(tasks) => return tasks::run(options, tasks),
        ForgeCommand::Stats { folder, html } => {
            return stats::run(folder, html.as_deref(), options.json);
        }
        ForgeCommand::Export {
            folder,
            format,
            output,
            environment,
        } => {
            let output = output.as_deref().unwrap_or(folder);
            return export::run(folder, format, output, environment, options.json);
        }
    };
    match command {
        ForgeEnv::Compose {
            seed,
            count,
            words,
            output,
        } => compose::run(*seed, *count, (*words).into(), output, options.json),
        ForgeEnv::Export { file, python } => export(file, python),
        ForgeEnv::New(new) => new::run(new, options),
        ForgeEnv::Prompts { output } => prompts::run(PROMPTS, output, options.json),
        ForgeEnv::Verify(verify) => verify::run(options, verify),
    }
}

fn export(file: &Path, python: &Path) -> anyhow::Result<ExitCode> {
    let text = rlf_files::read_text(file, rlf_files::MAX_TEXT_BYTES)
        .with_context(|| format!("cannot read {}", file.display()))?;
    let Checked { program, findings } =
        check_text(&text, Format::from_path(file).unwrap_or(Format::Toml));
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
