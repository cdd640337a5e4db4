//! A task: what the model is asked, and what rewards know about the right answer.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::message::Message;

/// One row of a task file (JSON lines).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// Unique within its file.
    pub id: String,
    /// Names the data set, so that one reward can serve several.
    pub source: String,
    /// What the model sees first. May be empty where an environment says it.
    pub prompt: Vec<Message>,
    /// Names of the tools this task may use; if absent all of them, or all of its environment's where it has one.
    #[serde(default)]
    pub tools: Option<Vec<String>>,
    /// What the data set calls the answer, tests or end state. Reaches rewards only.
    pub reference: Value,
    /// Name of the environment the task lives in, if any.
    #[serde(default)]
    pub environment: Option<String>,
    /// What the environment opens the task with, such as the state that its world begins in. The model does not see it.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub setup: Value,
    /// Anything else; `kind`, where present, groups tasks in evaluations.
    #[serde(default)]
    pub extra: Map<String, Value>,
}

impl Task {
    /// The kind of task that evaluations report by: `extra.kind`, or the source.
    pub fn kind(&self) -> &str {
        self.extra
            .get("kind")
            .and_then(Value::as_str)
            .unwrap_or(&self.source)
    }
}
