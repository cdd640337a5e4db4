//! Ctrl-C: the first one finishes the step and saves, the second one breaks off what is under way, the third one ends the
//! process. A command that has nothing to save ends at the first one. MCP servers end with the process.

use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use rlf_run::Interruption;

/// Exit code of a program ended by Ctrl-C, as in shells.
const INTERRUPTED: i32 = 130;

/// True from the moment at which a signal ends the process.
static ENDING: AtomicBool = AtomicBool::new(false);

/// Ends MCP servers and this process.
fn end() -> ! {
    ENDING.store(true, Ordering::SeqCst);
    rlf_mcp::end_processes();
    std::process::exit(INTERRUPTED)
}

/// Waits for the end if a signal ends the process: its exit code counts, and not what the lost servers mean for the command.
pub(crate) fn let_signals_end() {
    while ENDING.load(Ordering::SeqCst) {
        std::thread::park();
    }
}

/// Ends MCP servers and this process at the first Ctrl-C or SIGTERM. For commands that have nothing to save.
pub(crate) fn exit_with_servers() -> anyhow::Result<()> {
    ctrlc::set_handler(|| end()).context("Ctrl-C cannot be handled")
}

/// Returns the requests to stop, to which every Ctrl-C and SIGTERM adds one.
pub(crate) fn watch() -> anyhow::Result<Interruption> {
    let interruption = Interruption::default();
    let requested = interruption.clone();
    ctrlc::set_handler(move || match requested.request() {
        1 => eprintln!(
            "\nfinishing this step and saving; press Ctrl-C again not to wait: --resume repeats what is not finished"
        ),
        2 => eprintln!(
            "\nstopping without this step, or without this evaluation; press Ctrl-C again to end the process at once"
        ),
        _ => {
            eprintln!("stopped at once; `--resume` continues from the last checkpoint");
            end()
        }
    })?;
    Ok(interruption)
}
