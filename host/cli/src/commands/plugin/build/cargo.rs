//! Builds a plugin in Rust to a component.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{anyhow, bail};
use serde_json::Value;

/// The target whose artefacts are components.
const TARGET: &str = "wasm32-wasip2";

/// Builds the crate in `folder`, and returns the path of its component. The compiler's messages go to standard error.
pub(super) fn build(folder: &Path) -> anyhow::Result<PathBuf> {
    check_target(folder)?;
    let mut cargo = Command::new("cargo");
    cargo
        .current_dir(folder)
        .args(["build", "--release", "--target", TARGET])
        .args(["--message-format", "json-render-diagnostics"])
        .stderr(Stdio::inherit());
    let output = cargo.output().map_err(|error| missing("cargo", &error))?;
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
        .filter_map(|message| {
            let files = message["filenames"].as_array()?.iter();
            let mut files = files.filter_map(Value::as_str).map(PathBuf::from);
            files.find(|file| file.extension().is_some_and(|found| found == "wasm"))
        })
        .collect();
    match components.as_slice() {
        [component] => Ok(component.clone()),
        [] => bail!(
            "{} makes no component: write `crate-type = [\"cdylib\"]` below [lib]",
            manifest.display()
        ),
        several => bail!(
            "{} makes {} components; a plugin is one",
            manifest.display(),
            several.len()
        ),
    }
}

/// Says what to install if there is no compiler, or none for components.
fn check_target(folder: &Path) -> anyhow::Result<()> {
    let output = Command::new("rustc")
        .current_dir(folder)
        .args(["--print", "target-libdir", "--target", TARGET])
        .output()
        .map_err(|error| missing("rustc", &error))?;
    let libraries = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() || !Path::new(libraries.trim()).is_dir() {
        bail!("the Rust compiler cannot make components: type `rustup target add {TARGET}`");
    }
    Ok(())
}

fn missing(program: &str, error: &std::io::Error) -> anyhow::Error {
    if error.kind() == ErrorKind::NotFound {
        anyhow!(
            "a plugin in Rust needs `{program}`: install Rust from https://rustup.rs, then type `rustup target add {TARGET}`"
        )
    } else {
        anyhow!("cannot run `{program}`: {error}")
    }
}
