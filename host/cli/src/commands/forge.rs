//! `rlf-host forge`: makes environments, rows and tasks, verifies and exports them, and draws tool graphs.

mod compose;
mod export;
mod graph;
mod new;
mod prompts;
mod rows;
mod stats;
mod suite;
mod tasks;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use console::style;
use rlf_forge::verify::{self, Beginning, Effort, Report, verify};
use rlf_specification::{Checked, Finding, Format, Severity, check_file, check_text};
use serde::Serialize;
use serde_json::json;

use super::env::{find, is_specification};
use crate::arguments::{Forge, ForgeCommand, ForgeEnv, PluginBindings};
use crate::display::printable;
use crate::operator::Operator;

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
            output,
        } => compose::run(*seed, *count, output, options.json),
        ForgeEnv::Export { file, python } => export(file, python),
        ForgeEnv::New(new) => new::run(new, options),
        ForgeEnv::Prompts { output } => prompts::run(output, options.json),
        ForgeEnv::Verify {
            files,
            calls,
            walks,
            seeds,
            seed,
            no_play,
        } => {
            let operator = Operator::load(options.config.as_deref())?;
            let effort = Effort {
                calls: *calls,
                walks: *walks,
                seed: *seed,
            };
            let runtime = super::runtime()?;
            let mut verdicts = Vec::new();
            for file in files {
                let checked = if file.is_file() && is_specification(file) {
                    let read = check_file(file);
                    Some(read.with_context(|| format!("cannot read {}", file.display()))?)
                } else {
                    None
                };
                let is_sound = checked
                    .as_ref()
                    .is_none_or(|checked| checked.program.is_some());
                let played = if is_sound && !no_play {
                    let found = find(
                        options.plugins.plugins.as_deref(),
                        &operator,
                        file,
                        &NO_BINDINGS,
                    )?;
                    Some(runtime.block_on(async {
                        let beginnings = beginnings(&found, checked.as_ref(), *seeds).await?;
                        anyhow::Ok(
                            verify(&found.environments, &found.name, &beginnings, effort).await,
                        )
                    })?)
                } else {
                    None
                };
                let verdict = Verdict {
                    file: file.display().to_string(),
                    sound: is_sound && played.as_ref().is_none_or(Report::is_sound),
                    checks: checked.map(|checked| checked.findings).unwrap_or_default(),
                    played,
                };
                if !options.json {
                    verdict.show();
                }
                verdicts.push(verdict);
            }
            if options.json {
                say!("{}", serde_json::to_string_pretty(&verdicts)?);
            }
            Ok(if verdicts.iter().all(|verdict| verdict.sound) {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            })
        }
    }
}

const NO_BINDINGS: PluginBindings = PluginBindings {
    data: Vec::new(),
    plugin_config: None,
};

/// The states to begin in: every scenario of a specification with several seeds, or the scenarios of an environment.
async fn beginnings(
    found: &super::env::Found,
    checked: Option<&Checked>,
    seeds: u64,
) -> anyhow::Result<Vec<Beginning>> {
    let program = checked.and_then(|checked| checked.program.as_ref());
    if let Some(program) = program {
        return Ok(Beginning::for_program(program, seeds));
    }
    let scenarios = found.environments.scenarios(&found.name).await?;
    let mut all = Beginning::from_scenarios(scenarios);
    if all.is_empty() {
        let servers = found.servers.iter().flatten();
        all.extend(servers.map(|server| Beginning {
            name: server.clone(),
            task: json!({ "servers": { server.as_str(): null } }),
            seed: 0,
        }));
    }
    if all.is_empty() {
        bail!(
            "environment `{}` has no scenarios to begin in; return some from its `scenarios`, or write scenarios.json beside its \
             Python files",
            found.name
        );
    }
    Ok(all)
}

/// The verdict on one file.
#[derive(Debug, Serialize)]
struct Verdict {
    file: String,
    sound: bool,
    /// Findings of the static checks.
    checks: Vec<Finding>,
    /// The verification by playing, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    played: Option<Report>,
}

impl Verdict {
    fn show(&self) {
        let verdict = if self.sound {
            style("sound").green()
        } else {
            style("not sound").red()
        };
        let file = style(printable(&self.file)).bold();
        if let Some(report) = &self.played {
            let (loaded, calls) = (report.loaded, report.calls);
            let operations = report.operations.len();
            say!("{file}: {verdict} ({loaded} scenarios, {operations} operations, {calls} calls)");
        } else {
            say!("{file}: {verdict} (not played)");
        }
        for finding in &self.checks {
            let text = printable(&finding.to_string());
            say!("  {} {text}", shown(finding.severity));
        }
        for finding in self.played.iter().flat_map(|report| &report.findings) {
            let verify::Finding {
                place,
                message,
                mend,
                times,
                ..
            } = finding;
            let times = if *times > 1 {
                format!(" ({times} times)")
            } else {
                String::new()
            };
            let text = format!("{place}: {message}{times}; {mend}");
            say!("  {} {}", shown(finding.severity), printable(&text));
        }
    }
}

fn shown(severity: Severity) -> console::StyledObject<&'static str> {
    match severity {
        Severity::Error => style("error  ").red(),
        Severity::Warning => style("warning").yellow(),
    }
}

fn export(file: &Path, python: &Path) -> anyhow::Result<ExitCode> {
    let text = rlf_files::read_text(file, rlf_files::MAX_TEXT_BYTES)
        .with_context(|| format!("cannot read {}", file.display()))?;
    let Checked { program, findings } = check_text(&text, Format::of(file).unwrap_or(Format::Toml));
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
