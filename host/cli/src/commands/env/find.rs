//! Finding the environment that a command names, and loading it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::bail;
use rlf_environments::environments::Environments;
use rlf_plugins::grants::PluginGrants;
use rlf_plugins::python_environment::PythonEnvironment;
use rlf_run::PluginSources;
use rlf_specification::Format;

use crate::arguments::PluginBindings;
use crate::commands::specification::{checked, in_folder, program};
use crate::display::printable;
use crate::operator::Operator;
use crate::plugins::sources;
use crate::progress::Progress;

/// An environment that is loaded and ready.
pub(crate) struct Found {
    pub(crate) environments: Environments,
    pub(crate) name: String,
    /// Names of the servers, if it is written in Python.
    pub(crate) servers: Option<Vec<String>>,
}

/// Finds the environment at a path, or by its name in the configuration or the plugin directories.
pub(crate) fn find(
    added: &[PathBuf],
    operator: &Operator,
    path: &Path,
    bindings: &PluginBindings,
) -> anyhow::Result<Found> {
    let name = path
        .canonicalize()
        .ok()
        .as_deref()
        .and_then(Path::file_stem)
        .map_or_else(
            || path.display().to_string(),
            |stem| stem.to_string_lossy().into_owned(),
        );
    let configured =
        operator.for_plugin(&name, &bindings.data, bindings.plugin_config.as_deref())?;
    let mut grants = configured.grants.clone();
    let python = is_python(path);
    let component = is_component(path);
    if python {
        grants.plugin = Some("python".into());
        grants.environment = Some(PythonEnvironment::new(path.to_owned()));
    }
    let specified = !python && is_specification(path);
    if specified {
        if path.is_file() {
            program(path)?;
        }
        grants.plugin = Some("specified".into());
        grants.data.insert("specifications".into(), path.to_owned());
    }
    let mut grants_by_name: BTreeMap<String, PluginGrants> = operator.grants_by_name.clone();
    if python || specified || configured.entry.is_some() || !configured.settings.is_empty() {
        grants_by_name.insert(name.clone(), grants.clone());
    }
    let sources = sources_for(added, path)?;
    let sandbox = sources.sandbox(&operator.sandbox)?;
    let is_it = |alias: &str| alias == name;
    let registry = sources.load_where(&grants_by_name, &sandbox, &Progress::new(), is_it);
    if let Some(problem) = registry.problem_of(&name) {
        return Err(operator.explained(problem, &grants).into());
    }
    let environments = Environments::new(&registry, &sandbox, &operator.environments);
    if let Some(plugin) = registry.plugin(&name)
        && !plugin.is_environment()
    {
        bail!(
            "`{name}` is {}, and no environment",
            plugin.kind().with_article()
        );
    }
    if registry.plugin(&name).is_none() && !python && !specified && !component {
        if !path.exists() {
            bail!(
                "there is no file or folder {}, and no environment of that name in {}",
                path.display(),
                sources.display()
            );
        }
        let broken = first_problem(path).map_or(String::new(), |problem| {
            format!("; none of its `.toml` and `.json` files is a specification: {problem}")
        });
        bail!(
            "{} is neither a Python file nor a folder of them (`Name.py`, with a capital) nor a specification (`.toml` or `.json`) nor a component, and there is no \
             environment of that name in {}{broken}",
            path.display(),
            sources.display()
        );
    }
    let servers = environments
        .plugin(&name)?
        .servers()
        .map(<[String]>::to_vec);
    Ok(Found {
        environments,
        name,
        servers,
    })
}

/// True if a path holds environments in Python: a file, or a folder that contains a server.
pub(crate) fn is_python(path: &Path) -> bool {
    if path.is_dir() {
        let servers = PythonEnvironment::new(path.to_owned());
        !path.join("plugin.toml").exists() && servers.has_servers()
    } else {
        path.is_file() && path.extension().is_some_and(|extension| extension == "py")
    }
}

/// True if a path is a Python file in EnvFactory's format: tools, with a state that can be loaded and saved.
pub(crate) fn is_server(path: &Path) -> bool {
    let parts = ["FastMCP(", "def load_scenario(", "def save_scenario("];
    path.is_file()
        && is_python(path)
        && rlf_files::read_text(path, rlf_files::MAX_TEXT_BYTES)
            .is_ok_and(|source| parts.iter().all(|part| source.contains(part)))
}

/// True if a path holds a component: a `.wasm` file, or the folder of a plugin.
fn is_component(path: &Path) -> bool {
    if path.is_dir() {
        path.join("plugin.toml").exists()
    } else {
        path.is_file()
            && path
                .extension()
                .is_some_and(|extension| extension == "wasm")
    }
}

/// The plugin sources to search. If `path` is a component, these are only the plugins of its own directory.
fn sources_for(added: &[PathBuf], path: &Path) -> anyhow::Result<PluginSources> {
    let mut sources = sources(added)?;
    if let (true, Ok(found)) = (is_component(path), path.canonicalize()) {
        sources.directories = vec![found.parent().unwrap_or(Path::new("/")).to_owned()];
        sources.shipped = None;
    }
    Ok(sources)
}

/// True if a path holds environments as data: a file, or a folder that contains a specification.
pub(crate) fn is_specification(path: &Path) -> bool {
    if !path.is_dir() {
        return path.is_file() && Format::from_path(path).is_some();
    }
    if path.join("plugin.toml").exists() {
        return false;
    }
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).any(|file| {
        let text = Format::from_path(&file).and_then(|format| {
            Some((
                format,
                rlf_files::read_text(&file, rlf_files::MAX_TEXT_BYTES).ok()?,
            ))
        });
        text.is_some_and(|(format, text)| rlf_specification::read(&text, format).is_ok())
    })
}

/// The first error in the first file of a folder that could be a specification, with its place.
fn first_problem(folder: &Path) -> Option<String> {
    let file = in_folder(folder).ok()?.into_iter().next()?;
    let problem = match checked(&file) {
        Ok(checked) => checked.findings.first()?.to_string(),
        Err(error) => format!("{error:#}"),
    };
    Some(format!("{}: {}", file.display(), printable(&problem)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_a_broken_specification_says_its_place() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(first_problem(folder.path()), None);
        let file = folder.path().join("Doors.toml");
        std::fs::write(&file, "name = \"Doors\"\nname = 1\n").unwrap();
        assert!(!is_specification(folder.path()));
        let problem = first_problem(folder.path()).unwrap();
        let start = format!("{}: line 2, /: ", file.display());
        assert!(problem.starts_with(&start), "{problem}");
    }
}
