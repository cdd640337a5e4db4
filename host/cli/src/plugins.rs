//! Finds and loads plugins, in the same way for every command.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use rlf_plugins::registry::Registry;
use rlf_run::PluginSources;
use rlf_run::plugins::{SHIPPED_VARIABLE, report_if_slow};
use rlf_sandbox::{Sandbox, SandboxConfig, SandboxError, prepare_process};

use crate::progress::Progress;

/// The entries of a folder that can be plugins.
const ENTRIES: &str = "*/plugin.toml, *.wasm, *.py or *.js";

/// The shipped plugins and those of `--plugins`, each of which must be a folder.
pub(crate) fn sources(added: &[PathBuf]) -> anyhow::Result<PluginSources> {
    for folder in added {
        let shown = folder.display();
        ensure!(
            folder.exists(),
            "--plugins {shown}: there is no such folder"
        );
        ensure!(
            folder.is_dir(),
            "--plugins {shown}: this is a file, not a folder"
        );
    }
    Ok(with_preparer(added))
}

/// As [`sources`]. Each folder of `--plugins` must also hold a plugin.
pub(crate) fn sources_for_training(added: &[PathBuf]) -> anyhow::Result<PluginSources> {
    let sources = sources(added)?;
    for folder in added {
        let shown = folder.display();
        let finds_any = Registry::finds_any(folder)
            .with_context(|| format!("--plugins {shown}: this folder cannot be read"))?;
        ensure!(
            finds_any,
            "--plugins {shown}: this folder holds no plugin (no {ENTRIES})"
        );
    }
    Ok(sources)
}

/// Components are prepared in a separate process, which this program starts: see `Command::Prepare`. It also starts the
/// supervisors of agents: see `Command::Supervise`.
fn with_preparer(added: &[PathBuf]) -> PluginSources {
    PluginSources {
        preparer: Some(prepare_process::this_program()),
        ..PluginSources::with_shipped(added)
    }
}

/// The path of a configuration that is named by its path, or by its name if it ships with the program.
pub(crate) fn configuration(sources: &PluginSources, named: &Path) -> anyhow::Result<PathBuf> {
    let file = sources.configuration(named);
    if !file.exists()
        && let Some(near) = sources.nearest_configuration(named)
    {
        bail!(
            "there is no configuration {}; did you mean `{near}`?",
            named.display()
        );
    }
    Ok(file)
}

/// Says that there is no plugin in any of the folders.
pub(crate) fn none_found(sources: &PluginSources) -> String {
    if sources.all().is_empty() {
        return format!(
            "{SHIPPED_VARIABLE} is set but empty, and no folder is named with --plugins"
        );
    }
    format!("{} holds no plugin (no {ENTRIES})", sources.display())
}

/// Adds the environment variable that replaces the shipped plugins to an error that says how to build them.
pub(crate) fn with_variable(error: String) -> String {
    let named = env::var_os(SHIPPED_VARIABLE).filter(|_| error.contains("`cargo xtask plugins`"));
    match named.as_deref().map(Path::new) {
        None => error,
        Some(named) if named.as_os_str().is_empty() => {
            format!("{error}; {SHIPPED_VARIABLE} is set but empty, so no shipped plugin is loaded")
        }
        Some(named) => format!(
            "{error}; {SHIPPED_VARIABLE} is set, so shipped plugins are looked for only in {}",
            named.display()
        ),
    }
}

/// The sandbox of this machine.
pub(crate) fn sandbox(config: &SandboxConfig) -> Result<Sandbox, SandboxError> {
    with_preparer(&[]).sandbox(config)
}

/// Loads plugins, and says so on a terminal if loading takes a while.
pub(crate) fn loading<T>(load: impl FnOnce() -> T) -> T {
    report_if_slow(&Progress::new(), load)
}
