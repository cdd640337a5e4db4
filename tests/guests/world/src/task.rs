//! A task of the environment.

use rlf_plugin::Error;
use serde::{Deserialize, Serialize};

#[derive(Clone, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Task {
    /// The count to start from.
    pub(crate) start: i64,
    /// The tools to offer; all but `secret` where there are none.
    pub(crate) tools: Option<Vec<String>>,
    pub(crate) say: Say,
    pub(crate) state: Size,
    /// How much a big state has to it.
    pub(crate) mib: usize,
    // What each of these functions does in place of its work.
    pub(crate) open: Fault,
    pub(crate) restore: Fault,
    pub(crate) snapshot: Fault,
    pub(crate) verify: Fault,
    /// What is added to the count where a session is restored, which must not be.
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

/// What becomes of words.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Say {
    /// All but "end" are answered, as a simulated user would.
    #[default]
    Answer,
    /// Any of them end the episode.
    End,
    /// As [`Fault::Error`].
    Error,
    /// As [`Fault::Trap`].
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
    /// Fails in `place` as asked, if it was.
    pub(crate) fn strike(self, place: &str) -> Result<(), Error> {
        match self {
            Self::None => Ok(()),
            Self::Error => Err(Error::Internal(format!("{place} fails as the task asks"))),
            Self::Trap => panic!("{place} traps as the task asks"),
            Self::Spin => crate::tools::spin(),
        }
    }
}
