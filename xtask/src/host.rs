//! Building the host: one way, in one place.

use std::process::Command;

use anyhow::Result;

use crate::{project::Project, steps::Steps};

/// What every cargo call on the whole host has in common. Another profile, or other packages, can mean other features,
/// and wasmtime and candle are compiled once more.
pub const ONE_WAY: [&str; 3] = ["--release", "--locked", "--workspace"];

/// The package of the `rlf-host` binary. It depends on everything, so a selection of packages that includes it has the
/// features of the whole workspace: [`crate::features`] checks that.
pub const BINARY: &str = "rlf-host";

/// `cargo SUBCOMMAND` on the whole host.
pub fn cargo(project: &Project, subcommand: &str) -> Command {
    let mut command = project.cargo(subcommand);
    command.args(ONE_WAY);
    command
}

/// `cargo SUBCOMMAND` on `package`, with the features of the whole host; `words` come before the selection. The caller
/// names the targets, all of them of `package`: the binary's own are not built.
pub fn cargo_one(project: &Project, subcommand: &str, words: &[&str], package: &str) -> Command {
    let mut command = project.cargo(subcommand);
    command.args(words);
    command.args(["--release", "--locked", "--package", BINARY]);
    if package != BINARY {
        command.args(["--package", package]);
    }
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
