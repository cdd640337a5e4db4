//! `cargo xtask bench`: builds everything and runs `rlf-bench`.

use anyhow::Result;

use crate::{
    clients, conformance, host,
    machine::{self, Need},
    plugins,
    project::Project,
    steps::{Steps, say},
};

/// The release of the Python package `mcp` that sandbox and environments are compared with. `pydantic` comes with it.
const MCP: &str = "mcp==1.30.0";

/// The word after `policy` that compares with torch and transformers.
const PEERS: &str = "--peers";

/// Runs `rlf-bench WORDS`, after building everything that it needs. `policy --peers`, or `train` for short, installs torch
/// and transformers to compare with.
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
    if words[0] == "train" {
        words[0] = "policy".into();
        words.push(PEERS.into());
    }
    if sandbox {
        steps.take("build the plugins", || plugins::build(project))?;
    }
    let has_peer = matches!(words[0].as_str(), "sandbox" | "env");
    if has_peer && !words.iter().any(|word| word.starts_with("--python")) {
        let installed = || clients::environment(project, "mcp", &[&[MCP]]);
        match steps.take("an MCP server to compare with", installed) {
            Ok(python) => words.extend(["--python".into(), python.display().to_string()]),
            Err(error) => say(&format!("no MCP server to compare with: {error:#}")),
        }
    }
    if words[0] == "policy" && words.iter().any(|word| word == PEERS) {
        words.retain(|word| word != PEERS);
        let installed = || clients::with_transformers(project);
        let python = steps.take("torch and transformers from PyPI", installed)?;
        words.extend(["--python".into(), python.display().to_string()]);
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
