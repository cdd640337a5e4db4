//! `rlf-host`: post-trains language models for multi-turn tool use by reinforcement learning.
//!
//! This crate parses arguments, prints, and sets exit codes. It must not know how anything is trained: that is in
//! [`rlf_run`], the library below it.
//!
//! | looking for | module |
//! |---|---|
//! | commands, options and their help | `arguments` |
//! | the work of one subcommand | `commands`, one module for each |
//! | printing trajectories and shares | `display` |
//! | output that cannot be written | `output` |
//! | the live line of a training run | `progress` |
//! | the HTML report | `report` |
//! | plugin settings of a configuration, with their lines | `operator` |
//! | finding and loading plugins | `plugins` |
//! | the options that help after a failure of a run | `advice` |
//! | Ctrl-C | `interrupt` |
//! | warnings | `warning` |

/// `println!` that never panics. If output cannot be written, training goes on and the error is reported at the end,
/// unless the reader just closed the pipe (`| head`).
macro_rules! say {
    () => { crate::output::say(format_args!("")) };
    ($($text:tt)*) => { crate::output::say(format_args!($($text)*)) };
}

mod advice;
mod arguments;
mod commands;
mod display;
mod interrupt;
mod operator;
mod output;
mod plugins;
mod progress;
mod report;
mod warning;

use std::process::ExitCode;

use anyhow::bail;
use clap::Parser;

use crate::arguments::{Arguments, Command};

fn main() -> ExitCode {
    rlf_allocator::configure();
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return print_parse_error(&error),
    };
    let quiet = match arguments.command {
        // These commands print themselves how a call ended.
        Command::Plugin(_) | Command::Mcp(_) | Command::Env(_) | Command::Forge(_) => {
            "warn,rlf_tools::tool_manager=error,rmcp=off"
        }
        // One line for each request. What a client starts itself writes none.
        Command::Serve(ref serve) if serve.command.is_none() => "warn,rlf_serve=info,rmcp=off",
        _ => "warn,rmcp=off",
    };
    let log = tracing_subscriber::fmt()
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_env("RLF_LOG")
                .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(quiet)),
        )
        .with_writer(std::io::stderr);
    match arguments.command {
        // A service runs for days, so its log lines carry the time.
        Command::Serve(_) => log.init(),
        _ => log.without_time().init(),
    }
    let failure = match arguments.command {
        Command::Run(_) => ExitCode::from(commands::run::NOT_RUN),
        Command::Replay(_) => ExitCode::from(commands::replay::NOT_REPLAYED),
        _ => ExitCode::FAILURE,
    };
    let outcome = match arguments.command {
        Command::Train(options) => commands::train::run(&options),
        Command::Plan(options) => commands::plan::run(&options),
        Command::Ablate(options) => commands::ablate::run(&options),
        Command::Eval(options) => commands::eval::run(&options),
        Command::Rollout(options) => commands::rollout::run(&options),
        Command::Replay(options) => commands::replay::run(&options),
        Command::Report(options) => commands::report::run(&options),
        Command::Export(options) => commands::export::run(&options),
        #[cfg(feature = "hub")]
        Command::Download(options) => commands::download::run(&options),
        Command::Plugin(options) => commands::plugin::run(&options),
        Command::Mcp(options) => commands::mcp::run(&options),
        Command::Data(options) => commands::data::run(&options),
        Command::Env(options) => commands::env::run(&options),
        Command::Forge(options) => commands::forge::run(&options),
        Command::Serve(options) => commands::serve::run(&options),
        Command::Run(options) => commands::run::run(&options),
        Command::Doctor(options) => commands::doctor::run(&options),
        Command::Cache(options) => commands::cache::run(&options),
        Command::Bench(options) => commands::bench::run(&options),
        Command::Supervise { command } => return rlf_agents::supervisor::supervise(&command),
        Command::Prepare => {
            return {
                rlf_sandbox::prepare_process::prepare_from_stdin(&rlf_plugins::gates::closed_gates())
            };
        }
    };
    interrupt::let_signals_end();
    let outcome = outcome.and_then(|code| match output::first_unwritten() {
        None => Ok(code),
        Some(error) => bail!("not all output could be written: {error}"),
    });
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!(
                "{} {}",
                console::style("error:").red().bold().for_stderr(),
                display::printable(&plugins::with_variable(error_text(&error)))
            );
            failure
        }
    }
}

/// Prints the error of a command line, or the help that it asks for, and returns the exit code.
fn print_parse_error(error: &clap::Error) -> ExitCode {
    let printed = error.print();
    let runs_a_program = std::env::args_os()
        .nth(1)
        .is_some_and(|first| first == "run");
    match error.exit_code() {
        0 => match printed {
            Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
                eprintln!("the help could not be written: {error}");
                ExitCode::FAILURE
            }
            _ => ExitCode::SUCCESS,
        },
        // Any other code could be the program's own.
        _ if runs_a_program => ExitCode::from(commands::run::NOT_RUN),
        code => ExitCode::from(code as u8),
    }
}

/// Formats an error with its causes. A cause that a message already ends in is not repeated.
fn error_text(error: &anyhow::Error) -> String {
    let mut text = error.to_string();
    for cause in error.chain().skip(1) {
        let cause = cause.to_string();
        if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}
