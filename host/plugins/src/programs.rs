//! `[plugins.<alias>.programs]`: the limits of one program in an interpreter, and the limits that a program asks for.

use std::time::Duration;

use rlf_config::milliseconds;
use rlf_sandbox::{Limits, ScratchFiles};
use serde::{Deserialize, Serialize};

use crate::bindings::code;

/// `[plugins.<alias>.programs]`: the limits of one program in this interpreter. A run can ask for less.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProgramGrants {
    /// Limit of CPU time. The same limit applies to the time that the program sees, sleep included. Key `time_ms`,
    /// default 10,000 ms.
    #[serde(rename = "time_ms", with = "milliseconds")]
    pub time: Duration,
    /// Limit of a run's real time, waiting for a place included. A run that exceeds it ends as `unavailable` if it has
    /// not started, and otherwise as `timeout`. Both are infrastructure failures. Key `deadline_ms`, default 120,000 ms.
    #[serde(rename = "deadline_ms", with = "milliseconds")]
    pub deadline: Duration,
    /// Limit of all memory together, up to 64 MiB of the interpreter's own included. An interpreter that starts with more
    /// gets the rest on top. Default 256 MiB, or the sandbox's limit for one memory if that is smaller.
    pub memory_bytes: u64,
    /// Number of bytes kept of standard output, and of standard error: half from the head, half from the tail. Default:
    /// 64 KiB each, and up to 1 MiB each for a run that asks for more, as programs over HTTP do.
    /// `limits.output_stop_bytes` ends a program that prints more than that limit.
    pub output_bytes: Option<u64>,
    /// Limit of the total size of its files. It also limits the files, code and input that a program is given, and the
    /// files that are fetched from it. Default 16 MiB.
    pub file_bytes: u64,
    /// Tools that programs of a model may call, in Python: `from tools import NAME`. They are open only where a model calls the
    /// interpreter as a tool. `limits.nested_calls` limits the calls of one program. Default: none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
}

impl Default for ProgramGrants {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(10),
            deadline: Duration::from_mins(2),
            memory_bytes: 256 << 20,
            output_bytes: None,
            file_bytes: 16 << 20,
            tools: Vec::new(),
        }
    }
}

impl ProgramGrants {
    /// Default number of bytes kept of each output stream: as much as a model can read.
    pub const KEPT_BYTES: u64 = 64 << 10;
    /// Maximum number of bytes kept of each stream of a run that asks for more, unless the operator sets another limit.
    /// Services that run processes keep the same amount.
    pub const MAX_KEPT_BYTES: u64 = 1 << 20;
    /// Maximum part of `memory_bytes` that an interpreter takes for what it starts with.
    pub const INTERPRETER_BYTES: u64 = 64 << 20;
    /// Maximum number of files and directories of a program.
    const ENTRIES: u64 = 10_000;
    /// Maximum depth of a program's paths.
    const DEPTH: u32 = 64;
    /// Bytes that may cross in addition to files and output.
    const REST_BYTES: u64 = 4 << 20;

    /// The key of a limit that is 0 and so lets no program run.
    pub(crate) fn zero_limit(&self) -> Option<&'static str> {
        let limits = [
            ("time_ms", self.time.is_zero()),
            ("deadline_ms", self.deadline.is_zero()),
            ("memory_bytes", self.memory_bytes == 0),
        ];
        let zero = limits.into_iter().find(|(_, is_zero)| *is_zero);
        zero.map(|(key, _)| key)
    }

    /// The root directory of every program.
    pub fn files(&self) -> ScratchFiles {
        ScratchFiles {
            at: "/".to_owned(),
            bytes: self.file_bytes,
            entries: Self::ENTRIES,
            depth: Self::DEPTH,
            outputs: Vec::new(),
        }
    }

    /// The limits of an instance that runs a program, from these limits and the program's own.
    pub fn limits(&self, base: &Limits, wanted: &ProgramLimits, most_memory: u64) -> Limits {
        let least = |allowed: u64, wanted: Option<u64>| wanted.unwrap_or(allowed).min(allowed);
        Limits {
            wall: self.deadline,
            cpu: self.time(wanted),
            memory_bytes: least(self.memory_bytes, wanted.memory_bytes).min(most_memory),
            output_bytes: self.kept(wanted),
            hostcall_bytes: base
                .hostcall_bytes
                .max(self.file_bytes.saturating_add(Self::REST_BYTES)),
            ..base.clone()
        }
    }

    /// The number of bytes kept of each stream.
    pub fn kept(&self, wanted: &ProgramLimits) -> u64 {
        let (kept, most) = match self.output_bytes {
            Some(allowed) => (allowed, allowed),
            None => (Self::KEPT_BYTES, Self::MAX_KEPT_BYTES),
        };
        wanted.output_bytes.unwrap_or(kept).min(most)
    }

    /// The limit of a program's CPU time, and of its virtual time.
    pub fn time(&self, wanted: &ProgramLimits) -> Duration {
        wanted.time.unwrap_or(self.time).min(self.time)
    }
}

/// The limits that a program asks for, within the operator's. `None` asks for everything allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProgramLimits {
    /// Limit of CPU time. The same limit applies to the time that the program sees.
    pub time: Option<Duration>,
    /// Limit of all memory together.
    pub memory_bytes: Option<u64>,
    /// Bytes kept of each stream. `None` keeps less than the maximum, unless the operator sets a number: see
    /// [`ProgramGrants::output_bytes`].
    pub output_bytes: Option<u64>,
    /// Limit of the total size of its files.
    pub file_bytes: Option<u64>,
}

impl ProgramLimits {
    /// The limits that the interpreter must keep.
    pub fn into_guest(self, grants: &ProgramGrants) -> code::Limits {
        let allowed = |wanted: Option<u64>, most: u64| wanted.unwrap_or(most).min(most);
        code::Limits {
            wall_ms: u32::try_from(grants.time(&self).as_millis()).unwrap_or(u32::MAX),
            memory_bytes: allowed(self.memory_bytes, grants.memory_bytes),
            output_bytes: u32::try_from(grants.kept(&self)).unwrap_or(u32::MAX),
            file_bytes: allowed(self.file_bytes, grants.file_bytes),
        }
    }

    /// Converts the limits that a plugin asks for. 0 asks for everything allowed.
    pub fn from_guest(limits: code::Limits) -> Self {
        let given = |value: u64| (value > 0).then_some(value);
        Self {
            time: given(limits.wall_ms.into()).map(Duration::from_millis),
            memory_bytes: given(limits.memory_bytes),
            output_bytes: given(limits.output_bytes.into()),
            file_bytes: given(limits.file_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_asks_keeps_more_of_its_output_within_what_the_operator_says() {
        let kept = |said: Option<u64>, wanted: Option<u64>| {
            let grants = ProgramGrants {
                output_bytes: said,
                ..ProgramGrants::default()
            };
            grants.kept(&ProgramLimits {
                output_bytes: wanted,
                ..ProgramLimits::default()
            })
        };
        assert_eq!(kept(None, None), 64 << 10);
        assert_eq!(kept(None, Some(u64::MAX)), 1 << 20);
        assert_eq!(kept(None, Some(5)), 5);
        assert_eq!(kept(Some(1_000), None), 1_000);
        assert_eq!(kept(Some(1_000), Some(u64::MAX)), 1_000);
        assert_eq!(kept(Some(4 << 20), Some(u64::MAX)), 4 << 20);
    }
}
