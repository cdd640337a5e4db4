//! Contents of a plugin directory: every `*/plugin.toml`, and every bare `*.wasm`, `*.py` or `*.js` with
//! defaults.
//!
//! Files are opened through a handle on the directory that cannot be left. The open itself refuses a symlink that leads
//! outside, so no check before it is needed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt as _};

use crate::bundle::Bundle;
use crate::manifest::{MANIFEST_FILE, MAX_MANIFEST_BYTES, PluginManifest, is_valid_name};
use crate::problem::{Problem, ProblemKind};
use crate::script::{self, ScriptFile, ScriptLanguage};

/// Maximum size of a component, in bytes. A larger one is refused unread. A Python interpreter with its standard
/// library is about 30 MB, one with numpy and its kin 270 MB.
pub const MAX_COMPONENT_BYTES: u64 = 512 << 20;

/// A plugin that was found. Its manifest is read and its component is open, but none of its code has run.
#[derive(Debug)]
pub(crate) struct Found {
    /// Its folder, or its bare component or source file.
    pub(crate) path: PathBuf,
    pub(crate) manifest: PluginManifest,
    pub(crate) code: Code,
    /// The file of its component, or its source file.
    pub(crate) code_path: PathBuf,
}

/// The code of a plugin.
#[derive(Debug)]
pub(crate) enum Code {
    /// A component: open for reading, and at most [`MAX_COMPONENT_BYTES`] long when it was opened.
    Component(File),
    /// A bundle: a component, and attached to it a manifest and perhaps source files.
    Bundle(Box<Bundle>),
    /// A source file, which the component of its language's interpreter runs.
    Script(ScriptFile),
}

/// The place of a candidate in a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    Folder(String),
    Bare(String),
}

impl Place {
    /// The plugin's name: the folder's, or the stem of the file.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Folder(name) => name,
            Self::Bare(file) => match file.rsplit_once('.') {
                Some((stem, _)) if is_code(file) => stem,
                _ => file,
            },
        }
    }

    pub(crate) fn path(&self, directory: &Path) -> PathBuf {
        match self {
            Self::Folder(name) if name == "." => directory.to_owned(),
            Self::Folder(name) | Self::Bare(name) => directory.join(name),
        }
    }
}

/// Opens a directory for reading its files. Links in the path to it are allowed, because the operator wrote that path.
pub(crate) fn open(directory: &Path) -> std::io::Result<Dir> {
    Dir::open_ambient_dir(directory, ambient_authority())
}

/// The places of a directory where a plugin may be, sorted by name. Hidden entries, and folders without a manifest or a
/// component, are left out.
pub(crate) fn places(directory: &Dir) -> std::io::Result<Vec<Place>> {
    let mut places = Vec::new();
    for entry in directory.entries()? {
        let Ok(name) = entry?.file_name().into_string() else {
            continue;
        };
        if name.starts_with('.') {
            continue;
        }
        // An entry that cannot be opened, such as a link to the outside, is reported when it is read.
        let is_folder = directory.open_dir(&name).is_ok();
        if is_folder {
            let has_manifest = directory
                .open_dir(&name)
                .is_ok_and(|folder| folder.symlink_metadata(MANIFEST_FILE).is_ok());
            if has_manifest || !code_in(directory, &name).is_empty() {
                places.push(Place::Folder(name));
            }
        } else if is_component(&name) || script::is_plugin(&name) {
            places.push(Place::Bare(name));
        } else if directory
            .symlink_metadata(&name)
            .is_ok_and(|m| m.file_type().is_symlink())
            && directory.metadata(&name).is_err()
        {
            places.push(Place::Folder(name));
        }
    }
    places.sort_by(|a, b| a.name().cmp(b.name()).then_with(|| a.cmp(b)));
    Ok(places)
}

/// The files of a folder that can be its plugin's code, sorted: every component, and the source files with the folder's
/// name.
fn code_in(directory: &Dir, folder: &str) -> Vec<String> {
    let Ok(entries) = directory
        .open_dir(folder)
        .and_then(|folder| folder.entries())
    else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| is_component(name) || (is_code(name) && stem(name) == Some(folder)))
        .collect();
    names.sort();
    names
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

/// Finds the place of a plugin that the operator names by path: the directory to open, and the place in it. Links in a
/// plugin's folder cannot lead out of that folder.
pub(crate) fn locate(path: &Path) -> (PathBuf, Place) {
    match (path.is_dir(), path.parent(), path.file_name()) {
        (false, Some(parent), Some(file)) => {
            let parent = if parent.as_os_str().is_empty() {
                Path::new(".")
            } else {
                parent
            };
            (
                parent.to_owned(),
                Place::Bare(file.to_string_lossy().into_owned()),
            )
        }
        _ => (path.to_owned(), Place::Folder(".".into())),
    }
}

/// Reads the manifest and opens the component of one place. `name` is the plugin's: the name of its folder, or the stem of
/// its bare file.
pub(crate) fn read(
    directory: &Dir,
    path: &Path,
    place: &Place,
    name: &str,
) -> Result<Found, Problem> {
    let name = name.to_owned();
    let here = place.path(path);
    let problem = |kind, at: &Path, what: String, mend: &str| Problem {
        plugin: name.clone(),
        path: at.to_owned(),
        kind,
        what,
        mend: mend.into(),
    };
    if !is_valid_name(&name) {
        return Err(problem(
            ProblemKind::Name,
            &here,
            format!("{name:?} cannot name a plugin"),
            "rename it to 1 to 64 of a-z A-Z 0-9 _ -",
        ));
    }
    let (manifest, file) = match place {
        Place::Bare(file) => (None, file.clone()),
        Place::Folder(folder) => {
            let manifest_path = here.join(MANIFEST_FILE);
            let manifest = read_manifest(directory, folder, &manifest_path)
                .map_err(|(kind, what, mend)| problem(kind, &manifest_path, what, mend))?;
            let said = manifest
                .as_ref()
                .and_then(|manifest| manifest.name.as_ref());
            if let Some(said) = said.filter(|said| **said != name) {
                return Err(problem(
                    ProblemKind::Manifest,
                    &manifest_path,
                    format!("`name = {said:?}`, but the folder is called {name:?}"),
                    "make the two the same, or leave `name` out",
                ));
            }
            let component = manifest
                .as_ref()
                .and_then(|manifest| manifest.component.as_ref());
            let file = code_file(directory, folder, &name, component)
                .map_err(|(what, mend)| problem(ProblemKind::Manifest, &here, what, mend))?;
            (manifest, format!("{folder}/{file}"))
        }
    };
    // Without the `.` that stands for the folder itself.
    let code_path: PathBuf = path.join(&file).components().collect();
    let code = if let Some(language) = ScriptLanguage::of(&code_path) {
        let folder = match place {
            Place::Bare(_) => None,
            Place::Folder(folder) => Some(folder.as_str()),
        };
        read_script(language, directory, &file, folder).map(Code::Script)
    } else {
        open_component(directory, &file)
    };
    let mut code =
        code.map_err(|(what, mend)| problem(ProblemKind::File, &code_path, what, mend))?;
    let manifest = match (manifest, &mut code) {
        (Some(manifest), _) => manifest,
        (None, Code::Bundle(bundle)) => std::mem::take(&mut bundle.contents.manifest),
        (None, _) => PluginManifest::default(),
    };
    Ok(Found {
        path: here,
        manifest,
        code,
        code_path,
    })
}

/// Opens a component, or a bundle.
fn open_component(directory: &Dir, file: &str) -> Result<Code, (String, &'static str)> {
    let file = open_bounded(directory, file, MAX_COMPONENT_BYTES)?;
    match Bundle::read(&file) {
        Ok(None) => Ok(Code::Component(file)),
        Ok(Some(bundle)) => Ok(Code::Bundle(Box::new(bundle))),
        // The error may quote the file.
        Err(error) => Err((
            format!(
                "what `plugin build` attached to it cannot be read: {:.200}",
                error.to_string()
            ),
            "build it again, with this version of rlf-host",
        )),
    }
}

/// Reads a source file, and the others of its folder. A bare file has none.
fn read_script(
    language: ScriptLanguage,
    directory: &Dir,
    file: &str,
    folder: Option<&str>,
) -> Result<ScriptFile, (String, &'static str)> {
    let text = |file: &str| {
        let bytes = read_bounded(directory, file, script::MAX_FILE_BYTES)?;
        let text = String::from_utf8(bytes);
        text.map_err(|_| (format!("{file} is not UTF-8"), "save it as UTF-8"))
    };
    let name = file.rsplit('/').next().unwrap_or(file);
    let mut beside = BTreeMap::new();
    if let Some(folder) = folder {
        let names = script::files_beside(language, directory, folder, name).map_err(|count| {
            let what = format!("the folder has {count} files in {language}");
            (what, "keep only those that the plugin imports")
        })?;
        for name in names {
            let source = text(&format!("{folder}/{name}"))?;
            beside.insert(name, source);
        }
    }
    Ok(ScriptFile::new(language, name, text(file)?, beside))
}

/// Reads the manifest of a folder, if it has one.
fn read_manifest(
    directory: &Dir,
    folder: &str,
    path: &Path,
) -> Result<Option<PluginManifest>, (ProblemKind, String, &'static str)> {
    let file = format!("{folder}/{MANIFEST_FILE}");
    if directory.symlink_metadata(&file).is_err() && directory.open_dir(folder).is_ok() {
        return Ok(None);
    }
    let bytes = read_bounded(directory, &file, MAX_MANIFEST_BYTES)
        .map_err(|(what, mend)| (ProblemKind::File, what, mend))?;
    let text = String::from_utf8(bytes).map_err(|_| {
        (
            ProblemKind::Manifest,
            "it is not UTF-8".into(),
            "save it as UTF-8",
        )
    })?;
    let parsed = PluginManifest::parse(&text, &path.display().to_string());
    parsed.map(Some).map_err(|error| {
        (
            ProblemKind::Manifest,
            error.to_string(),
            "docs/plugins.md describes every key",
        )
    })
}

/// The packages that the manifest of a place lists; none if there is no manifest that can be read.
pub(crate) fn packages(directory: &Path, place: &Place) -> Vec<String> {
    let Place::Folder(folder) = place else {
        return Vec::new();
    };
    let opened = open(directory).ok();
    let manifest = opened.and_then(|opened| read_manifest(&opened, folder, directory).ok());
    manifest
        .flatten()
        .map(|manifest| manifest.packages)
        .unwrap_or_default()
}

/// Finds the file with the plugin's code in its folder: the one that the manifest names, else the one named after the
/// folder, else the only one.
fn code_file(
    directory: &Dir,
    folder: &str,
    name: &str,
    component: Option<&String>,
) -> Result<String, (String, &'static str)> {
    if let Some(named) = component {
        if Path::new(named)
            .file_name()
            .is_none_or(|file| file != named.as_str())
        {
            return Err((
                format!("`component = {named:?}` is not a file name"),
                "name a component or a source file in the plugin's own folder, without a path",
            ));
        }
        return Ok(named.clone());
    }
    let mut found = code_in(directory, folder);
    if folder == "." {
        let extensions = ScriptLanguage::ALL.iter();
        let scripts = extensions
            .flat_map(|language| language.extensions())
            .map(|extension| format!("{name}.{extension}"));
        found.extend(scripts.filter(|file| directory.symlink_metadata(file).is_ok()));
    }
    let default = format!("{name}.wasm");
    match found.len() {
        _ if found.contains(&default) => Ok(default),
        1 => Ok(found.remove(0)),
        0 => Err((
            "there is no .wasm file, and no .py or .js file with the folder's name".into(),
            "build the plugin, or copy its component here",
        )),
        _ => Err((
            format!("there are several components: {}", found.join(", ")),
            "say which one with `component = \"…\"` in plugin.toml",
        )),
    }
}

/// Opens a file of at most `most` bytes.
fn open_bounded(directory: &Dir, file: &str, most: u64) -> Result<File, (String, &'static str)> {
    let mut options = OpenOptions::new();
    // Opening a pipe would wait for a writer.
    options.read(true).custom_flags(libc::O_NONBLOCK);
    let open = directory.open_with(file, &options).and_then(|file| {
        let metadata = file.metadata()?;
        Ok(metadata.is_file().then_some((file, metadata)))
    });
    let opened = open.map_err(|error| {
        // cap-std's error for a link that leads out of the directory.
        if error.kind() == std::io::ErrorKind::PermissionDenied
            && error.to_string().contains("outside of the filesystem")
        {
            let what = "a symlink leads outside the plugin directory".to_owned();
            (what, "copy the file here; to use a plugin from elsewhere, give its `path` in [plugins.<name>]")
        } else {
            (format!("cannot open it: {error}"), "make it readable, or remove the plugin")
        }
    })?;
    let Some((file, metadata)) = opened else {
        return Err((
            "it is not a regular file".into(),
            "put the file itself here",
        ));
    };
    if metadata.len() > most {
        return Err(too_large(metadata.len(), most));
    }
    Ok(file.into_std())
}

/// Reads a file of at most `most` bytes, and never holds more than that.
fn read_bounded(directory: &Dir, file: &str, most: u64) -> Result<Vec<u8>, (String, &'static str)> {
    let file = open_bounded(directory, file, most)?;
    let mut bytes = Vec::new();
    let read = file.take(most + 1).read_to_end(&mut bytes);
    read.map_err(|error| {
        (
            format!("cannot read it: {error}"),
            "check the disk and the permissions",
        )
    })?;
    if bytes.len() as u64 > most {
        return Err(too_large(most + 1, most));
    }
    Ok(bytes)
}

fn too_large(size: u64, most: u64) -> (String, &'static str) {
    (
        format!("it has {size} bytes or more; at most {most} are read"),
        "is it the right file? A component without debug information is far smaller",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn stem(candidate: &Found) -> String {
        candidate
            .path
            .file_stem()
            .unwrap()
            .to_str()
            .unwrap()
            .to_owned()
    }

    fn read_all(path: &Path) -> Vec<Result<Found, Problem>> {
        let directory = open(path).unwrap();
        let read = |place: &Place| read(&directory, path, place, place.name());
        places(&directory).unwrap().iter().map(read).collect()
    }

    #[test]
    fn folders_and_bare_components_are_found_in_sorted_order() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        for folder in ["zeta", "alpha", "empty", ".hidden"] {
            fs::create_dir(at(folder)).unwrap();
        }
        fs::write(at("zeta/plugin.toml"), "description = \"z\"\n").unwrap();
        fs::write(at("zeta/zeta.wasm"), "zeta").unwrap();
        fs::write(at("zeta/other.wasm"), "other").unwrap();
        fs::write(at("alpha/only.wasm"), "only").unwrap();
        fs::write(at("middle.wasm"), "middle").unwrap();
        fs::write(at(".hidden/plugin.toml"), "").unwrap();
        fs::write(at("README.md"), "").unwrap();
        let found: Vec<(String, Vec<u8>)> = read_all(root.path())
            .into_iter()
            .map(|c| c.unwrap())
            .map(|found| {
                let mut bytes = Vec::new();
                let name = stem(&found);
                let Code::Component(mut file) = found.code else {
                    panic!("{name} is no component");
                };
                file.read_to_end(&mut bytes).unwrap();
                (name, bytes)
            })
            .collect();
        let expected = [("alpha", "only"), ("middle", "middle"), ("zeta", "zeta")];
        assert_eq!(
            found,
            expected.map(|(name, bytes)| (name.to_owned(), bytes.as_bytes().to_vec()))
        );
    }

    #[test]
    fn a_folder_that_is_wrong_says_so_and_the_rest_is_read() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        for folder in ["a", "b", "c", "d", "d2", "e f"] {
            fs::create_dir(at(folder)).unwrap();
        }
        fs::write(at("a/plugin.toml"), "").unwrap();
        fs::write(at("b/plugin.toml"), "component = \"../a/x.wasm\"\n").unwrap();
        fs::write(at("c/x.wasm"), "").unwrap();
        fs::write(at("c/y.wasm"), "").unwrap();
        fs::write(at("d/plugin.toml"), "knid = \"tool\"\n").unwrap();
        fs::write(at("d2/plugin.toml"), "name = \"d3\"\n").unwrap();
        fs::write(at("e f/x.wasm"), "").unwrap();
        fs::write(at("good.wasm"), "good").unwrap();
        let found: Vec<String> = read_all(root.path())
            .into_iter()
            .map(|found| match found {
                Ok(candidate) => stem(&candidate),
                Err(problem) => problem
                    .what
                    .replace(&root.path().display().to_string(), "."),
            })
            .collect();
        assert_eq!(
            found,
            [
                "there is no .wasm file, and no .py or .js file with the folder's name",
                "`component = \"../a/x.wasm\"` is not a file name",
                "there are several components: x.wasm, y.wasm",
                "./d/plugin.toml:1:1: unknown key `knid`; did you mean `kind`?",
                "`name = \"d3\"`, but the folder is called \"d2\"",
                "\"e f\" cannot name a plugin",
                "good",
            ]
        );
    }

    #[cfg(unix)]
    #[test]
    fn symlinks_that_leave_the_directory_are_refused() {
        use std::os::unix::fs::symlink;
        let outside = tempfile::tempdir().unwrap();
        fs::create_dir(outside.path().join("plugin")).unwrap();
        fs::write(outside.path().join("plugin/plugin.toml"), "").unwrap();
        fs::write(outside.path().join("plugin/x.wasm"), "secret").unwrap();
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::create_dir(at("file")).unwrap();
        symlink(outside.path().join("plugin/x.wasm"), at("file/file.wasm")).unwrap();
        symlink(outside.path().join("plugin"), at("folder")).unwrap();
        fs::create_dir(at("manifest")).unwrap();
        symlink(
            outside.path().join("plugin/plugin.toml"),
            at("manifest/plugin.toml"),
        )
        .unwrap();
        fs::write(at("manifest/manifest.wasm"), "x").unwrap();
        // A link inside the directory is fine.
        fs::write(at("real.wasm"), "real").unwrap();
        symlink("real.wasm", at("same.wasm")).unwrap();
        let mut names = Vec::new();
        for found in read_all(root.path()) {
            match found {
                Ok(candidate) => names.push(stem(&candidate)),
                Err(problem) => {
                    assert_eq!(problem.kind, ProblemKind::File, "{problem}");
                    assert!(
                        problem.what.contains("leads outside the plugin directory"),
                        "{problem}"
                    );
                    names.push(format!("refused {}", problem.plugin));
                }
            }
        }
        assert_eq!(
            names,
            [
                "refused file",
                "refused folder",
                "refused manifest",
                "real",
                "same"
            ]
        );
    }

    #[test]
    fn files_that_are_too_large_are_refused_unread() {
        let root = tempfile::tempdir().unwrap();
        fs::File::create(root.path().join("huge.wasm"))
            .unwrap()
            .set_len(600 << 20)
            .unwrap();
        fs::create_dir(root.path().join("long")).unwrap();
        fs::write(root.path().join("long/plugin.toml"), "#".repeat(70_000)).unwrap();
        let problems: Vec<String> = read_all(root.path())
            .into_iter()
            .map(|found| found.unwrap_err().what)
            .collect();
        assert_eq!(
            problems,
            [
                "it has 629145600 bytes or more; at most 536870912 are read",
                "it has 70000 bytes or more; at most 65536 are read",
            ]
        );
    }
}
