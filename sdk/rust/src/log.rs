//! The operator's log. Lines are rate-limited by the host and tagged with the call.
//!
//! Nothing written here reaches the model. In native tests lines are kept for
//! [`testing::logged`](crate::testing::logged).

pub use crate::bindings::lifecycle::rlf::plugin::log::Level;

/// Writes one line at a level.
pub fn write(level: Level, message: &str) {
    #[cfg(target_family = "wasm")]
    crate::bindings::lifecycle::rlf::plugin::log::write(level, message);
    #[cfg(not(target_family = "wasm"))]
    crate::stand_in::log(level, message);
}

/// True if a line at this level would be kept; call it before building an expensive line.
pub fn enabled(level: Level) -> bool {
    #[cfg(target_family = "wasm")]
    return crate::bindings::lifecycle::rlf::plugin::log::enabled(level);
    #[cfg(not(target_family = "wasm"))]
    {
        let _ = level;
        true
    }
}

/// Writes a line that traces a plugin's steps.
pub fn trace(message: &str) {
    write(Level::Trace, message);
}

/// Writes a line for debugging a plugin.
pub fn debug(message: &str) {
    write(Level::Debug, message);
}

/// Writes a line that an operator may want to read.
pub fn info(message: &str) {
    write(Level::Info, message);
}

/// Writes a line that an operator should read.
pub fn warn(message: &str) {
    write(Level::Warn, message);
}

/// Writes a line about a failure.
pub fn error(message: &str) {
    write(Level::Error, message);
}
