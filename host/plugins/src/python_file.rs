//! A plugin that is one Python file, such as `dice.py`. It is run by the component of the Python interpreter: `init`
//! executes the file once, and every call starts from the memory that this leaves.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use cap_std::fs::Dir;
use serde_json::{Map, Value, json};

use crate::manifest::{PluginKind, PluginManifest};

/// The name of the interpreter's plugin.
pub(crate) const INTERPRETER: &str = "python";

/// The key of the configuration of `init` under which the interpreter finds the file.
pub(crate) const CONFIG_KEY: &str = "plugin";

/// Maximum size of one file, in bytes.
pub(crate) const MAX_FILE_BYTES: u64 = 1 << 20;

/// Maximum number of files in the folder of a plugin.
const MAX_FILES: usize = 64;

/// The files of a plugin in Python.
#[derive(Debug, Clone)]
pub(crate) struct PythonFile {
    /// The file with the plugin's functions, without its folder.
    name: String,
    source: String,
    /// The other files of the plugin's folder, which this one can import, by their names.
    beside: BTreeMap<String, String>,
}

/// True if a file of a plugin directory with this name is a plugin in Python. Tests and private modules are not.
pub(crate) fn is_plugin(name: &str) -> bool {
    let other = ["test_", "_", "."]
        .iter()
        .any(|start| name.starts_with(start));
    is_python(Path::new(name)) && name != "conftest.py" && name != "setup.py" && !other
}

/// True if the path is that of a Python file.
pub(crate) fn is_python(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "py")
}

impl PythonFile {
    pub(crate) fn new(name: &str, source: String, beside: BTreeMap<String, String>) -> Self {
        Self {
            name: name.to_owned(),
            source,
            beside,
        }
    }

    /// The kind of the plugin: what the manifest says, or else a reward if the file has a function with the decorator
    /// `reward`, and a tool otherwise. `None` if the manifest says something that a file cannot be.
    pub(crate) fn kind(&self, manifest: &PluginManifest) -> Option<PluginKind> {
        let found = if self.source.lines().any(is_reward_decorator) {
            PluginKind::Reward
        } else {
            PluginKind::Tool
        };
        let kind = manifest.kind.unwrap_or(found);
        matches!(kind, PluginKind::Tool | PluginKind::Reward).then_some(kind)
    }

    /// The first line of the docstring with which the file begins, if it does.
    pub(crate) fn docstring(&self) -> Option<String> {
        let source = self.source.trim_start();
        let text = ["\"\"\"", "'''"].iter().find_map(|quote| {
            let text = source.strip_prefix(quote)?;
            text.split(quote).next()
        })?;
        let line = text.trim().lines().next()?.trim();
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

/// The other Python files of the folder `folder` of a directory: those that `main` can import, by name. The second
/// value is the number of files if there are too many.
pub(crate) fn files_beside(
    directory: &Dir,
    folder: &str,
    main: &str,
) -> Result<Vec<String>, usize> {
    let entries = directory
        .open_dir(folder)
        .and_then(|folder| folder.entries());
    let mut names: Vec<String> = entries
        .into_iter()
        .flatten()
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| is_python(Path::new(name)) && !name.starts_with("test_") && name != main)
        .collect();
    names.sort();
    if names.len() >= MAX_FILES {
        return Err(names.len());
    }
    Ok(names)
}

/// The paths of a plugin's files, for noticing changes: its component or main file, and the other Python files of its
/// folder.
pub(crate) fn watched(component: &Path) -> Vec<PathBuf> {
    let mut files = vec![component.to_owned()];
    let folder = component.parent().filter(|_| is_python(component));
    if let Some(entries) = folder.and_then(|folder| std::fs::read_dir(folder).ok()) {
        let beside = entries.filter_map(|entry| Some(entry.ok()?.path()));
        files.extend(beside.filter(|path| is_python(path) && path != component));
    }
    files.sort();
    files
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(source: &str) -> PythonFile {
        PythonFile::new("dice.py", source.to_owned(), BTreeMap::new())
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
        let of = |source: &str| file(source).docstring();
        let described = Some("Rolls dice.".to_owned());
        assert_eq!(of("\"\"\"Rolls dice.\n\nMore.\"\"\"\n"), described);
        assert_eq!(of("'''\nRolls dice.'''"), described);
        assert_eq!(of("import rlf\n"), None);
        assert_eq!(of("\"\"\"\"\"\""), None);
    }

    #[test]
    fn the_hash_covers_every_file() {
        let one = file("a = 1");
        assert_eq!(one.hash(), blake3::hash(b"a = 1").to_hex().as_str());
        let beside = BTreeMap::from([("b.py".to_owned(), "b = 1".to_owned())]);
        let two = PythonFile::new("dice.py", "a = 1".to_owned(), beside);
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
        ] {
            assert!(!is_plugin(name), "{name}");
        }
        assert!(is_plugin("dice.py"));
    }
}
