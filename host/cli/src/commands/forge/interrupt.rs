//! Ctrl-C in commands that keep what they have made: the first one ends the process.

use anyhow::Context;

/// Exit code of a program ended by Ctrl-C, as in shells.
const INTERRUPTED: i32 = 130;

/// Ends the process at the first Ctrl-C or SIGTERM, and prints how to continue.
pub(super) fn watch(continues: &'static str) -> anyhow::Result<()> {
    ctrlc::set_handler(move || {
        eprintln!("\nstopped; {continues}");
        std::process::exit(INTERRUPTED);
    })
    .context("Ctrl-C cannot be handled")
}
