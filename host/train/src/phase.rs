//! The phases of a run: supervised fine-tuning, then reinforcement learning.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The phases of a run, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Supervised fine-tuning.
    Sft,
    /// Reinforcement learning.
    Rl,
}

impl Phase {
    /// All phases, in order.
    pub const ALL: [Self; 2] = [Self::Sft, Self::Rl];

    /// The name in logs and file names.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sft => "sft",
            Self::Rl => "rl",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The ways in which a phase can end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PhaseEnd {
    /// All its steps are done.
    Finished,
    /// The observer asked to stop; the run can be resumed.
    Interrupted,
    /// The run resumed from a checkpoint after this phase, so nothing was done.
    AlreadyDone,
}
