//! The states in which episodes begin.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

/// The size of a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Size {
    /// A few entities.
    Simple,
    /// Enough for several steps.
    Medium,
    /// Many entities with many relations.
    Complex,
    /// Limits: empty collections, exhausted stock, reached maxima.
    Boundary,
}

impl Size {
    /// All sizes.
    pub const ALL: [Self; 4] = [Self::Simple, Self::Medium, Self::Complex, Self::Boundary];

    /// The size of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|size| size.name() == name)
    }

    /// The name in a file and in a task.
    pub fn name(self) -> &'static str {
        match self {
            Self::Simple => "simple",
            Self::Medium => "medium",
            Self::Complex => "complex",
            Self::Boundary => "boundary",
        }
    }
}

/// An initial state, generated from a seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scenario {
    /// Its size, which is also its name.
    pub size: Size,
    /// Its purpose.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Number of entities, by name. An entity that is not listed has none.
    #[serde(default)]
    pub counts: BTreeMap<String, Count>,
    /// Generators that replace those of fields, by `entity.field` or by the name of a single value.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub generate: BTreeMap<String, Generator>,
}

/// A number of entities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(
    untagged,
    expecting = "a count is a number from 0 to 500, or [least, most]"
)]
pub enum Count {
    /// This number.
    Exactly(u32),
    /// From the least to the most, both included.
    Between(u32, u32),
}

impl Count {
    /// The minimum and the maximum.
    pub fn range(self) -> (u32, u32) {
        match self {
            Self::Exactly(count) => (count, count),
            Self::Between(least, most) => (least, most),
        }
    }
}

/// The way in which a generated state fills a field.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Generator {
    /// Always this value.
    Constant(Value),
    /// One of these values.
    Choice(Vec<Value>),
    /// A word of this vocabulary.
    Word(String),
    /// A text in which `{vocabulary}` is a word of it.
    Template(String),
    /// A number, both limits included.
    Range {
        /// The minimum.
        minimum: Number,
        /// The maximum.
        maximum: Number,
    },
    /// A day, both limits included.
    Dates {
        /// The first.
        from: String,
        /// The last.
        to: String,
    },
    /// The value of an expression, in which earlier fields of the entity are known by their names.
    Expression(String),
}
