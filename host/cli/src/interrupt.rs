//! Ctrl-C: the first one finishes the step and saves, the second one breaks off what is under way, the third one ends
//! the process. A command that has nothing to save ends at the first one. MCP servers end with the process, and so does
//! a temporary folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use anyhow::Context as _;
use rlf_run::Interruption;

/// Exit code of a program ended by Ctrl-C, as in shells.
const INTERRUPTED: i32 = 130;

/// True from the moment at which a signal ends the process.
static ENDING: AtomicBool = AtomicBool::new(false);

/// The folder that is removed if a signal ends the process.
static TEMPORARY: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Attempts to remove the folder. Other threads may still write into it, which can make one fail.
const ATTEMPTS: usize = 10;

/// Removes this folder if a signal ends the process, which drops nothing.
pub(crate) fn remove_at_signal(folder: &Path) {
    let mut temporary = TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner);
    *temporary = Some(folder.to_owned());
}

/// Ends MCP servers and this process.
fn end() -> ! {
    ENDING.store(true, Ordering::SeqCst);
    rlf_mcp::end_processes();
    let mut temporary = TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(folder) = temporary.take() {
        let mut attempts = 0..ATTEMPTS;
        // What cannot be removed is left to the system, which empties its temporary folder.
        let _ = attempts.any(|_| fs::remove_dir_all(&folder).is_ok());
    }
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
