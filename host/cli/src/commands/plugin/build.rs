//! `rlf-host plugin build`: builds a plugin into one file, to ship it or to run it where no interpreter is installed.

mod cargo;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use console::style;
use rlf_plugins::bundling::{self, BuiltBundle};
use rlf_plugins::grants::PluginGrants;
use rlf_plugins::manifest::{MANIFEST_FILE, PluginManifest};
use rlf_plugins::plugin::Plugin;
use rlf_plugins::problem::{Problem, ProblemKind};
use rlf_plugins::registry::Registry;
use rlf_run::PluginSources;
use rlf_run::plugins::KINDS;
use rlf_sandbox::Sandbox;
use serde_json::json;
use tempfile::TempDir;

use super::inspect::bytes;
use crate::arguments::BuildPlugin;
use crate::commands::env::{is_python, is_server};
use crate::operator::PluginSettings;
use crate::plugins::loading;

/// The plugin, loaded once, or what it needs from an operator before it can be loaded.
type Trial = Result<Arc<Plugin>, Problem>;

/// Builds the plugin, loads the result once, and writes it.
pub(super) fn run(
    wanted: &BuildPlugin,
    sources: &PluginSources,
    configured: PluginSettings,
    sandbox: &Sandbox,
    as_json: bool,
) -> anyhow::Result<ExitCode> {
    let path = wanted
        .path
        .canonicalize()
        .with_context(|| format!("cannot find {}", wanted.path.display()))?;
    let name = plugin_name(&path)?;
    let is_rust = path.join("Cargo.toml").is_file();
    if is_rust && wanted.environment {
        bail!(
            "--environment is for environments in Python, and {} is a crate",
            path.display()
        );
    }
    if !wanted.environment && is_server(&path) {
        bail!(
            "{} is an environment: it has `load_scenario` and `save_scenario`; add --environment",
            path.display()
        );
    }
    let output = match &wanted.output {
        Some(output) => output.clone(),
        None if is_rust => wanted.path.join(format!("{name}.wasm")),
        None => PathBuf::from(format!("{name}.wasm")),
    };
    check_output(&path, &output, is_rust)?;

    let staged = tempfile::tempdir().context("cannot make a temporary folder")?;
    let built = if is_rust {
        bundling::plugin(&staged_crate(&path, &name, &staged)?, &[])
    } else if wanted.environment {
        bundling::python_environment(&path, &sources.all())
    } else {
        bundling::plugin(&path, &sources.all())
    };
    let built = built.map_err(|problem| {
        let may_be_environment = path.is_dir() && !wanted.environment && is_python(&path);
        let hint = if may_be_environment {
            "; if it is an environment, add --environment"
        } else {
            ""
        };
        anyhow!("{problem}{hint}")
    })?;
    let trial = load(&built, &name, &staged, configured.grants, sandbox)?;
    if let Err(problem) = &trial
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
    report(&output, &built, &trial, as_json)
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

/// Refuses an output that would overwrite a source. Also refuses a place where a plugin directory would find the source
/// and the output under one name, which cannot happen to a crate.
fn check_output(source: &Path, output: &Path, is_rust: bool) -> anyhow::Result<()> {
    let is_component = output.extension().is_some_and(|found| found == "wasm");
    if !is_component || output.canonicalize().is_ok_and(|there| there == source) {
        bail!(
            "--output: {} is not the name of a new .wasm file",
            output.display()
        );
    }
    let folder = match output.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let folder = folder
        .canonicalize()
        .with_context(|| format!("there is no folder {}", folder.display()))?;
    if is_rust {
        return Ok(());
    }
    let has_its_name = source.file_stem() == output.file_stem();
    if source == folder || (source.parent() == Some(&folder) && has_its_name) {
        bail!(
            "{} would be beside its source, and a plugin directory would find both under one name; write it elsewhere with --output FILE, for example to {}",
            output.display(),
            Path::new("..")
                .join(output.file_name().unwrap_or_default())
                .display()
        );
    }
    Ok(())
}

/// Builds a crate, and puts its component and manifest into a folder of the plugin's name.
fn staged_crate(path: &Path, name: &str, staged: &TempDir) -> anyhow::Result<PathBuf> {
    let folder = staged.path().join(name);
    fs::create_dir(&folder)?;
    let manifest = path.join(MANIFEST_FILE);
    let mut component = format!("{name}.wasm");
    if manifest.is_file() {
        let text = rlf_config::read(&manifest)?;
        let parsed = PluginManifest::parse(&text, &manifest.display().to_string())?;
        component = parsed.component.unwrap_or(component);
        fs::write(folder.join(MANIFEST_FILE), text)?;
    }
    let file = Path::new(&component).file_name();
    let file = file.with_context(|| format!("`component = {component:?}` is not a file name"))?;
    fs::copy(cargo::build(path)?, folder.join(file))?;
    Ok(folder)
}

/// Loads the result with the operator's grants. Grants to the source apply to what is built from it, too.
fn load(
    built: &BuiltBundle,
    name: &str,
    staged: &TempDir,
    mut grants: PluginGrants,
    sandbox: &Sandbox,
) -> anyhow::Result<Trial> {
    grants.hash = Some(built.hash.clone());
    grants.environment = None;
    let file = staged.path().join(format!("{name}.wasm"));
    fs::write(&file, &built.bytes)?;
    Ok(loading(|| {
        Registry::load_one(&file, &[], &grants, KINDS, sandbox)
    }))
}

/// True if the plugin needs something that only the operator can give it, so that it cannot be tried here.
fn is_for_the_operator(problem: &Problem) -> bool {
    matches!(problem.kind, ProblemKind::Gates | ProblemKind::Data)
}

fn report(
    output: &Path,
    built: &BuiltBundle,
    trial: &Trial,
    as_json: bool,
) -> anyhow::Result<ExitCode> {
    let plugin = trial.as_ref().ok().map(|plugin| plugin.report());
    if as_json {
        let report = json!({
            "file": output,
            "bytes": built.bytes.len(),
            "hash": built.hash,
            "plugin": plugin,
            "needs": trial.as_ref().err(),
        });
        say!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(ExitCode::SUCCESS);
    }
    let size = bytes(built.bytes.len() as u64);
    say!("{}  {size}", style(output.display()).bold());
    if let Some(plugin) = &plugin {
        let tools: Vec<&str> = plugin.tools.iter().map(|tool| tool.name.as_str()).collect();
        match &plugin.servers {
            Some(servers) => say!("  environment, servers: {}", servers.join(", ")),
            None if tools.is_empty() => say!("  {}", plugin.kind.as_str()),
            None => say!("  {}, tools: {}", plugin.kind.as_str(), tools.join(", ")),
        }
    }
    if let Err(problem) = trial {
        say!("  it was not loaded, because {}", problem.what);
    }
    let full = output.canonicalize().unwrap_or_else(|_| output.to_owned());
    let name = plugin_name(&full)?;
    let mut entry = toml_edit::Table::new();
    entry["path"] = toml_edit::value(full.display().to_string());
    entry["hash"] = toml_edit::value(&built.hash);
    say!(
        "\nPut it into a plugin directory, or name it in a configuration, where its hash pins it:"
    );
    say!("  [plugins.{name}]");
    for line in entry.to_string().lines() {
        say!("  {line}");
    }
    Ok(ExitCode::SUCCESS)
}
