//! Limits of one call. Every limit has a default; a configuration changes single ones.

use std::time::Duration;

use rlf_config::milliseconds;
use serde::{Deserialize, Serialize};

use crate::report::LogLevel;

/// Limits of one call of a component.
///
/// Every field may be left out of a configuration; unknown keys are errors. A limit that is reached
/// ends the call (or, for logs and output, shortens what is kept) and is reported by its key here,
/// its value and what was used: see [`LimitReached`](crate::LimitReached).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Wall-clock deadline of a call, queueing included, and limit of its virtual time. The call's future is
    /// dropped there, wherever the guest is. Key `wall_ms`, default 10,000 ms.
    #[serde(rename = "wall_ms", with = "milliseconds")]
    pub wall: Duration,
    /// CPU time of the thread that runs the guest, added up over the polls of the call, with the
    /// host functions it calls. Key `cpu_ms`, default 2,000 ms; noticed within one epoch tick.
    #[serde(rename = "cpu_ms", with = "milliseconds")]
    pub cpu: Duration,
    /// Wall-clock and CPU limit of `init`, which runs once per component, config and data.
    /// Key `init_ms`, default 60,000 ms.
    #[serde(rename = "init_ms", with = "milliseconds")]
    pub init: Duration,
    /// Sum of all linear memories and tables (8 bytes an element). Set aside as a whole when the call
    /// is admitted, so a lower limit lets more calls run. Default 128 MiB; at most the pool's limit for one
    /// memory ([`SandboxConfig::max_memory_bytes`](crate::SandboxConfig)).
    pub memory_bytes: u64,
    /// Sum of the elements of all tables. Default 20,000, which is also the pool's limit for one table.
    pub table_elements: u64,
    /// Bytes kept of each output stream: half from its head, half from its tail. The rest is counted.
    /// Default 64 KiB.
    pub output_bytes: u64,
    /// Printing more than this on one stream ends the call with `output-limit`. Default 16 MiB.
    pub output_stop_bytes: u64,
    /// Maximum size of a result that the caller should accept, in bytes. Default 1 MiB. The sandbox bounds what crosses
    /// in one call by `hostcall_bytes`; typed callers check this against the value.
    pub result_bytes: u64,
    /// Maximum size of the arguments that the caller should pass, in bytes. Default 1 MiB; checked by typed callers.
    pub arguments_bytes: u64,
    /// Log lines kept of one call; later ones are counted. Default 100.
    pub log_lines: u32,
    /// Longer log lines are cut, visibly. Default 4 KiB.
    pub log_line_bytes: u32,
    /// Log lines below this level are not kept, and `enabled` is false for them. Default `info`.
    pub log_level: LogLevel,
    /// Host memory that one crossing from guest to host may allocate: the arguments of one host
    /// function or the result of one call. Default 16 MiB; more ends the call with `output-limit`.
    pub hostcall_bytes: u64,
    /// Live component-model handles of an instance. Default 10,000; more ends with `memory-limit`.
    pub component_handles: u32,
    /// Live resources that the host holds for an instance (streams, timers). Default 1,000; more
    /// ends with `memory-limit`.
    pub resources: u32,
    /// Random bytes in one request. Default 1 MiB; more ends with `memory-limit`.
    pub random_bytes: u64,
    /// Maximum number of bytes of `data` in one read. Default 64 MiB; more is the error `exhausted`.
    pub data_read_bytes: u64,
    /// Calls that one call may make of others through gates. Default 64; more are the error `exhausted`.
    pub nested_calls: u32,
    /// Sum of the memory limits, scratch files, output and results of the calls that one call makes and that run at one
    /// time. Default 4 GiB. Further ones wait; one that alone needs more ends with `denied`.
    pub nested_bytes: u64,
    /// Sum of the files that the calls which one call makes leave to the host, those of their own calls included. Default
    /// 64 MiB. A call that would leave more ends with `denied`.
    pub nested_file_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            wall: Duration::from_secs(10),
            cpu: Duration::from_secs(2),
            init: Duration::from_mins(1),
            memory_bytes: 128 << 20,
            table_elements: TABLE_ELEMENTS,
            output_bytes: 64 << 10,
            output_stop_bytes: 16 << 20,
            result_bytes: 1 << 20,
            arguments_bytes: 1 << 20,
            log_lines: 100,
            log_line_bytes: 4 << 10,
            log_level: LogLevel::Info,
            hostcall_bytes: 16 << 20,
            component_handles: 10_000,
            resources: 1_000,
            random_bytes: 1 << 20,
            data_read_bytes: 64 << 20,
            nested_calls: 64,
            nested_bytes: 4 << 30,
            nested_file_bytes: 64 << 20,
        }
    }
}

/// Maximum number of elements of one table: the pools have room for no more. A Python with numpy and similar packages has
/// 47,157.
pub(crate) const TABLE_ELEMENTS: u64 = 65_536;

/// Maximum duration that a time limit may have.
pub const MAX_DURATION: Duration = Duration::from_hours(24);

/// The reason why limits cannot be kept, and what to write instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LimitsError {
    /// More memory than the pools have for one memory.
    #[error(
        "memory_bytes = {bytes} is more than one memory may have here ({max_bytes}); lower it, or raise the sandbox's \
         max_memory_bytes"
    )]
    TooMuchMemory {
        /// The limit.
        bytes: u64,
        /// The room in the pools.
        max_bytes: u64,
    },
    /// More elements than the pools have for one table.
    #[error(
        "table_elements = {0} is more than the {TABLE_ELEMENTS} that one table may have here; lower it"
    )]
    TooManyElements(u64),
    /// A limit of 0.
    #[error("{0} = 0 would stop every call; write more, or leave it out")]
    Zero(&'static str),
    /// A time limit of 0.
    #[error("{0} = 0 would stop every call; give it at least 1")]
    NoTime(&'static str),
    /// A time limit of more than [`MAX_DURATION`].
    #[error("{key} = {} is more than a day; write at most {}", limit.as_millis(), MAX_DURATION.as_millis())]
    TooLong {
        /// The limit's key.
        key: &'static str,
        /// The limit.
        limit: Duration,
    },
}

impl Limits {
    /// Returns an error for limits that the pools cannot provide, or with which every call would fail.
    pub(crate) fn check(&self, max_memory_bytes: u64) -> Result<(), LimitsError> {
        if self.memory_bytes > max_memory_bytes {
            return Err(LimitsError::TooMuchMemory {
                bytes: self.memory_bytes,
                max_bytes: max_memory_bytes,
            });
        }
        if self.table_elements > TABLE_ELEMENTS {
            return Err(LimitsError::TooManyElements(self.table_elements));
        }
        for (name, limit) in [
            ("memory_bytes", self.memory_bytes),
            ("table_elements", self.table_elements),
            ("result_bytes", self.result_bytes),
            ("hostcall_bytes", self.hostcall_bytes),
        ] {
            if limit == 0 {
                return Err(LimitsError::Zero(name));
            }
        }
        for (key, limit) in [
            ("wall_ms", self.wall),
            ("cpu_ms", self.cpu),
            ("init_ms", self.init),
        ] {
            if limit.is_zero() {
                return Err(LimitsError::NoTime(key));
            }
            if limit > MAX_DURATION {
                return Err(LimitsError::TooLong { key, limit });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_changes_single_limits_and_unknown_keys_are_errors() {
        let limits: Limits =
            serde_json::from_str(r#"{"wall_ms": 250, "log_level": "debug"}"#).unwrap();
        assert_eq!(limits.wall, Duration::from_millis(250));
        assert_eq!(limits.log_level, LogLevel::Debug);
        assert_eq!(limits.cpu, Limits::default().cpu);
        let error = serde_json::from_str::<Limits>(r#"{"wall": 250}"#).unwrap_err();
        assert!(
            error.to_string().contains("unknown field `wall`"),
            "{error}"
        );
    }

    #[test]
    fn a_limit_beyond_the_pool_is_refused_by_name() {
        let limits = Limits {
            memory_bytes: 1 << 30,
            ..Limits::default()
        };
        assert!(
            limits
                .check(256 << 20)
                .unwrap_err()
                .to_string()
                .starts_with("memory_bytes = 1073741824")
        );
        assert!(
            Limits {
                cpu: Duration::ZERO,
                ..Limits::default()
            }
            .check(256 << 20)
            .unwrap_err()
            .to_string()
            .contains("cpu_ms")
        );
    }
}
