//! Building the host: one way, in one place.

use std::process::Command;

use anyhow::Result;

use crate::{project::Project, steps::Steps};

/// What every cargo call on the host has in common. Whoever leaves out one of these, or names single packages, gets
/// other features or another profile, and compiles wasmtime and candle once more.
pub const ONE_WAY: [&str; 3] = ["--release", "--locked", "--workspace"];

/// `cargo SUBCOMMAND` on the whole host.
pub fn cargo(project: &Project, subcommand: &str) -> Command {
    let mut command = project.cargo(subcommand);
    command.args(ONE_WAY);
    command
}

/// Builds all libraries and binaries.
pub fn build(project: &Project, steps: &mut Steps) -> Result<()> {
    steps.run(
        "build the host",
        &mut cargo(project, "build"),
        "the compiler's first error above; where the lock file is out of date, type `cargo update --workspace`",
    )
}
