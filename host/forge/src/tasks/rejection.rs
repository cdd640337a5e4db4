//! The reasons for which a candidate does not become a task.

use serde::{Deserialize, Serialize};

/// The stages that a candidate passes. Each has a file of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// Environments, scenarios and a chain of tools are sampled.
    Chains,
    /// The chain is executed, pruned and split into turns.
    Trajectories,
    /// The query is written from what was done, and refined.
    Queries,
    /// The task is checked from what its text says.
    Checks,
    /// The task is replayed in the real environment.
    Replays,
    /// A language model rewrites the words, where one is configured. It rejects no candidate.
    Texts,
}

impl Stage {
    /// All stages in their order.
    pub const ALL: [Self; 6] = [
        Self::Chains,
        Self::Trajectories,
        Self::Queries,
        Self::Checks,
        Self::Replays,
        Self::Texts,
    ];

    /// The name in files and reports, and of the stage's file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chains => "chains",
            Self::Trajectories => "trajectories",
            Self::Queries => "queries",
            Self::Checks => "checks",
            Self::Replays => "replays",
            Self::Texts => "texts",
        }
    }
}

/// The kind of reason for which a candidate is rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// A required input of a tool in the chain has no source.
    InvalidChain,
    /// A scenario does not load.
    NoScenario,
    /// No call of the chain that matters succeeded.
    NothingDone,
    /// In the order of the turns, a call no longer gives what another one needs.
    OrderMatters,
    /// The calls need more room than the limits of calls and turns allow.
    TooLong,
    /// Linked turns are asked for, and the calls make only one turn.
    Unlinked,
    /// No facts about an entity tell it from the others.
    Ambiguous,
    /// The words would be the same as those of too many other tasks.
    Template,
    /// A value that the request depends on is not in the text.
    Unsaid,
    /// An argument of a gold call is neither in the text nor in a result nor a default.
    UnknownArgument,
    /// The text says what the model has to find out.
    Leak,
    /// Each turn asks for one call with copied arguments, or for nothing.
    Trivial,
    /// The goal is reached by doing nothing.
    NothingToDo,
    /// Another task has the same text or the same calls in the same state.
    Duplicate,
    /// Too few attempts of the solver reached the goal.
    Impossible,
    /// The real environment did something else.
    Diverged,
}

impl Reason {
    /// The name in files and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidChain => "invalid-chain",
            Self::NoScenario => "no-scenario",
            Self::NothingDone => "nothing-done",
            Self::OrderMatters => "order-matters",
            Self::TooLong => "too-long",
            Self::Unlinked => "unlinked",
            Self::Ambiguous => "ambiguous",
            Self::Template => "template",
            Self::Unsaid => "unsaid",
            Self::UnknownArgument => "unknown-argument",
            Self::Leak => "leak",
            Self::Trivial => "trivial",
            Self::NothingToDo => "nothing-to-do",
            Self::Duplicate => "duplicate",
            Self::Impossible => "impossible",
            Self::Diverged => "diverged",
        }
    }

    /// The meaning of the reason for the environments, and what to change if most candidates are rejected for it.
    pub fn advice(self) -> &'static str {
        match self {
            Self::InvalidChain => {
                "a required input of a tool has no source; let another tool return it, or declare it with \
                 `from_user = true`"
            }
            Self::NoScenario => {
                "no scenario loads; mend the scenarios, or name others with --scenarios"
            }
            Self::NothingDone => {
                "no call succeeds and changes or finds something; give scenarios records that the tools can act on"
            }
            Self::OrderMatters => "a change takes away what a later turn needs; lower --max-turns",
            Self::TooLong => {
                "requests need more calls than allowed; raise --max-calls and --max-turn-calls"
            }
            Self::Unlinked => {
                "no turn uses a result of the one before it; leave out --linked-turns, or add tools that need such \
                 results"
            }
            Self::Ambiguous => {
                "no field tells one record from another in words, so requests cannot name one; give entities a field \
                 that people name them by"
            }
            Self::Template => {
                "texts differ too little; give more environments or tools, or leave out --terse"
            }
            Self::Unsaid => {
                "texts do not ask for a tool, or lack a value; let each tool's description begin with the verb for what \
                 it does"
            }
            Self::UnknownArgument => {
                "an argument is in no text and no result; let a lookup return it, or let the user know it"
            }
            Self::Leak => {
                "texts say what has to be found out; let names differ from keys, and let lookups return more than they \
                 take"
            }
            Self::Trivial => {
                "one call with words of the text is enough; add tools that need keys of other results, or give \
                 --keep-trivial"
            }
            Self::NothingToDo => {
                "requests change nothing and ask for nothing; add tools that change the state"
            }
            Self::Duplicate => {
                "tasks repeat each other; give scenarios more records, or lower --count"
            }
            Self::Impossible => {
                "the text does not suffice to reach the goal; let lookups return the fields that tell records apart"
            }
            Self::Diverged => {
                "the environment does something else when it is played again; let results depend on its state alone"
            }
        }
    }
}

/// A reason with its explanation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{}: {detail}", reason.as_str())]
pub struct Rejection {
    /// The kind of reason.
    pub reason: Reason,
    /// The finding and its place.
    pub detail: String,
}

impl Rejection {
    pub(super) fn new(reason: Reason, detail: impl Into<String>) -> Self {
        Self {
            reason,
            detail: detail.into(),
        }
    }
}

/// A candidate that was rejected, as a line of `rejected.jsonl`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rejected {
    /// Number of the candidate.
    pub candidate: u64,
    /// The stage that rejected it.
    pub stage: Stage,
    /// The kind of reason.
    pub reason: Reason,
    /// The finding and its place.
    pub detail: String,
}
