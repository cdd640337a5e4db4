//! Writes lines to standard output. If it cannot be written, the command finishes its work, then ends with an error.

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write as _};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// True while standard output is kept for a result.
static FOR_RESULT: AtomicBool = AtomicBool::new(false);

/// Prints a line on standard output, or on standard error while standard output is kept for a result.
pub(crate) fn say(line: Arguments<'_>) {
    if FOR_RESULT.load(Ordering::Relaxed) {
        // Nothing can be told to a user who has closed standard error.
        let _ = writeln!(io::stderr(), "{line}");
    } else if let Err(error) = writeln!(io::stdout(), "{line}") {
        unwritten(error);
    }
}

/// Keeps standard output for a result, such as JSON: from now on, what is said goes to standard error. `false` ends that.
pub(crate) fn keep_for_result(keep: bool) {
    FOR_RESULT.store(keep, Ordering::Relaxed);
}

/// The first error in writing to standard output.
static UNWRITTEN: OnceLock<io::Error> = OnceLock::new();

/// Remembers an error in writing, unless the reader just closed the pipe (`| head`).
pub(crate) fn unwritten(error: io::Error) {
    if error.kind() != ErrorKind::BrokenPipe {
        let _ = UNWRITTEN.set(error);
    }
}

/// The first error that [`unwritten`] was told.
pub(crate) fn first_unwritten() -> Option<&'static io::Error> {
    UNWRITTEN.get()
}
