//! Ctrl-C: the first one finishes the step and saves, the second one stops at once.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Exit code of a program ended by Ctrl-C, as in shells.
const INTERRUPTED: i32 = 130;

/// Returns a flag that becomes true at the first Ctrl-C or SIGTERM.
pub(crate) fn watch() -> anyhow::Result<Arc<AtomicBool>> {
    let asked = Arc::new(AtomicBool::new(false));
    let flag = asked.clone();
    ctrlc::set_handler(move || {
        if flag.swap(true, Ordering::SeqCst) {
            eprintln!("stopped at once; `--resume` continues from the last checkpoint");
            std::process::exit(INTERRUPTED);
        }
        eprintln!("\nfinishing this step and saving; press Ctrl-C again to stop at once");
    })?;
    Ok(asked)
}
