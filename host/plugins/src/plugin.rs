//! A loaded plugin: a template of the sandbox, what the author and the operator said of it, and
//! typed calls.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use rlf_dialogue::tool::ToolDefinition;
use rlf_sandbox::{
    BoxFuture, CallReport, CallSpec, Caller, Captured, FilesReport, State, Stopped, Template,
};
use serde::Serialize;
use serde_json::Value;
use wasmtime::Store;
use wasmtime::component::Instance;

use crate::arguments::{measured, validate};
use crate::bindings::{environment, interpreter, reward, tool, types};
use crate::gates::Nesting;
use crate::interpreter::Language;
use crate::interpreter::functions::Functions;
use crate::manifest::{Gate, PluginKind, PluginManifest};
use crate::outcome::End;
use crate::policy::PluginPolicy;
use crate::reward::GradingRequest;
use crate::schema::ToolSchema;

/// One tool of a loaded plugin, its schema checked and compiled.
#[derive(Debug, Clone)]
pub struct LoadedTool {
    /// As models are shown it, under the operator's name for it.
    pub definition: ToolDefinition,
    /// The name the plugin knows it by.
    pub own_name: String,
    /// What the host checks arguments by; none where the tool's own code does.
    pub(crate) schema: Option<Arc<ToolSchema>>,
}

/// Who sees to it that arguments are what a tool takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Checking {
    /// The host, by the tool's schema, which it compiles: what does not fit never reaches the tool.
    Host,
    /// The tool's own code. Its schema is for the model alone, and may say what the host's engine does not know.
    Tool,
}

impl LoadedTool {
    /// What is wrong with arguments that its code is not to see, as a text that a model can act on.
    pub(crate) fn check(&self, arguments: &Value) -> Result<(), String> {
        match &self.schema {
            Some(schema) => validate(schema, arguments),
            None => measured(arguments).map(drop),
        }
    }
}

/// The typed exports of a component, by its kind.
#[derive(Clone)]
pub(crate) enum Exports {
    Tool(Arc<tool::GuestIndices>),
    Reward(Arc<reward::GuestIndices>),
    Interpreter(Arc<interpreter::GuestIndices>),
    Environment(Arc<environment::GuestIndices>),
}

/// A plugin that is ready to be called.
pub struct Plugin {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
    pub(crate) component_path: PathBuf,
    pub(crate) manifest: PluginManifest,
    pub(crate) policy: PluginPolicy,
    pub(crate) notices: Vec<String>,
    pub(crate) template: Template,
    pub(crate) exports: Exports,
    pub(crate) tools: Vec<LoadedTool>,
    /// Whether the operator's configuration says anything of it.
    pub(crate) is_named: bool,
    pub(crate) languages: Vec<Language>,
    pub(crate) functions: Option<Functions>,
    pub(crate) environment_hash: Option<String>,
    identity: String,
    last_trap: Mutex<Option<String>>,
    successor: RwLock<Option<Arc<Plugin>>>,
    printed: Mutex<Option<Printed>>,
}

/// What a plugin printed in one call: for its author, never for a model.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Printed {
    /// On standard output.
    pub stdout: Captured,
    /// On standard error.
    pub stderr: Captured,
}

/// One call to a tool, ready to be handed to the guest.
pub(crate) struct ToolRequest {
    /// The plugin's own name of the tool.
    pub(crate) name: String,
    /// Canonical JSON.
    pub(crate) arguments: String,
    pub(crate) context: types::CallContext,
    pub(crate) deadline: Instant,
    pub(crate) caller: Option<Caller>,
    pub(crate) nesting: Option<Arc<Nesting>>,
}

/// What a guest answers to a tool call.
pub(crate) type ToolResult = Result<types::Observation, types::Error>;
/// What a guest answers to a grading.
pub(crate) type GradingResult = Result<Vec<Result<reward::Score, types::Error>>, types::Error>;

impl Plugin {
    pub(crate) fn new(
        name: String,
        candidate: (PathBuf, PathBuf, PluginManifest),
        policy: PluginPolicy,
        notices: Vec<String>,
        template: Template,
        exports: Exports,
    ) -> Self {
        let (path, component_path, manifest) = candidate;
        let config = policy.effective_config(&manifest).to_string();
        let identity = format!(
            "{} {} {}",
            template.info().hash,
            template.data_hash().unwrap_or_default(),
            blake3::hash(config.as_bytes()).to_hex()
        );
        Self {
            name,
            path,
            component_path,
            manifest,
            policy,
            notices,
            template,
            exports,
            tools: Vec::new(),
            is_named: false,
            languages: Vec::new(),
            functions: None,
            environment_hash: None,
            identity,
            last_trap: Mutex::default(),
            successor: RwLock::default(),
            printed: Mutex::default(),
        }
    }

    /// The name the operator gave it; the folder's by default.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it is.
    pub fn kind(&self) -> PluginKind {
        match self.exports {
            Exports::Tool(_) => PluginKind::Tool,
            Exports::Reward(_) => PluginKind::Reward,
            Exports::Interpreter(_) => PluginKind::Interpreter,
            Exports::Environment(_) => PluginKind::Environment,
        }
    }

    /// Whether trajectories can act in it: an environment of its own, or an interpreter that has loaded one.
    pub fn is_environment(&self) -> bool {
        self.kind() == PluginKind::Environment || self.policy.environment.is_some()
    }

    pub(crate) fn is_reward(&self) -> bool {
        self.kind() == PluginKind::Reward
    }

    /// Its folder, or its bare `.wasm`.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// BLAKE3 of the component as its author built it, hexadecimal.
    pub fn hash(&self) -> &str {
        &self.template.info().hash
    }

    /// Names the world that an environment is: its component, and where that is an interpreter, the files it has loaded.
    pub fn world_hash(&self) -> String {
        match &self.environment_hash {
            Some(files) => format!("{}+{files}", self.hash()),
            None => self.hash().to_owned(),
        }
    }

    /// BLAKE3 of the environment's files that an interpreter has loaded, hexadecimal.
    pub fn environment_hash(&self) -> Option<&str> {
        self.environment_hash.as_deref()
    }

    /// What its answers depend on beside their calls: component, data and config, by their hashes.
    pub(crate) fn identity(&self) -> &str {
        &self.identity
    }

    /// Hash of all data bound to it, hexadecimal; `None` where nothing is bound.
    pub fn data_hash(&self) -> Option<String> {
        self.template.data_hash()
    }

    /// Its tools, in its own order; none of other kinds.
    pub fn tools(&self) -> &[LoadedTool] {
        &self.tools
    }

    /// What an interpreter runs; nothing of other kinds.
    pub fn languages(&self) -> &[Language] {
        &self.languages
    }

    /// The functions that an interpreter offers as tools, if its policy names a folder of them.
    pub(crate) fn functions(&self) -> Option<&Functions> {
        self.functions.as_ref()
    }

    /// What the operator decided about it, the default where nothing was.
    pub fn policy(&self) -> &PluginPolicy {
        &self.policy
    }

    /// Whether the same call can end otherwise when it is made again, whatever its tools say of themselves.
    pub(crate) fn is_granted_chance(&self) -> bool {
        self.policy.grants.iter().any(|gate| gate.is_behind_wasi())
    }

    /// What the author says of it.
    pub fn manifest(&self) -> &PluginManifest {
        &self.manifest
    }

    /// What loaded, but not as one might think: for people.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// How it was prepared and what its component imports.
    pub fn template(&self) -> &Template {
        &self.template
    }

    /// The plugin that serves calls now: this one, or what replaced it on disk since it was loaded. See
    /// [`Follower`](crate::follower::Follower).
    pub fn latest(self: &Arc<Self>) -> Arc<Self> {
        let successor = self
            .successor
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        Arc::clone(successor.as_ref().unwrap_or(self))
    }

    /// Lets later calls be served by another.
    pub(crate) fn replace_by(&self, successor: Arc<Self>) {
        *self
            .successor
            .write()
            .unwrap_or_else(PoisonError::into_inner) = Some(successor);
    }

    /// Whether its calls leave files that are to be kept.
    pub(crate) fn leaves_files(&self) -> bool {
        let files = self.policy.files.as_ref();
        files.is_some_and(|files| !files.outputs.is_empty())
            || self.policy.unsandboxed_host_directory.is_some()
    }

    /// Whether its tools are shown to a model that is to have all there are. Running programs is more than a tool does:
    /// whoever wants that says so.
    pub(crate) fn is_offered(&self) -> bool {
        self.is_named || self.kind() != PluginKind::Interpreter
    }

    /// How long a call of one of its tools may take, of real time.
    pub(crate) fn call_deadline(&self) -> Duration {
        match self.kind() {
            PluginKind::Interpreter => self.policy.programs.deadline,
            PluginKind::Tool | PluginKind::Reward | PluginKind::Environment => {
                self.policy.limits.wall
            }
        }
    }

    /// Whether its calls can make others, or run programs.
    pub(crate) fn calls_others(&self) -> bool {
        [Gate::Tools, Gate::Execute]
            .iter()
            .any(|gate| self.policy.grants.contains(gate))
    }

    /// Remembers why it last trapped, for the message that stops a run.
    pub(crate) fn note_trap(&self, end: &End) {
        *self
            .last_trap
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = end
            .detail
            .as_ref()
            .map(|detail| detail.lines().next().unwrap_or_default().to_owned());
    }

    pub(crate) fn last_trap(&self) -> Option<String> {
        self.last_trap
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// What the last call that printed anything printed, once: for an author who makes one call at a time.
    pub fn take_printed(&self) -> Option<Printed> {
        self.printed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// Makes an instance of a reward and looks at its functions: whether they have the contract's types is known
    /// only then. Those of other kinds show it in what they list.
    pub(crate) async fn probe_reward(&self) -> Result<(), Stopped> {
        let Exports::Reward(indices) = &self.exports else {
            return Ok(());
        };
        let indices = Arc::clone(indices);
        self.ask("probe", move |store, instance| {
            Box::pin(async move { indices.load(&mut *store, &instance).map(drop) })
        })
        .await
    }

    /// Asks an environment for its scenarios.
    pub(crate) async fn list_scenarios(&self) -> Result<Vec<environment::Scenario>, Stopped> {
        let Exports::Environment(indices) = &self.exports else {
            return Ok(Vec::new());
        };
        let indices = Arc::clone(indices);
        self.ask("scenarios", move |store, instance| {
            Box::pin(async move {
                let guest = indices.load(&mut *store, &instance)?;
                guest.call_scenarios(store).await
            })
        })
        .await
    }

    /// Asks an interpreter what it runs.
    pub(crate) async fn list_languages(&self) -> Result<Vec<interpreter::Language>, Stopped> {
        let Exports::Interpreter(indices) = &self.exports else {
            return Ok(Vec::new());
        };
        let indices = Arc::clone(indices);
        self.ask("languages", move |store, instance| {
            Box::pin(async move {
                let guest = indices.load(&mut *store, &instance)?;
                guest.call_languages(store).await
            })
        })
        .await
    }

    /// Asks a tool plugin what it offers.
    pub(crate) async fn list_tools(&self) -> Result<Vec<types::ToolDefinition>, Stopped> {
        let Exports::Tool(indices) = &self.exports else {
            return Ok(Vec::new());
        };
        let indices = Arc::clone(indices);
        self.ask("list-tools", move |store, instance| {
            Box::pin(async move {
                let guest = indices.load(&mut *store, &instance)?;
                guest.call_list_tools(store).await
            })
        })
        .await
    }

    /// Asks the plugin something about itself in an instance of its own. `what` names it in logs.
    async fn ask<R, F>(&self, what: &str, question: F) -> Result<R, Stopped>
    where
        R: Send + 'static,
        F: for<'a> FnOnce(&'a mut Store<State>, Instance) -> BoxFuture<'a, wasmtime::Result<R>>
            + Send
            + 'static,
    {
        let spec = CallSpec {
            label: format!("{}: {what}", self.name),
            ..CallSpec::default()
        };
        self.finish(self.template.call(spec, question).await)
    }

    /// Calls a tool. Beside how it ended, what became of its files.
    pub(crate) async fn call_tool(
        &self,
        request: ToolRequest,
    ) -> (Result<ToolResult, Stopped>, FilesReport) {
        let Exports::Tool(indices) = &self.exports else {
            let stopped = Stopped::unavailable("the plugin offers no tools");
            return (Err(stopped), FilesReport::default());
        };
        let indices = Arc::clone(indices);
        let spec = CallSpec {
            label: request.context.call_id.clone(),
            seed: request.context.seed,
            deadline: Some(request.deadline),
            caller: request.caller.clone(),
            context: request.nesting.clone().map(|nesting| nesting as _),
            ..CallSpec::default()
        };
        let mut report = self
            .template
            .call(spec, move |store, instance| {
                Box::pin(async move {
                    let guest = indices.load(&mut *store, &instance)?;
                    let ToolRequest {
                        name,
                        arguments,
                        context,
                        ..
                    } = request;
                    guest.call_call(store, &name, &arguments, &context).await
                })
            })
            .await;
        let files = std::mem::take(&mut report.files);
        (self.finish(report), files)
    }

    /// Asks a reward to grade a group.
    pub(crate) async fn grade(
        &self,
        request: &Arc<GradingRequest>,
        seed: u64,
        nesting: Option<Arc<Nesting>>,
    ) -> Result<GradingResult, Stopped> {
        let Exports::Reward(indices) = &self.exports else {
            return Err(Stopped::unavailable("the plugin is no reward"));
        };
        let indices = Arc::clone(indices);
        let request = Arc::clone(request);
        let label = format!("{}: grade {}", self.name, request.task().id);
        let spec = CallSpec {
            label,
            seed,
            context: nesting.map(|nesting| nesting as _),
            ..CallSpec::default()
        };
        let report = self
            .template
            .call(spec, move |store, instance| {
                Box::pin(async move {
                    let guest = indices.load(&mut *store, &instance)?;
                    let grading = request.grading(seed);
                    guest
                        .call_grade(store, request.task(), request.group(), &grading)
                        .await
                })
            })
            .await;
        self.finish(report)
    }

    /// Adds what the guest printed before it broke to the reason: a panic's message is printed, not returned.
    /// The rest is kept aside.
    pub(crate) fn finish<R>(&self, report: CallReport<R>) -> Result<R, Stopped> {
        let (stdout, stderr) = (report.stdout.captured(), report.stderr.captured());
        let outcome = report.outcome.map_err(|mut stopped| {
            let printed = stderr.text.trim();
            if !printed.is_empty() {
                let start = printed
                    .char_indices()
                    .rev()
                    .nth(999)
                    .map_or(0, |(at, _)| at);
                stopped.reason = format!("{}; it printed: {}", stopped.reason, &printed[start..]);
            }
            stopped
        });
        self.keep_printed(stdout, stderr);
        outcome
    }

    /// Keeps what a call printed until it is taken.
    pub(crate) fn keep_printed(&self, stdout: Captured, stderr: Captured) {
        if !stdout.is_empty() || !stderr.is_empty() {
            *self.printed.lock().unwrap_or_else(PoisonError::into_inner) =
                Some(Printed { stdout, stderr });
        }
    }
}

impl fmt::Debug for Plugin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Plugin")
            .field("name", &self.name)
            .field("kind", &self.kind())
            .field("path", &self.path)
            .field("hash", &self.hash())
            .finish_non_exhaustive()
    }
}
