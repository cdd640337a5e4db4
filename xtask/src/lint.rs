//! `cargo xtask lint`: reads the code of host and guests, the quick checks first, and runs nothing of it.

use anyhow::Result;

use crate::{
    features, guests, host,
    machine::{self, Need},
    modules,
    project::Project,
    skipped::Skipped,
    steps::{self, Steps, say},
    with_c,
};

/// Runs all lints. At the end prints the time of each step and the skipped checks.
pub fn run(project: &Project) -> Result<()> {
    let mut steps = Steps::new();
    let skipped = Skipped::start(project)?;
    let outcome = all(project, &mut steps, &skipped);
    say(&format!("\n{}", steps.summary()));
    skipped.report();
    outcome
}

fn all(project: &Project, steps: &mut Steps, skipped: &Skipped) -> Result<()> {
    steps.take("make ready", || {
        machine::make_ready(project, &[Need::Wasm, Need::Native, Need::Lints])
    })?;
    format(project, steps)?;
    licences(project, steps, skipped)?;
    steps.take("one set of features", || features::check(project))?;
    steps.take("no cycles of modules", || modules::check(project))?;
    clippy(project, steps)?;
    documentation(project, steps)
}

fn format(project: &Project, steps: &mut Steps) -> Result<()> {
    let host = project.root().join("Cargo.toml");
    for manifest in [host, guests::workspace(project), with_c::workspace(project)] {
        let shown = project.display(&manifest);
        steps.run(
            &format!("format of {shown}"),
            project
                .cargo("fmt")
                .args(["--all", "--check", "--manifest-path"])
                .arg(&manifest),
            &format!("cargo fmt --all --manifest-path {shown}"),
        )?;
    }
    Ok(())
}

fn licences(project: &Project, steps: &mut Steps, skipped: &Skipped) -> Result<()> {
    if steps::output(project.cargo("deny").arg("--version")).is_err() {
        skipped.add(
            "licences of all dependencies",
            "cargo-deny is not installed",
            "cargo install --locked cargo-deny",
        );
        return Ok(());
    }
    let host = project.root().join("Cargo.toml");
    for manifest in [host, guests::workspace(project), with_c::workspace(project)] {
        steps.run(
            &format!("licences of {}", project.display(&manifest)),
            project
                .cargo("deny")
                .arg("--manifest-path")
                .arg(&manifest)
                .args(["--locked", "check", "--config"])
                .arg(project.root().join("deny.toml"))
                .args(["bans", "licenses", "sources"]),
            "choose another crate, or allow this one in deny.toml with a reason",
        )?;
    }
    Ok(())
}

fn clippy(project: &Project, steps: &mut Steps) -> Result<()> {
    let refuse = ["--all-targets", "--", "-D", "warnings"];
    steps.run(
        "clippy of the host",
        // A feature that the tests leave out, and that costs no further crate.
        host::cargo(project, "clippy")
            .args(["--features", "rlf-host/hub"])
            .args(refuse),
        "see the first warning above; `cargo clippy --release --workspace --all-targets --fix` corrects many",
    )?;
    for workspace in [guests::workspace(project), with_c::workspace(project)] {
        steps.run(
            &format!("clippy of {}", project.display(&workspace)),
            guests::cargo_natively(project, "clippy", &workspace).args(refuse),
            "see the first warning above",
        )?;
    }
    Ok(())
}

/// Builds the documentation of the host's crates, private items included. It reuses clippy's build.
fn documentation(project: &Project, steps: &mut Steps) -> Result<()> {
    steps.run(
        "documentation of the host",
        host::cargo(project, "doc")
            .args(["--no-deps", "--document-private-items"])
            .env("RUSTDOCFLAGS", "-D warnings"),
        "see the first warning of rustdoc above",
    )
}
