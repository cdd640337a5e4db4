//! The tools of all plugins in one namespace. Calls are validated, run side by side and answered in call order. Every
//! call ends in one row of the table in docs/architecture.md, "How calls end".

mod repeats;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use futures_util::future::join_all;
use rlf_dialogue::tool::{CallOutcome, Ended, Hints, NestedCall, ToolCall, ToolDefinition};
use rlf_interpreters::interpreter::Interpreter;
use rlf_plugins::arguments::canonical_json;
use rlf_plugins::counters::{CallCounters, CallCounts, Unhealthy};
use rlf_plugins::gates::{LanguageModel, LanguageModels, NestedCalls, Nesting, ProgramRunner};
use rlf_plugins::manifest::{GateName, PluginKind};
use rlf_plugins::outcome::{CallEnd, bytes, invalid_arguments};
use rlf_plugins::plugin::Plugin;
use rlf_plugins::registry::Registry;
use rlf_plugins::seed;
use rlf_plugins::turn::TurnContext;
use rlf_sandbox::{BoxFuture, Caller};
use serde::{Deserialize, Serialize};
use serde_json::Map;

use crate::outputs::Outputs;
use crate::policy::POLICY;
use crate::result_cache::ResultCache;
use crate::server::{ServerCall, ToolServer};
use crate::tool::{Attempt, Owner, PluginTool, Tool};

/// `[tools]` of a configuration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ToolManagerConfig {
    /// Number of calls of one tool that may run at once, unless its plugin's grants set another. Further calls wait,
    /// within their deadline. Default: 256.
    pub max_concurrency: usize,
    /// Maximum number of bytes of kept results of tools that declare themselves deterministic. The same call then does
    /// not run twice. It costs a look-up for each call and trusts the tool's declaration, so it is useful for calls
    /// that take milliseconds. Default: 0, which turns it off.
    pub cache_bytes: usize,
    /// True if a plugin whose file is replaced during the run serves later calls with its new component, if its grants
    /// allow that component. Calls under way end on the old one. The hash of the component that served is kept with
    /// each call. Default: true.
    pub reload: bool,
    /// Maximum share of calls that a plugin (tool or reward) may trap in, within one step or evaluation. A larger share
    /// stops the run. 0 to 1; default 0.2.
    pub max_trap_share: f64,
}

impl Default for ToolManagerConfig {
    fn default() -> Self {
        Self {
            max_concurrency: 256,
            cache_bytes: 0,
            reload: true,
            max_trap_share: 0.2,
        }
    }
}

impl ToolManagerConfig {
    /// Refuses values out of their range.
    pub fn validate(&self) -> Result<(), ToolError> {
        if self.max_concurrency == 0 {
            return Err(ToolError::NoConcurrency);
        }
        if !(0.0..=1.0).contains(&self.max_trap_share) {
            return Err(ToolError::TrapShare(self.max_trap_share));
        }
        Ok(())
    }
}

/// The reason why tools cannot be offered.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ToolError {
    /// No plugin offers the tool.
    #[error("there is no tool `{name}`{hint}")]
    NoSuchTool {
        /// The name that was asked for.
        name: String,
        /// The reason why it is missing, or the names that exist.
        hint: String,
    },
    /// The limit lets no call run.
    #[error("`tools.max_concurrency` is 0, so no call could run; write 1 or more")]
    NoConcurrency,
    /// A plugin is granted a tool that does not exist.
    #[error("[plugins.{plugin}] `{key}`: {error}")]
    Opened {
        /// The plugin that calls.
        plugin: String,
        /// The key that names the tool.
        key: &'static str,
        /// The missing tool.
        error: Box<Self>,
    },
    /// A plugin is granted an interpreter that does not exist.
    #[error("[plugins.{plugin}] `execute`: there is no interpreter `{name}`{hint}")]
    NoSuchInterpreter {
        /// The plugin that runs programs.
        plugin: String,
        /// The name in its grants.
        name: String,
        /// The reason why it is missing, or the names that exist.
        hint: String,
    },
    /// A plugin is granted a model that does not exist.
    #[error("[plugins.{plugin}] `models`: there is no model `{name}`{hint}")]
    NoSuchModel {
        /// The plugin that asks.
        plugin: String,
        /// The name in its grants.
        name: String,
        /// The names that exist, or what to add.
        hint: String,
    },
    /// A server offers a tool under a name that another tool has.
    #[error(
        "[mcp.{server}] `{name}` is also a tool of `{other}`; write `rename.{own:?} = \"{server}_{name}\"`, or leave `{own}` \
         out of `tools`"
    )]
    Taken {
        /// The server.
        server: Box<str>,
        /// The tool.
        name: Box<str>,
        /// The server's own name for it.
        own: Box<str>,
        /// The plugin or server that has the name.
        other: Box<str>,
    },
    /// Programs may call a tool that runs programs.
    #[error(
        "[plugins.{plugin}] `programs.tools`: `{tool}` runs programs, and would wait for a place that the program which calls it \
         has; leave it out"
    )]
    RunsPrograms {
        /// The interpreter.
        plugin: String,
        /// The tool.
        tool: String,
    },
    /// A server has the name of a plugin.
    #[error("[mcp.{0}] has the name of a plugin; give it another one")]
    SameName(String),
    /// The number is not a share.
    #[error("`tools.max_trap_share` = {0}: write a share from 0 to 1")]
    TrapShare(f64),
}

impl ToolError {
    /// The error that the grants of `plugin` name a model that is none of the known ones.
    pub fn no_such_model<'n>(
        plugin: &str,
        name: &str,
        known: impl IntoIterator<Item = &'n str>,
    ) -> Self {
        let hint = match rlf_config::nearest(name, known) {
            _ if name == POLICY => {
                "; it is the policy of a run, for the plugin that `agent.plugin` names".to_owned()
            }
            Some(near) => format!("; did you mean `{near}`?"),
            None => format!("; add a table [models.{name}]"),
        };
        let (plugin, name) = (plugin.to_owned(), name.to_owned());
        Self::NoSuchModel { plugin, name, hint }
    }

    /// The key of `[tools]` that is wrong; empty if the error is of something else.
    pub fn key(&self) -> &'static str {
        match self {
            Self::NoConcurrency => "max_concurrency",
            Self::TrapShare(_) => "max_trap_share",
            _ => "",
        }
    }
}

/// Models that plugins may ask, and servers with tools of their own: all that is outside of the sandbox.
#[derive(Debug, Clone, Default)]
pub struct Outside {
    /// The models.
    pub models: LanguageModels,
    /// The servers.
    pub servers: Vec<Arc<dyn ToolServer>>,
    /// The plugin that leads trajectories, if one does. Its tool is not among those that are offered by default, and the
    /// tools that it may call are those of its trajectories.
    pub leader: Option<String>,
}

/// Calls tools. All trajectories share it. It is cheap to clone and to call, and calls wait for each other only if a
/// limit demands it.
#[derive(Debug, Clone)]
pub struct ToolManager {
    inner: Arc<Inner>,
    outputs: Option<Arc<Outputs>>,
}

#[derive(Debug)]
struct Inner {
    /// In the order in which models see them: by plugin, then in the plugin's order.
    tools: Vec<Tool>,
    by_name: HashMap<String, usize>,
    cache: Option<ResultCache>,
    /// Counters of calls to names without a tool.
    unknown: CallCounters,
    missing: BTreeMap<String, String>,
    /// Plugins that run programs, by name.
    interpreters: BTreeMap<String, Arc<Plugin>>,
    /// Models that plugins can ask.
    models: LanguageModels,
    servers: Vec<Arc<dyn ToolServer>>,
    /// The plugin that leads trajectories.
    leader: Option<String>,
}

/// A call of a guest. The calls that it makes take places behind it, end at its deadline and use up its CPU time.
#[derive(Debug, Clone)]
pub struct CalledFrom {
    /// The means by which it makes them.
    pub nesting: Arc<Nesting>,
    /// Its place in the sandbox.
    pub caller: Caller,
}

/// The reason for a call: a turn of the model, a call of a guest, or a trajectory that it leads.
#[derive(Clone, Copy)]
enum Origin<'a> {
    Turn,
    Guest(&'a CalledFrom),
    /// The call leads a trajectory, by these means.
    Leads(&'a Arc<dyn NestedCalls>),
}

impl ToolManager {
    /// Offers all tools of all plugins in a registry. There are no models that they could ask, and no servers.
    pub fn new(registry: &Registry, config: &ToolManagerConfig) -> Result<Self, ToolError> {
        Self::with_outside(registry, config, Outside::default())
    }

    /// Offers all tools of all plugins in a registry, then those of the servers. Plugins can ask the models, as far as their
    /// grants allow it.
    pub fn with_outside(
        registry: &Registry,
        config: &ToolManagerConfig,
        outside: Outside,
    ) -> Result<Self, ToolError> {
        config.validate()?;
        let mut tools = Vec::new();
        for plugin in registry.plugins() {
            let permits = (plugin.grants().max_concurrency).unwrap_or(config.max_concurrency);
            for loaded in plugin.tools() {
                tools.push(Tool {
                    owner: Owner::Plugin(PluginTool::new(Arc::clone(plugin), permits)),
                    loaded: loaded.clone(),
                    counters: CallCounters::default(),
                });
            }
        }
        for server in &outside.servers {
            for loaded in server.tools() {
                tools.push(Tool {
                    owner: Owner::Server {
                        server: Arc::clone(server),
                        last_trap: Mutex::default(),
                    },
                    loaded: loaded.clone(),
                    counters: CallCounters::default(),
                });
            }
        }
        for server in &outside.servers {
            if registry.plugin(server.name()).is_some() {
                return Err(ToolError::SameName(server.name().to_owned()));
            }
        }
        let mut by_name = HashMap::new();
        for (index, tool) in tools.iter().enumerate() {
            // Two plugins never offer the same name: the registry refuses such tools.
            if let Some(other) = by_name.insert(tool.name().to_owned(), index) {
                return Err(ToolError::Taken {
                    server: tool.owner_name().into(),
                    name: tool.name().into(),
                    own: tool.loaded.own_name.as_str().into(),
                    other: tools[other].owner_name().into(),
                });
            }
        }
        let interpreters = (registry.plugins().iter())
            .filter(|plugin| plugin.kind() == PluginKind::Interpreter)
            .map(|plugin| (plugin.name().to_owned(), Arc::clone(plugin)))
            .collect();
        let manager = Self {
            inner: Arc::new(Inner {
                tools,
                by_name,
                cache: (config.cache_bytes > 0).then(|| ResultCache::new(config.cache_bytes)),
                unknown: CallCounters::default(),
                missing: registry.missing_tools(),
                interpreters,
                models: outside.models,
                servers: outside.servers,
                leader: outside.leader,
            }),
            outputs: None,
        };
        for plugin in registry.plugins() {
            // The tools of trajectories, such as those of an environment's session, are not known yet.
            if !manager.is_leader(plugin.name()) {
                let opened = manager.definitions(Some(plugin.open_tools()));
                opened.map_err(|error| ToolError::Opened {
                    plugin: plugin.name().to_owned(),
                    key: plugin.open_tools_key(),
                    error: Box::new(error),
                })?;
            }
            for tool in &plugin.grants().programs.tools {
                if manager.runs_programs(tool, &mut BTreeSet::new()) {
                    return Err(ToolError::RunsPrograms {
                        plugin: plugin.name().to_owned(),
                        tool: tool.clone(),
                    });
                }
            }
            manager.check_execute(plugin)?;
            manager.check_models(plugin)?;
        }
        Ok(manager)
    }

    /// True if the plugin of this name leads trajectories.
    fn is_leader(&self, plugin: &str) -> bool {
        self.inner.leader.as_deref() == Some(plugin)
    }

    /// True if a tool runs programs, by itself or by the tools that it may call.
    fn runs_programs(&self, name: &str, seen: &mut BTreeSet<String>) -> bool {
        let Some(index) = self.inner.by_name.get(name) else {
            return false;
        };
        let Owner::Plugin(PluginTool { plugin, .. }) = &self.inner.tools[*index].owner else {
            return false;
        };
        if plugin.kind() == PluginKind::Interpreter
            || plugin.grants().gates.contains(&GateName::Execute)
        {
            return true;
        }
        seen.insert(name.to_owned())
            && plugin
                .open_tools()
                .iter()
                .any(|tool| self.runs_programs(tool, seen))
    }

    /// Checks that the interpreters in the plugin's grants exist.
    fn check_execute(&self, plugin: &Plugin) -> Result<(), ToolError> {
        let interpreters = &self.inner.interpreters;
        let missing =
            (plugin.grants().execute.iter()).find(|name| !interpreters.contains_key(*name));
        let Some(name) = missing else {
            return Ok(());
        };
        let hint = if let Some(why) = self.inner.missing.get(name) {
            format!(": {why}")
        } else if let Some(near) =
            rlf_config::nearest(name, interpreters.keys().map(String::as_str))
        {
            format!("; did you mean `{near}`?")
        } else {
            let names: Vec<&str> = interpreters.keys().map(String::as_str).collect();
            match names.as_slice() {
                [] => "; no interpreter is loaded (`cargo xtask plugins` builds ours)".to_owned(),
                names => format!("; there are: {}", names.join(", ")),
            }
        };
        Err(ToolError::NoSuchInterpreter {
            plugin: plugin.name().to_owned(),
            name: name.clone(),
            hint,
        })
    }

    /// Checks that the models in the plugin's grants exist.
    fn check_models(&self, plugin: &Plugin) -> Result<(), ToolError> {
        let models = &self.inner.models;
        let missing = (plugin.grants().models.iter()).find(|name| !models.contains_key(*name));
        missing.map_or(Ok(()), |name| {
            let known = models.keys().map(String::as_str);
            Err(ToolError::no_such_model(plugin.name(), name, known))
        })
    }

    /// Keeps the files that calls leave behind (`files.outputs` of the grants) in this folder. It is created when the
    /// first files arrive.
    #[must_use]
    pub fn keeping_outputs_in(self, folder: &Path) -> Self {
        Self {
            outputs: Some(Arc::new(Outputs::new(folder))),
            ..self
        }
    }

    /// True if there is a tool of this name.
    pub fn has(&self, name: &str) -> bool {
        self.inner.by_name.contains_key(name)
    }

    /// The memory limit of a call of the tool, in bytes; `None` if no plugin has such a tool.
    pub fn memory_bytes(&self, name: &str) -> Option<u64> {
        let tool = &self.inner.tools[*self.inner.by_name.get(name)?];
        match &tool.owner {
            Owner::Plugin(PluginTool { plugin, .. }) => Some(plugin.grants().limits.memory_bytes),
            Owner::Server { .. } => None,
        }
    }

    /// The servers.
    pub fn servers(&self) -> &[Arc<dyn ToolServer>] {
        &self.inner.servers
    }

    /// The definitions of these tools, in this order. Without names, the definitions of all tools, except those of
    /// interpreters that the configuration does not mention, and that of the plugin that leads trajectories.
    pub fn definitions(&self, names: Option<&[String]>) -> Result<Vec<ToolDefinition>, ToolError> {
        let Some(names) = names else {
            return Ok(self
                .inner
                .tools
                .iter()
                .filter(|tool| tool.is_offered() && !self.is_leader(tool.owner_name()))
                .map(|tool| tool.loaded.definition.clone())
                .collect());
        };
        names
            .iter()
            .map(|name| match self.inner.by_name.get(name) {
                Some(index) => Ok(self.inner.tools[*index].loaded.definition.clone()),
                None => Err(self.no_such_tool(name)),
            })
            .collect()
    }

    fn no_such_tool(&self, name: &str) -> ToolError {
        let hint = if let Some(why) = self.inner.missing.get(name) {
            format!(": {why}")
        } else if let Some(near) =
            rlf_config::nearest(name, self.inner.tools.iter().map(Tool::name))
        {
            format!("; did you mean `{near}`?")
        } else if self.inner.tools.is_empty() {
            "; no tool is loaded".to_owned()
        } else {
            let names: Vec<&str> = self.inner.tools.iter().map(Tool::name).collect();
            format!("; there are: {}", names.join(", "))
        };
        ToolError::NoSuchTool {
            name: name.into(),
            hint,
        }
    }

    /// Runs the calls of one turn side by side. Returns one outcome for each, in call order.
    pub fn invoke<'a>(
        &'a self,
        calls: Vec<ToolCall>,
        context: &'a TurnContext,
    ) -> BoxFuture<'a, Vec<CallOutcome>> {
        self.invoke_from(calls, context, None)
    }

    /// Like [`ToolManager::invoke`], for calls of a turn that a guest makes in the model's place.
    pub fn invoke_from<'a>(
        &'a self,
        calls: Vec<ToolCall>,
        context: &'a TurnContext,
        from: Option<&'a CalledFrom>,
    ) -> BoxFuture<'a, Vec<CallOutcome>> {
        let origin = from.map_or(Origin::Turn, Origin::Guest);
        Box::pin(async move {
            join_all(
                calls
                    .into_iter()
                    .map(|call| self.invoke_one(call, context, origin)),
            )
            .await
        })
    }

    /// Calls a tool that leads a trajectory. The calls and questions that it makes go through `means`. It is made once: a
    /// trajectory cannot be led a second time, so it is not retried.
    pub fn lead<'a>(
        &'a self,
        call: ToolCall,
        context: &'a TurnContext,
        means: &'a Arc<dyn NestedCalls>,
    ) -> BoxFuture<'a, CallOutcome> {
        Box::pin(self.invoke_one(call, context, Origin::Leads(means)))
    }

    /// Makes one call.
    async fn invoke_one(
        &self,
        call: ToolCall,
        context: &TurnContext,
        origin: Origin<'_>,
    ) -> CallOutcome {
        let started = Instant::now();
        let mut nested = Vec::new();
        let (end, counters, component) = match self.inner.by_name.get(&call.name) {
            Some(index) => {
                let tool = &self.inner.tools[*index];
                let (end, component) = match &tool.owner {
                    Owner::Plugin(owner) => {
                        let plugin = owner.plugin.latest();
                        let (end, made) = self
                            .run(*index, owner, &plugin, &call, context, origin, started)
                            .await;
                        nested = made;
                        (end, plugin.hash().to_owned())
                    }
                    Owner::Server { server, .. } => {
                        let end = ask(tool, &**server, &call, started).await;
                        (end, server.hash().to_owned())
                    }
                };
                if end.ended == Ended::Trap {
                    tool.note_trap(&end);
                    tracing::warn!(
                        plugin = tool.owner_name(),
                        call = call.call_id,
                        detail = end.detail.as_deref().unwrap_or_default(),
                        "a tool trapped"
                    );
                }
                (end, &tool.counters, component)
            }
            None => (unknown_tool(&call.name), &self.inner.unknown, String::new()),
        };
        let wall = started.elapsed();
        counters.count(end.ended, end.fault, wall);
        CallOutcome {
            call_id: call.call_id,
            name: call.name,
            ended: end.ended,
            fault: end.fault,
            observation: end.observation,
            step_reward: None,
            state: None,
            detail: end.detail,
            wall_us: wall.as_micros() as u64,
            component,
            nested,
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one call")]
    async fn run(
        &self,
        index: usize,
        owner: &PluginTool,
        plugin: &Arc<Plugin>,
        call: &ToolCall,
        context: &TurnContext,
        origin: Origin<'_>,
        started: Instant,
    ) -> (CallEnd, Vec<NestedCall>) {
        let tool = &self.inner.tools[index];
        let (from, means) = match origin {
            Origin::Turn => (None, None),
            Origin::Guest(from) => (Some(from), None),
            Origin::Leads(means) => (None, Some(means)),
        };
        let arguments = match check_arguments(tool, plugin.grants().limits.arguments_bytes, call) {
            // A task has schemas of tools, and the policy sees them in the order in which their keys were written.
            Ok(_) if means.is_some() => call.arguments.to_string(),
            Ok(arguments) => arguments,
            Err(end) => return (end, Vec::new()),
        };
        let hints = tool.loaded.definition.hints;
        let cache = self
            .inner
            .cache
            .as_ref()
            .filter(|_| hints.deterministic && !hints.open_world)
            // A tool's answer may depend on tools that it calls, and those may change.
            .filter(|_| !plugin.calls_others())
            .filter(|_| !plugin.has_real_sources() && !plugin.leaves_files())
            .filter(|_| means.is_none());
        if let Some(observation) =
            cache.and_then(|cache| cache.get(index, plugin.fingerprint(), &arguments))
        {
            tool.counters.count_cached();
            return (CallEnd::by_cache(observation), Vec::new());
        }
        let seed = seed::derive(context.seed, "call", &[&call.call_id]);
        // Each attempt can make the same calls with the same seeds, and as many of them.
        let nesting = || {
            plugin.calls_others().then(|| {
                let turn = TurnContext {
                    seed,
                    ..context.clone()
                };
                let own = || -> Arc<dyn NestedCalls> { Arc::new(self.clone()) };
                let means = means.map_or_else(own, Arc::clone);
                let nesting = Nesting::new(means, turn, &call.call_id);
                let nesting = nesting.within(from.map(|from| &from.nesting));
                Arc::new(match plugin.kind() {
                    PluginKind::Interpreter => nesting.recording(),
                    _ => nesting,
                })
            })
        };
        let mut attempt = Attempt {
            arguments: &arguments,
            plugin,
            caller: from.map(|from| from.caller.clone()),
            nesting: nesting(),
            deadline: started + plugin.call_deadline(),
            seed,
            number: 0,
        };
        let end = loop {
            let end = owner
                .attempt(tool, call, context, &attempt, self.outputs.as_ref())
                .await;
            let again = end.may_be_retried()
                && is_repeatable(hints)
                && means.is_none()
                && attempt.number < plugin.grants().retries;
            if !again {
                break end;
            }
            tool.counters.count_retry();
            attempt.number += 1;
            attempt.nesting = nesting();
            // A retry gets its full time, because the first attempt lost its time to a busy machine or a slow service.
            attempt.deadline = Instant::now() + plugin.call_deadline();
        };
        if let (Some(cache), Ended::Ok, Some(observation)) = (cache, end.ended, &end.observation) {
            cache.insert(index, plugin.fingerprint(), &arguments, observation);
        }
        let nested = attempt.nesting.map(|nesting| nesting.take_record());
        (end, nested.unwrap_or_default())
    }

    /// Counts of calls so far, by tool. Calls to names without a tool are under `""`.
    pub fn counts(&self) -> BTreeMap<String, CallCounts> {
        let mut counts: BTreeMap<String, CallCounts> = self
            .inner
            .tools
            .iter()
            .map(|tool| (tool.name().to_owned(), tool.counters.snapshot()))
            .collect();
        let unknown = self.inner.unknown.snapshot();
        if unknown.total() > 0 {
            counts.insert(String::new(), unknown);
        }
        counts
    }

    /// Fails if a plugin trapped in more than this share of its calls, over all its tools, since `earlier`. `earlier`
    /// is a result of [`Self::counts`].
    pub fn check_health(
        &self,
        earlier: &BTreeMap<String, CallCounts>,
        max_trap_share: f64,
    ) -> Result<(), Unhealthy> {
        let mut by_owner: BTreeMap<&str, (CallCounts, Option<String>)> = BTreeMap::new();
        for tool in &self.inner.tools {
            let (counts, last_trap) = by_owner.entry(tool.owner_name()).or_default();
            let before = earlier.get(tool.name()).copied().unwrap_or_default();
            *counts = *counts + tool.counters.snapshot().since(&before);
            *last_trap = last_trap.take().or_else(|| tool.last_trap());
        }
        by_owner
            .into_iter()
            .try_for_each(|(owner, (counts, last_trap))| {
                counts.check_health(owner, max_trap_share, last_trap)
            })
    }
}

impl NestedCalls for ToolManager {
    fn definitions(&self, names: &[String]) -> Vec<ToolDefinition> {
        // The names were checked when the manager was created.
        self.definitions(Some(names)).unwrap_or_default()
    }

    fn arguments_bytes(&self, name: &str) -> Option<u64> {
        let tool = &self.inner.tools[*self.inner.by_name.get(name)?];
        Some(tool.arguments_bytes())
    }

    fn call<'a>(
        &'a self,
        call: ToolCall,
        nesting: &'a Arc<Nesting>,
        caller: Caller,
    ) -> BoxFuture<'a, CallOutcome> {
        Box::pin(async move {
            let from = CalledFrom {
                nesting: Arc::clone(nesting),
                caller,
            };
            let origin = Origin::Guest(&from);
            self.invoke_one(call, nesting.turn(), origin).await
        })
    }

    fn interpreter(&self, plugins: &[String], language: &str) -> Option<Arc<dyn ProgramRunner>> {
        let interpreters = &self.inner.interpreters;
        let named = (plugins.iter()).filter_map(|plugin| interpreters.get(plugin));
        Some(Arc::new(Interpreter::among(named, language)?))
    }

    fn model(&self, name: &str) -> Option<Arc<dyn LanguageModel>> {
        self.inner.models.get(name).cloned()
    }
}

/// Checks the arguments of a call. Returns them as canonical JSON, or the end of the call.
fn check_arguments(tool: &Tool, arguments_bytes: u64, call: &ToolCall) -> Result<String, CallEnd> {
    let invalid = |what: &str| CallEnd::by_model(Ended::InvalidArguments, invalid_arguments(what));
    // Size before shape: the cost of a schema check grows with the size of the arguments.
    let arguments = canonical_json(&call.arguments);
    if arguments.len() as u64 > arguments_bytes {
        return Err(invalid(&format!(
            "they have {} bytes; at most {} are allowed",
            arguments.len(),
            bytes(arguments_bytes)
        )));
    }
    match tool.loaded.check(&call.arguments) {
        Ok(()) => Ok(arguments),
        Err(error) => Err(invalid(&error.to_string())),
    }
}

/// Makes a call of a server's tool.
async fn ask(tool: &Tool, server: &dyn ToolServer, call: &ToolCall, started: Instant) -> CallEnd {
    let limits = server.limits();
    if let Err(end) = check_arguments(tool, limits.arguments_bytes, call) {
        return end;
    }
    let none = Map::new();
    let mut deadline = started + limits.deadline;
    let mut retries = limits.retries;
    loop {
        let attempt = ServerCall {
            name: &tool.loaded.own_name,
            arguments: call.arguments.as_object().unwrap_or(&none),
            deadline,
        };
        let end = server.call(attempt).await;
        let again = end.may_be_retried() && is_repeatable(tool.loaded.definition.hints);
        if !again || retries == 0 {
            return end;
        }
        tool.counters.count_retry();
        retries -= 1;
        deadline = Instant::now() + limits.deadline;
    }
}

/// True if a call may be repeated after something it needed was unavailable.
fn is_repeatable(hints: Hints) -> bool {
    hints.idempotent || hints.read_only
}

/// The end of a call to an unknown tool. The parser finds such calls earlier; this is for callers without a parser.
fn unknown_tool(name: &str) -> CallEnd {
    let name: String = name.chars().take(64).collect();
    CallEnd::by_model(
        Ended::InvalidArguments,
        format!("error: there is no tool {name:?}"),
    )
}
