//! The `log` interface: lines of a plugin, limited in number and length, made safe.

use std::sync::{MutexGuard, PoisonError};

use wasmtime::Result;
use wasmtime::component::HasData;

use crate::bindings::rlf::plugin::log as wit;
use crate::record::Record;
use crate::report::{LogLevel, LogLine, Logs, safe_text, shortened};

impl From<wit::Level> for LogLevel {
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

/// View of a store for the log interface.
pub(crate) struct LogView<'a> {
    pub(crate) record: &'a Record,
    pub(crate) plugin: &'a str,
    pub(crate) call: &'a str,
}

/// Gives the linker access to [`LogView`].
pub(crate) struct HasLog;

impl HasData for HasLog {
    type Data<'a> = LogView<'a>;
}

impl LogView<'_> {
    /// True if a line of this level is kept. This depends only on the call's limits, never on the host's logging: a
    /// guest must see the same in every replay.
    fn log_wanted(&self, level: LogLevel, logs: &Logs) -> bool {
        let limits = self.record.limits();
        level >= limits.log_level && logs.lines.len() < limits.log_lines as usize
    }

    fn logs(&self) -> MutexGuard<'_, Logs> {
        self.record
            .logs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl wit::Host for LogView<'_> {
    fn write(&mut self, level: wit::Level, message: String) -> Result<()> {
        let level = LogLevel::from(level);
        let mut logs = self.logs();
        if !self.log_wanted(level, &logs) {
            logs.dropped += u64::from(level >= self.record.limits().log_level);
            return Ok(());
        }
        let longest = self.record.limits().log_line_bytes as usize;
        let message = shortened(safe_text(message.as_bytes()), longest);
        let (plugin, call) = (self.plugin, self.call);
        match level {
            LogLevel::Trace => tracing::trace!(target: "plugin", plugin, call, "{message}"),
            LogLevel::Debug => tracing::debug!(target: "plugin", plugin, call, "{message}"),
            LogLevel::Info => tracing::info!(target: "plugin", plugin, call, "{message}"),
            LogLevel::Warn => tracing::warn!(target: "plugin", plugin, call, "{message}"),
            LogLevel::Error => tracing::error!(target: "plugin", plugin, call, "{message}"),
        }
        logs.lines.push(LogLine { level, message });
        Ok(())
    }

    fn enabled(&mut self, level: wit::Level) -> Result<bool> {
        Ok(self.log_wanted(level.into(), &self.logs()))
    }
}
