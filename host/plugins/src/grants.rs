//! `[plugins.<alias>]` of a configuration: the operator's grants to a plugin.
//!
//! A plugin's manifest can only ask; this table answers. Host paths come from here and from nowhere else. Without an
//! entry, a plugin loads under the name of its folder with nothing granted.
//!
//! ```
//! use std::collections::BTreeMap;
//! use rlf_plugins::grants::PluginGrants;
//!
//! let grants_by_name: BTreeMap<String, PluginGrants> = rlf_config::parse(
//!     r#"
//! [hotpot-search]                    # the name here, for reports and rewards
//! plugin = "search"                  # the folder in the plugin directory
//! data.corpus = "data/hotpotqa/corpus.json"
//! rename.search = "search_wikipedia" # so that two searches can stand side by side
//! config.max_passage_chars = 600
//! limits.wall_ms = 2000
//! "#,
//!     "example.toml",
//! )?;
//! assert_eq!(grants_by_name["hotpot-search"].folder("hotpot-search"), "search");
//! # Ok::<(), rlf_config::ConfigError>(())
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rlf_http::HttpRules;
use rlf_sandbox::{Limits, ScratchFiles};
use serde::ser::Error as _;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::{Map, Value};

use crate::manifest::{GateName, PluginManifest};
use crate::programs::ProgramGrants;
use crate::python_environment::PythonEnvironment;

/// The operator's decisions about one plugin, under one name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PluginGrants {
    /// False leaves the plugin out. Default: true.
    pub enabled: bool,
    /// The plugin's folder in the plugin directory, or the name of its bare file without the ending. Default: the alias.
    /// The same plugin may have several aliases, with different data or config.
    pub plugin: Option<String>,
    /// A plugin outside the plugin directory: its folder, or its bare component or source file. Excludes `plugin`.
    pub path: Option<PathBuf>,
    /// BLAKE3 of the component, in hexadecimal. A component with another hash loses its data, files and grants until
    /// the pin is renewed. Required for `grants`, recommended for everything.
    pub hash: Option<String>,
    /// Configuration for `init`. Its keys replace those under `config` in the manifest. Default: empty.
    pub config: Map<String, Value>,
    /// Files and folders for the plugin's data slots, by slot. They are read-only.
    pub data: BTreeMap<String, PathBuf>,
    /// A scratch directory in memory, new for every call, with limits. Default: none, so the plugin has no file system
    /// at all.
    pub files: Option<ScratchFiles>,
    /// A real directory of this machine, which the plugin finds at `/host` and may change. It is neither deterministic,
    /// nor isolated between calls, nor limited; writes are counted. Excludes `files`. Default: none.
    pub unsandboxed_host_directory: Option<PathBuf>,
    /// Gates opened to the plugin: `tools`, `execute`, `http`, `real-clock`, `real-random`, `model`. Default: none.
    #[serde(rename = "grants")]
    pub gates: BTreeSet<GateName>,
    /// Hosts that can be reached through the gate `http`, with secrets and limits. Default: none.
    pub http: Option<HttpRules>,
    /// Tools that can be called through the gate `tools`, by the names that models see. Default: none.
    pub tools: Vec<String>,
    /// Interpreters that can be used through the gate `execute`, by their names in this configuration. Default: none.
    pub execute: Vec<String>,
    /// Language models that can be asked through the gate `model`, by their names in `[models]` of this configuration.
    /// The first one answers questions that name none. Default: none.
    pub models: Vec<String>,
    /// For an interpreter: a folder of Python functions with their schemas. They are offered as tools instead of the
    /// tool that runs programs. Default: none.
    pub functions: Option<PathBuf>,
    /// For an interpreter: environments in Python. The plugin is then an environment and runs nothing else. Default:
    /// none.
    pub environment: Option<PythonEnvironment>,
    /// For an interpreter: the limits of one program. Every field has a default.
    pub programs: ProgramGrants,
    /// The limits of one call. Every field has a default. For an interpreter, `programs` limits programs, and this
    /// limits everything else.
    #[serde(serialize_with = "as_older_versions_wrote_them")]
    pub limits: Limits,
    /// Number of calls of one tool that may run at once. Further calls wait, within their deadline. Default:
    /// `tools.max_concurrency`.
    pub max_concurrency: Option<usize>,
    /// Number of retries of a call when something it needs is unavailable. A call is retried only if the tool says that
    /// repeating is harmless (`idempotent` or `read-only`). In an environment it always is, because a call that was
    /// stopped had no effect. 0 or 1, default 1.
    pub retries: u32,
    /// New names for the plugin's tools: from the plugin's own name to the name that models see.
    pub rename: BTreeMap<String, String>,
}

impl Default for PluginGrants {
    fn default() -> Self {
        Self {
            enabled: true,
            plugin: None,
            path: None,
            hash: None,
            config: Map::new(),
            data: BTreeMap::new(),
            files: None,
            unsandboxed_host_directory: None,
            gates: BTreeSet::new(),
            http: None,
            tools: Vec::new(),
            execute: Vec::new(),
            models: Vec::new(),
            functions: None,
            environment: None,
            programs: ProgramGrants::default(),
            limits: Limits::default(),
            max_concurrency: None,
            retries: 1,
            rename: BTreeMap::new(),
        }
    }
}

/// An error in grants that contradict themselves.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum GrantsError {
    #[error("`plugin` and `path` both say where the plugin is")]
    TwoPlaces,
    #[error("`hash` is not a BLAKE3 hash of 64 hexadecimal digits")]
    BadHash,
    #[error("`max_concurrency = 0` would let no call run")]
    NoConcurrency,
    #[error("`programs.{0} = 0` would let no program run")]
    NoProgram(&'static str),
    #[error("`retries = {0}`: a call is tried again once at most")]
    TooManyRetries(u32),
}

impl GrantsError {
    pub(crate) fn mend(&self) -> &'static str {
        match self {
            Self::TwoPlaces => {
                "keep `path` for a plugin outside the plugin directory, else `plugin`"
            }
            Self::BadHash => "copy the hash that `rlf-host plugin inspect` prints",
            Self::NoConcurrency => "write 1 or more, or leave it out",
            Self::NoProgram(_) => "write more, or leave it out",
            Self::TooManyRetries(_) => "write 0 or 1",
        }
    }
}

impl PluginGrants {
    /// The folder in the plugin directory that the entry `alias` is for.
    pub fn folder<'a>(&'a self, alias: &'a str) -> &'a str {
        self.plugin.as_deref().unwrap_or(alias)
    }

    /// Makes relative paths start at `base`, the folder of the file that the grants were read from.
    pub fn resolve_paths(&mut self, base: &Path) {
        let paths = (self.path.iter_mut())
            .chain(self.data.values_mut())
            .chain(self.functions.iter_mut())
            .chain(
                self.environment
                    .iter_mut()
                    .flat_map(PythonEnvironment::paths_mut),
            )
            .chain(self.unsandboxed_host_directory.iter_mut());
        for path in paths {
            if path.is_relative() {
                *path = base.join(&*path);
            }
        }
        if let Some(http) = &mut self.http {
            http.resolve_paths(base);
        }
    }

    pub(crate) fn check(&self) -> Result<(), GrantsError> {
        if self.plugin.is_some() && self.path.is_some() {
            return Err(GrantsError::TwoPlaces);
        }
        let is_hash =
            |hash: &String| hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit());
        if self.hash.as_ref().is_some_and(|hash| !is_hash(hash)) {
            return Err(GrantsError::BadHash);
        }
        if self.max_concurrency == Some(0) {
            return Err(GrantsError::NoConcurrency);
        }
        if let Some(key) = self.programs.zero_limit() {
            return Err(GrantsError::NoProgram(key));
        }
        if self.retries > 1 {
            return Err(GrantsError::TooManyRetries(self.retries));
        }
        Ok(())
    }

    /// The config for `init`: the manifest's defaults, with the operator's keys in place of equal ones.
    pub(crate) fn effective_config(&self, manifest: &PluginManifest) -> Value {
        let mut config = manifest.config.clone();
        for (key, value) in &self.config {
            config.insert(key.clone(), value.clone());
        }
        Value::Object(config)
    }

    /// True if the pin allows this component; without a pin, every component is allowed.
    pub(crate) fn trusts(&self, hash: &str) -> bool {
        self.hash
            .as_ref()
            .is_none_or(|pinned| pinned.eq_ignore_ascii_case(hash))
    }
}

/// Writes limits without the keys that are newer than some runs, where they have their defaults: otherwise the configuration of
/// such a run would count as changed.
fn as_older_versions_wrote_them<S: Serializer>(
    limits: &Limits,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let table = |limits: &Limits| serde_json::to_value(limits).map_err(S::Error::custom);
    let (mut written, default) = (table(limits)?, table(&Limits::default())?);
    if let Some(written) = written.as_object_mut() {
        for key in ["nested_bytes", "nested_file_bytes"] {
            if written.get(key) == default.get(key) {
                written.remove(key);
            }
        }
    }
    written.serialize(serializer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn grants(text: &str) -> PluginGrants {
        rlf_config::parse(text, "c.toml").unwrap()
    }

    #[test]
    fn a_table_with_every_grant_is_read() {
        let grants = grants(
            r#"
plugin = "search"
hash = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
grants = ["model"]
max_concurrency = 4
retries = 0
[config]
language = "en"
[data]
corpus = "corpus.json"
[limits]
wall_ms = 500
memory_bytes = 1048576
[rename]
search = "find"
"#,
        );
        assert_eq!(grants.check(), Ok(()));
        assert_eq!(grants.limits.wall.as_millis(), 500);
        assert_eq!(grants.limits.cpu, Limits::default().cpu);
        assert_eq!(grants.gates, BTreeSet::from([GateName::Model]));
        assert_eq!(grants.rename["search"], "find");
        assert_eq!(grants.config["language"], "en");
    }

    #[test]
    fn files_are_a_scratch_directory_or_say_that_they_are_the_hosts() {
        let scratch = grants("[files]\nbytes = 1024\noutputs = [\"report.txt\", \"plots/\"]\n");
        let files = scratch.files.unwrap();
        assert_eq!((files.at.as_str(), files.bytes), ("/work", 1024));
        assert_eq!(files.outputs, ["report.txt", "plots/"]);
        let mut host = grants("unsandboxed_host_directory = \"out\"");
        host.resolve_paths(Path::new("/base"));
        assert_eq!(
            host.unsandboxed_host_directory,
            Some(PathBuf::from("/base/out"))
        );
        let error = rlf_config::parse::<PluginGrants>("[files]\nbyte = 1\n", "c.toml");
        let error = error.unwrap_err().to_string();
        assert!(error.contains("did you mean `bytes`?"), "{error}");
    }

    #[test]
    fn an_empty_table_grants_nothing() {
        let grants = grants("");
        assert_eq!(grants, PluginGrants::default());
        assert!(grants.gates.is_empty() && grants.data.is_empty() && grants.enabled);
        assert!(grants.files.is_none() && grants.unsandboxed_host_directory.is_none());
        assert_eq!(grants.retries, 1);
    }

    #[test]
    fn unknown_keys_are_errors_in_the_grants_and_in_their_limits() {
        let error = |text: &str| {
            rlf_config::parse::<PluginGrants>(text, "c.toml")
                .unwrap_err()
                .to_string()
        };
        assert!(
            error("grant = []").contains("did you mean `grants`?"),
            "{}",
            error("grant = []")
        );
        let said = error("[limits]\nwall_s = 1\n");
        assert!(
            said.starts_with("c.toml:2:1: unknown key `wall_s`"),
            "{said}"
        );
    }

    #[test]
    fn contradictions_are_refused() {
        let refusal = |text: &str| grants(text).check().unwrap_err();
        assert_eq!(
            refusal("plugin = \"a\"\npath = \"b\""),
            GrantsError::TwoPlaces
        );
        assert_eq!(refusal("hash = \"abc\""), GrantsError::BadHash);
        assert_eq!(refusal("max_concurrency = 0"), GrantsError::NoConcurrency);
        assert_eq!(refusal("retries = 2"), GrantsError::TooManyRetries(2));
    }

    #[test]
    fn the_operators_config_replaces_the_authors_key_by_key() {
        let manifest = PluginManifest::parse("[config]\na = 1\nb = 2\n", "p/plugin.toml").unwrap();
        let grants = grants("[config]\nb = 3\nc = { d = 4 }\n");
        assert_eq!(
            grants.effective_config(&manifest),
            json!({"a": 1, "b": 3, "c": {"d": 4}})
        );
    }

    #[test]
    fn relative_paths_start_where_the_config_stands() {
        let mut grants = grants("path = \"p\"\ndata.a = \"x/y\"\ndata.b = \"/z\"");
        grants.resolve_paths(Path::new("/etc/run"));
        assert_eq!(grants.path, Some("/etc/run/p".into()));
        assert_eq!(grants.data["a"], Path::new("/etc/run/x/y"));
        assert_eq!(grants.data["b"], Path::new("/z"));
    }

    #[test]
    fn a_pin_trusts_one_component_only() {
        let pinned = grants(&format!("hash = \"{}\"", "AB".repeat(32)));
        assert!(pinned.trusts(&"ab".repeat(32)));
        assert!(!pinned.trusts(&"cd".repeat(32)));
        assert!(grants("").trusts("anything"));
    }

    #[test]
    fn limits_that_are_newer_than_some_runs_are_written_only_if_they_were_changed() {
        let written = |text: &str| toml::to_string(&grants(text)).unwrap();
        assert!(!written("").contains("nested_bytes"));
        assert!(written("").contains("nested_calls = 64"));
        let changed = written("limits.nested_bytes = 1_000");
        assert!(changed.contains("nested_bytes = 1000"), "{changed}");
        assert!(!changed.contains("nested_file_bytes"), "{changed}");
    }
}
