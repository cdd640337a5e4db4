//! Endings of calls. They decide whether a trajectory is scored or excluded.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Ending of a call that returned no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "ended")]
pub enum Ending {
    /// The guest broke: unreachable code, out of bounds, a panic, too deep a recursion.
    Trap,
    /// The guest called `exit`, with any code.
    Exited {
        /// The exit code.
        code: i32,
    },
    /// A time limit was reached.
    Timeout {
        /// The clock that timed out.
        clock: Clock,
    },
    /// The guest needed more memory than it may have, its own or the host's.
    MemoryLimit,
    /// The guest printed or handed over more than it may.
    OutputLimit,
    /// The operator does not allow what the guest asked for.
    Denied,
    /// The caller gave up.
    Cancelled,
    /// No instance was free inside the deadline, or the host failed.
    Unavailable,
}

/// The clock by which a call timed out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Clock {
    /// CPU time: the guest computed for longer than its budget, alone or beside others.
    Cpu,
    /// Virtual time: the guest slept or waited past its deadline.
    Virtual,
    /// Real time while the guest was computing: the machine was too busy for its budget.
    Wall,
    /// Real time inside a host function that waits for something outside.
    Host,
}

impl Ending {
    /// The name in the contract, logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Trap => "trap",
            Self::Exited { .. } => "exited",
            Self::Timeout { .. } => "timeout",
            Self::MemoryLimit => "memory-limit",
            Self::OutputLimit => "output-limit",
            Self::Denied => "denied",
            Self::Cancelled => "cancelled",
            Self::Unavailable => "unavailable",
        }
    }

    /// True for infrastructure failures: the machine was too busy, or a dependency of the host failed. Such a
    /// trajectory is excluded, never scored 0.
    pub fn is_infrastructure(self) -> bool {
        matches!(
            self,
            Self::Unavailable
                | Self::Timeout {
                    clock: Clock::Wall | Clock::Host
                }
        )
    }
}

/// A limit that ended a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitReached {
    /// The limit's key in [`Limits`](crate::Limits), such as `memory_bytes`.
    pub name: String,
    /// Its value, in the unit that the key names.
    pub value: u64,
    /// The amount used or asked for when it was reached, in the same unit.
    pub used: u64,
}

impl LimitReached {
    pub(crate) fn new(name: &str, value: u64, used: u64) -> Self {
        Self {
            name: name.to_owned(),
            value,
            used,
        }
    }
}

impl fmt::Display for LimitReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {}, used {}", self.name, self.value, self.used)
    }
}

/// A call that returned no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {reason}", .ended.as_str())]
pub struct Stopped {
    /// The kind of ending.
    pub ended: Ending,
    /// The reason, in one line that may be shown to a model: no backtrace, no path, no address.
    pub reason: String,
    /// The limit that was reached, if one was.
    pub limit: Option<LimitReached>,
    /// The guest's call stack, for logs only.
    pub backtrace: Option<String>,
}

impl Stopped {
    pub(crate) fn new(ended: Ending, reason: impl Into<String>) -> Self {
        Self {
            ended,
            reason: reason.into(),
            limit: None,
            backtrace: None,
        }
    }

    pub(crate) fn by_limit(ended: Ending, reason: impl Into<String>, limit: LimitReached) -> Self {
        Self {
            limit: Some(limit),
            ..Self::new(ended, reason)
        }
    }

    /// The end of a call that a host function ends because the operator does not allow it.
    pub fn denied(reason: impl Into<String>) -> Self {
        Self::new(Ending::Denied, reason)
    }

    /// The end of a call that a host function ends because the guest asked for more than the limit `name` allows.
    pub fn limited(name: &str, value: u64, asked: u64) -> Self {
        let limit = LimitReached::new(name, value, asked);
        let reason = format!("the plugin asked for more than it may ({limit})");
        Self::by_limit(Ending::Denied, reason, limit)
    }

    /// The end of a call that a host function ends because a dependency of the host failed.
    pub fn unavailable(reason: impl Into<String>) -> Self {
        Self::new(Ending::Unavailable, reason)
    }
}
