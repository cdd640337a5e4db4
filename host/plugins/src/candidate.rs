//! A plugin that was read: its manifest, its code and the component that runs it. None of its code has run.
//!
//! Files are read through a handle on the plugin's directory that cannot be left: see [`discovery`].

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt as _};
use rlf_sandbox::{ComponentFile, ComponentInfo};

use crate::bundle::{Bundle, Contents};
use crate::discovery::{self, Entry, Place};
use crate::files::{MAX_COMPONENT_BYTES, PluginFiles};
use crate::manifest::{
    MANIFEST_FILE, MAX_MANIFEST_BYTES, PluginKind, PluginManifest, is_valid_name,
};
use crate::problem::{LoadRefusal, Problem, ProblemKind};
use crate::script::{self, Script, ScriptLanguage};

/// A plugin that can be admitted.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) files: PluginFiles,
    /// Its own component, or that of the interpreter that runs its source files.
    pub(crate) component: ComponentFile,
    /// The manifest, and the source files or the environment in Python.
    pub(crate) contents: Contents,
    /// For a [bundle](crate::bundle): BLAKE3 of the whole file, in hexadecimal.
    pub(crate) bundle_hash: Option<String>,
}

impl Candidate {
    /// Reads the plugin `alias`. `interpreter` returns the component that runs source files in a language.
    pub(crate) fn read(
        place: &Place,
        alias: &str,
        interpreter: impl FnOnce(ScriptLanguage) -> Result<ComponentFile, LoadRefusal>,
    ) -> Result<Self, Problem> {
        let path = place.path();
        let directory = discovery::open(&place.directory).map_err(|error| {
            let what = format!("cannot open it: {error}");
            LoadRefusal::new(ProblemKind::File, what, "correct the path").about(alias, &path)
        })?;
        if !is_valid_name(&place.name) {
            let what = format!("{:?} cannot name a plugin", place.name);
            let mend = "rename it to 1 to 64 of a-z A-Z 0-9 _ -";
            return Err(LoadRefusal::new(ProblemKind::Name, what, mend).about(alias, &path));
        }
        let (manifest, file) = match &place.entry {
            Entry::File(file) => (None, file.clone()),
            Entry::Folder(folder) => {
                let manifest_path = path.join(MANIFEST_FILE);
                let manifest = read_manifest(&directory, folder, &manifest_path)
                    .and_then(|manifest| check_name(manifest, &place.name))
                    .map_err(|refusal| refusal.about(alias, &manifest_path))?;
                let named = manifest.as_ref().and_then(|one| one.component.as_ref());
                let file = code_file(&directory, folder, &place.name, named)
                    .map_err(|refusal| refusal.about(alias, &path))?;
                (manifest, format!("{folder}/{file}"))
            }
        };
        // Without the `.` that stands for the folder itself.
        let code: PathBuf = place.directory.join(&file).components().collect();
        let (component, mut contents, bundle_hash) = match ScriptLanguage::of(&code) {
            Some(language) => {
                let script = read_script(language, &directory, &file, &place.entry)
                    .map_err(|refusal| refusal.about(alias, &code))?;
                let component =
                    interpreter(language).map_err(|refusal| refusal.about(alias, &path))?;
                let contents = Contents {
                    script: Some(script),
                    ..Contents::default()
                };
                (component, contents, None)
            }
            None => {
                read_component(&directory, &file).map_err(|refusal| refusal.about(alias, &code))?
            }
        };
        if let Some(manifest) = manifest {
            contents.manifest = manifest;
        }
        Ok(Self {
            files: PluginFiles { code, path },
            component,
            contents,
            bundle_hash,
        })
    }

    /// The hash of the plugin's code, with the imports and exports of the component that runs it.
    pub(crate) fn info(&self) -> ComponentInfo {
        let info = self.component.info().clone();
        let own = self.contents.script.as_ref().map(Script::hash);
        match self.bundle_hash.clone().or(own) {
            Some(hash) => ComponentInfo { hash, ..info },
            None => info,
        }
    }

    /// The kind that its manifest says, or else that its code shows, if it shows one.
    pub(crate) fn kind(&self) -> Option<PluginKind> {
        let manifest = &self.contents.manifest;
        if let Some(script) = &self.contents.script {
            return script.kind(manifest);
        }
        let info = self.component.info();
        let mut kinds = PluginKind::ALL.into_iter();
        let exported = kinds.find(|kind| info.exported_version(kind.interface()).is_some());
        manifest.kind.or(exported)
    }
}

/// The packages that the manifest of a place lists; none if there is no manifest that can be read.
pub(crate) fn packages(place: &Place) -> Vec<String> {
    let Entry::Folder(folder) = &place.entry else {
        return Vec::new();
    };
    let opened = discovery::open(&place.directory).ok();
    let manifest = opened.and_then(|opened| read_manifest(&opened, folder, &place.path()).ok());
    manifest
        .flatten()
        .map(|manifest| manifest.packages)
        .unwrap_or_default()
}

/// Reads a component or a bundle: the component, the contents attached to it, and for a bundle the hash of the whole
/// file.
fn read_component(
    directory: &Dir,
    file: &str,
) -> Result<(ComponentFile, Contents, Option<String>), LoadRefusal> {
    let file = open_bounded(directory, file, MAX_COMPONENT_BYTES)?;
    let bundle = Bundle::read(&file).map_err(|error| {
        // The error may quote the file.
        let error = error.to_string();
        let what = format!("what `plugin build` attached to it cannot be read: {error:.200}");
        let mend = "build it again, with this version of rlf-host";
        LoadRefusal::new(ProblemKind::File, what, mend)
    })?;
    let read = match bundle {
        Some(Bundle {
            file,
            attached,
            contents,
        }) => ComponentFile::read_before(file, &attached)
            .map(|(component, hash)| (component, contents, Some(hash))),
        None => ComponentFile::read(file, MAX_COMPONENT_BYTES)
            .map(|component| (component, Contents::default(), None)),
    };
    read.map_err(|error| LoadRefusal::from(&error))
}

/// Reads a source file, and the others of its folder. A bare file has none.
fn read_script(
    language: ScriptLanguage,
    directory: &Dir,
    file: &str,
    entry: &Entry,
) -> Result<Script, LoadRefusal> {
    let text = |file: &str| {
        let bytes = read_bounded(directory, file, script::MAX_FILE_BYTES)?;
        String::from_utf8(bytes).map_err(|_| {
            let what = format!("{file} is not UTF-8");
            LoadRefusal::new(ProblemKind::File, what, "save it as UTF-8")
        })
    };
    let name = file.rsplit('/').next().unwrap_or(file);
    let mut beside = BTreeMap::new();
    if let Entry::Folder(folder) = entry {
        for name in script::files_beside(language, directory, folder, name)? {
            let source = text(&format!("{folder}/{name}"))?;
            beside.insert(name, source);
        }
    }
    Ok(Script::new(language, name, text(file)?, beside))
}

/// Reads the manifest of a folder, if it has one.
fn read_manifest(
    directory: &Dir,
    folder: &str,
    path: &Path,
) -> Result<Option<PluginManifest>, LoadRefusal> {
    let file = format!("{folder}/{MANIFEST_FILE}");
    if directory.symlink_metadata(&file).is_err() && directory.open_dir(folder).is_ok() {
        return Ok(None);
    }
    let bytes = read_bounded(directory, &file, MAX_MANIFEST_BYTES)?;
    let text = String::from_utf8(bytes).map_err(|_| {
        LoadRefusal::new(ProblemKind::Manifest, "it is not UTF-8", "save it as UTF-8")
    })?;
    let parsed = PluginManifest::parse(&text, &path.display().to_string());
    parsed.map(Some).map_err(|error| {
        let mend = "docs/plugins.md describes every key";
        LoadRefusal::new(ProblemKind::Manifest, error.to_string(), mend)
    })
}

/// Refuses a manifest that gives the plugin `name` another name.
fn check_name(
    manifest: Option<PluginManifest>,
    name: &str,
) -> Result<Option<PluginManifest>, LoadRefusal> {
    let said = manifest.as_ref().and_then(|one| one.name.as_deref());
    match said {
        Some(said) if said != name => Err(LoadRefusal::new(
            ProblemKind::Manifest,
            format!("`name = {said:?}`, but the folder is called {name:?}"),
            "make the two the same, or leave `name` out",
        )),
        _ => Ok(manifest),
    }
}

/// Finds the file with the plugin's code in its folder: the one that the manifest names, else the one named after the
/// folder, else the only one.
fn code_file(
    directory: &Dir,
    folder: &str,
    name: &str,
    named: Option<&String>,
) -> Result<String, LoadRefusal> {
    let refused = |what: String, mend: &str| LoadRefusal::new(ProblemKind::Manifest, what, mend);
    if let Some(named) = named {
        if Path::new(named)
            .file_name()
            .is_none_or(|file| file != named.as_str())
        {
            return Err(refused(
                format!("`component = {named:?}` is not a file name"),
                "name a component or a source file in the plugin's own folder, without a path",
            ));
        }
        return Ok(named.clone());
    }
    let mut found = discovery::code_in(directory, folder, name);
    let default = format!("{name}.wasm");
    match found.len() {
        _ if found.contains(&default) => Ok(default),
        1 => Ok(found.remove(0)),
        0 => Err(refused(
            "there is no .wasm file, and no .py or .js file with the folder's name".into(),
            "build the plugin, or copy its component here",
        )),
        _ => Err(refused(
            format!("there are several components: {}", found.join(", ")),
            "say which one with `component = \"…\"` in plugin.toml",
        )),
    }
}

/// Opens a file of at most `max_bytes`.
fn open_bounded(directory: &Dir, file: &str, max_bytes: u64) -> Result<File, LoadRefusal> {
    let refused = |what: String, mend: &str| LoadRefusal::new(ProblemKind::File, what, mend);
    let mut options = OpenOptions::new();
    // Opening a pipe would wait for a writer.
    options.read(true).custom_flags(libc::O_NONBLOCK);
    let open = directory.open_with(file, &options).and_then(|file| {
        let metadata = file.metadata()?;
        Ok((file, metadata))
    });
    let (file, metadata) = open.map_err(|error| {
        // cap-std's error for a link that leads out of the directory.
        if error.kind() == std::io::ErrorKind::PermissionDenied
            && error.to_string().contains("outside of the filesystem")
        {
            refused(
                "a symlink leads outside the plugin directory".to_owned(),
                "copy the file here; to use a plugin from elsewhere, give its `path` in [plugins.<name>]",
            )
        } else {
            let what = format!("cannot open its file {file:?}: {error}");
            refused(what, "make it readable, or remove the plugin")
        }
    })?;
    if !metadata.is_file() {
        let what = "it is not a regular file".to_owned();
        return Err(refused(what, "put the file itself here"));
    }
    if metadata.len() > max_bytes {
        return Err(too_large(metadata.len(), max_bytes));
    }
    Ok(file.into_std())
}

/// Reads a file of at most `max_bytes`, and never holds more than that.
fn read_bounded(directory: &Dir, file: &str, max_bytes: u64) -> Result<Vec<u8>, LoadRefusal> {
    let file = open_bounded(directory, file, max_bytes)?;
    let mut bytes = Vec::new();
    let read = file.take(max_bytes + 1).read_to_end(&mut bytes);
    read.map_err(|error| {
        let what = format!("cannot read it: {error}");
        LoadRefusal::new(
            ProblemKind::File,
            what,
            "check the disk and the permissions",
        )
    })?;
    if bytes.len() as u64 > max_bytes {
        return Err(too_large(max_bytes + 1, max_bytes));
    }
    Ok(bytes)
}

fn too_large(size: u64, max_bytes: u64) -> LoadRefusal {
    LoadRefusal::new(
        ProblemKind::File,
        format!("it has {size} bytes or more; at most {max_bytes} are read"),
        "is it the right file? A component without debug information is far smaller",
    )
}

#[cfg(test)]
mod tests;
