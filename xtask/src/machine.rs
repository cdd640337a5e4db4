//! Requirements of a machine before anything is built. Only rustup's own folders are changed, and everything that is
//! missing is reported in one message.

use std::{env, path::Path};

use anyhow::{Result, bail};

use crate::{
    guests::TARGET,
    project::Project,
    steps::{output, say, status},
};

/// The kind of work that a command does, which decides its requirements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// The guests' target.
    Wasm,
    /// A C and a C++ compiler: the tokenizer's regular expressions, the allocator and the hash are C and C++.
    Native,
    /// rustfmt and clippy.
    Lints,
}

/// Installs what rustup can, and lists what else is missing.
pub fn make_ready(project: &Project, needs: &[Need]) -> Result<()> {
    let compiler = output(project.command("rustc").arg("-V"))?;
    say(&format!("  {}", compiler.trim()));
    let mut missing = Vec::new();
    for need in needs {
        match need {
            Need::Wasm => missing.extend(wasm(project)?),
            Need::Native => missing.extend(compilers(project)),
            Need::Lints => missing.extend(lints(project)),
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    bail!("this machine lacks:\n  - {}", missing.join("\n  - "))
}

fn wasm(project: &Project) -> Result<Option<String>> {
    if has_target(project) {
        say(&format!("  {TARGET}: installed"));
        return Ok(None);
    }
    say(&format!(
        "  {TARGET}: missing; running `rustup target add {TARGET}`"
    ));
    let added = status(project.command("rustup").args(["target", "add", TARGET]));
    if added.is_ok_and(|status| status.success()) && has_target(project) {
        return Ok(None);
    }
    let sysroot = output(project.command("rustc").args(["--print", "sysroot"]))?;
    Ok(Some(format!(
        "the standard library for {TARGET}: type `rustup target add {TARGET}` in this folder; if Rust is not from \
         rustup, install that target's standard library into {}",
        sysroot.trim()
    )))
}

/// Without the target the error would be "can't find crate for `std`", hundreds of lines into a build.
fn has_target(project: &Project) -> bool {
    let mut command = project.command("rustc");
    command.args(["--print", "target-libdir", "--target", TARGET]);
    output(&mut command).is_ok_and(|folder| Path::new(folder.trim()).is_dir())
}

fn compilers(project: &Project) -> Vec<String> {
    let mut missing = Vec::new();
    for (what, variable, default) in [("C", "CC", "cc"), ("C++", "CXX", "c++")] {
        let program = env::var(variable).unwrap_or_else(|_| default.to_owned());
        // The variable may hold several words, for example `ccache cc`.
        let mut words = program.split_whitespace();
        let mut command = project.command(words.next().unwrap_or(default));
        if output(command.args(words).arg("--version")).is_err() {
            missing.push(format!(
                "a {what} compiler (`{program}` does not run): on Debian or Ubuntu `apt-get install build-essential`, \
                 or name one in {variable}"
            ));
        }
    }
    if missing.is_empty() {
        say("  C and C++ compiler: installed");
    }
    missing
}

fn lints(project: &Project) -> Vec<String> {
    let mut missing = Vec::new();
    for (component, subcommand) in [("rustfmt", "fmt"), ("clippy", "clippy")] {
        let runs = || output(project.cargo(subcommand).arg("--version")).is_ok();
        if !runs() {
            say(&format!(
                "  {component}: missing; running `rustup component add {component}`"
            ));
            let added = status(
                project
                    .command("rustup")
                    .args(["component", "add", component]),
            );
            if !added.is_ok_and(|status| status.success()) || !runs() {
                missing.push(format!(
                    "{component}: type `rustup component add {component}`"
                ));
            }
        }
    }
    missing
}
