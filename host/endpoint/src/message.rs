//! The parts of a question in the form of chat completions: messages, the calls in them, the tools on offer, and the form
//! of the answer.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Role of a chat message's author.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChatRole {
    /// The instructions to the model.
    System,
    /// The user, whom the model answers.
    User,
    /// The model.
    Assistant,
    /// A tool, which the model called.
    Tool,
}

/// One message of a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatMessage {
    /// The author's role.
    pub role: ChatRole,
    /// The text.
    pub content: String,
    /// The calls that the model made in this message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ChatCall>,
    /// The id of the call whose result this message is, if its author is a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
}

impl ChatMessage {
    /// A system message.
    pub fn system(content: impl Into<String>) -> Self {
        Self::new(ChatRole::System, content)
    }

    /// A message of the user.
    pub fn user(content: impl Into<String>) -> Self {
        Self::new(ChatRole::User, content)
    }

    /// An earlier message of the model.
    pub fn assistant(content: impl Into<String>) -> Self {
        Self::new(ChatRole::Assistant, content)
    }

    /// The result of the call with this id.
    pub fn tool(call_id: impl Into<String>, content: impl Into<String>) -> Self {
        Self {
            tool_call_id: Some(call_id.into()),
            ..Self::new(ChatRole::Tool, content)
        }
    }

    fn new(role: ChatRole, content: impl Into<String>) -> Self {
        Self {
            role,
            content: content.into(),
            tool_calls: Vec::new(),
            tool_call_id: None,
        }
    }

    /// The message as it is sent.
    pub(crate) fn wire(&self) -> Value {
        let mut message = json!(self);
        if self.content.is_empty() && !self.tool_calls.is_empty() {
            // Some endpoints refuse an empty text.
            message["content"] = Value::Null;
        }
        message
    }
}

/// A call of a tool, as a model made it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "WireCall", into = "WireCall")]
pub struct ChatCall {
    /// The id, which the result of the call names. Empty if the endpoint gave none.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments as the model wrote them. They are JSON unless the model made a mistake.
    pub arguments: String,
}

/// A call as it is sent. What is missing or null is read as empty.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct WireCall {
    id: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    function: WireFunction,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct WireFunction {
    name: Option<String>,
    arguments: Value,
}

impl From<WireCall> for ChatCall {
    fn from(call: WireCall) -> Self {
        Self {
            id: call.id.unwrap_or_default(),
            name: call.function.name.unwrap_or_default(),
            arguments: match call.function.arguments {
                Value::String(text) => text,
                Value::Null => String::new(),
                // Some servers send the JSON itself instead of its text.
                other => other.to_string(),
            },
        }
    }
}

impl From<ChatCall> for WireCall {
    fn from(call: ChatCall) -> Self {
        Self {
            id: Some(call.id),
            kind: Some("function".to_owned()),
            function: WireFunction {
                name: Some(call.name),
                arguments: Value::String(call.arguments),
            },
        }
    }
}

/// A tool that the model may call.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatTool {
    /// The tool's name.
    pub name: String,
    /// The description for the model.
    pub description: String,
    /// The JSON Schema of the arguments.
    pub parameters: Value,
}

impl ChatTool {
    /// The tool as it is sent.
    pub(crate) fn wire(&self) -> Value {
        let function = json!({
            "name": self.name, "description": self.description, "parameters": self.parameters,
        });
        json!({ "type": "function", "function": function })
    }
}

/// The form that an answer must have. Servers that support it let the model write nothing else.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ResponseFormat<'a> {
    /// A JSON object.
    JsonObject,
    /// A JSON value that fits this JSON Schema.
    JsonSchema(&'a Value),
}

impl ResponseFormat<'_> {
    /// The form as it is sent. Without `strict`, a service takes every schema, also one with keys that may be left out.
    pub(crate) fn wire(self) -> Value {
        match self {
            Self::JsonObject => json!({ "type": "json_object" }),
            Self::JsonSchema(schema) => json!({
                "type": "json_schema",
                "json_schema": { "name": "answer", "schema": schema },
            }),
        }
    }
}
