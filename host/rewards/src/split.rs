//! What a task is used for.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a task is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// Trained on.
    Train,
    /// Decides when to stop and what to keep.
    Validation,
    /// Decides nothing.
    Test,
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Train => "train",
            Self::Validation => "validation",
            Self::Test => "test",
        })
    }
}
