//! `rlf-host env try | check`: plays an environment by hand, or checks it.

mod find;
mod play;

pub(crate) use find::{Found, find, is_python, is_server, is_specification};

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use console::{StyledObject, style};
use rlf_environments::check::Finding;
use rlf_plugins::python_environment::Scenario;
use serde_json::{Map, Value, json};

use crate::arguments::{Env, EnvCommand};
use crate::display::printable;
use crate::operator::Operator;

pub(crate) fn run(group: &Env) -> anyhow::Result<ExitCode> {
    let Env { command, options } = group;
    let operator = Operator::load(options.config.as_deref())?;
    match command {
        EnvCommand::Try {
            path,
            task,
            scenario,
            seed,
            bindings,
        } => {
            let found = find(&options.plugins.plugins, &operator, path, bindings)?;
            let runtime = super::runtime()?;
            runtime.block_on(async {
                let scenarios = found.environments.scenarios(&found.name).await?;
                let begin = begin(
                    &found,
                    &scenarios,
                    task.as_deref(),
                    scenario.as_deref(),
                    *seed,
                )?;
                play::run(&found.environments, &found.name, begin, options.json).await
            })
        }
        EnvCommand::Check {
            path,
            inputs,
            bindings,
        } => {
            let found = find(&options.plugins.plugins, &operator, path, bindings)?;
            let runtime = super::runtime()?;
            let report = runtime.block_on(found.environments.check(&found.name, *inputs))?;
            if report.scenarios.is_empty() {
                bail!(
                    "environment `{}` has no scenarios to be checked by; {}",
                    found.name,
                    match &found.servers {
                        Some(servers) if servers.is_empty() =>
                            "its tasks bring what there is to check",
                        Some(_) => "write them into scenarios.json beside its files",
                        None => "return some from its `scenarios`",
                    }
                );
            }
            if options.json {
                say!("{}", serde_json::to_string_pretty(&report)?);
            } else {
                show(&report.scenarios, "scenario");
                show(&report.tools, "tool");
            }
            Ok(if report.is_sound() {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            })
        }
    }
}

/// The task to open: a scenario's, the one on the command line, or the environment's own first state.
fn begin(
    found: &Found,
    scenarios: &[Scenario],
    task: Option<&str>,
    scenario: Option<&str>,
    seed: Option<u64>,
) -> anyhow::Result<play::Begin> {
    let mut begin = play::Begin {
        task: Value::Object(Map::new()),
        seed: seed.unwrap_or_default(),
    };
    if let Some(id) = scenario {
        let Some(scenario) = scenarios.iter().find(|scenario| scenario.id == id) else {
            let known: Vec<&str> = scenarios.iter().map(|one| one.id.as_str()).collect();
            bail!(
                "there is no scenario `{id}`; there are: {}",
                known.join(", ")
            );
        };
        begin.task = scenario.task.clone();
        begin.seed = seed.unwrap_or(scenario.seed);
    } else if let Some(text) = task {
        let text = match text.strip_prefix('@') {
            Some(file) => rlf_config::read(Path::new(file))?,
            None => text.to_owned(),
        };
        begin.task = rlf_json::from_str(&text).context("--task is not JSON")?;
        if begin.task.get("setup").is_some() && begin.task.get("environment").is_some() {
            bail!("--task is a whole row of a task file; give its `setup` alone");
        }
    } else if let Some(servers) = &found.servers {
        let servers: Map<String, Value> = servers
            .iter()
            .map(|name| (name.clone(), Value::Null))
            .collect();
        begin.task = json!({ "servers": servers });
    }
    Ok(begin)
}

/// The verdict on a scenario or a tool. A tool that only refused calls has shown nothing else.
fn verdict(finding: &Finding, what: &str) -> StyledObject<&'static str> {
    let only_refused = what == "tool" && finding.calls > 0 && finding.failed == finding.calls;
    if !finding.problems.is_empty() {
        style("does not").red()
    } else if only_refused {
        style("no call succeeded, so only refusals were checked").yellow()
    } else {
        style("keeps its promises").green()
    }
}

fn show(findings: &[Finding], what: &str) {
    for finding in findings {
        say!(
            "{what:<9} {:<34} {:>3} calls, {:>3} failed  {}",
            style(printable(&finding.name)).cyan(),
            finding.calls,
            finding.failed,
            verdict(finding, what)
        );
        for problem in &finding.problems {
            say!("          {}", printable(problem));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_of_which_no_call_succeeded_has_kept_no_promise() {
        let told = |what, failed, problems: &[&str]| {
            let finding = Finding {
                name: "Lamps-switch".to_owned(),
                calls: 20,
                failed,
                problems: problems.iter().map(|one| (*one).to_owned()).collect(),
            };
            let verdict = verdict(&finding, what).to_string();
            console::strip_ansi_codes(&verdict).into_owned()
        };
        let refused = "no call succeeded, so only refusals were checked";
        assert_eq!(told("tool", 20, &[]), refused);
        assert_eq!(told("tool", 19, &[]), "keeps its promises");
        assert_eq!(told("tool", 20, &["it trapped"]), "does not");
        // Its end state was checked, too.
        assert_eq!(told("scenario", 20, &[]), "keeps its promises");
    }
}
