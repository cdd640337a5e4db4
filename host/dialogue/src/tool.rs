//! Tools as a conversation sees them: definitions, calls, observations, and how calls ended.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::content::Content;

/// Promises of a tool about its calls.
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
    /// The same component, config, data and arguments give the same observation, whatever the seed.
    pub deterministic: bool,
    /// Talks to systems outside the sandbox.
    pub open_world: bool,
}

/// Key in a definition's `extra` for the author's name of the tool, if the model sees another name.
pub const OWN_NAME: &str = "own-name";

/// A tool that a model may call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ToolDefinition {
    /// Matches `[a-zA-Z0-9_-]{1,64}`.
    pub name: String,
    /// Description for the model.
    pub description: String,
    /// A JSON Schema (2020-12) whose root type is `object`; key order is kept.
    pub input_schema: Value,
    /// Schema of the structured part, if the tool always returns one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    /// Promises about its calls.
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
    /// Unique within a run: the trajectory's id, the turn and the index of the call.
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
    /// Name of the measured quantity.
    pub name: String,
    /// Its value, finite.
    pub value: f64,
}

/// The result of a call as a tool shows it to the model.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Observation {
    /// The content that the model sees, in order.
    pub content: Vec<Content>,
    /// True if the content reports a failure that the model should react to.
    pub failed: bool,
    /// Numbers for the trainer's logs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<Metric>,
    /// Named values that a later version of the contract may need.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra: Vec<(String, Value)>,
}

impl Observation {
    /// Makes an observation of one text part.
    pub fn text(text: impl Into<String>, failed: bool) -> Self {
        Self {
            content: vec![Content::Text(text.into())],
            failed,
            ..Self::default()
        }
    }
}

/// The end of a call, as the host records it and rewards read it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// The tool returned an observation.
    Ok,
    /// The tool returned an observation that says it failed.
    Failed,
    /// The arguments do not match the tool's schema.
    InvalidArguments,
    /// A time limit was reached; [`Fault`] says who is responsible.
    Timeout,
    /// The guest asked for more memory than its limit.
    MemoryLimit,
    /// The guest returned or printed more than its limit.
    OutputLimit,
    /// The guest broke: unreachable code, out of bounds, a panic.
    Trap,
    /// The guest called `exit`.
    Exited,
    /// The operator has not granted what the guest asked for.
    Denied,
    /// A dependency or a resource of the host was not available.
    Unavailable,
    /// The caller cancelled the call.
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

/// The party responsible for how a call ended. It decides whether the trajectory is graded or excluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fault {
    /// No party: the call ended well. Records of earlier versions have [`Fault::Model`] here, with [`Ended::Ok`].
    None,
    /// The model made a mistake, or the tool says that it failed: the result is shown to the model and graded.
    Model,
    /// The plugin is broken: the failure is shown to the model without a backtrace, and counted.
    Plugin,
    /// An infrastructure failure (queueing, a host call, a dependency): the trajectory is excluded, never scored 0.
    Infrastructure,
    /// No party: the call was cancelled and does not count.
    Nobody,
}

impl Fault {
    /// The party responsible for a call that the tool answered. `failed` is true if the answer reports a failure.
    pub fn of_answer(failed: bool) -> Self {
        if failed { Self::Model } else { Self::None }
    }
}

/// The result of one call in a turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct CallOutcome {
    /// The call this answers.
    pub call_id: String,
    /// The tool's name, for logs.
    pub name: String,
    /// The end of the call.
    pub ended: Ended,
    /// The party responsible for that.
    pub fault: Fault,
    /// The observation for the model. Always set, except after an infrastructure failure or a cancellation.
    pub observation: Option<Observation>,
    /// Reward of this step, from an environment that rewards steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step_reward: Option<f64>,
    /// Hash of the environment's state after the call, hexadecimal; none for calls outside an environment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    /// The limit that was reached, or the error text. For logs, never for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Wall-clock time of the call in microseconds, queueing included. Not reproducible.
    #[serde(default)]
    pub wall_us: u64,
    /// Hash of the component that served the call, hexadecimal; empty if none did.
    #[serde(default)]
    pub component: String,
    /// The calls that a program made while it ran, in their order, if the operator opens tools to programs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nested: Vec<NestedCall>,
}

/// A call that a program made while it ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NestedCall {
    /// The arguments.
    pub arguments: Value,
    /// The end of the call, and what the program saw.
    pub outcome: CallOutcome,
}

impl CallOutcome {
    /// The outcome of a call that the tool answered, served by no component.
    pub fn from_observation(call_id: String, name: String, observation: Observation) -> Self {
        Self {
            call_id,
            name,
            ended: Ended::Ok,
            fault: Fault::None,
            observation: Some(observation),
            step_reward: None,
            state: None,
            detail: None,
            wall_us: 0,
            component: String::new(),
            nested: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_ended_well_is_nobodys_fault_and_older_records_still_load() {
        let observation = Observation::text("4", false);
        let outcome = CallOutcome::from_observation("1".into(), "add".into(), observation);
        let mut record = serde_json::to_value(&outcome).unwrap();
        assert_eq!(record["fault"], "none");
        record["fault"] = "model".into();
        let older: CallOutcome = serde_json::from_value(record).unwrap();
        assert_eq!((older.ended, older.fault), (Ended::Ok, Fault::Model));
        assert_eq!(Fault::of_answer(true), Fault::Model);
    }
}
