//! Tools as a conversation sees them: definitions, calls, and how calls ended.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::content::Content;

/// What a tool promises about its calls.
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent flags, as in the contract"
)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields, default)]
pub struct Hints {
    /// Has no side effects.
    pub read_only: bool,
    /// Repeating a call with the same arguments changes nothing more.
    pub idempotent: bool,
    /// Same component, config, data and arguments: same observation, whatever the seed.
    pub deterministic: bool,
    /// Talks to systems outside the sandbox.
    pub open_world: bool,
}

/// The value in a definition's `extra` that says what its author calls the tool, where the model sees another name.
pub const OWN_NAME: &str = "own-name";

/// A tool that a model may call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ToolDefinition {
    /// Matches `[a-zA-Z0-9_-]{1,64}`.
    pub name: String,
    /// What the model reads about the tool.
    pub description: String,
    /// A JSON Schema (2020-12) whose root type is `object`; key order is kept.
    pub input_schema: Value,
    /// Schema of the structured part, if the tool always returns one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// What the tool promises about its calls.
    #[serde(default)]
    pub hints: Hints,
    /// Named values that a later version of the contract may need.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra: Vec<(String, Value)>,
}

/// A well-formed call in a model's turn. Its arguments are a JSON object, not yet validated
/// against the tool's schema.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ToolCall {
    /// Unique within a trajectory: trajectory, turn and index of the call.
    #[serde(default)]
    pub call_id: String,
    /// The tool's name, exactly as called.
    pub name: String,
    /// A JSON object; key order is kept.
    pub arguments: Value,
}

/// A number for the trainer's logs. The model never sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    /// What is measured.
    pub name: String,
    /// Its value, finite.
    pub value: f64,
}

/// What a tool shows the model after a call.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Observation {
    /// What the model sees, in order.
    pub content: Vec<Content>,
    /// A failure that the model should read and react to.
    pub failed: bool,
    /// Numbers for the trainer's logs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<Metric>,
    /// Named values that a later version of the contract may need.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra: Vec<(String, Value)>,
}

impl Observation {
    /// An observation of one text part.
    pub fn text(text: impl Into<String>, failed: bool) -> Self {
        Self {
            content: vec![Content::Text(text.into())],
            failed,
            ..Self::default()
        }
    }
}

/// How a call ended, as the host records it and rewards read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// The tool returned an observation.
    Ok,
    /// The tool returned an observation that says it failed.
    Failed,
    /// The arguments do not match the tool's schema.
    InvalidArguments,
    /// A limit of time was reached; see [`Fault`] for whose doing it was.
    Timeout,
    /// The guest wanted more memory than it may have.
    MemoryLimit,
    /// The guest returned or printed more than it may.
    OutputLimit,
    /// The guest broke: unreachable code, out of bounds, a panic.
    Trap,
    /// The guest left by `exit`.
    Exited,
    /// The operator's policy refused what the guest asked for.
    Denied,
    /// A dependency or a resource of the host could not be had.
    Unavailable,
    /// The caller gave up.
    Cancelled,
}

impl Ended {
    /// Every way a call can end, in the order of the contract.
    pub const ALL: [Self; 11] = [
        Self::Ok,
        Self::Failed,
        Self::InvalidArguments,
        Self::Timeout,
        Self::MemoryLimit,
        Self::OutputLimit,
        Self::Trap,
        Self::Exited,
        Self::Denied,
        Self::Unavailable,
        Self::Cancelled,
    ];

    /// The name used in WIT, logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Failed => "failed",
            Self::InvalidArguments => "invalid-arguments",
            Self::Timeout => "timeout",
            Self::MemoryLimit => "memory-limit",
            Self::OutputLimit => "output-limit",
            Self::Trap => "trap",
            Self::Exited => "exited",
            Self::Denied => "denied",
            Self::Unavailable => "unavailable",
            Self::Cancelled => "cancelled",
        }
    }
}

/// Whose doing the end of a call was; decides what becomes of the trajectory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// The tool's answer, or the model's doing: shown to the model and graded.
    Model,
    /// The plugin is broken: shown to the model without a backtrace, and counted.
    Plugin,
    /// Queueing, a host call or a dependency: the trajectory is excluded, never scored 0.
    Infrastructure,
    /// Nobody's: the call was given up and does not count.
    Nobody,
}

/// The result of one call in a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CallOutcome {
    /// The call this answers.
    pub call_id: String,
    /// The tool's name, for logs.
    pub name: String,
    /// How it ended.
    pub ended: Ended,
    /// Whose doing that was.
    pub fault: Fault,
    /// What the model sees. Always set unless the fault is the infrastructure's or nobody's.
    pub observation: Option<Observation>,
    /// From an environment that rewards steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_reward: Option<f64>,
    /// Hash of the environment's state after the call, hexadecimal; none of calls that have no environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// For logs, never for the model: limit reached, error text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Wall-clock time of the call in microseconds, queueing included. Not reproducible.
    #[serde(default)]
    pub wall_us: u64,
    /// Hash of the component that served the call, hexadecimal; empty if none did.
    #[serde(default)]
    pub component: String,
}
