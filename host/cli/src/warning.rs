//! Warnings for people, on standard error.

use crate::display::printable;

/// Prints a warning.
pub(crate) fn warn(what: &str) {
    eprintln!(
        "{} {}",
        console::style("warning:").yellow().bold().for_stderr(),
        printable(what)
    );
}
