//! `rlf-host env try | check`: plays an environment by hand, or checks it.

mod play;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use console::style;
use rlf_environments::check::Finding;
use rlf_environments::environments::Environments;
use rlf_plugins::grants::PluginGrants;
use rlf_plugins::python_environment::PythonEnvironment;
use rlf_plugins::python_environment::Scenario;
use rlf_run::PluginSources;
use serde_json::{Map, Value, json};

use crate::arguments::{Env, EnvCommand, PluginBindings};
use crate::display::printable;
use crate::operator::Operator;
use crate::plugins::sources;
use crate::progress::Progress;

pub(crate) fn run(options: &Env) -> anyhow::Result<ExitCode> {
    let operator = Operator::load(options.config.as_deref())?;
    match &options.command {
        EnvCommand::Try {
            path,
            task,
            scenario,
            seed,
            bindings,
        } => {
            let found = find(options, &operator, path, bindings)?;
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
            let found = find(options, &operator, path, bindings)?;
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

/// An environment that is loaded and ready.
struct Found {
    environments: Environments,
    name: String,
    /// Names of the servers, if it is written in Python.
    servers: Option<Vec<String>>,
}

/// Finds the environment at a path, or by its name in the configuration or the plugin directories.
fn find(
    options: &Env,
    operator: &Operator,
    path: &Path,
    bindings: &PluginBindings,
) -> anyhow::Result<Found> {
    let name = path
        .canonicalize()
        .ok()
        .as_deref()
        .and_then(Path::file_stem)
        .map_or_else(
            || path.display().to_string(),
            |stem| stem.to_string_lossy().into_owned(),
        );
    let configured =
        operator.for_plugin(&name, &bindings.data, bindings.plugin_config.as_deref())?;
    let mut grants = configured.grants.clone();
    let python = is_python(path);
    let component = is_component(path);
    if python {
        grants.plugin = Some("python".into());
        grants.environment = Some(PythonEnvironment {
            servers: Some(path.to_owned()),
        });
    }
    let servers = (grants.environment.as_ref())
        .map(PythonEnvironment::names)
        .transpose()?;
    let mut grants_by_name: BTreeMap<String, PluginGrants> = operator.grants_by_name.clone();
    if python || configured.entry.is_some() || !configured.settings.is_empty() {
        grants_by_name.insert(name.clone(), grants.clone());
    }
    let sources = sources_for(options.plugins.plugins.as_deref(), path);
    let sandbox = sources.sandbox(&operator.sandbox)?;
    let is_it = |alias: &str| alias == name;
    let registry = sources.load_where(&grants_by_name, &sandbox, &Progress::new(), is_it);
    if let Some(problem) = registry
        .problems()
        .iter()
        .find(|problem| problem.plugin == name || problem.plugin == "*")
    {
        bail!("{}", operator.explained(problem, &grants));
    }
    let environments = Environments::new(&registry, &sandbox, &operator.environments);
    if let Some(plugin) = registry.plugin(&name)
        && !plugin.is_environment()
    {
        bail!(
            "`{name}` is {}, and no environment",
            plugin.kind().with_article()
        );
    }
    if registry.plugin(&name).is_none() && !python && !component {
        if !path.exists() {
            bail!(
                "there is no file or folder {}, and no environment of that name in {}",
                path.display(),
                sources.display()
            );
        }
        bail!(
            "{} is neither a Python file nor a folder of them (`Name.py`, with a capital) nor a component, and there is no \
             environment of that name in {}",
            path.display(),
            sources.display()
        );
    }
    environments.plugin(&name)?;
    Ok(Found {
        environments,
        name,
        servers,
    })
}

/// Whether a path holds environments in Python: a file, or a folder that contains a server.
fn is_python(path: &Path) -> bool {
    if path.is_dir() {
        let servers = PythonEnvironment {
            servers: Some(path.to_owned()),
        };
        !path.join("plugin.toml").exists() && servers.has_servers()
    } else {
        path.is_file() && path.extension().is_some_and(|extension| extension == "py")
    }
}

/// Whether a path holds a component: a `.wasm` file, or the folder of a plugin.
fn is_component(path: &Path) -> bool {
    if path.is_dir() {
        path.join("plugin.toml").exists()
    } else {
        path.is_file()
            && path
                .extension()
                .is_some_and(|extension| extension == "wasm")
    }
}

/// The plugin sources to search. If `path` is a component, these are only the plugins of its own directory.
fn sources_for(added: Option<&Path>, path: &Path) -> PluginSources {
    let mut sources = sources(added);
    if let (true, Ok(found)) = (is_component(path), path.canonicalize()) {
        sources.directories = vec![found.parent().unwrap_or(Path::new("/")).to_owned()];
        sources.shipped = None;
    }
    sources
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

fn show(findings: &[Finding], what: &str) {
    for finding in findings {
        let verdict = if finding.problems.is_empty() {
            style("keeps its promises").green()
        } else {
            style("does not").red()
        };
        say!(
            "{what:<9} {:<34} {:>3} calls, {:>3} failed  {verdict}",
            style(printable(&finding.name)).cyan(),
            finding.calls,
            finding.failed
        );
        for problem in &finding.problems {
            say!("          {}", printable(problem));
        }
    }
}
