//! Findings of the checks.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Worth a look. The environment runs.
    Warning,
    /// The environment must not be used.
    Error,
}

/// The kind of a finding. The name in reports is the variant in lower case with hyphens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The file is not TOML or JSON, has unknown or missing keys, has no operation, or names a type that does not exist.
    Unreadable,
    /// Something is larger than specifications may be.
    TooLarge,
    /// A name is not allowed.
    BadName,
    /// Two things have the same name.
    DuplicateName,
    /// Something refers to what does not exist.
    UnknownReference,
    /// An expression cannot be parsed, or uses names or functions that do not exist.
    BadExpression,
    /// An expression has the wrong type.
    TypeMismatch,
    /// A limit, default or enumeration contradicts itself.
    BadRange,
    /// No state and no arguments allow an operation.
    ImpossibleOperation,
    /// Nobody can know the value of a parameter.
    UnfillableParameter,
    /// An operation does not use a parameter or a computed value.
    Unused,
    /// Two fields of a result always have the same value.
    RepeatedResult,
    /// An operation has effects, and neither a condition nor a postcondition: nothing can refuse it, and nothing says what
    /// it promises.
    Unguarded,
    /// An effect changes what does not exist, or contradicts `read_only`.
    BadEffect,
    /// A description contains a value of the generated states.
    LeakingDescription,
    /// A description is missing.
    MissingDescription,
    /// A scenario is missing or cannot be generated.
    BadScenario,
}

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 17] = [
        Self::Unreadable,
        Self::TooLarge,
        Self::BadName,
        Self::DuplicateName,
        Self::UnknownReference,
        Self::BadExpression,
        Self::TypeMismatch,
        Self::BadRange,
        Self::ImpossibleOperation,
        Self::UnfillableParameter,
        Self::Unused,
        Self::RepeatedResult,
        Self::Unguarded,
        Self::BadEffect,
        Self::LeakingDescription,
        Self::MissingDescription,
        Self::BadScenario,
    ];

    /// The severity of findings of this kind.
    pub fn severity(self) -> Severity {
        match self {
            Self::Unused | Self::RepeatedResult | Self::Unguarded | Self::MissingDescription => {
                Severity::Warning
            }
            _ => Severity::Error,
        }
    }
}

/// One finding. Its kind is one of these checks, unless it says otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding<K = Kind> {
    /// Its kind.
    pub kind: K,
    /// Its severity.
    pub severity: Severity,
    /// The place, as a JSON pointer: `/operations/2/preconditions/0/require`.
    pub place: String,
    /// The line in the file, from 1, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The fault.
    pub message: String,
    /// A way to mend it.
    pub mend: String,
}

impl Finding {
    /// A finding at a place, with the severity of its kind.
    pub fn new(
        kind: Kind,
        place: impl Into<String>,
        message: impl Into<String>,
        mend: impl Into<String>,
    ) -> Self {
        Self {
            kind,
            severity: kind.severity(),
            place: place.into(),
            line: None,
            message: message.into(),
            mend: mend.into(),
        }
    }

    /// True if the specification must not be used with it.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl<K> fmt::Display for Finding<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}, ")?;
        }
        let place = if self.place.is_empty() {
            "/"
        } else {
            &self.place
        };
        write!(f, "{place}: {}; {}", self.message, self.mend)
    }
}
