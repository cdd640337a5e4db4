//! The three splits of a run's tasks: train, validation and test.

use std::fmt;

use serde::{Deserialize, Serialize};

/// One of the three parts of a set of tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// The policy is trained on these tasks.
    Train,
    /// Decides when to stop and which checkpoint to keep.
    Validation,
    /// Decides nothing: it is for the report only.
    Test,
}

impl Split {
    /// All three, in this order.
    pub const ALL: [Self; 3] = [Self::Train, Self::Validation, Self::Test];

    /// The name in files, metrics and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Validation => "validation",
            Self::Test => "test",
        }
    }
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
