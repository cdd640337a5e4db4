//! Plugins that could not be loaded, with advice. A broken plugin never stops the others.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use rlf_sandbox::LoadError;
use serde::{Serialize, Serializer};

/// The cure for a missing plugin of ours.
pub(crate) const BUILD_SHIPPED: &str = "`cargo xtask plugins` builds those that ship with rlf-host";

/// Stands in reports for the name of a plugin, if a problem is one of a whole directory. No plugin can have this name.
const DIRECTORY: &str = "*";

/// The kind of a problem, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProblemKind {
    /// A file cannot be read, is too large, or leads outside its folder.
    File,
    /// `plugin.toml` is invalid.
    Manifest,
    /// The operator's entry is wrong, or names something that does not exist.
    Grants,
    /// The operator's entry names a plugin that does not exist, and one with a similar name does.
    Misspelt,
    /// Two plugins, or two tools, have the same name.
    Name,
    /// The file is not a component, or has the wrong kind or version.
    Component,
    /// A gate is not both asked for and granted.
    Gates,
    /// A data slot is not filled.
    Data,
    /// `init` failed.
    Init,
    /// The plugin's list of tools is wrong.
    Tools,
}

impl ProblemKind {
    /// Describes the problem, as the end of a sentence about the plugin. It names no path, file or message, because it
    /// is for readers who may know about the problem but not about the machine.
    pub fn outline(self) -> &'static str {
        match self {
            Self::File => "its files cannot be read",
            Self::Manifest => "its plugin.toml is wrong",
            Self::Grants | Self::Misspelt => "what the configuration says of it is wrong",
            Self::Name => "something else has its name",
            Self::Component => "its file is not a component, or has the wrong kind or version",
            Self::Gates => {
                "it needs a gate that it is not granted, or was granted as another component"
            }
            Self::Data => "data that it needs is not there",
            Self::Init => "its `init` failed",
            Self::Tools => "what it says of its tools is wrong",
        }
    }
}

/// The reason why a plugin is not loaded. [`Problem`] adds its name and place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadRefusal {
    /// The kind of the problem.
    pub kind: ProblemKind,
    /// The problem, in words.
    pub what: String,
    /// The advice that helps.
    pub mend: String,
}

impl LoadRefusal {
    /// Creates a refusal from the problem and the advice.
    pub fn new(kind: ProblemKind, what: impl Into<String>, mend: impl Into<String>) -> Self {
        Self {
            kind,
            what: what.into(),
            mend: mend.into(),
        }
    }

    /// The problem of the plugin `plugin`, at `path`. Errors about a component quote names from the component. None of
    /// them may begin a line or move a terminal's cursor.
    pub(crate) fn about(self, plugin: &str, path: &Path) -> Problem {
        let lines: Vec<&str> = self.what.lines().map(str::trim).collect();
        Problem {
            plugin: Some(plugin.to_owned()),
            path: path.to_owned(),
            kind: self.kind,
            what: rlf_sandbox::safe_text(lines.join("; ").as_bytes()),
            mend: self.mend,
        }
    }
}

impl From<&LoadError> for LoadRefusal {
    fn from(error: &LoadError) -> Self {
        let kind = match error {
            LoadError::Config { .. } | LoadError::Init { .. } => ProblemKind::Init,
            LoadError::Data(_) => ProblemKind::Data,
            LoadError::Read(_) => ProblemKind::File,
            LoadError::Limits(_) | LoadError::Files(_) => ProblemKind::Grants,
            _ => ProblemKind::Component,
        };
        // The sandbox's messages already include the advice.
        Self::new(kind, error.to_string(), "")
    }
}

/// One reason why a plugin, or one of its tools, is missing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The name that the plugin would have had. `None` for a whole directory, which JSON writes as `"*"`.
    #[serde(serialize_with = "plugin_or_directory")]
    pub plugin: Option<String>,
    /// The file or folder with the problem.
    pub path: PathBuf,
    /// The kind of the problem.
    pub kind: ProblemKind,
    /// The problem, in words.
    pub what: String,
    /// The advice that helps.
    pub mend: String,
}

#[allow(clippy::ref_option)] // serde hands in references
fn plugin_or_directory<S: Serializer>(
    plugin: &Option<String>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(plugin.as_deref().unwrap_or(DIRECTORY))
}

impl Problem {
    /// True if this is a reason why the plugin `name` is missing: it is about that plugin, or about a whole directory.
    pub fn concerns(&self, name: &str) -> bool {
        self.plugin.as_deref().is_none_or(|plugin| plugin == name)
    }

    /// The plugin's name for reports; `*` for a whole directory.
    pub fn label(&self) -> &str {
        self.plugin.as_deref().unwrap_or(DIRECTORY)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The names of files, keys and tools come from a stranger.
        let (path, what) = (self.path.display(), &self.what);
        let mut text = match &self.plugin {
            None => format!("{path}: {what}"),
            Some(plugin) => format!("plugin `{plugin}` ({path}): {what}"),
        };
        if !self.mend.is_empty() {
            text = format!("{text}; {}", self.mend);
        }
        f.write_str(&one_line(&text))
    }
}

impl std::error::Error for Problem {}

/// Describes problems to an operator, one in each line. Plugins that only lack grants or data, and that the operator does
/// not name, are optional: one line counts them.
pub fn described<'p>(
    problems: impl IntoIterator<Item = &'p Problem>,
    is_named: impl Fn(&str) -> bool,
) -> Vec<String> {
    let mut optional = BTreeSet::new();
    let mut lines = Vec::new();
    for problem in problems {
        let is_optional = matches!(problem.kind, ProblemKind::Gates | ProblemKind::Data);
        match &problem.plugin {
            Some(plugin) if is_optional && !is_named(plugin) => {
                optional.insert(plugin.as_str());
            }
            _ => lines.push(problem.to_string()),
        }
    }
    let names: Vec<&str> = optional.into_iter().collect();
    let count = match names.len() {
        0 => return lines,
        1 => "1 plugin that the configuration does not name is".to_owned(),
        count => format!("{count} plugins that the configuration does not name are"),
    };
    lines.push(one_line(&format!(
        "{count} left out for lack of grants or data: {}; `rlf-host plugin list` says what is missing",
        names.join(", ")
    )));
    lines
}

/// Makes text safe to show in a terminal, on one line.
pub fn one_line(text: &str) -> String {
    rlf_sandbox::safe_text(text.as_bytes()).replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_of_a_whole_directory_names_no_plugin() {
        let mut problem = Problem {
            plugin: None,
            path: "/nope".into(),
            kind: ProblemKind::File,
            what: "cannot read the plugin directory".into(),
            mend: "give one with --plugins DIR".into(),
        };
        assert_eq!(
            problem.to_string(),
            "/nope: cannot read the plugin directory; give one with --plugins DIR"
        );
        assert_eq!(serde_json::to_value(&problem).unwrap()["plugin"], "*");
        assert!(problem.concerns("search"));
        problem.plugin = Some("search".into());
        assert!(problem.to_string().starts_with("plugin `search` (/nope): "));
        assert_eq!(serde_json::to_value(&problem).unwrap()["plugin"], "search");
        assert!(problem.concerns("search") && !problem.concerns("judge"));
    }

    #[test]
    fn one_line_counts_the_plugins_that_nobody_named_and_that_lack_grants() {
        let problem = |plugin: &str, kind| Problem {
            plugin: Some(plugin.into()),
            path: plugin.into(),
            kind,
            what: "it is not loaded".into(),
            mend: String::new(),
        };
        let problems = [
            problem("summarise", ProblemKind::Gates),
            problem("broken", ProblemKind::Component),
            problem("search", ProblemKind::Data),
            problem("judge", ProblemKind::Gates),
        ];
        assert_eq!(
            described(&problems, |name| name == "judge"),
            [
                "plugin `broken` (broken): it is not loaded",
                "plugin `judge` (judge): it is not loaded",
                "2 plugins that the configuration does not name are left out for lack of grants or data: search, summarise; \
                 `rlf-host plugin list` says what is missing",
            ]
        );
        let alone = described(&problems[..1], |_| false).concat();
        assert!(alone.contains("does not name is left out"), "{alone}");
        assert!(described([], |_| false).is_empty());
    }

    #[test]
    fn a_problem_with_grants_is_called_grants_in_json() {
        let kind = serde_json::to_value(ProblemKind::Grants).unwrap();
        assert_eq!(kind, "grants");
    }
}
