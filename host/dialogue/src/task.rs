//! A task: the prompt for the model, and the reference that rewards grade against.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::message::Message;

/// One task, as a row of a task file in our own format (JSON lines).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// Unique within its file.
    pub id: String,
    /// Name of the data set, so that one reward can serve several.
    pub source: String,
    /// The first messages that the model sees. May be empty if an environment provides them.
    pub prompt: Vec<Message>,
    /// Names of the tools that this task may use. If absent: all tools of its environment, or all tools if it has none.
    #[serde(default)]
    pub tools: Option<Vec<String>>,
    /// The answer, the tests or the end state, as the data set has it. Only rewards see it.
    pub reference: Value,
    /// Name of the task's environment, if it has one.
    #[serde(default)]
    pub environment: Option<String>,
    /// The environment's setup for this task, such as its initial state. The model does not see it.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub setup: Value,
    /// Anything else. `kind`, if present, groups tasks in evaluations.
    #[serde(default)]
    pub extra: Map<String, Value>,
}

/// A task with the number that keys its randomness: two plays of one task with different numbers draw differently. In
/// evaluations it is the index of the task within its split. In training it counts tasks over all steps.
#[derive(Debug, Clone)]
pub struct NumberedTask {
    /// The number.
    pub number: u64,
    /// The task.
    pub task: Arc<Task>,
}

impl Task {
    /// The group that evaluations report this task in: `extra.kind`, or the source.
    pub fn kind(&self) -> &str {
        self.extra
            .get("kind")
            .and_then(Value::as_str)
            .unwrap_or(&self.source)
    }
}
