//! The options of a run: how many rows, of which scenarios, and how complex their tools are.

use std::fmt;
use std::str::FromStr;

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

/// Every scenario, in the order of FTRL's data.
pub const SCENARIOS: [Scenario; 4] = [
    Scenario::SingleHop,
    Scenario::MultiHop,
    Scenario::ParallelSingleHop,
    Scenario::ParallelMultiHop,
];

impl Scenario {
    /// The name in artefacts and in `data_source`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SingleHop => "single_hop",
            Self::MultiHop => "multi_hop",
            Self::ParallelSingleHop => "parallel_single_hop",
            Self::ParallelMultiHop => "parallel_multi_hop",
        }
    }

    /// The least and the largest number of sub-answers, as published.
    pub fn sub_answers(self) -> (usize, usize) {
        match self {
            Self::SingleHop => (1, 1),
            Self::ParallelSingleHop => (2, 3),
            Self::MultiHop => (2, 10),
            Self::ParallelMultiHop => (5, 11),
        }
    }
}

/// The split of a row. No entity and no name of a tool is in two splits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Split {
    /// Eight tenths of everything.
    Train,
    /// One tenth.
    Validation,
    /// One tenth.
    Test,
}

/// Every split.
pub const SPLITS: [Split; 3] = [Split::Train, Split::Validation, Split::Test];

impl Split {
    /// The name in artefacts and files.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Validation => "validation",
            Self::Test => "test",
        }
    }

    /// The split of a tenth.
    pub(crate) fn of_tenth(tenth: u64) -> Self {
        match tenth {
            0..=7 => Self::Train,
            8 => Self::Validation,
            _ => Self::Test,
        }
    }
}

/// How far stage 4 takes the tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Complexity {
    /// One required parameter, a short description, no distractor: for policies with a small context.
    None,
    /// A few optional parameters and up to three distractors.
    Low,
    /// The sizes that FTRL published: 1 to 15 tools, 15,600 characters on average and 26,200 at most.
    Published,
}

impl Complexity {
    /// Largest number of characters of a row's tools.
    pub fn max_tool_characters(self) -> usize {
        match self {
            Self::None => 8_000,
            Self::Low => 14_000,
            Self::Published => 26_200,
        }
    }
}

/// Largest number of tools of a row, as published.
pub const MAX_TOOLS: usize = 15;

/// A name that is none of the known ones.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not known; write one of: {known}")]
pub struct UnknownName {
    /// The name.
    pub name: String,
    /// The known names.
    pub known: &'static str,
}

impl FromStr for Complexity {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        match name {
            "none" => Ok(Self::None),
            "low" => Ok(Self::Low),
            "published" => Ok(Self::Published),
            _ => Err(UnknownName {
                name: name.to_owned(),
                known: "none, low, published",
            }),
        }
    }
}

impl FromStr for Scenario {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        let found = SCENARIOS
            .into_iter()
            .find(|scenario| scenario.as_str() == name);
        found.ok_or_else(|| UnknownName {
            name: name.to_owned(),
            known: "single_hop, multi_hop, parallel_single_hop, parallel_multi_hop",
        })
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a run makes. The same options and the same input make the same bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowOptions {
    /// Number of verified rows.
    pub count: usize,
    /// Seed of all draws.
    pub seed: u64,
    /// The scenarios, which take turns.
    pub scenarios: Vec<Scenario>,
    /// Largest number of sub-answers of a row.
    pub max_calls: usize,
    /// How complex the tools are.
    pub complexity: Complexity,
}

impl Default for RowOptions {
    fn default() -> Self {
        Self {
            count: 10_000,
            seed: 0,
            scenarios: SCENARIOS.to_vec(),
            max_calls: 11,
            complexity: Complexity::Published,
        }
    }
}
