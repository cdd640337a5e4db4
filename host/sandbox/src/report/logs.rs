//! Log lines of a call.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Importance of a log line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogLevel {
    /// Every step.
    Trace,
    /// Details for the plugin's author.
    Debug,
    /// Worth knowing.
    Info,
    /// Something looks wrong.
    Warn,
    /// Something failed.
    Error,
}

impl fmt::Display for LogLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Trace => "trace",
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        })
    }
}

/// One log line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// The level of the message.
    pub level: LogLevel,
    /// Its text, safe to show.
    pub message: String,
}

/// The lines of one call.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Logs {
    /// The first ones, in order.
    pub lines: Vec<LogLine>,
    /// Number of lines that were not kept.
    pub dropped: u64,
}
