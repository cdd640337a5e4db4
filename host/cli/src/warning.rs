//! Warnings for people, on standard error.

/// Prints a warning.
pub(crate) fn warn(what: &str) {
    eprintln!(
        "{} {what}",
        console::style("warning:").yellow().bold().for_stderr()
    );
}
