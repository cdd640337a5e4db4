//! `rlf-host plugin list | inspect | call | grade | grant | check`: an author's first hour, before any training.

mod grade;
mod grant;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use console::style;
use rlf_config::nearest;
use rlf_dialogue::message::plain_text;
use rlf_dialogue::tool::{Ended, ToolCall};
use rlf_plugins::plugin::Plugin;
use rlf_plugins::policy::PluginPolicy;
use rlf_plugins::registry::Registry;
use rlf_plugins::report::PluginReport;
use rlf_plugins::tool_manager::{ToolManager, ToolManagerConfig, TurnContext};
use rlf_sandbox::{InitMode, Sandbox, SandboxConfig};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::arguments::{self, PluginCommand};
use crate::config::is_in_run;
use crate::display::printable;

pub(crate) fn run(options: &arguments::Plugin) -> anyhow::Result<ExitCode> {
    let directory = &options.plugins.plugins;
    let Operator {
        plugins: policies,
        sandbox,
    } = match &options.config {
        Some(path) => operator(path)?,
        None => Operator::default(),
    };
    let sandbox = crate::assemble::sandbox(&sandbox)?;
    match &options.command {
        PluginCommand::List => list(directory, &policies, &sandbox, options.json),
        PluginCommand::Inspect { name } => {
            inspect(directory, &policies, name, &sandbox, options.json)
        }
        PluginCommand::Call {
            plugin,
            tool,
            arguments,
            seed,
            data,
            plugin_config,
        } => {
            let policy = bound(policies.get(plugin), data, plugin_config.as_deref())?;
            call(
                directory,
                &policies,
                plugin,
                &policy,
                tool,
                arguments,
                *seed,
                &sandbox,
                options.json,
            )
        }
        PluginCommand::Grade {
            plugin,
            answer,
            reference,
            trajectory,
            data,
            plugin_config,
        } => {
            let policy = bound(policies.get(plugin), data, plugin_config.as_deref())?;
            let mut policies = policies;
            policies.insert(plugin.clone(), policy);
            let (registry, plugin) = find(directory, &policies, plugin, &sandbox)?;
            let tools = ToolManager::new(&registry, &ToolManagerConfig::default())?;
            let graded = grade::Graded {
                answer: answer.as_deref(),
                reference,
                trajectory: trajectory.as_deref(),
            };
            grade::run(&plugin, &tools, &graded, options.json)
        }
        PluginCommand::Grant { plugin, gates } => {
            let file = options
                .config
                .as_deref()
                .context("name the configuration that is to hold the grant: --config FILE")?;
            let identity = Registry::identify(directory, &policies, plugin)
                .map_err(|problem| anyhow!("{problem}"))?;
            grant::run(file, plugin, &identity, gates)
        }
        PluginCommand::Check {
            path,
            data,
            plugin_config,
        } => {
            let policy = bound(None, data, plugin_config.as_deref())?;
            check(path, &policy, &sandbox, options.json)
        }
    }
}

/// What a configuration says of plugins and the sandbox; the rest of it is not looked at.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Operator {
    plugins: BTreeMap<String, PluginPolicy>,
    sandbox: SandboxConfig,
}

fn operator(path: &Path) -> anyhow::Result<Operator> {
    let mut operator = rlf_config::load::<Operator>(path)?;
    let base = path.parent().unwrap_or(Path::new("."));
    for policy in operator.plugins.values_mut() {
        // There is no run here: whoever wants such data binds the file itself, with --data.
        policy.data.retain(|_, path| !is_in_run(path));
        policy.resolve_paths(base);
    }
    Ok(operator)
}

/// A policy with data and config from the command line on top.
fn bound(
    policy: Option<&PluginPolicy>,
    data: &[String],
    config: Option<&str>,
) -> anyhow::Result<PluginPolicy> {
    let mut policy = policy.cloned().unwrap_or_default();
    for binding in data {
        let (name, path) = binding
            .split_once('=')
            .with_context(|| format!("--data {binding}: write NAME=FILE"))?;
        policy.data.insert(name.into(), PathBuf::from(path));
    }
    if let Some(config) = config {
        let parsed: Map<String, Value> =
            serde_json::from_str(config).context("--plugin-config must be a JSON object")?;
        policy.config.extend(parsed);
    }
    Ok(policy)
}

fn list(
    directory: &Path,
    policies: &BTreeMap<String, PluginPolicy>,
    sandbox: &Sandbox,
    as_json: bool,
) -> anyhow::Result<ExitCode> {
    let registry = Registry::load(directory, policies, sandbox);
    if as_json {
        say!("{}", serde_json::to_string_pretty(&registry.report())?);
    } else {
        for plugin in registry.plugins() {
            let report = plugin.report();
            let offers = match report.tools.as_slice() {
                [] => String::new(),
                tools => {
                    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
                    format!("  tools: {}", names.join(", "))
                }
            };
            say!(
                "{:<16} {:<7} {}{offers}",
                style(&report.name).cyan(),
                report.kind.as_str(),
                report.description
            );
        }
        for problem in registry.problems() {
            say!(
                "{:<16} {} {}",
                style(&problem.plugin).cyan(),
                style("not loaded:").yellow(),
                problem.what
            );
            if !problem.mend.is_empty() {
                say!("{:<16} {}", "", problem.mend);
            }
        }
        if registry.plugins().is_empty() && registry.problems().is_empty() {
            say!(
                "{} holds no plugin: no */plugin.toml and no *.wasm",
                directory.display()
            );
        }
    }
    // One broken plugin does not make a directory useless; one that cannot be read is.
    let unreadable = registry
        .problems()
        .iter()
        .any(|problem| problem.plugin == "*");
    Ok(if unreadable {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// The plugin `name` of a directory, in a registry with the plugins whose tools it may call and no others, so that
/// what is wrong with them does not matter; or why there is none.
fn find(
    directory: &Path,
    policies: &BTreeMap<String, PluginPolicy>,
    name: &str,
    sandbox: &Sandbox,
) -> anyhow::Result<(Registry, Arc<Plugin>)> {
    let calls_others = policies
        .get(name)
        .is_some_and(|policy| !policy.tools.is_empty());
    let wanted = |other: &str| other == name || calls_others;
    let registry = Registry::load_where(directory, policies, sandbox, wanted);
    if let Some(plugin) = registry.plugin(name).cloned() {
        return Ok((registry, plugin));
    }
    let mut problems = registry.problems().iter();
    if let Some(problem) = problems.find(|problem| [name, "*"].contains(&problem.plugin.as_str())) {
        bail!("{problem}");
    }
    let registry = Registry::load(directory, policies, sandbox);
    let names: Vec<&str> = registry
        .plugins()
        .iter()
        .map(|plugin| plugin.name())
        .collect();
    match nearest(name, names.iter().copied()) {
        Some(near) => bail!(
            "there is no plugin `{name}` in {}; did you mean `{near}`?",
            directory.display()
        ),
        None if names.is_empty() => bail!("there is no plugin in {}", directory.display()),
        None => bail!(
            "there is no plugin `{name}` in {}; there are: {}",
            directory.display(),
            names.join(", ")
        ),
    }
}

fn inspect(
    directory: &Path,
    policies: &BTreeMap<String, PluginPolicy>,
    name: &str,
    sandbox: &Sandbox,
    as_json: bool,
) -> anyhow::Result<ExitCode> {
    let (_, plugin) = find(directory, policies, name, sandbox)?;
    let report = plugin.report();
    if as_json {
        say!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print_report(&report);
    }
    Ok(ExitCode::SUCCESS)
}

fn print_report(report: &PluginReport) {
    let row = |name: &str, value: &str| say!("{:<14} {value}", style(name).bold());
    let list = |items: &mut dyn Iterator<Item = String>| {
        let items: Vec<String> = items.collect();
        if items.is_empty() {
            "none".to_owned()
        } else {
            items.join(", ")
        }
    };
    say!(
        "{} {}",
        style(&report.name).cyan().bold(),
        report.description
    );
    row(
        "kind",
        &format!("{} (world {})", report.kind.as_str(), report.world),
    );
    if let Some(version) = &report.version {
        row("version", version);
    }
    row(
        "component",
        &format!("{} ({} bytes)", report.component.display(), report.bytes),
    );
    row(
        "hash",
        &format!(
            "{}{}",
            report.hash,
            if report.pinned { " (pinned)" } else { "" }
        ),
    );
    row("exports", &list(&mut report.exports.iter().cloned()));
    let (wasi, ours): (Vec<&String>, Vec<&String>) = report
        .imports
        .iter()
        .partition(|import| import.starts_with("wasi:"));
    row("imports", &list(&mut ours.into_iter().cloned()));
    if !wasi.is_empty() {
        row(
            "",
            &format!("and {} WASI interfaces, all virtual and empty", wasi.len()),
        );
    }
    row(
        "gates",
        &format!(
            "asks for {}; granted {}",
            list(
                &mut report
                    .asked
                    .iter()
                    .map(|gate| format!("{gate:?}").to_lowercase())
            ),
            list(
                &mut report
                    .granted
                    .iter()
                    .map(|gate| format!("{gate:?}").to_lowercase())
            ),
        ),
    );
    row(
        "data",
        &list(&mut report.data.iter().map(|(slot, path)| match path {
            Some(path) => format!("{slot} = {}", path.display()),
            None => format!("{slot} (not bound)"),
        })),
    );
    row("config", &report.config.to_string());
    row(
        "init",
        &match &report.init {
            InitMode::PerCall { reason } => format!("runs on every call, because {reason}"),
            other => format!("{other:?}").to_lowercase(),
        },
    );
    row(
        "ready in",
        &format!(
            "{:.1} ms init, {:.1} ms {}, {} bytes",
            report.preparation.prepare_ms,
            report.preparation.compile_ms,
            if report.preparation.from_cache {
                "from the cache"
            } else {
                "compiling"
            },
            report.preparation.prepared_bytes
        ),
    );
    if let Ok(Value::Object(limits)) = serde_json::to_value(&report.limits) {
        row(
            "limits",
            &list(&mut limits.iter().map(|(name, value)| format!("{name} {value}"))),
        );
    }
    for tool in &report.tools {
        say!();
        say!("{} {}", style(&tool.name).cyan().bold(), tool.description);
        say!(
            "{}",
            serde_json::to_string_pretty(&tool.input_schema).unwrap_or_default()
        );
    }
    for notice in &report.notices {
        say!("{} {notice}", style("note:").yellow());
    }
}

#[allow(clippy::too_many_arguments)] // Each is one word of the command line.
fn call(
    directory: &Path,
    policies: &BTreeMap<String, PluginPolicy>,
    plugin: &str,
    policy: &PluginPolicy,
    tool: &str,
    arguments: &str,
    seed: u64,
    sandbox: &Sandbox,
    as_json: bool,
) -> anyhow::Result<ExitCode> {
    let arguments: Value = serde_json::from_str(arguments).with_context(|| {
        let start: String = arguments.chars().take(100).collect();
        format!("the arguments are not JSON: {start}")
    })?;
    if !arguments.is_object() {
        bail!("the arguments must be a JSON object, such as '{{\"expression\": \"1+1\"}}'");
    }
    let mut policies = policies.clone();
    policies.insert(plugin.to_owned(), policy.clone());
    let (registry, found) = find(directory, &policies, plugin, sandbox)?;
    let tools: Vec<&str> = found
        .tools()
        .iter()
        .map(|t| t.definition.name.as_str())
        .collect();
    if !tools.contains(&tool) {
        let hint = match nearest(tool, tools.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None if tools.is_empty() => {
                format!("it is a {} and has no tools", found.kind().as_str())
            }
            None => format!("it has: {}", tools.join(", ")),
        };
        bail!("plugin `{plugin}` has no tool `{tool}`; {hint}");
    }
    let manager = ToolManager::new(&registry, &ToolManagerConfig::default())?;
    let context = TurnContext {
        trajectory_id: "command-line".into(),
        turn: 0,
        seed,
    };
    let call = ToolCall {
        call_id: "command-line/0/0".into(),
        name: tool.into(),
        arguments,
    };
    let outcomes = super::runtime()?.block_on(manager.invoke(vec![call], &context));
    let outcome = outcomes
        .into_iter()
        .next()
        .context("the call gave no outcome")?;
    let shown = outcome
        .observation
        .as_ref()
        .map(|seen| plain_text(&seen.content));
    if as_json {
        say!("{}", serde_json::to_string_pretty(&outcome)?);
    } else {
        match (&shown, outcome.ended) {
            (Some(text), Ended::Ok) => say!("{}", printable(text)),
            (shown, ended) => {
                eprintln!(
                    "{} {}",
                    style(ended.as_str()).yellow().for_stderr(),
                    printable(shown.as_deref().unwrap_or_default())
                );
                if let Some(detail) = &outcome.detail {
                    eprintln!("{}", printable(detail));
                }
            }
        }
    }
    Ok(if outcome.ended == Ended::Ok {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn check(
    path: &Path,
    policy: &PluginPolicy,
    sandbox: &Sandbox,
    as_json: bool,
) -> anyhow::Result<ExitCode> {
    match Registry::load_one(path, policy, sandbox) {
        Ok(plugin) => {
            let report = plugin.report();
            if as_json {
                say!(
                    "{}",
                    serde_json::to_string_pretty(&json!({"ok": true, "plugin": report}))?
                );
            } else {
                say!("{} {} loads", style("ok").green().bold(), path.display());
                print_report(&report);
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(problem) => {
            if as_json {
                say!(
                    "{}",
                    serde_json::to_string_pretty(&json!({"ok": false, "problem": problem}))?
                );
            } else {
                eprintln!("{} {problem}", style("refused:").red().bold().for_stderr());
            }
            Ok(ExitCode::FAILURE)
        }
    }
}
