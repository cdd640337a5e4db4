//! Handles standard output that cannot be written: the command finishes its work, then ends with an error.

use std::io::{self, ErrorKind};
use std::sync::OnceLock;

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
