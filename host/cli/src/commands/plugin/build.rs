//! `rlf-host plugin build`: makes one file of a plugin, to ship, to sign, or to run where its interpreter is not.

mod cargo;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use console::style;
use rlf_plugins::build::{self, BuiltPlugin};
use rlf_plugins::manifest::MANIFEST_FILE;
use rlf_plugins::plugin::Plugin;
use rlf_plugins::problem::{Problem, ProblemKind};
use rlf_plugins::registry::Registry;
use rlf_run::PluginSources;
use rlf_run::plugins::KINDS;
use rlf_sandbox::Sandbox;
use serde_json::json;

use super::inspect::bytes;
use crate::arguments::BuildPlugin;
use crate::commands::env::is_python;
use crate::operator::PluginSettings;
use crate::plugins::loading;

/// Builds the plugin, loads what was built, and writes it to its place.
pub(super) fn run(
    wanted: &BuildPlugin,
    sources: &PluginSources,
    configured: &PluginSettings,
    sandbox: &Sandbox,
    as_json: bool,
) -> anyhow::Result<ExitCode> {
    let path = wanted
        .path
        .canonicalize()
        .with_context(|| format!("cannot find {}", wanted.path.display()))?;
    let name = plugin_name(&path)?;
    let is_rust = path.join("Cargo.toml").is_file();
    let output = match &wanted.output {
        Some(output) => output.clone(),
        None if is_rust => wanted.path.join(format!("{name}.wasm")),
        None => PathBuf::from(format!("{name}.wasm")),
    };
    let staged = tempfile::tempdir().context("cannot make a temporary folder")?;
    let built = if is_rust {
        let folder = staged.path().join(&name);
        fs::create_dir(&folder)?;
        let manifest = path.join(MANIFEST_FILE);
        if manifest.is_file() {
            fs::copy(&manifest, folder.join(MANIFEST_FILE))?;
        }
        fs::copy(cargo::build(&path)?, folder.join(format!("{name}.wasm")))?;
        build::plugin(&folder, &[])
    } else if wanted.environment {
        build::python_environment(&path, &sources.all())
    } else {
        build::plugin(&path, &sources.all())
    };
    let built = built.map_err(|problem| {
        let is_folder = path.is_dir() && !wanted.environment;
        let hint = if is_folder && is_python(&path) {
            "; if it is an environment, add --environment"
        } else {
            ""
        };
        anyhow!("{problem}{hint}")
    })?;
    if !is_rust && !wanted.environment {
        check_place(&path, &output)?;
    }

    let file = staged.path().join(format!("{name}.wasm"));
    fs::write(&file, &built.bytes)?;
    let loaded = loading(|| Registry::load_one(&file, &[], &configured.grants, KINDS, sandbox));
    if let Err(problem) = &loaded
        && !is_for_the_operator(problem)
    {
        let path = wanted.path.clone();
        let problem = Problem {
            path,
            ..problem.clone()
        };
        bail!("{problem}");
    }
    rlf_files::write(&output, &built.bytes)
        .with_context(|| format!("cannot write {}", output.display()))?;
    report(&output, &name, &built, &loaded, as_json)
}

/// The plugin's name: that of the folder, or of the file without its ending.
fn plugin_name(path: &Path) -> anyhow::Result<String> {
    let name = if path.is_dir() {
        path.file_name()
    } else {
        path.file_stem()
    };
    let name = name.map(|name| name.to_string_lossy().into_owned());
    name.with_context(|| format!("{} has no name", path.display()))
}

/// Refuses to write the file where the plugin's source would be found under the same name.
fn check_place(source: &Path, output: &Path) -> anyhow::Result<()> {
    let folder = match output.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let folder = folder
        .canonicalize()
        .with_context(|| format!("there is no folder {}", folder.display()))?;
    if source.parent() == Some(&folder) || source == folder {
        bail!(
            "{} would lie beside its source, and a plugin directory may not have both; write it elsewhere with --output FILE",
            output.display()
        );
    }
    Ok(())
}

/// True if the plugin needs something that only the operator can give it, so that it cannot be tried here.
fn is_for_the_operator(problem: &Problem) -> bool {
    matches!(problem.kind, ProblemKind::Gates | ProblemKind::Data)
}

fn report(
    output: &Path,
    name: &str,
    built: &BuiltPlugin,
    loaded: &Result<Arc<Plugin>, Problem>,
    as_json: bool,
) -> anyhow::Result<ExitCode> {
    let plugin = loaded.as_ref().ok().map(|plugin| plugin.report());
    if as_json {
        let report = json!({
            "file": output,
            "bytes": built.bytes.len(),
            "hash": built.hash,
            "plugin": plugin,
            "needs": loaded.as_ref().err(),
        });
        say!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(ExitCode::SUCCESS);
    }
    say!(
        "{}  {}",
        style(output.display()).bold(),
        bytes(built.bytes.len() as u64)
    );
    if let Some(plugin) = &plugin {
        let tools: Vec<&str> = plugin.tools.iter().map(|tool| tool.name.as_str()).collect();
        match &plugin.servers {
            Some(servers) => say!("  environment, servers: {}", servers.join(", ")),
            None if tools.is_empty() => say!("  {}", plugin.kind.as_str()),
            None => say!("  {}, tools: {}", plugin.kind.as_str(), tools.join(", ")),
        }
    }
    if let Err(problem) = loaded {
        say!("  it was not tried, because {}", problem.what);
    }
    say!(
        "\nPut it into a plugin directory, or name it in a configuration. The hash pins these bytes."
    );
    say!("  [plugins.{name}]");
    say!("  path = {:?}", output.display().to_string());
    say!("  hash = {:?}  # pins these bytes", built.hash);
    Ok(ExitCode::SUCCESS)
}
