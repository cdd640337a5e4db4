//! The command line.

use std::path::PathBuf;

use clap::builder::RangedU64ValueParser;
use clap::{Args, Parser, Subcommand};

/// Measure speed as ratios to a named peer, and compare results that must be equal
///
/// For maintainers. `cargo xtask bench`, `soak`, `conformance` and `gpu-check` run it.
#[derive(Debug, Parser)]
#[command(name = "rlf-bench", version, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Measure tokens per second of the policy, decoding and training
    Policy {
        /// Device: cpu, cuda, cuda:N or auto
        #[arg(long, default_value = "cpu")]
        device: String,
        /// Worker threads (default: one per core)
        #[arg(long)]
        workers: Option<usize>,
        /// Python interpreter with torch and transformers, to compare with (default: no comparison)
        #[arg(long, value_name = "PROGRAM")]
        python: Option<PathBuf>,
        /// Only shapes whose name contains this: quickstart, 3.7M, 30M (CPU), 0.6B, 1.7B or 4B (GPU)
        #[arg(long, default_value = "")]
        shape: String,
        /// Products in bf16 on the CPU, beside f32 and transformers in bf16
        #[arg(long)]
        bf16: bool,
        /// Train without activation checkpointing also where a GPU of 80 GB needs it: 4B then takes about 110 GB
        #[arg(long)]
        keep_activations: bool,
    },
    /// Compare a rollout with slow tools with one that has a barrier for each turn, and with what it cannot go below
    Rollout {
        /// Worker threads of the policy (default: one per core)
        #[arg(long)]
        workers: Option<usize>,
        /// Seed of the numbers of turns, their lengths and the tools' latencies
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// Number of trajectories that wait for each other at a barrier; may be repeated
        #[arg(
            long = "batch",
            value_name = "TRAJECTORIES",
            default_values_t = [512_usize, 64],
            value_parser = RangedU64ValueParser::<usize>::new().range(1..=512)
        )]
        batches: Vec<usize>,
    },
    /// Compare the memory that `rlf-host plan` says with what runs on the CPU take
    Memory {
        /// Only policies whose name contains this: 0.35M, 3.7M or 30M
        #[arg(long, default_value = "")]
        shape: String,
        #[command(flatten)]
        plugins: PluginDirectory,
    },
    /// Compare tool calls in fresh sandboxes with an MCP server, subprocesses and a plain function
    Sandbox {
        /// Python interpreter with the package `mcp`, for the MCP server (default: no MCP server)
        #[arg(long, value_name = "PROGRAM")]
        python: Option<PathBuf>,
        /// Corpus of the search tool (default: a generated one)
        #[arg(long, value_name = "FILE")]
        corpus: Option<PathBuf>,
        /// Seconds spent on each figure
        #[arg(long, default_value_t = 3.0)]
        seconds: f64,
        #[command(flatten)]
        plugins: PluginDirectory,
    },
    /// Compare programs in fresh interpreters with processes, a fork server and an HTTP service
    Code {
        /// Folder of a plugin that runs Python; may be repeated, to compare builds
        #[arg(
            long = "build",
            value_name = "DIR",
            default_value = "target/plugins/python"
        )]
        builds: Vec<PathBuf>,
        /// Seconds spent on each figure
        #[arg(long, default_value_t = 2.0)]
        seconds: f64,
        /// Maximum number of instances kept alive at once
        #[arg(long, default_value_t = 10_000, value_parser = RangedU64ValueParser::<usize>::new().range(1..=11_000))]
        alive: usize,
        /// Measure programs that import numpy, pandas, sympy and scikit-learn, and nothing else
        #[arg(long)]
        packages: bool,
        /// Python to compare with (default: the machine's python3)
        #[arg(long, value_name = "PROGRAM")]
        python: Option<PathBuf>,
        /// Python that has `pydantic-monty`, an interpreter of a part of Python, to compare with that too
        #[arg(long, value_name = "PROGRAM")]
        monty: Option<PathBuf>,
        /// Folder that keeps compiled interpreters (default: one that is removed at the end)
        #[arg(long, value_name = "DIR")]
        cache: Option<PathBuf>,
    },
    /// Compare environment sessions with one process for each: speed, and memory of many live sessions
    Env {
        /// Python interpreter with the packages `mcp` and `pydantic`, for the processes (default: no processes)
        #[arg(long, value_name = "PROGRAM")]
        python: Option<PathBuf>,
        /// Environment in Python, run both in the Python component and in the processes
        #[arg(
            long,
            value_name = "FILE",
            default_value = "plugins/environments/Library.py"
        )]
        environment: PathBuf,
        /// Specification, run both in its component and, exported, in the Python component
        #[arg(
            long,
            value_name = "FILE",
            default_value = "plugins/specified/examples/LendingLibrary.toml"
        )]
        specification: PathBuf,
        /// Data of the component tau-retail (default: tau-retail is not measured)
        #[arg(long, value_name = "DIR")]
        retail: Option<PathBuf>,
        /// Seconds spent on each figure
        #[arg(long, default_value_t = 2.0)]
        seconds: f64,
        /// Maximum number of sessions alive at once
        #[arg(long, default_value_t = 10_000, value_parser = RangedU64ValueParser::<usize>::new().range(1..=14_000))]
        alive: usize,
        #[command(flatten)]
        plugins: PluginDirectory,
    },
    /// Make very many good and bad calls; report how they ended, and memory at start, middle and end
    Soak {
        /// Number of calls
        #[arg(long, default_value_t = 100_000)]
        calls: u64,
        /// Number of calls in flight at once
        #[arg(long, default_value_t = 64, value_parser = RangedU64ValueParser::<usize>::new().range(1..=10_000))]
        at_once: usize,
        /// Directory with the plugin `misbehave`, which is built for the tests
        #[arg(long, value_name = "DIR", default_value = "target/test-plugins")]
        misbehaving: PathBuf,
        #[command(flatten)]
        plugins: PluginDirectory,
    },
    /// Compare forward pass, backward pass and decoding on a device with the CPU
    Parity {
        /// Device: cuda or cuda:N
        #[arg(long, default_value = "cuda")]
        device: String,
    },
    /// Run programs and functions with recorded behaviour in the interpreters, and compare
    Conformance(Conformance),
    /// Prepare one component in a process with its own limits; only rlf-bench starts this
    #[command(name = rlf_sandbox::prepare_process::ARGUMENT, hide = true)]
    Prepare,
}

/// The directory of plugins.
#[derive(Debug, Clone, Args)]
pub(crate) struct PluginDirectory {
    /// Directory of plugins: every `*/plugin.toml`, `*.wasm` or `*.py` in it
    #[arg(long, value_name = "DIR", default_value = "target/plugins")]
    pub(crate) plugins: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct Conformance {
    /// Folder with `programs` and `sessions`, such as plugins/python/conformance; may be repeated
    #[arg(long, value_name = "DIR")]
    pub(crate) programs: Vec<PathBuf>,
    /// Language of the programs (default: the name of the folder that contains --programs)
    #[arg(long)]
    pub(crate) lang: Option<String>,
    /// Folder of an interpreter to test instead of the installed plugin; may be repeated, to compare builds
    #[arg(long = "build", value_name = "DIR")]
    pub(crate) builds: Vec<PathBuf>,
    /// JSON lines with `tools` and `codes`, as FTRL publishes them; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) functions: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) plugins: PluginDirectory,
}
