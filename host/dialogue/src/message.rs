//! Messages: a role, and content parts in the order in which the model sees them.

use serde::{Deserialize, Serialize};

pub use crate::content::{Blob, Content, plain_text};
use crate::tool::ToolCall;

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions from the operator.
    System,
    /// A person, or a simulated one.
    User,
    /// The model.
    Assistant,
    /// The result of a tool call.
    Tool,
}

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Message {
    /// The author.
    pub role: Role,
    /// The content parts, in order. In JSON a plain string means one text part.
    #[serde(with = "content_or_text", default)]
    pub content: Vec<Content>,
    /// An assistant's reasoning before its text, if the source keeps it apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_content: Option<String>,
    /// Calls that an assistant makes in this message.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolCall>,
}

impl Message {
    /// A message of one text part.
    pub fn text(role: Role, text: impl Into<String>) -> Self {
        Self {
            role,
            content: vec![Content::Text(text.into())],
            reasoning_content: None,
            tool_calls: Vec::new(),
        }
    }

    /// The content as one text; see [`plain_text`].
    pub fn plain_text(&self) -> String {
        plain_text(&self.content)
    }
}

pub(crate) mod content_or_text {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Content;

    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Wire {
        Text(String),
        Parts(Vec<Content>),
        Null(()),
    }

    pub(crate) fn serialize<S: Serializer>(content: &[Content], s: S) -> Result<S::Ok, S::Error> {
        match content {
            [Content::Text(text)] => text.serialize(s),
            parts => parts.serialize(s),
        }
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<Content>, D::Error> {
        Ok(match Wire::deserialize(d)? {
            Wire::Text(text) => vec![Content::Text(text)],
            Wire::Parts(parts) => parts,
            Wire::Null(()) => Vec::new(),
        })
    }
}
