//! Builds the host, always in the same way.

use std::process::Command;

use anyhow::Result;

use crate::{project::Project, steps::Steps};

/// Arguments of every cargo call on the whole host. Another profile or selection of packages can mean other features,
/// and then wasmtime and candle are compiled again.
pub const ONE_WAY: [&str; 3] = ["--release", "--locked", "--workspace"];

/// The package of the `rlf-host` binary. It depends on everything, so a selection that includes it has the features
/// of the whole workspace. [`crate::features`] checks this.
pub const BINARY: &str = "rlf-host";

/// The package of the native part of the Python package.
pub const PYTHON: &str = "rlf-python";

/// `cargo SUBCOMMAND` on the whole host.
pub fn cargo(project: &Project, subcommand: &str) -> Command {
    let mut command = project.cargo(subcommand);
    command.args(ONE_WAY);
    command
}

/// `cargo SUBCOMMAND` on `package`, with the features of the whole host; `words` come before the selection. The
/// caller names the targets, all of them in `package`, so the binary's own targets are not built.
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
