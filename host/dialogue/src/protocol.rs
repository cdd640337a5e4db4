//! Tool-call protocols: the forms in which models write calls, as data.
//!
//! A protocol is the form of calls that a model was trained to write and that its template renders. The parser knows
//! no protocol by name: it reads a [`ProtocolSpec`].

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::tool::ToolCall;

/// A known way of writing tool calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protocol {
    /// `<tool_call>{"name": .., "arguments": ..}</tool_call>`: Hermes, Qwen2.5, Qwen3, and our
    /// small template.
    Hermes,
    /// `<|python_tag|>{"name": .., "parameters": ..}` to the end of the turn, or the JSON object
    /// alone: Llama 3.1.
    #[serde(rename = "llama-3.1")]
    Llama31,
}

/// A protocol as data, for the parser.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProtocolSpec {
    /// Opening tag of a call.
    pub open: &'static str,
    /// Closing tag of a call. Without one, a call ends with the turn.
    pub close: Option<&'static str>,
    /// True if a turn that begins with a JSON object with a name is a call, without `open`.
    pub bare: bool,
    /// Character that may separate calls that follow one `open`.
    pub separator: Option<char>,
    /// The member that names the tool.
    pub name: &'static str,
    /// The member that holds the arguments.
    pub arguments: &'static str,
    /// Tags that templates of this protocol put around observations. They are escaped in an observation's own text, so
    /// that it cannot seem to end early.
    pub response: &'static [&'static str],
    /// A call as the model should write it, for observations that explain how to correct one.
    pub example: &'static str,
}

/// Opening tag of reasoning, in every protocol.
pub const THINK_OPEN: &str = "<think>";
/// Closing tag of reasoning, in every protocol.
pub const THINK_CLOSE: &str = "</think>";

const HERMES: ProtocolSpec = ProtocolSpec {
    open: "<tool_call>",
    close: Some("</tool_call>"),
    bare: false,
    separator: None,
    name: "name",
    arguments: "arguments",
    response: &["<tool_response>", "</tool_response>"],
    example: r#"<tool_call>{"name": "tool", "arguments": {"key": "value"}}</tool_call>"#,
};

const LLAMA31: ProtocolSpec = ProtocolSpec {
    open: "<|python_tag|>",
    close: None,
    bare: true,
    separator: Some(';'),
    name: "name",
    arguments: "parameters",
    response: &[
        "<|start_header_id|>",
        "<|end_header_id|>",
        "<|eot_id|>",
        "<|eom_id|>",
    ],
    example: r#"{"name": "tool", "parameters": {"key": "value"}}"#,
};

impl Protocol {
    /// Every known protocol.
    pub const ALL: [Self; 2] = [Self::Hermes, Self::Llama31];

    /// The protocol as data.
    pub fn spec(self) -> &'static ProtocolSpec {
        match self {
            Self::Hermes => &HERMES,
            Self::Llama31 => &LLAMA31,
        }
    }

    /// The name used in configurations.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hermes => "hermes",
            Self::Llama31 => "llama-3.1",
        }
    }

    /// The protocol whose markers a chat template's source writes, if any.
    pub fn detect(template_source: &str) -> Option<Self> {
        if template_source.contains(HERMES.open) {
            return Some(Self::Hermes);
        }
        // Llama 3.1's template writes its marker only for built-in tools, but asks for this form of calls.
        let llama = template_source.contains(LLAMA31.open)
            || (template_source.contains("<|start_header_id|>")
                && template_source.contains("\"parameters\""));
        llama.then_some(Self::Llama31)
    }
}

impl ProtocolSpec {
    /// The calls as a model writes them.
    pub(crate) fn write(&self, calls: &[ToolCall]) -> String {
        let object = |call: &ToolCall| {
            json!({ self.name: call.name, self.arguments: call.arguments }).to_string()
        };
        let objects: Vec<String> = calls.iter().map(object).collect();
        match self.close {
            _ if objects.is_empty() => String::new(),
            Some(close) => {
                let tagged = objects.iter().map(|object| {
                    let open = self.open;
                    format!("{open}\n{object}\n{close}")
                });
                tagged.collect::<Vec<_>>().join("\n")
            }
            None => {
                let separator = self.separator.map_or_else(String::new, String::from);
                format!("{}{}", self.open, objects.join(&format!("{separator} ")))
            }
        }
    }

    /// All tags that only the template and the model may write.
    pub fn tags(&self) -> impl Iterator<Item = &'static str> {
        [self.open, THINK_OPEN, THINK_CLOSE]
            .into_iter()
            .chain(self.close)
            .chain(self.response.iter().copied())
    }
}
