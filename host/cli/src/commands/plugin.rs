//! `rlf-host plugin ..`: works with plugins, without any training.

mod bench;
mod build;
pub(super) mod call;
mod grade;
mod grant;
mod inspect;
mod live;
mod new;
mod play;
mod watch;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use console::style;
use rlf_config::nearest;
use rlf_plugins::manifest::PluginKind;
use rlf_plugins::plugin::Plugin;
use rlf_plugins::problem::Problem;
use rlf_plugins::problem::one_line;
use rlf_plugins::registry::Registry;
use rlf_run::PluginSources;
use rlf_run::plugins::KINDS;
use rlf_sandbox::Sandbox;
use rlf_tools::tool_manager::ToolManagerConfig;
use serde_json::json;

use self::live::Live;
use crate::arguments::{self, PluginBindings, PluginCommand};
use crate::commands::env::is_python;
use crate::interrupt;
use crate::operator::{Operator, PluginSettings};
use crate::plugins::{loading, none_found, sources};
use crate::progress::Progress;

pub(crate) fn run(group: &arguments::Plugin) -> anyhow::Result<ExitCode> {
    let arguments::Plugin { command, options } = group;
    if let PluginCommand::New(plugin) = command {
        return new::run(plugin);
    }
    let sources = &sources(&options.plugins.plugins)?;
    let may_be_new = matches!(command, PluginCommand::Grant { .. });
    let config = options.config.as_deref();
    let operator = Operator::load(config.filter(|file| !may_be_new || file.exists()))?;
    let identify = |plugin: &str| {
        let found = sources.identify(&operator.grants_by_name, plugin);
        found.map_err(|problem| anyhow!("{problem}"))
    };
    if let PluginCommand::Grant { plugin, gates } = command {
        let file = options
            .config
            .as_deref()
            .context("name the configuration to write the grant into: --config FILE")?;
        return grant::run(file, plugin, &identify(plugin)?, gates, options.json);
    }
    if !operator.mcp.is_empty() {
        interrupt::exit_with_servers()?;
    }
    let arguments = match command {
        PluginCommand::Call { arguments, .. } => Some(call::arguments(arguments)?),
        _ => None,
    };
    let sandbox = sources.sandbox(&operator.sandbox)?;
    let find = |name: &str, bindings: &PluginBindings| {
        let configured =
            operator.for_plugin(name, &bindings.data, bindings.plugin_config.as_deref())?;
        let found = find(sources, &operator, &configured, name, &sandbox)?;
        anyhow::Ok((found, configured))
    };
    match command {
        PluginCommand::List => list(sources, &operator, &sandbox, options.json),
        PluginCommand::Grant { .. } | PluginCommand::New(_) => unreachable!("done above"),
        PluginCommand::Inspect { name, bindings } => {
            let (found, configured) = find(name, bindings)?;
            match found {
                Ok((_, plugin)) => inspect::loaded(&plugin, configured, options.json, None),
                Err(problem) => {
                    let grants_by_name =
                        BTreeMap::from([(name.clone(), configured.grants.clone())]);
                    if let Ok(found) = sources.identify(&grants_by_name, name) {
                        inspect::refused(&found, configured, &problem, options.json)?;
                    }
                    bail!("{problem}")
                }
            }
        }
        PluginCommand::Call {
            plugin,
            tool,
            seed,
            outputs,
            bindings,
            ..
        } => {
            let (registry, found) = find(plugin, bindings)?.0.map_err(|no| anyhow!("{no}"))?;
            let arguments = arguments.unwrap_or_default();
            let mut tools =
                operator.tools(&registry, &ToolManagerConfig::default(), &BTreeSet::new())?;
            if let Some(folder) = outputs {
                tools = tools.keeping_outputs_in(folder);
            }
            call::run(&tools, &found, tool, &arguments, *seed, options.json)
        }
        PluginCommand::Grade {
            plugin,
            answer,
            reference,
            trajectory,
            bindings,
        } => {
            let (registry, found) = find(plugin, bindings)?.0.map_err(|no| anyhow!("{no}"))?;
            let tools =
                operator.tools(&registry, &ToolManagerConfig::default(), &BTreeSet::new())?;
            let graded = grade::Graded {
                answer: answer.as_deref(),
                reference,
                trajectory: trajectory.as_deref(),
            };
            grade::run(&found, &tools, &graded, options.json)
        }
        PluginCommand::Bench {
            plugin,
            trial,
            seconds,
            bindings,
        } => {
            let (registry, found) = find(plugin, bindings)?.0.map_err(|no| anyhow!("{no}"))?;
            let tools =
                operator.tools(&registry, &ToolManagerConfig::default(), &BTreeSet::new())?;
            let work = bench::work(&found, trial)?;
            let time = Duration::from_secs(*seconds);
            bench::run(&found, &tools, work, time, options.json)
        }
        PluginCommand::Watch {
            plugin,
            trial,
            bindings,
        } => {
            call::arguments(&trial.arguments)?;
            let find = || Ok(find(plugin, bindings)?.0);
            let live = Live::load(&find, &operator, identify(plugin)?.files, options.json)?;
            watch::run(live, trial, options.json)
        }
        PluginCommand::Try { plugin, bindings } => {
            let find = || Ok(find(plugin, bindings)?.0);
            let live = Live::load(&find, &operator, identify(plugin)?.files, options.json)?;
            play::run(live, options.json)
        }
        PluginCommand::Build(build) => {
            let configured = settings_at(&operator, &build.path, &build.bindings)?;
            build::run(build, sources, configured, &sandbox, options.json)
        }
        PluginCommand::Check { path, bindings } => {
            let configured = settings_at(&operator, path, bindings)?;
            check(path, sources, configured, &sandbox, options.json)
        }
    }
}

/// The settings of the plugin at a path. A configuration names it by its folder or file.
fn settings_at(
    operator: &Operator,
    path: &Path,
    bindings: &PluginBindings,
) -> anyhow::Result<PluginSettings> {
    let path = path.canonicalize().ok();
    let name = path.as_deref().and_then(Path::file_stem);
    let name = name.unwrap_or_default().to_string_lossy();
    operator.for_plugin(&name, &bindings.data, bindings.plugin_config.as_deref())
}

fn list(
    sources: &PluginSources,
    operator: &Operator,
    sandbox: &Sandbox,
    as_json: bool,
) -> anyhow::Result<ExitCode> {
    let registry = sources.load(&operator.grants_by_name, sandbox, &Progress::new());
    let explained = |problem: &Problem| {
        let grants = operator.grants_by_name.get(problem.label());
        operator.explained(problem, &grants.cloned().unwrap_or_default())
    };
    // One broken plugin is not a failure; an unreadable plugin directory is.
    let unreadable = registry
        .problems()
        .iter()
        .find(|problem| problem.plugin.is_none());
    if as_json {
        let mut report = registry.report();
        report.problems = report.problems.iter().map(explained).collect();
        say!("{}", serde_json::to_string_pretty(&report)?);
    } else if let Some(Problem {
        path, what, mend, ..
    }) = unreadable
    {
        bail!("{}: {what}; {mend}", path.display());
    } else {
        for plugin in registry.plugins() {
            let report = plugin.report();
            let offers = match (report.tools.as_slice(), &report.servers) {
                ([], None) => String::new(),
                ([], Some(servers)) => format!("  servers: {}", servers.join(", ")),
                (tools, _) => {
                    let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
                    format!("  tools: {}", names.join(", "))
                }
            };
            say!(
                "{:<18} {:<11} {}{offers}",
                style(&report.name).cyan(),
                if report.servers.is_some() {
                    PluginKind::Environment.as_str()
                } else {
                    report.kind.as_str()
                },
                one_line(&report.description)
            );
        }
        for problem in registry.problems().iter().map(explained) {
            say!(
                "{:<18} {} {}",
                style(one_line(problem.label())).cyan(),
                style("not loaded:").yellow(),
                one_line(&problem.what)
            );
            if !problem.mend.is_empty() {
                say!("{:<18} {}", "", one_line(&problem.mend));
            }
        }
        if registry.plugins().is_empty() && registry.problems().is_empty() {
            say!("{}", none_found(sources));
        }
    }
    Ok(if unreadable.is_some() {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// A plugin, in a registry with only the plugins that it may call or run programs in, so that problems of other plugins
/// do not matter; or the plugin's problem.
type Found = Result<(Registry, Arc<Plugin>), Problem>;

/// Finds the plugin `name`, or returns an error.
fn find(
    sources: &PluginSources,
    operator: &Operator,
    configured: &PluginSettings,
    name: &str,
    sandbox: &Sandbox,
) -> anyhow::Result<Found> {
    let mut grants_by_name = operator.grants_by_name.clone();
    if configured.entry.is_some() || !configured.settings.is_empty() {
        grants_by_name.insert(name.to_owned(), configured.grants.clone());
    }
    let grants = &configured.grants;
    let calls_others = !grants.tools.is_empty() || !grants.programs.tools.is_empty();
    let runs = |other: &str| configured.grants.execute.iter().any(|named| named == other);
    let wanted = |other: &str| other == name || calls_others || runs(other);
    let registry = sources.load_where(&grants_by_name, sandbox, &Progress::new(), wanted);
    if let Some(plugin) = registry.plugin(name).cloned() {
        return Ok(Ok((registry, plugin)));
    }
    if let Some(problem) = registry.problem_of(name) {
        return Ok(Err(operator.explained(problem, &configured.grants)));
    }
    let directories = sources.all();
    let mut folders = directories.iter().map(|directory| directory.join(name));
    if let Some(advice) = folders.find_map(|folder| environment_advice(&folder)) {
        bail!(
            "there is no plugin `{name}` in {}; {advice}",
            sources.display()
        );
    }
    let registry = sources.load(&grants_by_name, sandbox, &Progress::new());
    let names: Vec<&str> = registry
        .plugins()
        .iter()
        .map(|plugin| plugin.name())
        .collect();
    match nearest(name, names.iter().copied()) {
        Some(near) => bail!(
            "there is no plugin `{name}` in {}; did you mean `{near}`?",
            sources.display()
        ),
        None if names.is_empty() && registry.problems().is_empty() => {
            bail!("there is no plugin `{name}`: {}", none_found(sources))
        }
        None if names.is_empty() => {
            bail!("there is no plugin `{name}` in {}", sources.display())
        }
        None => bail!(
            "there is no plugin `{name}` in {}; there are: {}",
            sources.display(),
            names.join(", ")
        ),
    }
}

/// The advice about a folder that is no plugin but may be an environment in Python.
fn environment_advice(folder: &Path) -> Option<String> {
    let may_be_environment = folder.is_dir() && is_python(folder);
    may_be_environment.then(|| {
        format!(
            "if {0} is an environment, use `rlf-host env check {0}` or `rlf-host env try {0}`",
            folder.display()
        )
    })
}

fn check(
    path: &Path,
    sources: &PluginSources,
    configured: PluginSettings,
    sandbox: &Sandbox,
    as_json: bool,
) -> anyhow::Result<ExitCode> {
    match loading(|| Registry::load_one(path, &sources.all(), &configured.grants, KINDS, sandbox)) {
        Ok(plugin) => {
            let heading = format!("{} loads", path.display());
            inspect::loaded(&plugin, configured, as_json, Some(&heading))
        }
        Err(mut problem) => {
            if let Some(advice) = environment_advice(path) {
                problem.mend = match problem.mend.as_str() {
                    "" => advice,
                    mend => format!("{mend}; {advice}"),
                };
            }
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
