//! Builds a plugin in Rust to a component.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{anyhow, bail};
use serde_json::Value;

use crate::commands::doctor::{WASM_TARGET, wasm_target};

/// Builds the crate in `folder`, and returns the path of its component. The compiler's messages go to standard error.
pub(super) fn build(folder: &Path) -> anyhow::Result<PathBuf> {
    wasm_target(folder).map_err(|mend| anyhow!("a plugin in Rust cannot be built here: {mend}"))?;
    let mut cargo = Command::new("cargo");
    cargo
        .current_dir(folder)
        .args(["build", "--release", "--target", WASM_TARGET])
        .args(["--message-format", "json-render-diagnostics"])
        .stderr(Stdio::inherit());
    let output = cargo
        .output()
        .map_err(|error| anyhow!("`cargo` cannot be started: {error}"))?;
    if !output.status.success() {
        bail!(
            "cargo could not build {}; its messages are above",
            folder.display()
        );
    }
    let manifest = folder.join("Cargo.toml");
    let messages = String::from_utf8_lossy(&output.stdout);
    let components: Vec<PathBuf> = messages
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| message["manifest_path"].as_str().map(Path::new) == Some(&manifest))
        // A crate may have other programs too.
        .filter(|message| {
            let kinds = message["target"]["kind"].as_array();
            kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind == "cdylib"))
        })
        .filter_map(|message| {
            let files = message["filenames"].as_array()?.iter();
            let mut files = files.filter_map(Value::as_str).map(PathBuf::from);
            files.find(|file| file.extension().is_some_and(|found| found == "wasm"))
        })
        .collect();
    match components.as_slice() {
        [component] => Ok(component.clone()),
        [] => bail!(
            "{} builds no component: write `crate-type = [\"cdylib\"]` below [lib]",
            manifest.display()
        ),
        several => bail!(
            "{} builds {} components; a plugin is exactly one",
            manifest.display(),
            several.len()
        ),
    }
}
