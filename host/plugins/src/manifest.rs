//! `plugin.toml`: a plugin's statements about itself. A stranger wrote it, so it can only ask.
//!
//! ```
//! let text = r#"
//! kind = "tool"
//! description = "Looks passages up in a corpus."
//! data = ["corpus"]
//! "#;
//! let manifest = rlf_plugins::manifest::PluginManifest::parse(text, "search/plugin.toml")?;
//! assert_eq!(manifest.data, ["corpus"]);
//! # Ok::<(), rlf_config::ConfigError>(())
//! ```

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The name of a manifest in a plugin's folder.
pub const MANIFEST_FILE: &str = "plugin.toml";

/// Maximum size of a manifest, in bytes. A longer one is refused unread.
pub const MAX_MANIFEST_BYTES: u64 = 64 * 1024;

/// The kind of a plugin. It decides which world of `rlf:plugin` the plugin implements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PluginKind {
    /// Offers tools to the model: world `tool-plugin`.
    Tool,
    /// Grades trajectories: world `reward-plugin`.
    Reward,
    /// Runs programs: world `interpreter-plugin`.
    Interpreter,
    /// Is an environment that trajectories act in: world `environment-plugin`.
    Environment,
}

impl PluginKind {
    /// Every kind.
    pub const ALL: [Self; 4] = [
        Self::Tool,
        Self::Reward,
        Self::Interpreter,
        Self::Environment,
    ];

    /// The name of the kind in `plugin.toml`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Tool => "tool",
            Self::Reward => "reward",
            Self::Interpreter => "interpreter",
            Self::Environment => "environment",
        }
    }

    /// The name with its article, for the middle of a sentence.
    pub fn with_article(self) -> &'static str {
        match self {
            Self::Tool => "a tool",
            Self::Reward => "a reward",
            Self::Interpreter => "an interpreter",
            Self::Environment => "an environment",
        }
    }

    /// The WIT world of `rlf:plugin` that such a plugin implements.
    pub fn world(self) -> &'static str {
        match self {
            Self::Tool => "tool-plugin",
            Self::Reward => "reward-plugin",
            Self::Interpreter => "interpreter-plugin",
            Self::Environment => "environment-plugin",
        }
    }

    /// The interface that only plugins of this kind export, without its version.
    pub fn interface(self) -> &'static str {
        match self {
            Self::Tool => "rlf:plugin/tool",
            Self::Reward => "rlf:plugin/reward",
            Self::Interpreter => "rlf:plugin/interpreter",
            Self::Environment => "rlf:plugin/environment",
        }
    }
}

/// A way out of the sandbox that a plugin may ask for and an operator may grant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GateName {
    /// Asking a language model.
    Model,
    /// Calling other tools.
    Tools,
    /// Running code in an interpreter.
    Execute,
    /// Talking to hosts over HTTP.
    Http,
    /// Reading the machine's clock instead of the virtual one.
    RealClock,
    /// Reading the machine's entropy instead of the seeded one.
    RealRandom,
}

impl GateName {
    /// Every gate.
    pub const ALL: [Self; 6] = [
        Self::Model,
        Self::Tools,
        Self::Execute,
        Self::Http,
        Self::RealClock,
        Self::RealRandom,
    ];

    /// The name of the gate in `plugin.toml` and in grants.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Model => "model",
            Self::Tools => "tools",
            Self::Execute => "execute",
            Self::Http => "http",
            Self::RealClock => "real-clock",
            Self::RealRandom => "real-random",
        }
    }

    /// True if the plugin uses the gate merely by asking for it. Every program imports a clock and randomness, used or
    /// not, and the grant only decides whether they are the machine's.
    pub fn is_behind_wasi(self) -> bool {
        matches!(self, Self::RealClock | Self::RealRandom)
    }

    /// The gate that belongs to an import of `interface` (with or without its version), if any.
    pub fn from_import(interface: &str) -> Option<Self> {
        let name = interface.split('@').next().unwrap_or(interface);
        match name.strip_prefix("rlf:plugin/")? {
            "model" => Some(Self::Model),
            "tools" => Some(Self::Tools),
            "execute" => Some(Self::Execute),
            "http" => Some(Self::Http),
            _ => None,
        }
    }
}

/// The contents of a `plugin.toml`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PluginManifest {
    /// The folder's name again, for people who read only this file. Another name is an error.
    pub name: Option<String>,
    /// The plugin's kind. Default: the kind that its exports, or the marks in its source file, show.
    pub kind: Option<PluginKind>,
    /// The file in this folder with the plugin's code: a component or a source file. Default: `<folder>.wasm`, or else the
    /// only file that is a component, or a source file named after the folder.
    pub component: Option<String>,
    /// A description for people, in one sentence.
    pub description: String,
    /// The plugin's own version, for people. Pins use the component's hash instead.
    pub version: Option<String>,
    /// Names of the data slots that the operator must fill before the plugin loads.
    pub data: Vec<String>,
    /// The gates that the plugin asks for. Asking grants nothing.
    pub gates: BTreeSet<GateName>,
    /// Configuration for `init`. Keys of the operator's `config` table replace these.
    pub config: Map<String, Value>,
    /// For a reward: the terms of a trajectory whose grading exceeds the limits of time, memory or output. They apply
    /// if the trajectory was graded alone, and if an empty trajectory of the same task stays within the limits.
    /// Default: such a trajectory is excluded.
    pub beyond_limits: BTreeMap<String, f64>,
    /// For an interpreter: packages besides the standard library that its programs can import, by their top-level
    /// modules. Where several interpreters may run a program, one that imports such a package runs here. Default: none.
    pub packages: Vec<String>,
}

impl PluginManifest {
    /// Reads a manifest; `origin` names it in messages.
    pub fn parse(text: &str, origin: &str) -> Result<Self, rlf_config::ConfigError> {
        rlf_config::parse(text, origin)
    }
}

/// True if `name` can be the name of a plugin or a tool: 1 to 64 of `a-z A-Z 0-9 _ -`, so that it needs no quotes in a
/// table header, an expression or a path.
pub fn is_valid_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_manifest_is_read() {
        let text = r#"
name = "judge"
kind = "reward"
component = "judge.wasm"
description = "Asks a model."
version = "1.2"
data = ["rubric"]
gates = ["model", "execute"]
[config]
scale = 5
[beyond_limits]
score = 0
"#;
        let manifest = PluginManifest::parse(text, "judge/plugin.toml").unwrap();
        assert_eq!(manifest.kind, Some(PluginKind::Reward));
        assert_eq!(manifest.component.as_deref(), Some("judge.wasm"));
        assert_eq!(manifest.data, ["rubric"]);
        assert_eq!(
            manifest.gates,
            BTreeSet::from([GateName::Model, GateName::Execute])
        );
        assert_eq!(manifest.config["scale"], 5);
        assert_eq!(
            manifest.beyond_limits,
            BTreeMap::from([("score".to_owned(), 0.0)])
        );
    }

    #[test]
    fn an_empty_manifest_asks_for_nothing() {
        let manifest = PluginManifest::parse("", "x/plugin.toml").unwrap();
        assert_eq!(manifest, PluginManifest::default());
        assert!(manifest.gates.is_empty() && manifest.data.is_empty());
    }

    #[test]
    fn an_unknown_key_is_an_error_that_names_the_nearest_one() {
        let error = PluginManifest::parse("gate = [\"model\"]\n", "x/plugin.toml").unwrap_err();
        assert_eq!(
            error.to_string(),
            "x/plugin.toml:1:1: unknown key `gate`; did you mean `gates`?"
        );
    }

    #[test]
    fn a_gate_that_does_not_exist_is_an_error_that_names_those_that_do() {
        let error = PluginManifest::parse("gates = [\"files\"]\n", "x/plugin.toml")
            .unwrap_err()
            .to_string();
        for gate in GateName::ALL {
            assert!(error.contains(gate.as_str()), "{error}");
        }
    }

    #[test]
    fn gates_are_recognised_in_imports_whatever_their_version() {
        assert_eq!(
            GateName::from_import("rlf:plugin/model@0.1.0"),
            Some(GateName::Model)
        );
        assert_eq!(
            GateName::from_import("rlf:plugin/http"),
            Some(GateName::Http)
        );
        assert_eq!(GateName::from_import("rlf:plugin/data@0.1.0"), None);
        assert_eq!(
            GateName::from_import("wasi:http/outgoing-handler@0.2.3"),
            None
        );
    }

    #[test]
    fn names_are_short_and_plain() {
        for good in ["search", "tau-retail", "a_1", &"x".repeat(64)] {
            assert!(is_valid_name(good), "{good}");
        }
        for bad in ["", "a.b", "a/b", "..", "naïve", "a b", &"x".repeat(65)] {
            assert!(!is_valid_name(bad), "{bad}");
        }
    }
}
