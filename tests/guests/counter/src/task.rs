//! A task of the environment.

use rlf_plugin::Error;
use serde::{Deserialize, Serialize};

#[derive(Clone, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Task {
    /// The count to start from.
    pub(crate) start: i64,
    /// The tools to offer; without a list, all but `secret`.
    pub(crate) tools: Option<Vec<String>>,
    pub(crate) say: Say,
    pub(crate) state: Size,
    /// Size of a big state in MiB.
    pub(crate) mib: usize,
    // The fault of each of these functions, instead of its work.
    pub(crate) open: Fault,
    pub(crate) restore: Fault,
    pub(crate) snapshot: Fault,
    pub(crate) verify: Fault,
    /// Added to the count when a session is restored: an error on purpose.
    pub(crate) drift: i64,
}

impl Default for Task {
    fn default() -> Self {
        Self {
            start: 0,
            tools: None,
            say: Say::default(),
            state: Size::default(),
            mib: 32,
            open: Fault::default(),
            restore: Fault::default(),
            snapshot: Fault::default(),
            verify: Fault::default(),
            drift: 0,
        }
    }
}

/// The effect of text from the model.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Say {
    /// Text is answered, as by a simulated user, except "end".
    #[default]
    Answer,
    /// Any text ends the episode.
    End,
    /// Like [`Fault::Error`].
    Error,
    /// Like [`Fault::Trap`].
    Trap,
}

#[derive(Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Size {
    #[default]
    Small,
    Big,
}

#[derive(Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Fault {
    #[default]
    None,
    Error,
    Trap,
    Spin,
}

impl Fault {
    /// Fails in `place` if the task asks for it.
    pub(crate) fn strike(self, place: &str) -> Result<(), Error> {
        match self {
            Self::None => Ok(()),
            Self::Error => Err(Error::Internal(format!("{place} fails as the task asks"))),
            Self::Trap => panic!("{place} traps as the task asks"),
            Self::Spin => crate::tools::spin(),
        }
    }
}
