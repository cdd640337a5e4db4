//! The options of a run: the number of rows, their scenarios, and the complexity of their tools.

use std::fmt;
use std::str::FromStr;

use rlf_dialogue::split::Split;
use rlf_random::{Key, Purpose};
use serde::{Deserialize, Serialize};

/// The four scenarios of FTRL.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scenario {
    /// One fact.
    SingleHop,
    /// A chain: each fact is about the answer of the one before.
    MultiHop,
    /// Two or three independent facts, which are then compared or added up.
    ParallelSingleHop,
    /// Two chains, whose ends are compared or added up.
    ParallelMultiHop,
}

impl Scenario {
    /// Every scenario, in the order of FTRL's data.
    pub const ALL: [Self; 4] = [
        Self::SingleHop,
        Self::MultiHop,
        Self::ParallelSingleHop,
        Self::ParallelMultiHop,
    ];

    /// The name in artefacts and in `data_source`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SingleHop => "single_hop",
            Self::MultiHop => "multi_hop",
            Self::ParallelSingleHop => "parallel_single_hop",
            Self::ParallelMultiHop => "parallel_multi_hop",
        }
    }

    /// Minimum and maximum number of sub-answers, as published.
    pub fn sub_answers(self) -> (usize, usize) {
        match self {
            Self::SingleHop => (1, 1),
            Self::ParallelSingleHop => (2, 3),
            Self::MultiHop => (2, 10),
            Self::ParallelMultiHop => (5, 11),
        }
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Scenario {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        UnknownName::find(name, &Self::ALL, Self::as_str)
    }
}

/// The split of a tenth: eight tenths of everything are for training, and one tenth each for validation and test. No
/// entity and no name of a tool is in two splits.
pub(crate) fn split_of_tenth(tenth: u64) -> Split {
    match tenth {
        0..=7 => Split::Train,
        8 => Split::Validation,
        _ => Split::Test,
    }
}

/// The split that follows from an entity's name.
pub(crate) fn split_of_name(name: &str) -> Split {
    split_of_tenth(Key::new(0, Purpose::Order).named(name).below(0, 10))
}

/// The complexity that stage 4 gives the tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Complexity {
    /// One required parameter, a short description, no distractor: for policies with a small context.
    None,
    /// A few optional parameters and up to three distractors.
    Low,
    /// The sizes that FTRL published: 1 to 15 tools, 15,200 characters on average and 26,200 at most.
    Published,
}

impl Complexity {
    /// Every complexity, the lowest first.
    pub const ALL: [Self; 3] = [Self::None, Self::Low, Self::Published];

    /// The name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Low => "low",
            Self::Published => "published",
        }
    }

    /// Maximum number of characters of a row's tools.
    pub fn max_tool_characters(self) -> usize {
        match self {
            Self::None => 8_000,
            Self::Low => 14_000,
            Self::Published => 26_200,
        }
    }
}

impl FromStr for Complexity {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        UnknownName::find(name, &Self::ALL, Self::as_str)
    }
}

/// Number of rows of a run that names no other.
pub const DEFAULT_ROWS: usize = 1_000;

/// Maximum number of tools of a row, as published.
pub const MAX_TOOLS: usize = 15;

/// A name that is none of the known ones.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not known; write one of: {known}")]
pub struct UnknownName {
    /// The name.
    pub name: String,
    /// The known names.
    pub known: String,
}

impl UnknownName {
    /// The one of `all` that has this name.
    pub(super) fn find<T: Copy>(
        name: &str,
        all: &[T],
        as_str: fn(T) -> &'static str,
    ) -> Result<T, Self> {
        let found = all.iter().copied().find(|one| as_str(*one) == name);
        found.ok_or_else(|| {
            let known: Vec<&str> = all.iter().copied().map(as_str).collect();
            Self {
                name: name.to_owned(),
                known: known.join(", "),
            }
        })
    }
}

/// The options of a run. The same options and the same input make the same bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RowOptions {
    /// Number of verified rows. Default [`DEFAULT_ROWS`]. `usize::MAX` takes every question of a file.
    pub count: usize,
    /// Seed of all draws.
    pub seed: u64,
    /// The scenarios, which take turns.
    pub scenarios: Vec<Scenario>,
    /// Maximum number of sub-answers of a row.
    pub max_calls: usize,
    /// Complexity of the tools.
    pub complexity: Complexity,
}

impl Default for RowOptions {
    fn default() -> Self {
        Self {
            count: DEFAULT_ROWS,
            seed: 0,
            scenarios: Scenario::ALL.to_vec(),
            max_calls: 11,
            complexity: Complexity::Published,
        }
    }
}
