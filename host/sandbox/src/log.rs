//! The `log` interface: lines of a plugin, limited in number and length, made safe.

use std::fmt;

use serde::{Deserialize, Serialize};
use wasmtime::Result;

use crate::bindings::rlf::plugin::log as wit;
use crate::output::{safe_text, shortened};
use crate::state::State;

/// How much a line matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Every step.
    Trace,
    /// For the plugin's author.
    Debug,
    /// Worth knowing.
    Info,
    /// Something is off.
    Warn,
    /// Something failed.
    Error,
}

impl fmt::Display for Level {
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

impl From<wit::Level> for Level {
    fn from(level: wit::Level) -> Self {
        match level {
            wit::Level::Trace => Self::Trace,
            wit::Level::Debug => Self::Debug,
            wit::Level::Info => Self::Info,
            wit::Level::Warn => Self::Warn,
            wit::Level::Error => Self::Error,
        }
    }
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLine {
    /// How much it matters.
    pub level: Level,
    /// What it says, safe to show.
    pub message: String,
}

/// The lines of one call.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Logs {
    /// The first ones, in order.
    pub lines: Vec<LogLine>,
    /// How many came after them.
    pub dropped: u64,
}

impl State {
    /// Depends on the call's limits alone, never on the host's logging: what a guest sees of it
    /// must be the same in every replay.
    fn log_wanted(&self, level: Level, logs: &Logs) -> bool {
        let limits = self.record.limits();
        level >= limits.log_level && logs.lines.len() < limits.log_lines as usize
    }

    fn logs(&self) -> std::sync::MutexGuard<'_, Logs> {
        self.record
            .logs
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl wit::Host for State {
    fn write(&mut self, level: wit::Level, message: String) -> Result<()> {
        let level = Level::from(level);
        let mut logs = self.logs();
        if !self.log_wanted(level, &logs) {
            logs.dropped += u64::from(level >= self.record.limits().log_level);
            return Ok(());
        }
        let longest = self.record.limits().log_line_bytes as usize;
        let message = shortened(safe_text(message.as_bytes()), longest);
        let (plugin, call) = (&*self.plugin, self.label.as_str());
        match level {
            Level::Trace => tracing::trace!(target: "plugin", plugin, call, "{message}"),
            Level::Debug => tracing::debug!(target: "plugin", plugin, call, "{message}"),
            Level::Info => tracing::info!(target: "plugin", plugin, call, "{message}"),
            Level::Warn => tracing::warn!(target: "plugin", plugin, call, "{message}"),
            Level::Error => tracing::error!(target: "plugin", plugin, call, "{message}"),
        }
        logs.lines.push(LogLine { level, message });
        Ok(())
    }

    fn enabled(&mut self, level: wit::Level) -> Result<bool> {
        Ok(self.log_wanted(level.into(), &self.logs()))
    }
}
