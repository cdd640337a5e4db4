//! `rlf-host`: post-trains language models for multi-turn tool use by reinforcement learning.
//!
//! This crate knows arguments, configuration, progress and reports; everything that trains,
//! samples or runs a plugin is below it.

/// `println!`, except that a reader who has gone away (`| head`) is no reason to panic, and least of
/// all to end a training run.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($text)*);
    }};
}

mod arguments;
mod assemble;
mod commands;
mod config;
mod demonstrations;
mod display;
mod interrupt;
mod player;
mod progress;
mod provenance;
mod report;
mod room;
mod tasks;
mod watch;

use std::process::ExitCode;

use clap::Parser;

use crate::arguments::{Arguments, Command};

// Training allocates and frees tensors of a few kilobytes all day.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    tracing_subscriber::fmt()
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_env("RLF_LOG")
                .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("warn")),
        )
        .with_writer(std::io::stderr)
        .without_time()
        .init();
    let outcome = match arguments.command {
        Command::Train(options) => commands::train::run(&options),
        Command::Eval(options) => commands::eval::run(&options),
        Command::Rollout(options) => commands::rollout::run(&options),
        Command::Report(options) => commands::report::run(&options),
        Command::Plugin(options) => commands::plugin::run(&options),
        Command::Doctor(options) => commands::doctor::run(&options),
        Command::Bench(options) => commands::bench::run(&options),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!(
                "{} {error:#}",
                console::style("error:").red().bold().for_stderr()
            );
            ExitCode::FAILURE
        }
    }
}
