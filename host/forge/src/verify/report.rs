//! What a verification found.

use std::collections::BTreeMap;

use rlf_specification::Severity;
use serde::Serialize;

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// A beginning does not load.
    DoesNotLoad,
    /// A call broke the environment: it trapped or reached a limit.
    Breaks,
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
            Self::NeverRefuses => Severity::Warning,
            _ => Severity::Error,
        }
    }
}

/// One finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it is about.
    pub kind: FindingKind,
    /// How bad it is.
    pub severity: Severity,
    /// The operation or beginning.
    pub place: String,
    /// What happened, with the call.
    pub message: String,
    /// How to mend it.
    pub mend: String,
    /// How often it happened.
    pub times: usize,
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

    pub(super) fn into_list(self) -> Vec<Finding> {
        self.found.into_values().collect()
    }
}

/// How the calls of one operation ended.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
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
    /// Whether it has parameters.
    #[serde(skip)]
    pub has_parameters: bool,
    /// The last refusal, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_refusal: Option<String>,
}

/// The result of a verification.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The environment's name.
    pub environment: String,
    /// Beginnings that were tried.
    pub beginnings: usize,
    /// Beginnings that loaded.
    pub loaded: usize,
    /// Calls of all walks.
    pub calls: usize,
    /// Every operation that a beginning offers.
    pub operations: Vec<OperationReport>,
    /// What was found.
    pub findings: Vec<Finding>,
}

impl Report {
    /// Whether no finding is an error.
    pub fn is_sound(&self) -> bool {
        self.findings
            .iter()
            .all(|finding| finding.severity == Severity::Warning)
    }
}
