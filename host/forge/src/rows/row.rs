//! A row that is ready to be verified: tools with schemas and sources, and the gold calls. This is the artefact of stage 5.

use rlf_dialogue::split::Split;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::options::Scenario;

/// A question with executable tools.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Row {
    /// Unique in its file.
    pub id: String,
    /// Its scenario.
    pub scenario: Scenario,
    /// Its split.
    pub split: Split,
    /// The text that the policy reads.
    pub question: String,
    /// The final answer.
    pub answer: String,
    /// The words of the question that a gold call looks up.
    pub given: Vec<String>,
    /// The tools, in the order in which the policy reads them.
    pub tools: Vec<RowTool>,
    /// The calls that find every sub-answer, in order.
    pub calls: Vec<GoldCall>,
}

/// A tool with its source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowTool {
    /// Its name, which is also the name of its function.
    pub name: String,
    /// Its description.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub parameters: Value,
    /// A Python function.
    pub source: String,
    /// Arguments to which the tool has an answer, besides those of gold calls.
    #[serde(default)]
    pub examples: Vec<Map<String, Value>>,
}

/// One call of the solution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GoldCall {
    /// The sub-question, with `#1` for the answer of the first call.
    pub question: String,
    /// The tool.
    pub tool: String,
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// The sub-answer that its result contains.
    pub answer: String,
}

impl Row {
    /// A tool by its name.
    pub fn tool(&self, name: &str) -> Option<&RowTool> {
        self.tools.iter().find(|tool| tool.name == name)
    }

    /// The sub-answers of a tool, in order. A distractor has none.
    pub fn sub_answers<'a>(&'a self, tool: &'a str) -> impl Iterator<Item = &'a str> {
        let calls = self.calls.iter().filter(move |call| call.tool == tool);
        calls.map(|call| call.answer.as_str())
    }
}
