//! `cargo xtask bench`: builds as always and runs `rlf-host bench`.

use anyhow::Result;

use crate::{
    host,
    machine::{self, Need},
    project::Project,
    steps::Steps,
};

/// Runs `rlf-host bench WORDS`.
pub fn run(project: &Project, words: &[String]) -> Result<()> {
    let mut steps = Steps::new();
    steps.take("make ready", || {
        machine::make_ready(project, &[Need::Native])
    })?;
    host::build(project, &mut steps)?;
    steps.run(
        &format!("bench {}", words.join(" ")),
        project.command(project.binary()).arg("bench").args(words),
        "what rlf-host says above",
    )
}
