//! Reports about the plugins of a run, for people and programs. `plugin list`, `plugin inspect` and `plugin check` show
//! them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use rlf_dialogue::tool::ToolDefinition;
use rlf_http::HttpRules;
use rlf_sandbox::{InitMode, Limits, ScratchFiles, safe_text};
use serde::Serialize;
use serde_json::Value;

use crate::manifest::{GateName, PluginKind};
use crate::plugin::Plugin;
use crate::problem::Problem;
use crate::programs::ProgramGrants;
use crate::registry::Registry;

/// Everything about one loaded plugin.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PluginReport {
    /// The operator's name for it.
    pub name: String,
    /// The plugin's kind.
    pub kind: PluginKind,
    /// The WIT world of `rlf:plugin` that it implements.
    pub world: &'static str,
    /// The author's sentence about it.
    pub description: String,
    /// The author's version, if there is one.
    pub version: Option<String>,
    /// Its folder, or its bare component or source file.
    pub path: PathBuf,
    /// The file of its component, or its source file.
    pub component: PathBuf,
    /// BLAKE3 of its code, hexadecimal; `hash` in the grants pins it.
    pub hash: String,
    /// True if the grants pin that hash.
    pub pinned: bool,
    /// Length of the component in bytes; for a source file, of the interpreter that runs it.
    pub bytes: u64,
    /// Interfaces that the component imports, with versions.
    pub imports: Vec<String>,
    /// Interfaces that it exports, with versions.
    pub exports: Vec<String>,
    /// Tools that it offers to models.
    pub tools: Vec<ToolDefinition>,
    /// For an interpreter that is an environment: the names of its servers. Empty if tasks bring their own functions.
    pub servers: Option<Vec<String>>,
    /// Its data slots, and the paths that the operator bound to them.
    pub data: BTreeMap<String, Option<PathBuf>>,
    /// Hash of all data bound to it.
    pub data_hash: Option<String>,
    /// Gates it asks for.
    pub asked: BTreeSet<GateName>,
    /// Gates the operator granted.
    pub granted: BTreeSet<GateName>,
    /// Tools that it may call through the gate `tools`.
    pub callable: Vec<String>,
    /// The models that it may ask.
    pub models: Vec<String>,
    /// The config that `init` was given.
    pub config: Value,
    /// The limits of one call. For an interpreter, `programs` has those of programs.
    pub limits: Limits,
    /// The limits of one program in an interpreter. `None` for other kinds.
    pub programs: Option<ProgramGrants>,
    /// The scratch directory of its calls, with the limits on it.
    pub files: Option<ScratchFiles>,
    /// The real directory that it may change.
    pub unsandboxed_host_directory: Option<PathBuf>,
    /// Hosts that the gate `http` leads to. Secrets are shown by name and source only.
    pub http: Option<HttpRules>,
    /// Number of calls of one tool that may run at once, if the grants set one.
    pub max_concurrency: Option<usize>,
    /// Number of retries of a call.
    pub retries: u32,
    /// The tools' own names, and the names that the operator gives them.
    pub rename: BTreeMap<String, String>,
    /// The start of its calls: from the memory that `init` left, or with `init` each time, for a reason.
    pub init: InitMode,
    /// The cost of preparing it.
    pub preparation: PreparationReport,
    /// Notices about anything that loaded differently than expected.
    pub notices: Vec<String>,
}

/// The cost of preparing a plugin.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PreparationReport {
    /// True if the compiled code came from the cache.
    pub from_cache: bool,
    /// Time to run `init` and keep its memory, in milliseconds.
    pub prepare_ms: f64,
    /// Time to compile, or to load compiled code, in milliseconds.
    pub compile_ms: f64,
    /// Length of the prepared component that calls start from, kept memory included.
    pub prepared_bytes: u64,
}

/// The plugins of a run, and the problems of those that were not loaded.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RegistryReport {
    /// The loaded plugins, sorted by name.
    pub plugins: Vec<PluginReport>,
    /// The problems, sorted by name.
    pub problems: Vec<Problem>,
}

impl Plugin {
    /// Makes a report with everything about the plugin.
    pub fn report(&self) -> PluginReport {
        let info = self.template().info();
        let preparation = self.template().preparation();
        let slots = self.manifest().data.iter();
        PluginReport {
            name: self.name().to_owned(),
            kind: self.kind(),
            world: self.kind().world(),
            description: safe_text(self.description().as_bytes()),
            version: self.manifest().version.clone(),
            path: self.path().to_owned(),
            component: self.files.code().to_owned(),
            hash: self.hash().to_owned(),
            pinned: self.grants().hash.is_some() && self.grants().trusts(self.hash()),
            callable: self.grants().tools.clone(),
            models: self.grants().models.clone(),
            bytes: info.size,
            imports: info.imports.clone(),
            exports: info.exports.clone(),
            tools: self
                .tools()
                .iter()
                .map(|tool| tool.definition.clone())
                .collect(),
            servers: self.servers().map(|servers| {
                let shown = servers.iter().map(|name| safe_text(name.as_bytes()));
                shown.collect()
            }),
            data: slots
                .map(|slot| (slot.clone(), self.grants().data.get(slot).cloned()))
                .collect(),
            data_hash: self.data_hash(),
            asked: self.manifest().gates.clone(),
            granted: self.grants().gates.clone(),
            config: self.grants().effective_config(self.manifest()),
            limits: self.grants().limits.clone(),
            programs: (self.kind() == PluginKind::Interpreter)
                .then(|| self.grants().programs.clone()),
            files: self.grants().files.clone(),
            unsandboxed_host_directory: self.grants().unsandboxed_host_directory.clone(),
            http: self.grants().http.clone(),
            max_concurrency: self.grants().max_concurrency,
            retries: self.grants().retries,
            rename: self.grants().rename.clone(),
            init: self.template().init().clone(),
            preparation: PreparationReport {
                from_cache: preparation.from_cache,
                prepare_ms: preparation.prepare.as_secs_f64() * 1e3,
                compile_ms: preparation.compile.as_secs_f64() * 1e3,
                prepared_bytes: preparation.prepared_bytes,
            },
            notices: self.notices().to_vec(),
        }
    }
}

impl Registry {
    /// Makes a report with everything about every plugin.
    pub fn report(&self) -> RegistryReport {
        RegistryReport {
            plugins: self
                .plugins()
                .iter()
                .map(|plugin| plugin.report())
                .collect(),
            problems: self.problems().to_vec(),
        }
    }
}
