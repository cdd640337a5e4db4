//! `cargo xtask test`: everything that has to hold before a change goes in, the quick things first.

use std::{path::PathBuf, process::Command};

use anyhow::Result;
use clap::ValueEnum;

use crate::{
    features, guests, host, licences,
    machine::{self, Need},
    modules, plugins,
    project::Project,
    steps::{self, Steps, say},
    with_c,
};

/// Whether a cycle of modules fails the lints. Without it cycles are only printed.
const CYCLES_FAIL: bool = false;

/// What is written in Python, and its tests.
const IN_PYTHON: [(&str, &str); 3] = [
    (
        "the driver of the Python interpreter",
        "plugins/python/tests",
    ),
    (
        "what environments in Python import",
        "plugins/python/environments/tests",
    ),
    ("the environments in Python", "plugins/environments/tests"),
];

/// A part of the tests, for the contributor's day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Format, licences, features, clippy; of host and guests
    Lint,
    /// Unit, property and doc tests of the host's crates
    Host,
    /// Plugins and SDK, natively, and that they become components
    Guests,
    /// End-to-end tests of the built binary with the built plugins
    E2e,
}

/// Runs `part`, or everything, and closes with the time of each step.
pub fn run(project: &Project, part: Option<Part>) -> Result<()> {
    let mut run = Run {
        project,
        steps: Steps::new(),
        nextest: steps::output(project.cargo("nextest").arg("--version")).is_ok(),
        cargo_deny: licences::cargo_deny(project),
    };
    let outcome = run.take(part);
    say(&format!("\n{}", run.steps.summary()));
    if outcome.is_ok() {
        say(&format!(
            "\nall passed; tests by {}, licences by {}",
            if run.nextest {
                "cargo-nextest"
            } else {
                "cargo test"
            },
            if run.cargo_deny {
                "cargo-deny"
            } else {
                "the check of our own"
            },
        ));
    }
    outcome
}

struct Run<'project> {
    project: &'project Project,
    steps: Steps,
    nextest: bool,
    cargo_deny: bool,
}

impl Run<'_> {
    fn take(&mut self, part: Option<Part>) -> Result<()> {
        let wants = |some: Part| part.is_none_or(|part| part == some);
        let project = self.project;
        self.steps.take("make ready", || {
            say(if self.nextest {
                "  tests run by cargo-nextest"
            } else {
                "  tests run by `cargo test`; cargo-nextest is not installed, and not needed"
            });
            machine::make_ready(project, &[Need::Wasm, Need::Native, Need::Lints])
        })?;
        if wants(Part::Lint) {
            self.quick_lints()?;
        }
        if part != Some(Part::Lint) {
            self.steps
                .take("build the plugins", || plugins::build(project))?;
        }
        if wants(Part::Guests) {
            self.guest_tests()?;
        }
        if wants(Part::Host) || wants(Part::E2e) {
            host::build(project, &mut self.steps)?;
        }
        if wants(Part::Lint) {
            self.clippy()?;
        }
        match part {
            None => self.host_tests("test the host, end to end too", Packages::All)?,
            Some(Part::Host) => self.host_tests("test the host", Packages::AllButEndToEnd)?,
            Some(Part::E2e) => self.host_tests("test end to end", Packages::EndToEnd)?,
            Some(Part::Lint | Part::Guests) => {}
        }
        if wants(Part::Host) {
            self.steps.run(
                "doc tests of the host",
                host::cargo(project, "test").arg("--doc"),
                "the example in the documentation that is named above",
            )?;
        }
        Ok(())
    }

    /// What takes seconds.
    fn quick_lints(&mut self) -> Result<()> {
        let project = self.project;
        self.steps.run(
            "format of the host",
            project.cargo("fmt").args(["--all", "--check"]),
            "cargo fmt --all",
        )?;
        let guests = guests::workspace(project);
        self.steps.run(
            "format of the guests",
            project
                .cargo("fmt")
                .args(["--all", "--check", "--manifest-path"])
                .arg(&guests),
            "cargo fmt --all --manifest-path plugins/Cargo.toml",
        )?;
        let with_c = with_c::workspace(project);
        self.steps.run(
            "format of the guests with C inside",
            project
                .cargo("fmt")
                .args(["--all", "--check", "--manifest-path"])
                .arg(&with_c),
            "cargo fmt --all --manifest-path plugins/with-c/Cargo.toml",
        )?;
        let host = project.root().join("Cargo.toml");
        let manifests = [&*host, &*guests, &*with_c];
        if self.cargo_deny {
            for manifest in manifests {
                self.steps.run(
                    &format!("licences of {}", project.shown(manifest)),
                    project
                        .cargo("deny")
                        .arg("--manifest-path")
                        .arg(manifest)
                        .args(["--locked", "check", "--config"])
                        .arg(project.root().join("deny.toml"))
                        .args(["bans", "licenses", "sources"]),
                    "choose another crate, or argue for it in deny.toml",
                )?;
            }
        } else {
            self.steps.take("licences", || {
                say("  cargo-deny is not installed: by the check of our own over `cargo metadata`");
                licences::check(project, &manifests)
            })?;
        }
        self.steps
            .take("one set of features", || features::check(project))?;
        self.steps.take("no cycles of modules", || {
            report(modules::check(project), CYCLES_FAIL)
        })
    }

    fn clippy(&mut self) -> Result<()> {
        self.steps.run(
            "clippy of the host",
            host::cargo(self.project, "clippy").args(["--all-targets", "--", "-D", "warnings"]),
            "the first warning above; `cargo clippy --release --workspace --all-targets --fix` mends many",
        )?;
        self.steps.run(
            "clippy of the guests",
            self.guest_cargo("clippy", guests::workspace(self.project))
                .args(["--all-targets", "--", "-D", "warnings"]),
            "the first warning above",
        )?;
        self.steps.run(
            "clippy of the guests with C inside",
            self.guest_cargo("clippy", with_c::workspace(self.project))
                .args(["--all-targets", "--", "-D", "warnings"]),
            "the first warning above",
        )
    }

    /// The guests' logic, natively: no sandbox, and errors with a line number.
    fn guest_tests(&mut self) -> Result<()> {
        self.steps.run(
            "test the guests natively",
            &mut self.guest_cargo("test", guests::workspace(self.project)),
            "the failed test above; it runs without a sandbox, so a debugger works",
        )?;
        self.steps.run(
            "test the guests with C inside natively",
            &mut self.guest_cargo("test", with_c::workspace(self.project)),
            "the failed test above; it runs without a sandbox, so a debugger works",
        )?;
        let version = steps::output(
            self.project
                .command("python3")
                .args(["-c", "import sys; print(sys.version_info >= (3, 11))"]),
        );
        if version.is_ok_and(|answer| answer.trim() == "True") {
            for (what, folder) in IN_PYTHON {
                self.steps.run(
                    &format!("test {what} natively"),
                    self.project
                        .command("python3")
                        .args(["-m", "unittest", "discover", "--start-directory"])
                        .arg(self.project.root().join(folder)),
                    "the failed test above; it runs under the machine's own python3",
                )?;
            }
            return Ok(());
        }
        for (what, _) in IN_PYTHON {
            say(&format!(
                "  SKIPPED: {what} natively, which takes a python3 of 3.11 or later"
            ));
        }
        Ok(())
    }

    /// Native builds of guests are small and rarely run: the development profile, not the one with LTO.
    fn guest_cargo(&self, subcommand: &str, workspace: PathBuf) -> Command {
        let mut command = self.project.cargo(subcommand);
        command
            .args(["--locked", "--workspace", "--manifest-path"])
            .arg(workspace)
            .arg("--target-dir")
            .arg(self.project.guests_target());
        command
    }

    fn host_tests(&mut self, name: &str, packages: Packages) -> Result<()> {
        let mut command;
        if self.nextest {
            command = self.project.cargo("nextest");
            command.arg("run").args(host::ONE_WAY);
            match packages {
                Packages::All => {}
                Packages::AllButEndToEnd => _ = command.args(["-E", "not package(rlf-tests)"]),
                Packages::EndToEnd => _ = command.args(["-E", "package(rlf-tests)"]),
            }
        } else {
            command = self.project.cargo("test");
            match packages {
                Packages::All => _ = command.args(host::ONE_WAY),
                Packages::AllButEndToEnd => {
                    command.args(host::ONE_WAY).args(["--exclude", "rlf-tests"]);
                }
                // It depends on nothing heavy: naming it alone costs no second build.
                Packages::EndToEnd => {
                    command.args(["--release", "--locked", "--package", "rlf-tests"]);
                }
            }
            command.args(["--lib", "--bins", "--tests", "--no-fail-fast"]);
        }
        let mend = "the failed tests above; one of them alone: `cargo nextest run --release --workspace NAME`, or \
                    `cargo test --release --workspace NAME`";
        self.steps.run(name, &mut command, mend)
    }
}

/// Passes on the `outcome` of a lint; prints an error instead where the lint does not `fail` yet.
fn report(outcome: Result<()>, fail: bool) -> Result<()> {
    match outcome {
        Err(error) if !fail => {
            say(&format!("  does not fail yet: {error:#}"));
            Ok(())
        }
        outcome => outcome,
    }
}

/// Which of the host's packages are tested.
#[derive(Clone, Copy, Debug)]
enum Packages {
    All,
    AllButEndToEnd,
    EndToEnd,
}
