//! Discovery: the places in a plugin directory where a plugin can be. A place is a folder with a `plugin.toml` or with
//! code, or a bare `*.wasm`, `*.py` or `*.js`.
//!
//! Directories are opened through a handle that cannot be left. The open itself refuses a symlink that leads outside, so
//! no check before it is needed.

use std::io;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::Dir;

use crate::manifest::MANIFEST_FILE;
use crate::script::{self, ScriptLanguage};

/// The place of a plugin. Nothing of the plugin has been read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// The plugin's own name: that of its folder, or of its bare file without the ending.
    pub(crate) name: String,
    /// The directory that is opened. Links in it cannot lead out of it.
    pub(crate) directory: PathBuf,
    /// The plugin's folder or bare file in that directory.
    pub(crate) entry: Entry,
}

/// An entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Entry {
    /// A folder; `.` is the directory itself.
    Folder(String),
    /// A bare file.
    File(String),
}

impl Place {
    /// The place of an entry of a plugin directory.
    fn new(directory: &Path, entry: Entry) -> Self {
        let name = match &entry {
            Entry::Folder(name) => name,
            Entry::File(file) => match file.rsplit_once('.') {
                Some((stem, _)) if is_code(file) => stem,
                _ => file,
            },
        };
        Self {
            name: name.to_owned(),
            directory: directory.to_owned(),
            entry,
        }
    }

    /// The place of a plugin that the operator names by path. Links in a plugin's folder cannot lead out of that folder.
    pub(crate) fn at(path: &Path) -> Self {
        if !path.is_dir()
            && let (Some(parent), Some(file)) = (path.parent(), path.file_name())
        {
            let parent = if parent.as_os_str().is_empty() {
                Path::new(".")
            } else {
                parent
            };
            return Self::new(parent, Entry::File(file.to_string_lossy().into_owned()));
        }
        let whole = path.canonicalize().ok();
        let name = whole.as_deref().and_then(Path::file_name);
        Self {
            name: name.map_or("plugin".into(), |name| name.to_string_lossy().into_owned()),
            directory: path.to_owned(),
            entry: Entry::Folder(".".to_owned()),
        }
    }

    /// The path of the plugin's folder or bare file.
    pub(crate) fn path(&self) -> PathBuf {
        match &self.entry {
            Entry::Folder(name) if name == "." => self.directory.clone(),
            Entry::Folder(name) | Entry::File(name) => self.directory.join(name),
        }
    }
}

/// Opens a directory for reading its files. Links in the path to it are allowed, because the operator wrote that path.
pub(crate) fn open(directory: &Path) -> io::Result<Dir> {
    Dir::open_ambient_dir(directory, ambient_authority())
}

/// The places of a plugin directory, sorted by name. Hidden entries, and folders without a manifest or code, are left
/// out.
pub(crate) fn places(path: &Path) -> io::Result<Vec<Place>> {
    let directory = open(path)?;
    let mut places = Vec::new();
    for entry in directory.entries()? {
        let Ok(name) = entry?.file_name().into_string() else {
            continue;
        };
        if name.starts_with('.') {
            continue;
        }
        // An entry that cannot be opened, such as a link to the outside, is reported when it is read.
        let entry = if let Ok(folder) = directory.open_dir(&name) {
            let has_manifest = folder.symlink_metadata(MANIFEST_FILE).is_ok();
            (has_manifest || !code_in(&directory, &name, &name).is_empty())
                .then_some(Entry::Folder(name))
        } else if is_component(&name) || script::is_plugin(&name) {
            Some(Entry::File(name))
        } else {
            let is_link = (directory.symlink_metadata(&name))
                .is_ok_and(|metadata| metadata.file_type().is_symlink());
            (is_link && directory.metadata(&name).is_err()).then_some(Entry::Folder(name))
        };
        places.extend(entry.map(|entry| Place::new(path, entry)));
    }
    places.sort();
    Ok(places)
}

/// The files of a folder that can be the code of the plugin `name`, sorted: every component, and the source files with
/// that name.
pub(crate) fn code_in(directory: &Dir, folder: &str, name: &str) -> Vec<String> {
    let Ok(entries) = directory
        .open_dir(folder)
        .and_then(|folder| folder.entries())
    else {
        return Vec::new();
    };
    let mut files: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|file| is_component(file) || (is_code(file) && stem(file) == Some(name)))
        .collect();
    files.sort();
    files
}

fn is_component(name: &str) -> bool {
    Path::new(name)
        .extension()
        .is_some_and(|found| found == "wasm")
}

/// True for the name of a component or of a source file.
fn is_code(name: &str) -> bool {
    is_component(name) || ScriptLanguage::of(Path::new(name)).is_some()
}

fn stem(name: &str) -> Option<&str> {
    Path::new(name).file_stem()?.to_str()
}
