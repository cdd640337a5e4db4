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
    /// What the model sees first.
    pub prompt: Vec<Message>,
    /// Names of the tools this task may use; all of them if absent.
    #[serde(default)]
    pub tools: Option<Vec<String>>,
    /// What the data set calls the answer, tests or end state. Reaches rewards only.
    pub reference: Value,
    /// Name of the environment the task lives in, if any.
    #[serde(default)]
    pub environment: Option<String>,
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
