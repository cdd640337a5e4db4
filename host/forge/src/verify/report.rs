//! The findings of a verification.

use std::collections::BTreeMap;
use std::fmt;

use rlf_specification::Severity;
use serde::{Deserialize, Serialize};

/// The kind of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// An initial state does not load.
    DoesNotLoad,
    /// A call broke the environment: it trapped or reached a limit.
    Breaks,
    /// The walks without a sandbox did not end in time.
    SlowWalks,
    /// An operation would have broken an invariant, or one of its expressions had no value.
    BreaksRule,
    /// A refused call changed the state.
    RefusalChanges,
    /// An operation that says it is read-only changed the state.
    ReadOnlyChanges,
    /// Arguments that do not fit the schema were accepted.
    AcceptsErrors,
    /// The same seed and calls gave other bytes.
    NotRepeatable,
    /// A saved state does not load, or loads as another.
    DoesNotReload,
    /// A session restored from a snapshot has another state.
    SnapshotDiffers,
    /// A result does not fit the declared output schema.
    WrongResult,
    /// A result has another value of a field than the state.
    ResultDiffers,
    /// A description says a text of the state.
    LeakingDescription,
    /// No call of an operation succeeded.
    NeverSucceeds,
    /// No call of an operation was refused.
    NeverRefuses,
}

impl FindingKind {
    /// The severity of findings of this kind.
    pub fn severity(self) -> Severity {
        match self {
            Self::NeverRefuses | Self::ResultDiffers => Severity::Warning,
            _ => Severity::Error,
        }
    }
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// Its kind.
    pub kind: FindingKind,
    /// Its severity.
    pub severity: Severity,
    /// The operation or initial state.
    pub place: String,
    /// The event, with the call.
    pub message: String,
    /// A way to mend it.
    pub mend: String,
    /// Number of times that it happened.
    pub times: usize,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.message)?;
        if self.times > 1 {
            write!(f, " ({} times)", self.times)?;
        }
        write!(f, "; {}", self.mend)
    }
}

/// The findings so far: the first of each kind and place, counted.
#[derive(Debug, Default)]
pub(super) struct Findings {
    found: BTreeMap<(FindingKind, String), Finding>,
}

impl Findings {
    pub(super) fn add(
        &mut self,
        kind: FindingKind,
        place: &str,
        message: impl Into<String>,
        mend: &str,
    ) {
        let found = self
            .found
            .entry((kind, place.to_owned()))
            .or_insert_with(|| Finding {
                kind,
                severity: kind.severity(),
                place: place.to_owned(),
                message: message.into(),
                mend: mend.to_owned(),
                times: 0,
            });
        found.times += 1;
    }

    /// The number of findings of a kind at a place.
    pub(super) fn times(&self, kind: FindingKind, place: &str) -> usize {
        let found = self.found.get(&(kind, place.to_owned()));
        found.map_or(0, |found| found.times)
    }

    pub(super) fn into_list(self) -> Vec<Finding> {
        self.found.into_values().collect()
    }
}

/// The calls of one operation, counted by how they ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationReport {
    /// The operation's tool.
    pub name: String,
    /// Calls with arguments that fit the schema.
    pub calls: usize,
    /// Calls that were carried out.
    pub succeeded: usize,
    /// Calls that were refused.
    pub refused: usize,
    /// Calls with arguments that do not fit the schema.
    pub erroneous: usize,
    /// True if it has parameters.
    #[serde(skip)]
    pub has_parameters: bool,
    /// The last refusal, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_refusal: Option<String>,
}

/// The result of a verification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// The environment's name.
    pub environment: String,
    /// Initial states that were tried.
    pub starts: usize,
    /// Initial states that loaded.
    pub loaded: usize,
    /// Calls of all walks.
    pub calls: usize,
    /// Every operation that an initial state offers.
    pub operations: Vec<OperationReport>,
    /// The findings.
    pub findings: Vec<Finding>,
}

impl Report {
    /// True if no finding is an error.
    pub fn is_sound(&self) -> bool {
        self.findings
            .iter()
            .all(|finding| finding.severity == Severity::Warning)
    }
}
