//! The binary under test, and the paths that it uses.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use xtask::guests::Family;
use xtask::plugins;
use xtask::project::Project;

use crate::process::{Ended, Running};

/// The folder of compiled components of all tests. The user's cache stays untouched, and each component is compiled once.
pub fn component_cache(project: &Project) -> PathBuf {
    cache_home(project).join("rlf-host/components")
}

/// The folder that programs under test take for the user's caches.
fn cache_home(project: &Project) -> PathBuf {
    project.host_target().join("end-to-end/cache")
}

/// The built `rlf-host` with the first-party plugins.
#[derive(Debug, Clone)]
pub struct Host {
    project: Project,
    plugins: PathBuf,
}

impl Default for Host {
    fn default() -> Self {
        Self::new()
    }
}

impl Host {
    /// The host with the first-party plugins.
    pub fn new() -> Self {
        Self::with(Family::FirstParty)
    }

    /// The host with the plugins that exist for tests.
    pub fn with_test_plugins() -> Self {
        Self::with(Family::Test)
    }

    fn with(family: Family) -> Self {
        let project = Project::find().expect("tests run inside a checkout");
        let plugins = plugins::ready(&project, family).unwrap_or_else(|error| panic!("{error:#}"));
        let binary = project.binary();
        assert!(
            binary.is_file(),
            "{} is missing; `cargo build --release` makes it",
            binary.display()
        );
        Self { project, plugins }
    }

    /// The program.
    pub fn binary(&self) -> PathBuf {
        self.project.binary()
    }

    /// The folder with the workspace's `Cargo.toml`. Commands run in it.
    pub fn root(&self) -> &Path {
        self.project.root()
    }

    /// The folder of built plugins.
    pub fn plugins(&self) -> &Path {
        &self.plugins
    }

    /// Runs the maintainers' `rlf-bench` with these arguments, to its end.
    pub fn run_bench<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Ended {
        self.start_by(Command::new(self.project.bench_binary()), arguments)
            .wait()
    }

    /// Starts `rlf-host` with these arguments.
    pub fn start<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Running {
        self.start_by(Command::new(self.project.binary()), arguments)
    }

    /// Runs `rlf-host` with these arguments under a limit on the size of files: half a megabyte or one megabyte,
    /// depending on the shell's unit. For files as large as weights this looks like a full disk.
    pub fn run_without_space<A: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = A>,
    ) -> Ended {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", "trap '' XFSZ; ulimit -f 1000; exec \"$0\" \"$@\""])
            .arg(self.project.binary());
        self.start_by(shell, arguments).wait()
    }

    /// Runs `rlf-host` with these arguments in another folder than the repository's.
    pub fn run_in<A: AsRef<OsStr>>(
        &self,
        folder: &Path,
        arguments: impl IntoIterator<Item = A>,
    ) -> Ended {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", "cd \"$RLF_TEST_FOLDER\" && exec \"$0\" \"$@\""])
            .env("RLF_TEST_FOLDER", folder)
            .arg(self.project.binary());
        self.start_by(shell, arguments).wait()
    }

    /// Runs `rlf-host` with these arguments and this standard input.
    pub fn run_fed<A: AsRef<OsStr>>(
        &self,
        input: &str,
        arguments: impl IntoIterator<Item = A>,
    ) -> Ended {
        self.start_by(self.fed(input), arguments).wait()
    }

    /// Runs `rlf-host plugin` with the plugins of `folder` beside the shipped ones, and this standard input.
    pub fn plugin_fed<'a>(
        &'a self,
        folder: &'a Path,
        input: &str,
        arguments: impl IntoIterator<Item = &'a str>,
    ) -> Ended {
        self.start_plugin_by(self.fed(input), folder, arguments)
            .wait()
    }

    /// `rlf-host` with this standard input.
    fn fed(&self, input: &str) -> Command {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", "printf %s \"$RLF_TEST_INPUT\" | \"$0\" \"$@\""])
            .env("RLF_TEST_INPUT", input)
            .arg(self.project.binary());
        shell
    }

    /// Runs `rlf-host` with these arguments. Its standard output is closed before it can write, as with `| head`.
    pub fn run_unread<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Ended {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", "{ \"$0\" \"$@\"; echo \"status $?\" >&2; } | true"])
            .arg(self.project.binary());
        self.start_by(shell, arguments).wait()
    }

    /// Runs `rlf-host` with these arguments. Its standard output is a device that is full.
    pub fn run_full<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Ended {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", "\"$0\" \"$@\" > /dev/full; echo \"status $?\" >&2"])
            .arg(self.project.binary());
        self.start_by(shell, arguments).wait()
    }

    /// Runs `rlf-host` with these arguments. Its standard output is appended to a file.
    pub fn run_appending<A: AsRef<OsStr>>(
        &self,
        file: &Path,
        arguments: impl IntoIterator<Item = A>,
    ) -> Ended {
        let mut shell = Command::new("sh");
        shell
            .args(["-c", "exec \"$0\" \"$@\" >> \"$RLF_TEST_FILE\""])
            .env("RLF_TEST_FILE", file)
            .arg(self.project.binary());
        self.start_by(shell, arguments).wait()
    }

    /// Runs `rlf-host` with these arguments and this standard input, which ends only after a line was printed on
    /// standard error. Returns how it ended, with that line.
    pub fn run_with_late_input<A: AsRef<OsStr>>(
        &self,
        input: &str,
        arguments: impl IntoIterator<Item = A>,
    ) -> (Ended, String) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let told = folder.path().join("told");
        let mut shell = Command::new("sh");
        // Standard error goes to the fifo. Its reader sends the input when the first line arrives.
        shell
            .args([
                "-c",
                "mkfifo \"$RLF_TEST_TOLD.fifo\"\n\
                 { head -n 1 \"$RLF_TEST_TOLD.fifo\" > \"$RLF_TEST_TOLD\"; printf %s \"$RLF_TEST_INPUT\"; } |\n\
                 \"$0\" \"$@\" 2> \"$RLF_TEST_TOLD.fifo\"",
            ])
            .env("RLF_TEST_INPUT", input)
            .env("RLF_TEST_TOLD", &told)
            .arg(self.project.binary());
        let ended = self.start_by(shell, arguments).wait();
        let told = std::fs::read_to_string(told).expect("a line was told");
        (ended, told)
    }

    fn start_by<A: AsRef<OsStr>>(
        &self,
        mut command: Command,
        arguments: impl IntoIterator<Item = A>,
    ) -> Running {
        let mut names_plugins = false;
        for argument in arguments {
            names_plugins |= argument.as_ref() == "--plugins";
            command.arg(argument);
        }
        let sets_shipped = command.get_envs().any(|(name, _)| name == "RLF_PLUGINS");
        if !sets_shipped && names_plugins {
            // No shipped plugins: a test with a few plugins must not depend on them.
            command.env("RLF_PLUGINS", "");
        } else if !sets_shipped {
            command.env_remove("RLF_PLUGINS");
        }
        command
            .current_dir(self.root())
            .env("XDG_CACHE_HOME", cache_home(&self.project))
            .env("NO_COLOR", "1")
            .env_remove("RLF_LOG");
        Running::start(command)
    }

    /// Starts `rlf-host plugin` with the plugins of `folder` beside the shipped ones.
    pub fn start_plugin_of<'a>(
        &'a self,
        folder: &'a Path,
        arguments: impl IntoIterator<Item = &'a str>,
    ) -> Running {
        self.start_plugin_by(Command::new(self.project.binary()), folder, arguments)
    }

    fn start_plugin_by<'a>(
        &'a self,
        mut command: Command,
        folder: &'a Path,
        arguments: impl IntoIterator<Item = &'a str>,
    ) -> Running {
        command.env("RLF_PLUGINS", self.plugins());
        let own: [&Path; 3] = ["plugin".as_ref(), "--plugins".as_ref(), folder];
        let arguments = arguments.into_iter().map(Path::new);
        self.start_by(command, own.into_iter().chain(arguments))
    }

    /// Runs `rlf-host` with these arguments to its end.
    pub fn run<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Ended {
        self.start(arguments).wait()
    }

    /// Runs `rlf-host` with these arguments. RLF_PLUGINS names `folder` as that of the shipped plugins.
    pub fn run_with_shipped<'a>(
        &self,
        folder: &str,
        arguments: impl IntoIterator<Item = &'a str>,
    ) -> Ended {
        let mut command = Command::new(self.project.binary());
        command.env("RLF_PLUGINS", folder);
        self.start_by(command, arguments).wait()
    }

    /// Runs `rlf-host plugin` on [`Host::plugins`].
    pub fn plugin<'a>(&'a self, arguments: impl IntoIterator<Item = &'a str>) -> Ended {
        let own: [&Path; 3] = ["plugin".as_ref(), "--plugins".as_ref(), self.plugins()];
        let arguments = arguments.into_iter().map(Path::new);
        self.run(own.into_iter().chain(arguments))
    }
}
