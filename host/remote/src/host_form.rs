//! A server's tools, results and words in the host's form.

use std::collections::BTreeMap;

use rlf_plugins::bindings::types;
use rlf_plugins::offered_tools::{Checking, LoadedTool, OfferedToolsError, check_tools};
use rlf_plugins::safe_text::make_string_safe;
use serde::Deserialize;
use serde_json::{Map, Value};

/// A tool as servers write it.
#[derive(Debug, Deserialize)]
pub(crate) struct ListedTool {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) description: Option<String>,
    #[serde(alias = "inputSchema", alias = "parameters", default)]
    pub(crate) input_schema: Option<Map<String, Value>>,
}

/// Checks the tools that a server lists.
pub(crate) fn load(tools: Vec<ListedTool>) -> Result<Vec<LoadedTool>, OfferedToolsError> {
    let definition = |tool: ListedTool| {
        let mut schema = tool.input_schema.unwrap_or_default();
        let kind = schema.entry("type");
        kind.or_insert_with(|| Value::from("object"));
        types::ToolDefinition {
            name: tool.name,
            description: tool.description.unwrap_or_default(),
            input_schema: Value::Object(schema).to_string(),
            output_schema: None,
            hints: types::Hints::OPEN_WORLD,
            extra: Vec::new(),
        }
    };
    let tools = tools.into_iter().map(definition).collect();
    check_tools(tools, &BTreeMap::new(), Checking::Host)
}

/// The observation of one content.
pub(crate) fn of_content(content: types::Content, failed: bool) -> types::Observation {
    types::Observation {
        content: vec![content],
        failed,
        metrics: Vec::new(),
        extra: Vec::new(),
    }
}

/// A server's words, shortened, without control characters.
pub(crate) fn safe(text: &str) -> String {
    const MAX_CHARS: usize = 100_000;
    make_string_safe(text.chars().take(MAX_CHARS).collect::<String>())
}

/// A server's words, short enough for an error.
pub(crate) fn brief(message: &str) -> String {
    safe(&message.chars().take(500).collect::<String>())
}

/// The beginning of an answer that cannot be read.
pub(crate) fn beginning(answer: &str) -> String {
    let begins: String = answer.chars().take(100).collect();
    rlf_sandbox::safe_text(begins.as_bytes())
}
