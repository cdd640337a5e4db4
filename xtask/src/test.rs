//! `cargo xtask test`: builds everything and runs all tests. `cargo xtask lint` reads the code.

use std::process::Command;

use anyhow::{Result, bail};
use clap::ValueEnum;

use crate::{
    guests, host,
    machine::{self, Need},
    metadata::Metadata,
    package, plugins,
    project::Project,
    python::pydantic,
    skipped::Skipped,
    steps::{self, Steps, say},
    venv, with_c,
};

/// The package of the end-to-end tests, which run the binary.
const END_TO_END: &str = "rlf-tests";

/// The parts that are written in Python, and the folders of their tests.
const IN_PYTHON: [(&str, &str); 4] = [
    ("the Python SDK", "sdk/python/tests"),
    (
        "the driver of the Python interpreter",
        "plugins/python/tests",
    ),
    (
        "what files in Python import",
        "plugins/python/packages/tests",
    ),
    ("the environments in Python", "plugins/environments/tests"),
];

/// A part of the tests, for a contributor who changes one thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Unit, property and doc tests of the host's crates
    Host,
    /// Plugins and SDK, natively, and their builds as components
    Guests,
    /// End-to-end tests of the built binary with the built plugins
    E2e,
}

/// The selection of tests.
#[derive(Debug, Default, clap::Args)]
pub struct Choice {
    /// Only one part
    #[arg(long)]
    only: Option<Part>,
    /// Only the tests of one of the host's crates, without the crates that depend on it: `rlf-train`
    #[arg(long, value_name = "CRATE", conflicts_with = "only")]
    package: Option<String>,
    /// Only the long tests, as a nightly run: operators at the widths of Qwen3-0.6B, and kills at random moments
    #[arg(long, conflicts_with_all = ["only", "package"])]
    long: bool,
    /// Only tests of the host whose name contains one of these
    names: Vec<String>,
}

/// Runs the tests of `choice`, or all. At the end prints the time of each step and the skipped tests.
pub fn run(project: &Project, choice: &Choice) -> Result<()> {
    let mut run = Run {
        project,
        steps: Steps::new(),
        nextest: steps::output(project.cargo("nextest").arg("--version")).is_ok(),
        skipped: Skipped::start(project)?,
        names: &choice.names,
        long: choice.long,
    };
    let outcome = match &choice.package {
        Some(package) => run.package(package),
        None if choice.long => run.long(),
        None => run.take(choice.only),
    };
    say(&format!("\n{}", run.steps.summary()));
    run.skipped.report();
    if outcome.is_ok() {
        let runner = if run.nextest {
            "cargo-nextest"
        } else {
            "cargo test"
        };
        say(&format!("\nall passed; the tests ran under {runner}"));
    }
    outcome
}

struct Run<'project> {
    project: &'project Project,
    steps: Steps,
    nextest: bool,
    skipped: Skipped,
    names: &'project [String],
    /// True if only the long tests run.
    long: bool,
}

impl Run<'_> {
    fn long(&mut self) -> Result<()> {
        self.make_ready(&[Need::Wasm, Need::Native])?;
        self.build()?;
        self.host_tests("the long tests", Packages::All)
    }

    /// Builds the host and the plugins.
    fn build(&mut self) -> Result<()> {
        let project = self.project;
        self.steps.take_both(
            ("build the host", || {
                if steps::status(&mut host::cargo(project, "build"))?.success() {
                    return Ok(());
                }
                bail!("the host does not compile: see the first error above")
            }),
            ("build the plugins", || plugins::build(project)),
        )
    }

    fn take(&mut self, part: Option<Part>) -> Result<()> {
        let wants = |some: Part| part.is_none_or(|part| part == some);
        let project = self.project;
        self.make_ready(&[Need::Wasm, Need::Native])?;
        if wants(Part::Host) || wants(Part::E2e) {
            self.build()?;
        } else if part == Some(Part::Guests) {
            self.steps
                .take("build the plugins", || plugins::build(project))?;
        }
        if wants(Part::Guests) {
            self.guest_tests()?;
        }
        if wants(Part::E2e) && self.names.is_empty() {
            self.python_package_tests()?;
        }
        match part {
            None => self.host_tests("test the host, end to end too", Packages::All)?,
            Some(Part::Host) => self.host_tests("test the host", Packages::AllButEndToEnd)?,
            Some(Part::E2e) => self.host_tests("test end to end", Packages::EndToEnd)?,
            Some(Part::Guests) => {}
        }
        if wants(Part::Host) && self.names.is_empty() {
            self.steps.run(
                "doc tests of the host",
                host::cargo(project, "test").arg("--doc"),
                "see the example of the documentation that is named above",
            )?;
        }
        Ok(())
    }

    fn make_ready(&mut self, needs: &[Need]) -> Result<()> {
        let (project, nextest) = (self.project, self.nextest);
        self.steps.take("make ready", || {
            say(if nextest {
                "  the tests run under cargo-nextest"
            } else {
                "  the tests run under `cargo test`; cargo-nextest is not installed, and not needed"
            });
            machine::make_ready(project, needs)
        })
    }

    /// Runs the tests of one of the host's crates. Crates that depend on it are not compiled.
    fn package(&mut self, name: &str) -> Result<()> {
        let project = self.project;
        let metadata = Metadata::read(project, &project.root().join("Cargo.toml"))?;
        let Some(package) = metadata.members().find(|member| member.name == name) else {
            let names: Vec<_> = metadata.members().map(|member| &*member.name).collect();
            bail!("the host has no crate {name}; it has {}", names.join(", "));
        };
        // A crate whose tests run plugins depends on this crate, to find their folder.
        let dependencies = package.dependencies.iter();
        let mut folders = dependencies.filter_map(|dependency| dependency.path.as_ref());
        if folders.any(|folder| folder.ends_with("xtask")) {
            self.make_ready(&[Need::Wasm, Need::Native])?;
            self.steps
                .take("build the plugins", || plugins::build(project))?;
        } else {
            self.make_ready(&[Need::Native])?;
        }
        if name == END_TO_END {
            host::build(project, &mut self.steps)?;
        }
        let mut command = if self.nextest {
            host::cargo_one(project, "nextest", &["run"], name)
        } else {
            host::cargo_one(project, "test", &[], name)
        };
        let mut has_library = false;
        for target in &package.targets {
            match target.kind.first().map(String::as_str) {
                Some("lib") => {
                    has_library = true;
                    command.arg("--lib");
                }
                Some("bin") => _ = command.args(["--bin", &target.name]),
                Some("test") => _ = command.args(["--test", &target.name]),
                _ => {}
            }
        }
        self.run_tests(&format!("test {name}"), command)?;
        if has_library && self.names.is_empty() {
            self.steps.run(
                &format!("doc tests of {name}"),
                host::cargo_one(project, "test", &[], name).arg("--doc"),
                "see the example of the documentation that is named above",
            )?;
        }
        Ok(())
    }

    /// Runs the guests' tests natively: no sandbox, and errors with a line number.
    fn guest_tests(&mut self) -> Result<()> {
        let mut natively =
            guests::cargo_natively(self.project, "test", &guests::workspace(self.project));
        self.skipped.collect(&mut natively);
        self.steps.run(
            "test the guests natively",
            &mut natively,
            "see the failed test above; it runs without a sandbox, so a debugger works",
        )?;
        self.steps.run(
            "test the guests with C inside natively",
            &mut guests::cargo_natively(self.project, "test", &with_c::workspace(self.project)),
            "see the failed test above; it runs without a sandbox, so a debugger works",
        )?;
        let in_javascript = "test the JavaScript SDK natively";
        let node = steps::output(
            self.project
                .command("node")
                .args(["-p", "parseInt(process.versions.node) >= 20"]),
        );
        if node.is_ok_and(|answer| answer.trim() == "true") {
            self.steps.run(
                in_javascript,
                self.project
                    .command("node")
                    .arg("--test")
                    .arg(self.project.root().join("sdk/javascript/test")),
                "see the failed test above; it runs under the machine's own Node",
            )?;
        } else {
            self.skipped.add(
                in_javascript,
                "node is older than 20 or missing",
                "install Node 20 or later",
            );
        }
        if has_python(self.project, "(3, 11)") {
            let python = pydantic::venv(self.project)?.program("python");
            for (what, folder) in IN_PYTHON {
                self.steps.run(
                    &format!("test {what} natively"),
                    venv::command(self.project, &python)
                        .args(["-m", "unittest", "discover", "--start-directory"])
                        .arg(self.project.root().join(folder)),
                    "see the failed test above; it runs under the machine's own Python, in a venv with pydantic",
                )?;
            }
            return Ok(());
        }
        for (what, _) in IN_PYTHON {
            self.skipped.add(
                &format!("{what}, natively"),
                "python3 is older than 3.11 or missing",
                "install python3 3.11 or later",
            );
        }
        Ok(())
    }

    /// Runs the tests of the Python package on the built library, program and plugins.
    fn python_package_tests(&mut self) -> Result<()> {
        let what = "test the Python package";
        let project = self.project;
        if !has_python(project, "(3, 10)") {
            let mend = "install python3 3.10 or later";
            self.skipped
                .add(what, "python3 is older than 3.10 or missing", mend);
            return Ok(());
        }
        let folder = package::lay_out_built(project)?;
        self.steps.run(
            what,
            project
                .command("python3")
                .args(["-m", "unittest", "discover", "--start-directory"])
                .arg(project.root().join("host/python/tests"))
                .env("PYTHONPATH", &folder)
                .env("PYTHONDONTWRITEBYTECODE", "1")
                // The cache of the end-to-end tests, so that the user's stays untouched.
                .env(
                    "XDG_CACHE_HOME",
                    project.host_target().join("end-to-end/cache"),
                ),
            "see the failed test above; the package is laid out in target/python, for PYTHONPATH",
        )
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
                // This package depends on nothing heavy: selecting it alone causes no second build.
                Packages::EndToEnd => {
                    command.args(["--release", "--locked", "--package", "rlf-tests"]);
                }
            }
            command.args(["--lib", "--bins", "--tests"]);
        }
        self.run_tests(name, command)
    }

    /// Runs a test runner of the host, on the chosen names.
    fn run_tests(&mut self, name: &str, mut command: Command) -> Result<()> {
        self.skipped.collect(&mut command);
        if !self.nextest {
            command.args(["--no-fail-fast", "--"]);
        }
        match (self.long, self.nextest) {
            (true, true) => _ = command.args(["--run-ignored", "only"]),
            (true, false) => _ = command.arg("--ignored"),
            (false, _) => {}
        }
        command.args(self.names);
        let mend =
            "the failed tests above; one of them alone: `cargo xtask test --package CRATE NAME`";
        self.steps.run(name, &mut command, mend)
    }
}

/// True if the machine's python3 has at least this version.
fn has_python(project: &Project, version: &str) -> bool {
    let ask = format!("import sys; print(sys.version_info >= {version})");
    let answer = steps::output(project.command("python3").args(["-c", &ask]));
    answer.is_ok_and(|answer| answer.trim() == "True")
}

/// The host's packages that are tested.
#[derive(Clone, Copy, Debug)]
enum Packages {
    All,
    AllButEndToEnd,
    EndToEnd,
}
