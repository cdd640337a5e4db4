//! `rlf-host forge`: makes environments, rows and tasks, verifies and exports them, and draws tool graphs.

mod asking;
mod compose;
mod counted;
mod export;
mod export_python;
mod graph;
mod interpreter;
mod interrupt;
mod new;
mod prompts;
mod rewriting;
mod rows;
mod stats;
mod suite;
mod tasks;
mod verify;

use std::process::ExitCode;

use crate::arguments::{Forge, ForgeCommand, ForgeEnv};

pub(crate) fn run(group: &Forge) -> anyhow::Result<ExitCode> {
    let Forge { command, options } = group;
    let command = match command {
        ForgeCommand::Env(command) => command,
        ForgeCommand::Graph(graph) => return graph::run(graph, options),
        ForgeCommand::Rows(rows) => return rows::run(rows, options),
        ForgeCommand::Tasks(tasks) => return tasks::run(options, tasks),
        ForgeCommand::Prompts { output } => {
            return prompts::run(rlf_forge::tasks::rewrite::PROMPTS, output, options.json);
        }
        ForgeCommand::Stats { folder, html } => {
            return stats::run(folder, html.as_deref(), options.json);
        }
        ForgeCommand::Export {
            folder,
            format,
            output,
            rows,
        } => {
            let output = output.as_deref().unwrap_or(folder);
            return export::run(folder, format, rows, output, options.json);
        }
    };
    match command {
        ForgeEnv::Compose {
            seed,
            count,
            words,
            output,
        } => compose::run(*seed, *count, (*words).into(), output, options.json),
        ForgeEnv::Export { file, python } => export_python::run(file, python, options.json),
        ForgeEnv::New(new) => new::run(new, options),
        ForgeEnv::Prompts { output } => {
            prompts::run(rlf_forge::writer::PROMPTS, output, options.json)
        }
        ForgeEnv::Verify(verify) => verify::run(options, verify),
    }
}
