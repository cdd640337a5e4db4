//! Reads the settings of plugins in a configuration, each with its line.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use rlf_config::{ConfigError, Lines};
use rlf_endpoint::EndpointConfig;
use rlf_environments::environments::EnvironmentConfig;
use rlf_mcp::{McpConfig, Servers, add_mcp_servers};
use rlf_models::ModelConfig;
use rlf_plugins::grants::PluginGrants;
use rlf_plugins::problem::{Problem, ProblemKind};
use rlf_plugins::registry::Registry;
use rlf_run::RunConfig;
use rlf_run::config::{IN_RUN, take_run_data};
use rlf_run::open_models;
use rlf_sandbox::SandboxConfig;
use rlf_serve::ServeConfig;
use rlf_tools::tool_manager::{Outside, ToolError, ToolManager, ToolManagerConfig};
use rlf_tools::{NoPolicy, POLICY};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::warning::warn;

/// The tables of a configuration that commands outside of a run use: plugins, sandbox, tools, environments, service,
/// and the two models of `forge`.
#[derive(Default)]
pub(crate) struct Operator {
    pub(crate) grants_by_name: BTreeMap<String, PluginGrants>,
    pub(crate) sandbox: SandboxConfig,
    pub(crate) tools: ToolManagerConfig,
    pub(crate) environments: EnvironmentConfig,
    pub(crate) serve: ServeConfig,
    /// The models that plugins may ask.
    models: BTreeMap<String, ModelConfig>,
    /// The folder of the run that the configuration trains, which need not exist.
    output: Option<PathBuf>,
    /// The MCP servers whose tools may be called.
    pub(crate) mcp: BTreeMap<String, McpConfig>,
    /// The table `[writer]`: the model that writes environments and the words of tasks, and takes questions apart.
    pub(crate) writer: Option<EndpointConfig>,
    /// The table `[embeddings]`: the model that compares names and descriptions of parameters.
    pub(crate) embeddings: Option<EndpointConfig>,
    file: Option<(PathBuf, Lines)>,
    /// Data bindings into a run's folder, which cannot be resolved without a run: by alias and slot, the file's name.
    in_run: BTreeMap<String, BTreeMap<String, String>>,
}

/// The part of a configuration that is read here.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Part {
    plugins: BTreeMap<String, PluginGrants>,
    sandbox: SandboxConfig,
    tools: ToolManagerConfig,
    environments: EnvironmentConfig,
    serve: ServeConfig,
    models: BTreeMap<String, ModelConfig>,
    output: Option<PathBuf>,
    mcp: BTreeMap<String, McpConfig>,
    mcp_servers: Option<String>,
    writer: Option<EndpointConfig>,
    embeddings: Option<EndpointConfig>,
}

/// One setting that the operator made for a plugin.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Setting {
    /// The key in the plugin's table, such as `data.corpus`.
    pub(crate) key: String,
    pub(crate) value: toml::Value,
    /// `FILE:LINE`, or the option on the command line.
    pub(crate) at: String,
    /// True if the setting is void because it is for another component than the present one.
    pub(crate) withdrawn: bool,
}

/// The operator's settings of one plugin.
#[derive(Debug, Clone, Default)]
pub(crate) struct PluginSettings {
    pub(crate) grants: PluginGrants,
    pub(crate) settings: Vec<Setting>,
    /// `FILE:LINE` of the plugin's table.
    pub(crate) entry: Option<String>,
    /// The configuration that was read.
    pub(crate) file: Option<PathBuf>,
}

/// Keys that have no effect if the component is not the pinned one.
const BOUND_TO_THE_HASH: [&str; 8] = [
    "grants",
    "tools",
    "execute",
    "models",
    "http",
    "data",
    "files",
    "unsandboxed_host_directory",
];

impl Operator {
    pub(crate) fn load(file: Option<&Path>) -> anyhow::Result<Self> {
        let Some(file) = file else {
            return Ok(Self::default());
        };
        let origin = file.display().to_string();
        let text = rlf_config::read(file)?;
        let lines = Lines::from_toml(&text, &origin)?;
        for (key, line) in lines.top_level() {
            known(key, line, &origin)?;
        }
        let part: Part = rlf_config::parse(&text, &origin)?;
        let mut operator = Self {
            grants_by_name: part.plugins,
            sandbox: part.sandbox,
            tools: part.tools,
            environments: part.environments,
            serve: part.serve,
            models: part.models,
            output: part.output,
            mcp: part.mcp,
            writer: part.writer,
            embeddings: part.embeddings,
            file: Some((file.to_owned(), lines)),
            in_run: BTreeMap::new(),
        };
        (operator.sandbox.validate())
            .map_err(|error| operator.error_at(&format!("sandbox.{}", error.key()), &error))?;
        (operator.tools.validate())
            .map_err(|error| operator.error_at(&format!("tools.{}", error.key()), &error))?;
        let base = file.parent().unwrap_or(Path::new("."));
        operator.serve.resolve_paths(base);
        for model in operator.models.values_mut() {
            model.resolve_paths(base);
        }
        for (name, model) in &operator.models {
            model.check().map_err(|error| {
                let key = format!("models.{name}.{}", error.key);
                operator.error_at(&key, &format!("{key}: {}", error.reason))
            })?;
        }
        let block = part.mcp_servers.as_deref();
        block
            .map_or(Ok(()), |block| {
                add_mcp_servers(&mut operator.mcp, block, base)
            })
            .map_err(|error| operator.error_at(&error.key(), &error))?;
        for server in operator.mcp.values_mut() {
            server.resolve_paths(base);
        }
        for (name, server) in &operator.mcp {
            (server.check(name)).map_err(|error| operator.error_at(&error.key(), &error))?;
        }
        let endpoints = [&mut operator.writer, &mut operator.embeddings];
        for endpoint in endpoints.into_iter().flatten() {
            if let Some(key_file) = &mut endpoint.key_file {
                *key_file = base.join(&*key_file);
            }
        }
        for (alias, grants) in &mut operator.grants_by_name {
            let in_run = take_run_data(grants);
            grants.resolve_paths(base);
            let names = in_run.into_iter().map(|(slot, path)| {
                let path = path.display().to_string();
                (slot, path.trim_start_matches(IN_RUN).to_owned())
            });
            operator.in_run.insert(alias.clone(), names.collect());
        }
        Ok(operator)
    }

    /// The tools of a registry. Models are opened that a plugin's grants name, and no others. MCP servers are connected if
    /// they are among `served`, or if a plugin's grants name a tool that no plugin has.
    pub(crate) fn tools(
        &self,
        registry: &Registry,
        config: &ToolManagerConfig,
        served: &BTreeSet<String>,
    ) -> anyhow::Result<ToolManager> {
        let mut configs = BTreeMap::new();
        // Here is no run whose policy a plugin could ask. A plugin that leads trajectories can be called all the same.
        let mut leader = None;
        for plugin in registry.plugins() {
            for name in &plugin.grants().models {
                if name == POLICY && !self.models.contains_key(POLICY) {
                    leader = Some(plugin.name().to_owned());
                    continue;
                }
                let config = self.models.get(name).ok_or_else(|| {
                    let known = self.models.keys().map(String::as_str);
                    ToolError::no_such_model(plugin.name(), name, known)
                })?;
                configs.insert(name.clone(), config.clone());
            }
        }
        let workers = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let models = open_models(&configs, workers, self.output.as_deref())?;
        let plugins = || registry.plugins().iter();
        let offered = plugins().flat_map(|plugin| plugin.tools());
        let offered: BTreeSet<&str> = offered.map(|tool| tool.definition.name.as_str()).collect();
        let mut called = plugins().flat_map(|plugin| plugin.open_tools());
        let all = called.any(|tool| !offered.contains(tool.as_str()));
        let mut servers = self.mcp.clone();
        servers.retain(|name, _| all || served.contains(name));
        let mut outside = Outside {
            models: models.by_name(),
            servers: self.connect(&servers)?.tool_servers(),
            leader,
        };
        if outside.leader.is_some() {
            outside.models.insert(POLICY.to_owned(), Arc::new(NoPolicy));
        }
        Ok(ToolManager::with_outside(registry, config, outside)?)
    }

    /// The tools of all MCP servers, without those of plugins.
    pub(crate) fn servers_alone(&self) -> anyhow::Result<ToolManager> {
        let outside = Outside {
            servers: self.connect(&self.mcp)?.tool_servers(),
            ..Outside::default()
        };
        Ok(ToolManager::with_outside(
            &Registry::default(),
            &self.tools,
            outside,
        )?)
    }

    /// The enabled MCP servers that are not connected.
    pub(crate) fn servers_left_out(&self, tools: &ToolManager) -> impl Iterator<Item = &str> {
        let connected: BTreeSet<String> = tools
            .servers()
            .iter()
            .map(|server| server.name().to_owned())
            .collect();
        let enabled = self.mcp.iter().filter(|(_, config)| config.enabled);
        enabled
            .map(|(name, _)| name.as_str())
            .filter(move |name| !connected.contains(*name))
    }

    fn connect(&self, servers: &BTreeMap<String, McpConfig>) -> anyhow::Result<Servers> {
        Servers::connect(servers, &warn).map_err(|error| self.error_at(&error.key(), &error))
    }

    /// An error of the configuration's key `key`, with the file and the line of that key or of its table.
    pub(crate) fn error_at(&self, key: &str, error: &dyn fmt::Display) -> anyhow::Error {
        let place = self.file.as_ref().and_then(|(file, lines)| {
            let line = lines.nearest_line(key)?;
            Some(format!("{}:{line}: ", file.display()))
        });
        anyhow!("{}{error}", place.unwrap_or_default())
    }

    /// True if the configuration has a key, such as `["writer", "max_tokens"]`.
    pub(crate) fn has(&self, key: &[&str]) -> bool {
        let lines = self.file.as_ref().map(|(_, lines)| lines);
        lines.is_some_and(|lines| lines.line(key).is_some())
    }

    /// The settings of `plugin`. Data and config from the command line override the configuration's.
    pub(crate) fn for_plugin(
        &self,
        plugin: &str,
        data: &[String],
        config: Option<&str>,
    ) -> anyhow::Result<PluginSettings> {
        let mut configured = PluginSettings {
            grants: self.grants_by_name.get(plugin).cloned().unwrap_or_default(),
            ..PluginSettings::default()
        };
        if let Some((file, lines)) = &self.file {
            let at = |line: usize| format!("{}:{line}", file.display());
            configured.file = Some(file.clone());
            configured.entry = lines.line(&["plugins", plugin]).map(at);
            let settings = lines.settings(&["plugins", plugin]).into_iter();
            configured.settings = settings
                .map(|setting| Setting {
                    key: setting.dotted(),
                    value: setting.value,
                    at: at(setting.line),
                    withdrawn: false,
                })
                .collect();
        }
        for binding in data {
            let (name, path) = binding
                .split_once('=')
                .with_context(|| format!("--data {binding}: write SLOT=PATH"))?;
            configured
                .grants
                .data
                .insert(name.into(), PathBuf::from(path));
            let value = toml::Value::String(path.to_owned());
            configured.set(format!("data.{name}"), value, "--data");
        }
        if let Some(config) = config {
            let parsed: Map<String, Value> =
                rlf_json::from_str(config).context("--plugin-config must be a JSON object")?;
            for (key, value) in &parsed {
                // TOML has no null.
                let value = toml::Value::try_from(value)
                    .unwrap_or_else(|_| toml::Value::String(value.to_string()));
                configured.set(format!("config.{key}"), value, "--plugin-config");
            }
            configured.grants.config.extend(parsed);
        }
        Ok(configured)
    }

    /// Rewords a problem whose cause is data bound to a run's folder, because no run is given here.
    pub(crate) fn explained(&self, problem: &Problem, grants: &PluginGrants) -> Problem {
        let mut problem = problem.clone();
        let plugin = problem.label().to_owned();
        let Some(in_run) = self.in_run.get(&plugin) else {
            return problem;
        };
        let missing: Vec<(&String, &String)> = in_run
            .iter()
            .filter(|(slot, _)| !grants.data.contains_key(*slot))
            .collect();
        if problem.kind != ProblemKind::Data || missing.is_empty() {
            return problem;
        }
        let list = |text: &dyn Fn(&String, &String) -> String, between: &str| {
            let texts = missing.iter().map(|(slot, name)| text(slot, name));
            texts.collect::<Vec<_>>().join(between)
        };
        let bound = |slot: &String, name: &String| {
            let line = self.file.as_ref().and_then(|(file, lines)| {
                let line = lines.line(&["plugins", &plugin, "data", slot])?;
                Some(format!(" ({}:{line})", file.display()))
            });
            let line = line.unwrap_or_default();
            format!("`{slot}` is bound to `{IN_RUN}{name}`{line}")
        };
        let what = format!(
            "its data is in the folder of a run, and no run was named: {}",
            list(&bound, ", ")
        );
        let option = |slot: &String, name: &String| format!("--data {slot}=RUN/data/{name}");
        problem.mend = format!(
            "bind the file itself, from an existing run: {}",
            list(&option, " ")
        );
        problem.what = what;
        problem
    }
}

impl PluginSettings {
    fn set(&mut self, key: String, value: toml::Value, option: &str) {
        self.settings.retain(|setting| setting.key != key);
        self.settings.push(Setting {
            key,
            value,
            at: option.to_owned(),
            withdrawn: false,
        });
    }

    /// Marks the settings that do not apply to a component with this hash.
    pub(crate) fn withdraw_unless(&mut self, hash: &str) {
        let pinned = &self.grants.hash;
        if pinned
            .as_ref()
            .is_none_or(|pin| pin.eq_ignore_ascii_case(hash))
        {
            return;
        }
        for setting in &mut self.settings {
            let first = setting.key.split('.').next().unwrap_or_default();
            setting.withdrawn =
                BOUND_TO_THE_HASH.contains(&first) || setting.key == "programs.tools";
        }
    }
}

/// Refuses an unknown key at the top level. Otherwise a misspelt `[plugins.x]` would silently grant nothing.
fn known(key: &str, line: usize, origin: &str) -> anyhow::Result<()> {
    let mut alone = toml::Table::new();
    alone.insert(key.to_owned(), toml::Value::Integer(0));
    match rlf_config::parse::<RunConfig>(&alone.to_string(), origin) {
        Err(ConfigError::Invalid { message, .. }) if message.starts_with("unknown key") => {
            bail!("{origin}:{line}: {message}")
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operator(text: &str) -> anyhow::Result<Operator> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ops.toml");
        std::fs::write(&file, text).unwrap();
        Operator::load(Some(&file))
    }

    fn rows(configured: &PluginSettings) -> Vec<(String, String)> {
        let settings = configured.settings.iter();
        settings
            .map(|setting| {
                let at = setting.at.rsplit('/').next().unwrap();
                (
                    format!("{} = {}", setting.key, setting.value),
                    at.to_owned(),
                )
            })
            .collect()
    }

    #[test]
    fn everything_that_holds_is_known_with_its_line_or_its_option() {
        let text = "[plugins.wiki]\nlimits.wall_ms = 5\ndata = { corpus = \"c\", more = \"m\" }\n";
        let operator = operator(text).unwrap();
        let data = ["corpus=other".to_owned()];
        let configured = operator
            .for_plugin("wiki", &data, Some(r#"{"k": 1}"#))
            .unwrap();
        let row = |what: &str, at: &str| (what.to_owned(), at.to_owned());
        assert_eq!(
            rows(&configured),
            [
                row("limits.wall_ms = 5", "ops.toml:2"),
                row("data.more = \"m\"", "ops.toml:3"),
                row("data.corpus = \"other\"", "--data"),
                row("config.k = 1", "--plugin-config"),
            ]
        );
        assert!(configured.entry.unwrap().ends_with("ops.toml:1"));
        assert_eq!(operator.for_plugin("other", &[], None).unwrap().entry, None);
    }

    #[test]
    fn a_pin_of_another_component_withdraws_what_is_bound_to_it() {
        let text = format!(
            "[plugins.x]\nhash = \"{}\"\ndata.a = \"b\"\nretries = 0\n",
            "ab".repeat(32)
        );
        let mut configured = operator(&text).unwrap().for_plugin("x", &[], None).unwrap();
        configured.withdraw_unless(&"AB".repeat(32));
        assert!(configured.settings.iter().all(|setting| !setting.withdrawn));
        configured.withdraw_unless(&"cd".repeat(32));
        let withdrawn = configured
            .settings
            .iter()
            .filter(|setting| setting.withdrawn);
        let keys: Vec<&str> = withdrawn.map(|setting| setting.key.as_str()).collect();
        assert_eq!(keys, ["data.a"]);
    }

    #[test]
    fn a_table_that_no_configuration_has_is_an_error_that_names_the_nearest() {
        let refused = |text: &str| operator(text).err().unwrap().to_string();
        let said = refused("seed = 1\n\n[plugin.x]\nretries = 0\n");
        assert!(
            said.ends_with("ops.toml:3: unknown key `plugin`; did you mean `plugins`?"),
            "{said}"
        );
        let said = refused("[zzzzzzzz]\n");
        assert!(said.contains("known here: seed, "), "{said}");
        let said = refused("[sandbox]\n\ninstances = 0\n");
        assert!(
            said.ends_with("ops.toml:3: sandbox.instances = 0: write 1 to 20000"),
            "{said}"
        );
        let said = refused("[tools]\nmax_concurrency = 0\n");
        assert!(
            said.contains("ops.toml:2: `tools.max_concurrency`"),
            "{said}"
        );
        // Other tables of a training configuration are not checked.
        assert!(operator("[rl]\nsteps = \"many\"\n[model]\n").is_ok());
    }
}
