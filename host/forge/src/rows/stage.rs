//! The stages, by name.

use std::fmt;
use std::str::FromStr;

use super::options::UnknownName;

/// A stage, named after its work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The graph of facts.
    Facts,
    /// Stage 1: questions with sub-questions.
    Decompose,
    /// Stage 2: one tool for each sub-question.
    Document,
    /// Stage 3: fewer, more general tools.
    Integrate,
    /// Stage 4: more complex tools, and distractors.
    Scale,
    /// Stage 5: schemas, sources and gold calls.
    Deploy,
    /// Verification by execution.
    Verify,
}

impl Stage {
    /// Every stage, in order.
    pub const ALL: [Self; 7] = [
        Self::Facts,
        Self::Decompose,
        Self::Document,
        Self::Integrate,
        Self::Scale,
        Self::Deploy,
        Self::Verify,
    ];

    /// The stages before this one, in order.
    pub fn earlier(self) -> impl Iterator<Item = Self> {
        Self::ALL
            .into_iter()
            .take_while(move |stage| *stage != self)
    }

    /// The name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Facts => "facts",
            Self::Decompose => "decompose",
            Self::Document => "document",
            Self::Integrate => "integrate",
            Self::Scale => "scale",
            Self::Deploy => "deploy",
            Self::Verify => "verify",
        }
    }

    /// The name of its artefact, without `.jsonl`.
    pub fn artefact(self) -> &'static str {
        match self {
            Self::Facts => "0-facts",
            Self::Decompose => "1-decomposed",
            Self::Document => "2-documented",
            Self::Integrate => "3-integrated",
            Self::Scale => "4-scaled",
            Self::Deploy => "5-deployed",
            Self::Verify => "6-verified",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Stage {
    type Err = UnknownName;

    fn from_str(name: &str) -> Result<Self, UnknownName> {
        UnknownName::find(name, &Self::ALL, Self::as_str)
    }
}
