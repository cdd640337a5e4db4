//! A plugin that could not be loaded, and what to do about it. One broken plugin never stops the
//! others.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

/// The kind of a problem, for programs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProblemKind {
    /// A file cannot be read, is too large, or leads outside its folder.
    File,
    /// `plugin.toml` is wrong.
    Manifest,
    /// The operator's entry is wrong, or names what does not exist.
    #[serde(rename = "policy")]
    Grants,
    /// Two plugins, or two tools, have one name.
    Name,
    /// The component is not one, or not of the kind or version it should be.
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
    /// The problem, as the end of a sentence about the plugin. It names no path, file or message: for readers who may know
    /// of the problem, but not of the machine.
    pub fn outline(self) -> &'static str {
        match self {
            Self::File => "its files cannot be read",
            Self::Manifest => "its plugin.toml is wrong",
            Self::Grants => "what the configuration says of it is wrong",
            Self::Name => "something else has its name",
            Self::Component => "its component is none, or of another kind or version",
            Self::Gates => {
                "it needs a gate that it is not granted, or was granted as another component"
            }
            Self::Data => "data that it needs is not there",
            Self::Init => "its `init` failed",
            Self::Tools => "what it says of its tools is wrong",
        }
    }
}

/// The reason why a plugin is not loaded, without its name and place, which [`Problem`] adds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadRefusal {
    /// The kind of the problem.
    pub kind: ProblemKind,
    /// The problem, in words.
    pub what: String,
    /// The advice how to mend it.
    pub mend: String,
}

impl LoadRefusal {
    /// A refusal with what is wrong and what to do about it.
    pub fn new(kind: ProblemKind, what: impl Into<String>, mend: impl Into<String>) -> Self {
        Self {
            kind,
            what: what.into(),
            mend: mend.into(),
        }
    }
}

/// One reason why a plugin, or a tool of it, is not there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The plugin, by the name it would have had.
    pub plugin: String,
    /// The file or folder it is about.
    pub path: PathBuf,
    /// The kind of the problem.
    pub kind: ProblemKind,
    /// The problem, in words.
    pub what: String,
    /// The advice how to mend it.
    pub mend: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Names of files, keys and tools are a stranger's.
        let mut text = format!(
            "plugin `{}` ({}): {}",
            self.plugin,
            self.path.display(),
            self.what
        );
        if !self.mend.is_empty() {
            text = format!("{text}; {}", self.mend);
        }
        f.write_str(&one_line(&text))
    }
}

impl std::error::Error for Problem {}

/// Text that can be shown in a terminal, on one line.
pub fn one_line(text: &str) -> String {
    rlf_sandbox::safe_text(text.as_bytes()).replace('\n', " ")
}
