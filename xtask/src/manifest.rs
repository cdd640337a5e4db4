//! The record beside built plugins: the sources that each component was made from.
//!
//! A test that runs a plugin compiled from yesterday's sources proves nothing. So the record has a hash of all inputs
//! of a component and a hash of the component, and both are compared before anything runs. The comparison takes
//! milliseconds and starts no compiler.

use std::{
    collections::BTreeMap,
    fmt, fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// The record's file name in a folder of plugins.
pub const FILE: &str = "manifest.json";

/// The contents of a folder of built plugins.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The compiler, as `rustc -vV` names it.
    pub rustc: String,
    /// The records by plugin name, which is the folder's name.
    pub components: BTreeMap<String, Record>,
}

/// The inputs and hashes of one component.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Input files and folders, relative to the repository.
    pub inputs: Vec<PathBuf>,
    /// BLAKE3 over the inputs.
    pub source: String,
    /// BLAKE3 of the component.
    pub component: String,
}

/// The reason why a plugin has to be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stale {
    /// There is no record of it.
    New,
    /// An input changed.
    Sources,
    /// The built file is not the recorded one.
    Component,
    /// The `plugin.toml` beside the built file is not the one beside the sources.
    PluginToml,
}

impl fmt::Display for Stale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::New => "not built yet",
            Self::Sources => "its sources changed",
            Self::Component => "its component is missing or was changed",
            Self::PluginToml => "its plugin.toml was changed",
        })
    }
}

impl Manifest {
    /// The record in `folder`. It is empty if there is none or it cannot be read, so that everything is built.
    pub fn read(folder: &Path) -> Self {
        fs::read(folder.join(FILE))
            .ok()
            .and_then(|text| serde_json::from_slice(&text).ok())
            .unwrap_or_default()
    }

    /// Writes the record into `folder`, completely or not at all.
    pub fn write(&self, folder: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self).context("a manifest is plain data")?;
        replace(&folder.join(FILE), (text + "\n").as_bytes())
    }

    /// The reason why the plugin `name` in `folder` has to be built; `source` is the folder of its sources.
    pub fn stale(
        &self,
        root: &Path,
        folder: &Path,
        name: &str,
        source: &Path,
    ) -> Result<Option<Stale>> {
        let Some(record) = self.components.get(name) else {
            return Ok(Some(Stale::New));
        };
        if hash_inputs(root, &record.inputs)? != record.source {
            return Ok(Some(Stale::Sources));
        }
        let built = folder.join(name);
        let component = fs::read(built.join(name).with_extension("wasm"));
        if !component.is_ok_and(|bytes| hash(&bytes) == record.component) {
            return Ok(Some(Stale::Component));
        }
        if fs::read(built.join("plugin.toml")).ok() != fs::read(source.join("plugin.toml")).ok() {
            return Ok(Some(Stale::PluginToml));
        }
        Ok(None)
    }
}

/// BLAKE3 in hexadecimal.
pub fn hash(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// BLAKE3 over the names and contents of all files in `inputs`, in an order that does not depend on the file system.
/// A missing input counts as an empty folder, so its removal changes the hash.
pub fn hash_inputs(root: &Path, inputs: &[PathBuf]) -> Result<String> {
    let mut files = Vec::new();
    for input in inputs {
        list(&root.join(input), &mut files)?;
    }
    files.sort();
    files.dedup();
    let mut hasher = blake3::Hasher::new();
    let mut add = |bytes: &[u8]| {
        // The length before each part keeps it distinct from the end of the part before.
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    for file in files {
        let name = file.strip_prefix(root).unwrap_or(&file);
        add(name.to_string_lossy().replace('\\', "/").as_bytes());
        add(&fs::read(&file).with_context(|| format!("{} cannot be read", file.display()))?);
    }
    Ok(hasher.finalize().to_hex().to_string())
}

/// Every file under `path`, except build output, Python's compiled files, hidden files, and pages, which no component
/// contains.
fn list(path: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    if path.is_file() {
        files.push(path.to_owned());
        return Ok(());
    }
    if !path.is_dir() {
        return Ok(());
    }
    for entry in fs::read_dir(path).with_context(|| format!("{} cannot be read", path.display()))? {
        let entry = entry.with_context(|| format!("{} cannot be read", path.display()))?;
        let (path, name) = (entry.path(), entry.file_name());
        let is_page = path.extension().is_some_and(|extension| extension == "md");
        let is_hidden = name.to_string_lossy().starts_with('.');
        if name == "target" || name == "__pycache__" || is_page || is_hidden {
            continue;
        }
        list(&path, files)?;
    }
    Ok(())
}

/// Replaces the file at `path` by a rename, so that processes that have the old one open or mapped keep it.
pub fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    let new = path.with_extension("new");
    fs::write(&new, bytes)
        .and_then(|()| fs::rename(&new, path))
        .with_context(|| format!("{} cannot be written", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repository with one plugin, built and recorded.
    struct Fixture {
        root: tempfile::TempDir,
        manifest: Manifest,
    }

    impl Fixture {
        fn new() -> Self {
            let root = tempfile::tempdir().unwrap();
            let write = |path: &str, text: &str| {
                let path = root.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            };
            write("plugins/adder/src/lib.rs", "one");
            write("plugins/adder/plugin.toml", "name");
            write("wit/tool.wit", "two");
            write("built/adder/adder.wasm", "component");
            write("built/adder/plugin.toml", "name");
            let inputs = vec![PathBuf::from("plugins/adder"), PathBuf::from("wit")];
            let record = Record {
                source: hash_inputs(root.path(), &inputs).unwrap(),
                component: hash(b"component"),
                inputs,
            };
            let manifest = Manifest {
                rustc: String::new(),
                components: BTreeMap::from([("adder".to_owned(), record)]),
            };
            Self { root, manifest }
        }

        fn write(&self, path: &str, text: &str) {
            fs::write(self.root.path().join(path), text).unwrap();
        }

        fn stale(&self) -> Option<Stale> {
            let root = self.root.path();
            self.manifest
                .stale(
                    root,
                    &root.join("built"),
                    "adder",
                    &root.join("plugins/adder"),
                )
                .unwrap()
        }
    }

    #[test]
    fn what_nobody_touched_is_fresh() {
        assert_eq!(Fixture::new().stale(), None);
    }

    #[test]
    fn a_change_in_any_input_makes_it_stale() {
        for path in [
            "plugins/adder/src/lib.rs",
            "wit/tool.wit",
            "plugins/adder/new.rs",
        ] {
            let fixture = Fixture::new();
            fixture.write(path, "changed");
            assert_eq!(fixture.stale(), Some(Stale::Sources), "{path}");
        }
        let fixture = Fixture::new();
        fs::remove_file(fixture.root.path().join("wit/tool.wit")).unwrap();
        assert_eq!(fixture.stale(), Some(Stale::Sources));
    }

    #[test]
    fn a_replaced_or_lost_component_makes_it_stale() {
        let fixture = Fixture::new();
        fixture.write("built/adder/adder.wasm", "another");
        assert_eq!(fixture.stale(), Some(Stale::Component));
        fs::remove_dir_all(fixture.root.path().join("built")).unwrap();
        assert_eq!(fixture.stale(), Some(Stale::Component));
    }

    #[test]
    fn an_edited_copy_of_plugin_toml_makes_it_stale() {
        let fixture = Fixture::new();
        fixture.write("built/adder/plugin.toml", "other");
        assert_eq!(fixture.stale(), Some(Stale::PluginToml));
    }

    #[test]
    fn build_output_pages_and_hidden_files_are_no_sources() {
        let fixture = Fixture::new();
        fs::create_dir_all(fixture.root.path().join("plugins/adder/target")).unwrap();
        fs::create_dir_all(fixture.root.path().join("plugins/adder/__pycache__")).unwrap();
        fixture.write("plugins/adder/target/x.o", "x");
        fixture.write("plugins/adder/__pycache__/x.pyc", "x");
        fixture.write("plugins/adder/.swp", "x");
        fixture.write("plugins/adder/README.md", "x");
        assert_eq!(fixture.stale(), None);
    }

    #[test]
    fn moving_a_text_between_files_changes_the_hash() {
        let fixture = Fixture::new();
        let inputs = [PathBuf::from("wit")];
        fixture.write("wit/a", "xy");
        fixture.write("wit/b", "z");
        let before = hash_inputs(fixture.root.path(), &inputs).unwrap();
        fixture.write("wit/a", "x");
        fixture.write("wit/b", "yz");
        assert_ne!(before, hash_inputs(fixture.root.path(), &inputs).unwrap());
    }

    #[test]
    fn a_written_manifest_reads_back() {
        let fixture = Fixture::new();
        fixture.manifest.write(fixture.root.path()).unwrap();
        assert_eq!(Manifest::read(fixture.root.path()), fixture.manifest);
    }

    #[test]
    fn an_unreadable_manifest_makes_everything_new() {
        let fixture = Fixture::new();
        fixture.write("manifest.json", "{");
        assert_eq!(Manifest::read(fixture.root.path()), Manifest::default());
    }
}
