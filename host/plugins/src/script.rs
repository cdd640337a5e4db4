//! A plugin that is one source file, such as `dice.py` or `dice.js`. It is run by the component of its language's
//! interpreter: `init` executes the file once, and every call starts from the memory that this leaves.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use cap_std::fs::Dir;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::manifest::{PluginKind, PluginManifest};
use crate::problem::{LoadRefusal, ProblemKind};

/// The language of a plugin that is a source file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ScriptLanguage {
    /// `NAME.py`.
    Python,
    /// `NAME.js` or `NAME.mjs`.
    JavaScript,
}

impl ScriptLanguage {
    /// Every language.
    pub(crate) const ALL: [Self; 2] = [Self::Python, Self::JavaScript];

    /// The name of the interpreter's plugin, which is also the language's name in the contract.
    pub fn id(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::JavaScript => "javascript",
        }
    }

    /// The endings of its files, without the dot.
    pub(crate) fn extensions(self) -> &'static [&'static str] {
        match self {
            Self::Python => &["py"],
            Self::JavaScript => &["js", "mjs"],
        }
    }

    /// The language of a file, by its ending.
    pub fn of(path: &Path) -> Option<Self> {
        let extension = path.extension()?.to_str()?;
        let mut all = Self::ALL.into_iter();
        all.find(|language| language.extensions().contains(&extension))
    }

    /// True if a file with this name is for tests or tools, and not part of a plugin.
    fn is_aside(self, name: &str) -> bool {
        let stem = name.rsplit_once('.').map_or(name, |(stem, _)| stem);
        name.starts_with("test_")
            || match self {
                Self::Python => ["conftest", "setup"].contains(&stem),
                Self::JavaScript => {
                    let role = stem.rsplit_once('.').map(|(_, role)| role);
                    role.is_some_and(|role| ["test", "config"].contains(&role))
                }
            }
    }
}

impl fmt::Display for ScriptLanguage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Python => "Python",
            Self::JavaScript => "JavaScript",
        })
    }
}

/// The key of the configuration of `init` under which the interpreter finds the file.
pub(crate) const CONFIG_KEY: &str = "plugin";

/// Maximum size of one file, in bytes.
pub(crate) const MAX_FILE_BYTES: u64 = 1 << 20;

/// Maximum number of files in the folder of a plugin.
const MAX_FILES: usize = 64;

/// The source files of a plugin, all in one language.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Script {
    pub(crate) language: ScriptLanguage,
    /// The file with the plugin's functions, without its folder.
    name: String,
    source: String,
    /// The other files of the plugin's folder, which this one can import, by their names.
    beside: BTreeMap<String, String>,
}

/// True if a file of a plugin directory with this name is a plugin. Tests and private modules are not.
pub(crate) fn is_plugin(name: &str) -> bool {
    let is_private = name.starts_with(['_', '.']);
    ScriptLanguage::of(Path::new(name))
        .is_some_and(|language| !is_private && !language.is_aside(name))
}

impl Script {
    pub(crate) fn new(
        language: ScriptLanguage,
        name: &str,
        source: String,
        beside: BTreeMap<String, String>,
    ) -> Self {
        Self {
            language,
            name: name.to_owned(),
            source,
            beside,
        }
    }

    /// Refuses more or larger files than a folder may have.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.beside.len() >= MAX_FILES {
            return Err(format!(
                "it has {} files in {}",
                self.beside.len(),
                self.language
            ));
        }
        let mut sizes = self.beside.values().chain([&self.source]).map(String::len);
        match sizes.find(|size| *size as u64 > MAX_FILE_BYTES) {
            Some(size) => Err(format!("one of its files has {size} bytes")),
            None => Ok(()),
        }
    }

    /// The kind of the plugin: what the manifest says, or else a reward if the file has a function that is marked as one,
    /// and a tool otherwise. `None` if the manifest says something that a file cannot be.
    pub(crate) fn kind(&self, manifest: &PluginManifest) -> Option<PluginKind> {
        let is_mark = match self.language {
            ScriptLanguage::Python => is_reward_decorator,
            ScriptLanguage::JavaScript => is_reward_tag,
        };
        let found = if self.source.lines().any(is_mark) {
            PluginKind::Reward
        } else {
            PluginKind::Tool
        };
        let kind = manifest.kind.unwrap_or(found);
        matches!(kind, PluginKind::Tool | PluginKind::Reward).then_some(kind)
    }

    /// The first line of the docstring or of the comment with which the file begins, if it does.
    pub(crate) fn description(&self) -> Option<String> {
        let source = self.source.trim_start();
        let quotes: &[(&str, &str)] = match self.language {
            ScriptLanguage::Python => &[("\"\"\"", "\"\"\""), ("'''", "'''")],
            ScriptLanguage::JavaScript => &[("/**", "*/"), ("/*", "*/")],
        };
        let text = quotes.iter().find_map(|(open, close)| {
            let text = source.strip_prefix(open)?;
            text.split(close).next()
        })?;
        // A comment with tags is about the first function.
        if self.language == ScriptLanguage::JavaScript
            && text.lines().any(|line| tag(line).is_some())
        {
            return None;
        }
        let is_frame = |letter: char| letter.is_whitespace() || letter == '*';
        let line = text.trim_matches(is_frame).lines().next()?.trim();
        (!line.is_empty()).then(|| line.to_owned())
    }

    /// BLAKE3, hexadecimal: of the file alone if there is no other, so that `b3sum` prints the same.
    pub(crate) fn hash(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.source.as_bytes());
        for (name, source) in &self.beside {
            for part in [name, source] {
                hasher.update(&(part.len() as u64).to_le_bytes());
                hasher.update(part.as_bytes());
            }
        }
        hasher.finalize().to_hex().to_string()
    }

    /// The configuration for the interpreter's `init`. `config` is the plugin's own.
    pub(crate) fn init_config(&self, config: &Value) -> Value {
        let mut init = Map::new();
        let file = json!({
            "file": self.name,
            "source": self.source,
            "beside": self.beside,
            "config": config,
        });
        init.insert(CONFIG_KEY.to_owned(), file);
        Value::Object(init)
    }
}

/// True for `@reward`, `@rlf.reward` and `@rlf.reward(..)`.
fn is_reward_decorator(line: &str) -> bool {
    let Some(decorator) = line.trim_start().strip_prefix('@') else {
        return false;
    };
    let path = decorator.split(['(', '#']).next().unwrap_or_default();
    path.trim().rsplit('.').next() == Some("reward")
}

/// True for a line of a comment with the tag `@reward`, and for a statement that calls `reward`.
fn is_reward_tag(line: &str) -> bool {
    let calls = |line: &str| line.starts_with("reward(") || line.starts_with("rlf.reward(");
    let value = line.split_once('=').map_or("", |(_, value)| value);
    tag(line) == Some("reward") || calls(line.trim_start()) || calls(value.trim_start())
}

/// The tag with which a line of a JSDoc comment begins.
fn tag(line: &str) -> Option<&str> {
    let line = line
        .trim_start()
        .trim_start_matches(['/', '*'])
        .trim_start();
    let tag = line.strip_prefix('@')?;
    tag.split(|letter: char| !letter.is_ascii_alphanumeric())
        .next()
}

/// The other files of this language in the folder `folder` of a directory: those that `main` can import, sorted by name.
/// Refuses too many.
pub(crate) fn files_beside(
    language: ScriptLanguage,
    directory: &Dir,
    folder: &str,
    main: &str,
) -> Result<Vec<String>, LoadRefusal> {
    let entries = directory
        .open_dir(folder)
        .and_then(|folder| folder.entries());
    let mut names: Vec<String> = entries
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| ScriptLanguage::of(Path::new(name)) == Some(language))
        .filter(|name| !language.is_aside(name) && name != main)
        .collect();
    names.sort();
    if names.len() >= MAX_FILES {
        let what = format!("the folder has {} files in {language}", names.len());
        let mend = "keep only those that the plugin imports";
        return Err(LoadRefusal::new(ProblemKind::File, what, mend));
    }
    Ok(names)
}

/// The paths of a plugin's files, for noticing changes: its component or main file, and the other files of its folder in
/// the same language.
pub(crate) fn watched(component: &Path) -> Vec<PathBuf> {
    let mut files = vec![component.to_owned()];
    let language = ScriptLanguage::of(component);
    let folder = component.parent().filter(|_| language.is_some());
    if let Some(entries) = folder.and_then(|folder| std::fs::read_dir(folder).ok()) {
        let beside = entries.filter_map(|entry| Some(entry.ok()?.path()));
        files.extend(
            beside.filter(|path| ScriptLanguage::of(path) == language && path != component),
        );
    }
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(source: &str) -> Script {
        Script::new(
            ScriptLanguage::Python,
            "dice.py",
            source.to_owned(),
            BTreeMap::new(),
        )
    }

    #[test]
    fn a_file_with_a_reward_is_a_reward_unless_the_manifest_says_otherwise() {
        let manifest = PluginManifest::default();
        for source in [
            "@rlf.reward\ndef f(): ..",
            "  @reward(name=\"x\")",
            "@rlf.reward # one",
        ] {
            assert_eq!(
                file(source).kind(&manifest),
                Some(PluginKind::Reward),
                "{source}"
            );
        }
        for source in [
            "@rlf.tool\ndef reward(): ..",
            "# @rlf.reward",
            "@rlf.rewarding",
        ] {
            assert_eq!(
                file(source).kind(&manifest),
                Some(PluginKind::Tool),
                "{source}"
            );
        }
        let says = |kind| PluginManifest {
            kind: Some(kind),
            ..PluginManifest::default()
        };
        let reward = file("@rlf.reward");
        assert_eq!(reward.kind(&says(PluginKind::Tool)), Some(PluginKind::Tool));
        assert_eq!(reward.kind(&says(PluginKind::Interpreter)), None);
    }

    #[test]
    fn the_docstring_describes_the_plugin() {
        let of = |source: &str| file(source).description();
        let described = Some("Rolls dice.".to_owned());
        assert_eq!(of("\"\"\"Rolls dice.\n\nMore.\"\"\"\n"), described);
        assert_eq!(of("'''\nRolls dice.'''"), described);
        assert_eq!(of("import rlf\n"), None);
        assert_eq!(of("\"\"\"\"\"\""), None);
    }

    #[test]
    fn a_file_in_javascript_is_described_and_its_kind_found_by_its_comments() {
        let file = |source: &str| {
            let none = BTreeMap::new();
            Script::new(
                ScriptLanguage::JavaScript,
                "dice.js",
                source.to_owned(),
                none,
            )
        };
        let described = Some("Rolls dice.".to_owned());
        assert_eq!(
            file("/** Rolls dice. */\nimport 'rlf'").description(),
            described
        );
        assert_eq!(
            file("/**\n * Rolls dice.\n * More.\n */\n").description(),
            described
        );
        assert_eq!(file("/** Rolls.\n * @tool\n */").description(), None);
        assert_eq!(file("// Rolls.").description(), None);
        let manifest = PluginManifest::default();
        for source in [
            "/** @reward */",
            "/**\n * Right?\n * @reward\n */",
            "export const right = reward({}, f)",
            "rlf.reward({}, f)",
        ] {
            let kind = file(source).kind(&manifest);
            assert_eq!(kind, Some(PluginKind::Reward), "{source}");
        }
        for source in ["/** @tool */", "const reward = 1", "// the reward(s)"] {
            let kind = file(source).kind(&manifest);
            assert_eq!(kind, Some(PluginKind::Tool), "{source}");
        }
    }

    #[test]
    fn the_hash_covers_every_file() {
        let one = file("a = 1");
        assert_eq!(one.hash(), blake3::hash(b"a = 1").to_hex().as_str());
        let beside = BTreeMap::from([("b.py".to_owned(), "b = 1".to_owned())]);
        let two = Script::new(
            ScriptLanguage::Python,
            "dice.py",
            "a = 1".to_owned(),
            beside,
        );
        assert_ne!(two.hash(), one.hash());
    }

    #[test]
    fn tests_and_private_modules_are_no_plugins() {
        for name in [
            "test_dice.py",
            "conftest.py",
            "_dice.py",
            ".dice.py",
            "dice.pyc",
            "dice.test.js",
            "eslint.config.mjs",
        ] {
            assert!(!is_plugin(name), "{name}");
        }
        assert!(
            ["dice.py", "dice.js", "dice.mjs"]
                .into_iter()
                .all(is_plugin)
        );
    }
}
