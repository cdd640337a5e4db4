//! `[plugins.<alias>.programs]`: what one program may use in an interpreter, and what a program asks for within that.

use std::time::Duration;

use rlf_config::milliseconds;
use rlf_sandbox::{Limits, ScratchFiles};
use serde::{Deserialize, Serialize};

use crate::bindings::code;

/// `[plugins.<alias>.programs]`: what one program may use in this interpreter. A run can ask for less.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ProgramGrants {
    /// CPU time, and again time as the program sees it, sleeping included. Key `time_ms`, default 10,000 ms.
    #[serde(rename = "time_ms", with = "milliseconds")]
    pub time: Duration,
    /// Real time of a run, waiting for a place included: past it the machine was too busy, and the run counts as
    /// `unavailable`. Key `deadline_ms`, default 120,000 ms.
    #[serde(rename = "deadline_ms", with = "milliseconds")]
    pub deadline: Duration,
    /// Sum of all memory. Default 256 MiB; at most what the sandbox gives one memory.
    pub memory_bytes: u64,
    /// Bytes kept of standard output, and again of standard error: half from the head, half from the tail. Default:
    /// 64 KiB each where a run asks for nothing, and 1 MiB at the most where it asks, as programs over HTTP do.
    /// `limits.output_stop_bytes` ends a program that prints more than that.
    pub output_bytes: Option<u64>,
    /// Sum of its files, of those that are given to it with code and input, and of those that are taken from it.
    /// Default 16 MiB.
    pub file_bytes: u64,
}

impl Default for ProgramGrants {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(10),
            deadline: Duration::from_mins(2),
            memory_bytes: 256 << 20,
            output_bytes: None,
            file_bytes: 16 << 20,
        }
    }
}

impl ProgramGrants {
    /// Default number of bytes kept of each output stream: as much as a model can read.
    pub const KEPT_BYTES: u64 = 64 << 10;
    /// Bytes kept of each stream of a run that asks for all, unless the operator says otherwise. Services that run
    /// processes keeps as much.
    pub const MAX_KEPT_BYTES: u64 = 1 << 20;
    /// Most files and directories of a program.
    const ENTRIES: u64 = 10_000;
    /// Deepest path of a program's.
    const DEPTH: u32 = 64;
    /// Bytes that cross beside files and output.
    const REST_BYTES: u64 = 4 << 20;

    /// Says which setting lets nothing run.
    pub(crate) fn check(&self) -> Result<(), String> {
        let (time, deadline) = (self.time, self.deadline);
        for (key, is_zero) in [
            ("time_ms", time.is_zero()),
            ("deadline_ms", deadline.is_zero()),
            ("memory_bytes", self.memory_bytes == 0),
        ] {
            if is_zero {
                return Err(format!("`programs.{key} = 0` would let no program run"));
            }
        }
        Ok(())
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

    /// The limits of an instance in which a program runs, within these and what the program asks for.
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

    /// The bytes kept of each stream.
    pub fn kept(&self, wanted: &ProgramLimits) -> u64 {
        let (kept, most) = match self.output_bytes {
            Some(allowed) => (allowed, allowed),
            None => (Self::KEPT_BYTES, Self::MAX_KEPT_BYTES),
        };
        wanted.output_bytes.unwrap_or(kept).min(most)
    }

    /// The time that a program may take, of either kind.
    pub fn time(&self, wanted: &ProgramLimits) -> Duration {
        wanted.time.unwrap_or(self.time).min(self.time)
    }
}

/// The limits that a program asks for, within those of the operator. `None` asks for all that is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProgramLimits {
    /// CPU time, and again time as the program sees it.
    pub time: Option<Duration>,
    /// Sum of all memory.
    pub memory_bytes: Option<u64>,
    /// Kept of each stream. Nothing said is less than all that is allowed where the operator says nothing either: see
    /// [`ProgramGrants::output_bytes`].
    pub output_bytes: Option<u64>,
    /// Sum of its files.
    pub file_bytes: Option<u64>,
}

impl ProgramLimits {
    /// The limits that the interpreter is told to keep.
    pub fn into_guest(self, grants: &ProgramGrants) -> code::Limits {
        let allowed = |wanted: Option<u64>, most: u64| wanted.unwrap_or(most).min(most);
        code::Limits {
            wall_ms: u32::try_from(grants.time(&self).as_millis()).unwrap_or(u32::MAX),
            memory_bytes: allowed(self.memory_bytes, grants.memory_bytes),
            output_bytes: u32::try_from(grants.kept(&self)).unwrap_or(u32::MAX),
            file_bytes: allowed(self.file_bytes, grants.file_bytes),
        }
    }

    /// As a plugin asks for them: 0 is all that is allowed.
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
