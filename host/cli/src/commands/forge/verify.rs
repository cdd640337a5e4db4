//! `rlf-host forge env verify`: checks specifications and plays environments.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use console::style;
use rlf_forge::verify::{Effort, Finding, Report, Start, verify};
use rlf_specification::{Checked, Severity, check_file};
use serde::Serialize;
use serde_json::json;
use tokio::runtime::Runtime;

use crate::arguments::{Forge, ForgeVerify, PluginBindings};
use crate::commands::env::{Found, find, is_specification};
use crate::display::{printable, progress_bar};
use crate::operator::Operator;

/// Verifies every file, and prints a verdict on each as soon as it is known. Succeeds if all are sound.
pub(super) fn run(options: &Forge, verify: &ForgeVerify) -> anyhow::Result<ExitCode> {
    let operator = Operator::load(options.config.as_deref())?;
    let runtime = crate::commands::runtime()?;
    let bar = progress_bar(verify.files.len());
    let mut verdicts = Vec::new();
    for file in &verify.files {
        bar.set_message(file.display().to_string());
        let verdict = verdict(options, verify, file, &operator, &runtime);
        let verdict = verdict.inspect_err(|_| bar.finish_and_clear())?;
        if !options.json {
            bar.suspend(|| verdict.show());
        }
        verdicts.push(verdict);
        bar.inc(1);
    }
    bar.finish_and_clear();
    if options.json {
        say!("{}", serde_json::to_string_pretty(&verdicts)?);
    }
    Ok(if verdicts.iter().all(|verdict| verdict.sound) {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Checks and plays one file.
fn verdict(
    options: &Forge,
    settings: &ForgeVerify,
    file: &Path,
    operator: &Operator,
    runtime: &Runtime,
) -> anyhow::Result<Verdict> {
    let checked = if file.is_file() && is_specification(file) {
        let read = check_file(file);
        Some(read.with_context(|| format!("cannot read {}", file.display()))?)
    } else {
        None
    };
    let is_sound = checked
        .as_ref()
        .is_none_or(|checked| checked.program.is_some());
    let played = if is_sound && !settings.no_play {
        let added = options.plugins.plugins.as_deref();
        let found = find(added, operator, file, &PluginBindings::NONE)?;
        let effort = Effort {
            calls: settings.calls,
            walks: settings.walks,
            seed: settings.seed,
        };
        let mut report = runtime.block_on(async {
            let starts = starts(&found, checked.as_ref(), settings.seeds).await?;
            anyhow::Ok(verify(&found.environments, &found.name, &starts, effort).await)
        })?;
        if let Some(program) = checked
            .as_ref()
            .and_then(|checked| checked.program.as_ref())
        {
            report.add_walks(program, settings.seed);
        }
        Some(report)
    } else {
        None
    };
    Ok(Verdict {
        file: file.display().to_string(),
        sound: is_sound && played.as_ref().is_none_or(Report::is_sound),
        checks: checked.map(|checked| checked.findings).unwrap_or_default(),
        played,
    })
}

/// The states to start from: every scenario of a specification with several seeds, or the scenarios of an environment.
async fn starts(
    found: &Found,
    checked: Option<&Checked>,
    seeds: u64,
) -> anyhow::Result<Vec<Start>> {
    let program = checked.and_then(|checked| checked.program.as_ref());
    if let Some(program) = program {
        return Ok(Start::for_program(program, seeds));
    }
    let scenarios = found.environments.scenarios(&found.name).await?;
    let mut all = Start::from_scenarios(scenarios);
    if all.is_empty() {
        let servers = found.servers.iter().flatten();
        all.extend(servers.map(|server| Start {
            name: server.clone(),
            task: json!({ "servers": { server.as_str(): null } }),
            seed: 0,
        }));
    }
    if all.is_empty() {
        bail!(
            "environment `{}` has no scenarios to start in; return some from its `scenarios`, or write scenarios.json beside its \
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
    checks: Vec<rlf_specification::Finding>,
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
            say!("  {} {text}", label(finding.severity));
        }
        for finding in self.played.iter().flat_map(|report| &report.findings) {
            let Finding {
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
            say!("  {} {}", label(finding.severity), printable(&text));
        }
    }
}

/// The word for a severity, in its colour.
pub(super) fn label(severity: Severity) -> console::StyledObject<&'static str> {
    match severity {
        Severity::Error => style("error  ").red(),
        Severity::Warning => style("warning").yellow(),
    }
}
