//! A loaded plugin: a template of the sandbox, the author's manifest, the operator's grants, and the calls that the
//! core can make to any kind of plugin.

use std::any::Any;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use rlf_sandbox::{
    BoxFuture, CallReport, CallSpec, Caller, Captured, FilesReport, State, Stopped, Template,
};
use serde::Serialize;
use serde_json::Value;
use wasmtime::Store;
use wasmtime::component::Instance;

use crate::admission::Admitted;
use crate::bindings::types;
use crate::bundle::Contents;
use crate::candidate::Candidate;
use crate::files::PluginFiles;
use crate::gates::Nesting;
use crate::grants::PluginGrants;
use crate::manifest::{GateName, PluginKind, PluginManifest};
use crate::offered_tools::LoadedTool;
use crate::outcome::CallEnd;
use crate::problem::LoadRefusal;
use crate::script::ScriptLanguage;

/// The exports of a loaded plugin. The crate of its kind implements this trait. The methods are those that the core and
/// the crates of other kinds need.
pub trait Exports: Send + Sync {
    /// The data of the crate of its kind: see [`Plugin::exports`].
    fn as_any(&self) -> &dyn Any;

    /// Runs the plugin for the first time. Returns the tools that it offers, or `None` if its kind offers no tools.
    fn list<'a>(
        &'a self,
        plugin: &'a Plugin,
    ) -> BoxFuture<'a, Result<Option<ToolList>, LoadRefusal>>;

    /// Calls one of its tools. Returns how the call ended, and a report about its files.
    fn call_tool<'a>(
        &'a self,
        plugin: &'a Arc<Plugin>,
        request: ToolRequest,
    ) -> BoxFuture<'a, (CallEnd, FilesReport)> {
        let _ = (plugin, request);
        Box::pin(async { no_tools() })
    }
}

/// The end of a call to a plugin of a kind without tools.
pub(crate) fn no_tools() -> (CallEnd, FilesReport) {
    let stopped = Stopped::unavailable("the plugin offers no tools");
    (CallEnd::from_stopped(&stopped), FilesReport::default())
}

/// The list of tools that a plugin offers.
pub struct ToolList {
    /// The tools, unchecked, in the plugin's order.
    pub listed: Vec<types::ToolDefinition>,
    /// The advice to show if the list is wrong.
    pub mend: String,
}

/// A plugin that is ready to be called.
pub struct Plugin {
    pub(crate) name: String,
    pub(crate) files: PluginFiles,
    pub(crate) manifest: PluginManifest,
    pub(crate) grants: PluginGrants,
    pub(crate) notices: Vec<String>,
    pub(crate) template: Template,
    kind: PluginKind,
    exports: Arc<dyn Exports>,
    pub(crate) tools: Vec<LoadedTool>,
    /// True if the operator's configuration mentions it.
    pub(crate) is_named: bool,
    /// The environment in Python that it has loaded, if it is an interpreter.
    pub(crate) environment: Option<LoadedEnvironment>,
    /// The language of its source file, and what the file says about itself.
    script: Option<(ScriptLanguage, Option<String>)>,
    /// BLAKE3 of its code: of the component as its author built it, or of its source files.
    hash: String,
    fingerprint: String,
    last_trap: Mutex<Option<String>>,
    successor: RwLock<Option<Arc<Plugin>>>,
    printed: Mutex<Option<Printed>>,
}

/// An environment in Python that an interpreter has loaded.
pub(crate) struct LoadedEnvironment {
    /// BLAKE3 of its files, in hexadecimal.
    hash: String,
    servers: Vec<String>,
}

impl LoadedEnvironment {
    /// The environment with these files, as returned by
    /// [`PythonEnvironment::read`](crate::python_environment::PythonEnvironment::read).
    pub(crate) fn new(files: &Value) -> Self {
        let servers = files["servers"].as_object();
        Self {
            hash: blake3::hash(files.to_string().as_bytes())
                .to_hex()
                .to_string(),
            servers: servers.map_or_else(Vec::new, |servers| servers.keys().cloned().collect()),
        }
    }
}

/// The output of a plugin in one call. It is for the plugin's author, never for a model.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Printed {
    /// Standard output.
    pub stdout: Captured,
    /// Standard error.
    pub stderr: Captured,
}

/// One call to a tool, ready for the guest.
pub struct ToolRequest {
    /// The plugin's own name of the tool.
    pub name: String,
    /// The arguments as canonical JSON.
    pub arguments: String,
    /// The call's context, as the guest sees it.
    pub context: types::CallContext,
    /// The time at which the call is stopped.
    pub deadline: Instant,
    /// The guest that makes the call, if a guest makes it.
    pub caller: Option<Caller>,
    /// The means to make calls of its own, if that is allowed.
    pub nesting: Option<Arc<Nesting>>,
}

impl Plugin {
    pub(crate) fn new(
        name: String,
        candidate: Candidate,
        admitted: Admitted,
        template: Template,
        exports: Arc<dyn Exports>,
        environment: Option<LoadedEnvironment>,
    ) -> Self {
        let hash = candidate.info().hash;
        let Candidate {
            files, contents, ..
        } = candidate;
        let Contents {
            manifest, script, ..
        } = contents;
        let Admitted {
            kind,
            grants,
            notices,
            ..
        } = admitted;
        let config = grants.effective_config(&manifest).to_string();
        let code = match &script {
            Some(_) => format!("{hash}+{}", template.info().hash),
            None => hash.clone(),
        };
        let fingerprint = format!(
            "{code} {} {}",
            template.data_hash().unwrap_or_default(),
            blake3::hash(config.as_bytes()).to_hex()
        );
        Self {
            name,
            files,
            manifest,
            grants,
            notices,
            template,
            kind,
            exports,
            tools: Vec::new(),
            is_named: false,
            environment,
            script: script.map(|file| (file.language, file.description())),
            hash,
            fingerprint,
            last_trap: Mutex::default(),
            successor: RwLock::default(),
            printed: Mutex::default(),
        }
    }

    /// The operator's name for it; by default, the name of its folder.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The plugin's kind.
    pub fn kind(&self) -> PluginKind {
        self.kind
    }

    /// True if trajectories can act in it: it is an environment, or an interpreter that has loaded one.
    pub fn is_environment(&self) -> bool {
        self.kind() == PluginKind::Environment || self.environment.is_some()
    }

    /// Its folder, or its bare component or source file.
    pub fn path(&self) -> &Path {
        &self.files.path
    }

    /// BLAKE3 of its code, hexadecimal: of the component as its author built it, or of its source files.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// Identifies an environment: by its component, and for an interpreter also by the files that it has loaded.
    pub fn environment_identity(&self) -> String {
        match self.environment_hash() {
            Some(files) => format!("{}+{files}", self.hash()),
            None => self.hash().to_owned(),
        }
    }

    /// BLAKE3 of the environment's files that an interpreter has loaded, in hexadecimal.
    pub fn environment_hash(&self) -> Option<&str> {
        (self.environment.as_ref()).map(|environment| environment.hash.as_str())
    }

    /// The names of the servers of the environment that an interpreter has loaded.
    pub fn servers(&self) -> Option<&[String]> {
        (self.environment.as_ref()).map(|environment| environment.servers.as_slice())
    }

    /// Identifies what a tool's result depends on besides the call: hashes of the code, the data and the config.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Hash of all data bound to it, hexadecimal. `None` if no data is bound.
    pub fn data_hash(&self) -> Option<String> {
        self.template.data_hash()
    }

    /// Its tools, in its own order. Empty for kinds without tools.
    pub fn tools(&self) -> &[LoadedTool] {
        &self.tools
    }

    /// The operator's grants; the defaults if there are none.
    pub fn grants(&self) -> &PluginGrants {
        &self.grants
    }

    /// True if the same call can end differently when it is repeated, regardless of its tools' hints.
    pub fn has_real_sources(&self) -> bool {
        self.grants.gates.iter().any(|gate| gate.is_behind_wasi())
    }

    /// The author's manifest.
    pub fn manifest(&self) -> &PluginManifest {
        &self.manifest
    }

    /// Notices for people, about anything that loaded differently than expected.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// The language of its source file; `None` if it is a component.
    pub fn script_language(&self) -> Option<ScriptLanguage> {
        self.script.as_ref().map(|(language, _)| *language)
    }

    /// A description for people, in one sentence: the manifest's, or the first line of a source file's docstring or
    /// comment.
    pub fn description(&self) -> &str {
        match (&self.manifest.description, &self.script) {
            (described, Some((_, Some(own)))) if described.is_empty() => own,
            (described, _) => described,
        }
    }

    /// The prepared component.
    pub fn template(&self) -> &Template {
        &self.template
    }

    /// The plugin that serves calls now: this one, or its replacement on disk. See
    /// [`Follower`](crate::follower::Follower).
    pub fn latest(self: &Arc<Self>) -> Arc<Self> {
        let successor = self
            .successor
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        Arc::clone(successor.as_ref().unwrap_or(self))
    }

    /// Makes another plugin serve later calls.
    pub(crate) fn replace_by(&self, successor: Arc<Self>) {
        *self
            .successor
            .write()
            .unwrap_or_else(PoisonError::into_inner) = Some(successor);
    }

    /// True if its calls may leave files to keep.
    pub fn leaves_files(&self) -> bool {
        let files = self.grants.files.as_ref();
        files.is_some_and(|files| !files.outputs.is_empty())
            || self.grants.unsandboxed_host_directory.is_some()
    }

    /// True if its tools are shown to a model by default, when no tools are named. An interpreter's are not, unless the
    /// operator's configuration mentions it: running programs is more than a tool does.
    pub fn is_offered(&self) -> bool {
        self.is_named || self.kind() != PluginKind::Interpreter
    }

    /// The real time that a call of one of its tools may take.
    pub fn call_deadline(&self) -> Duration {
        match self.kind() {
            PluginKind::Interpreter => self.grants.programs.deadline,
            PluginKind::Tool | PluginKind::Reward | PluginKind::Environment => {
                self.grants.limits.wall
            }
        }
    }

    /// The tools that its calls can call: those of its gate, or those of the programs that it runs.
    pub fn open_tools(&self) -> &[String] {
        let programs = &self.grants.programs.tools;
        match self.kind() {
            PluginKind::Interpreter if !programs.is_empty() => programs,
            _ => &self.grants.tools,
        }
    }

    /// The key of its grants that names the [`open_tools`](Self::open_tools).
    pub fn open_tools_key(&self) -> &'static str {
        match self.kind() {
            PluginKind::Interpreter if !self.grants.programs.tools.is_empty() => "programs.tools",
            _ => "tools",
        }
    }

    /// True if its calls can make other calls, run programs or ask models.
    pub fn calls_others(&self) -> bool {
        let programs_call =
            self.kind() == PluginKind::Interpreter && !self.grants.programs.tools.is_empty();
        programs_call
            || [GateName::Tools, GateName::Execute, GateName::Model]
                .iter()
                .any(|gate| self.grants.gates.contains(gate))
    }

    /// Remembers the reason of the last trap, for the message that stops a run.
    pub fn note_trap(&self, end: &CallEnd) {
        *self
            .last_trap
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = end
            .detail
            .as_ref()
            .map(|detail| detail.lines().next().unwrap_or_default().to_owned());
    }

    /// The reason of its last trap.
    pub fn last_trap(&self) -> Option<String> {
        self.last_trap
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Takes the output of the last call that printed anything, for an author who makes one call at a time.
    pub fn take_printed(&self) -> Option<Printed> {
        self.printed
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// The data that the crate of its kind keeps for it, if that data is a `T`.
    pub fn exports<T: 'static>(&self) -> Option<&T> {
        self.exports.as_any().downcast_ref()
    }

    /// See [`Exports::list`].
    pub(crate) async fn list(&self) -> Result<Option<ToolList>, LoadRefusal> {
        self.exports.list(self).await
    }

    /// Calls one of its tools. Returns how the call ended, and a report about its files.
    pub async fn call_tool(self: &Arc<Self>, request: ToolRequest) -> (CallEnd, FilesReport) {
        self.exports.call_tool(self, request).await
    }

    /// Asks the plugin something about itself, in a fresh instance. `what` names the question in logs.
    pub async fn ask<R, F>(&self, what: &str, question: F) -> Result<R, Stopped>
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

    /// Returns the result of a call, and keeps its output aside. If the guest broke, its last output is added to the
    /// reason, because a panic's message is printed and not returned.
    pub fn finish<R>(&self, report: CallReport<R>) -> Result<R, Stopped> {
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

    /// Keeps the output of a call until it is taken.
    pub fn keep_printed(&self, stdout: Captured, stderr: Captured) {
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
            .field("path", &self.files.path)
            .field("hash", &self.hash())
            .finish_non_exhaustive()
    }
}
