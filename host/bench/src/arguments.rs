//! The command line.

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use clap::{Args, Parser, Subcommand};

/// Measure speed as ratios against a named peer, and compare what must be equal. For maintainers: `cargo xtask bench`,
/// `soak`, `conformance` and `gpu-check` run it.
#[derive(Debug, Parser)]
#[command(name = "rlf-bench", version, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Decode and training tokens/s of the policy
    Policy {
        /// cpu, cuda, cuda:N or auto
        #[arg(long, default_value = "cpu")]
        device: String,
        /// Worker threads; one per core by default
        #[arg(long)]
        workers: Option<usize>,
    },
    /// Calls in fresh sandboxes beside an MCP server, subprocesses and a plain function
    Sandbox {
        /// A Python interpreter with the package `mcp`, for the server to compare with
        #[arg(long, value_name = "PROGRAM")]
        python: Option<PathBuf>,
        /// Corpus of the search tool; one is made up by default
        #[arg(long, value_name = "FILE")]
        corpus: Option<PathBuf>,
        /// Time spent on each figure
        #[arg(long, default_value_t = 3.0)]
        seconds: f64,
        #[command(flatten)]
        plugins: PluginDirectory,
    },
    /// Programs in fresh interpreters beside processes, a fork server and an HTTP service that starts processes
    Code {
        /// Folder of a plugin that runs Python; may be repeated, to compare builds
        #[arg(
            long = "build",
            value_name = "DIR",
            default_value = "target/plugins/python"
        )]
        builds: Vec<PathBuf>,
        /// Time spent on each figure
        #[arg(long, default_value_t = 2.0)]
        seconds: f64,
        /// Instances that are kept alive together, at the most
        #[arg(long, default_value_t = 10_000, value_parser = RangedU64ValueParser::<usize>::new().range(1..=11_000))]
        alive: usize,
    },
    /// Sessions of environments beside a process for each, and how many live at once in how much memory
    Env {
        /// A Python interpreter with the packages `mcp` and `pydantic`, for processes to compare with
        #[arg(long, value_name = "PROGRAM")]
        python: Option<PathBuf>,
        /// An environment in Python, for the Python component and for the processes
        #[arg(
            long,
            value_name = "FILE",
            default_value = "plugins/environments/Library.py"
        )]
        environment: PathBuf,
        /// Data of the component tau-retail, which is not measured without it
        #[arg(long, value_name = "DIR")]
        retail: Option<PathBuf>,
        /// Time spent on each figure
        #[arg(long, default_value_t = 2.0)]
        seconds: f64,
        /// Sessions that live together, at the most
        #[arg(long, default_value_t = 10_000, value_parser = RangedU64ValueParser::<usize>::new().range(1..=14_000))]
        alive: usize,
        #[command(flatten)]
        plugins: PluginDirectory,
    },
    /// Very many calls, good and bad: how they ended, and memory at start, middle and end
    Soak {
        /// Number of calls
        #[arg(long, default_value_t = 100_000)]
        calls: u64,
        /// Under way side by side
        #[arg(long, default_value_t = 64, value_parser = RangedU64ValueParser::<usize>::new().range(1..=10_000))]
        at_once: usize,
        /// Directory with the plugin `misbehave`, which the tests are built with
        #[arg(long, value_name = "DIR", default_value = "target/test-plugins")]
        misbehaving: PathBuf,
        #[command(flatten)]
        plugins: PluginDirectory,
    },
    /// Forward, backward and decode of a device against the CPU
    Parity {
        /// cuda or cuda:N
        #[arg(long, default_value = "cuda")]
        device: String,
    },
    /// Try interpreters on programs whose behaviour is recorded, and on rows that carry functions
    Conformance(Conformance),
    /// Prepare one component under limits of its own; started by this program alone
    #[command(name = rlf_sandbox::prepare_process::ARGUMENT, hide = true)]
    Prepare,
}

/// Directory of plugins.
#[derive(Debug, Clone, Args)]
pub(crate) struct PluginDirectory {
    /// Directory of plugins: every `*/plugin.toml` or `*.wasm` in it
    #[arg(long, value_name = "DIR", default_value = "target/plugins")]
    pub(crate) plugins: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Conformance {
    /// Folder with `programs` and `sessions`, such as plugins/python/conformance; may be repeated
    #[arg(long, value_name = "DIR")]
    pub(crate) programs: Vec<PathBuf>,
    /// The language of the programs; by default what the folder above theirs is called
    #[arg(long)]
    pub(crate) lang: Option<String>,
    /// Folder of an interpreter to try, instead of the one among the plugins; may be repeated, to compare builds
    #[arg(long = "build", value_name = "DIR")]
    pub(crate) builds: Vec<PathBuf>,
    /// JSON lines with `tools` and `codes`, as FTRL publishes them; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) functions: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) plugins: PluginDirectory,
}
