//! `cargo xtask bench`: builds everything and runs `rlf-bench`.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::{
    conformance, host,
    machine::{self, Need},
    plugins,
    project::Project,
    steps::{self, Steps, say},
};

/// The release of the Python package `mcp` that sandbox and environments are compared with. `pydantic` comes with it.
const MCP: &str = "mcp==1.30.0";

/// Runs `rlf-bench WORDS`, after building everything that it needs.
pub fn run(project: &Project, words: &[String]) -> Result<()> {
    let mut steps = Steps::new();
    let sandbox = matches!(
        words.first().map(String::as_str),
        Some("memory" | "sandbox" | "soak" | "code" | "env")
    );
    let needs: &[Need] = if sandbox {
        &[Need::Wasm, Need::Native]
    } else {
        &[Need::Native]
    };
    steps.take("make ready", || machine::make_ready(project, needs))?;
    host::build(project, &mut steps)?;
    let mut words = words.to_vec();
    if sandbox {
        steps.take("build the plugins", || plugins::build(project))?;
    }
    let has_peer = matches!(words[0].as_str(), "sandbox" | "env");
    if has_peer && !words.iter().any(|word| word.starts_with("--python")) {
        match steps.take("an MCP server to compare with", || mcp(project)) {
            Ok(python) => words.extend(["--python".into(), python.display().to_string()]),
            Err(error) => say(&format!("no MCP server to compare with: {error:#}")),
        }
    }
    if words[0] == "code" && !words.iter().any(|word| word.starts_with("--build")) {
        for build in conformance::builds(project, "python")? {
            words.extend(["--build".into(), build.display().to_string()]);
        }
    }
    steps.run(
        &format!("rlf-bench {}", words.join(" ")),
        project.command(project.bench_binary()).args(&words),
        "see the message of rlf-bench above",
    )
}

/// A Python interpreter with the package `mcp`, made in the target folder.
fn mcp(project: &Project) -> Result<PathBuf> {
    let folder = project.root().join("target/mcp");
    let python = folder.join("bin/python");
    if !folder.join("bin/mcp").exists() {
        steps::output(project.command("python3").args(["-m", "venv"]).arg(&folder))
            .context("python3 with its module venv is needed to make the environment")?;
        steps::output(
            project
                .command(&python)
                .args(["-m", "pip", "install", "--quiet", MCP]),
        )
        .context("pip cannot install the package")?;
    }
    Ok(python)
}
