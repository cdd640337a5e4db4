//! Items that a stage rejects, each with the check that it failed and the reason.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::stage::Stage;

/// The checks. Each of them rejects an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Check {
    /// The graph has no such question: no chain of this length, or no values to compare.
    NoQuestion,
    /// The language model gave no decomposition that can be used.
    NoDecomposition,
    /// An earlier item asks the same.
    Duplicate,
    /// An answer is so short that it is found in most texts, or the question says it.
    Trivial,
    /// The tools are too many, or their text is too long.
    Size,
    /// Names, schemas, sources and calls of the tools do not fit together.
    Malformed,
    /// The program was stopped: by its time limit, by its memory limit, or because it ended itself.
    Stopped,
    /// A gold call does not give its sub-answer.
    Oracle,
    /// A gold call gives another result when FTRL's executor makes it.
    Scoping,
    /// A gold call also gives another call's sub-answer, so that matching would confuse them.
    Confusable,
    /// An argument of a gold call is neither in the question nor in an earlier result.
    InformationFlow,
    /// A distractor gives a sub-answer.
    Distractor,
    /// A call that is not a gold call gives a sub-answer.
    Shortcut,
    /// A description or a schema states an answer.
    Leak,
    /// An error text contains an answer.
    ErrorText,
    /// One of its entities or tools is in a row of another split.
    Split,
}

impl Check {
    /// The name in artefacts.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoQuestion => "no-question",
            Self::NoDecomposition => "no-decomposition",
            Self::Duplicate => "duplicate",
            Self::Trivial => "trivial",
            Self::Size => "size",
            Self::Malformed => "malformed",
            Self::Stopped => "stopped",
            Self::Oracle => "oracle",
            Self::Scoping => "scoping",
            Self::Confusable => "confusable",
            Self::InformationFlow => "information-flow",
            Self::Distractor => "distractor",
            Self::Shortcut => "shortcut",
            Self::Leak => "leak",
            Self::ErrorText => "error-text",
            Self::Split => "split",
        }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A reason why an item cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Finding {
    /// The check that it failed.
    pub check: Check,
    /// The mistake, with the tool, the call or the step.
    pub reason: String,
}

impl Finding {
    pub(crate) fn new(check: Check, reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self { check, reason }
    }

    pub(crate) fn malformed(reason: impl Into<String>) -> Self {
        Self::new(Check::Malformed, reason)
    }

    /// The rejection of the item with this id.
    pub(crate) fn rejects(self, id: String, stage: Stage) -> Rejection {
        Rejection {
            id,
            stage: stage.as_str().to_owned(),
            check: self.check,
            reason: self.reason,
        }
    }
}

/// An item that was rejected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rejection {
    /// The item.
    pub id: String,
    /// The stage that rejected it.
    pub stage: String,
    /// The check that it failed.
    pub check: Check,
    /// The mistake, with its place.
    pub reason: String,
}
