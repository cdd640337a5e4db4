//! A parsed turn as a message, as a deployment would keep it. For `history = "template"` and for endpoints.

use crate::message::{Content, Message, Role};
use crate::parser::{ParsedTurn, Part};
use crate::tool::ToolCall;

/// The way a template writes a turn of the model, and so the way the model learns to write it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct TurnStyle {
    /// White space between the text and the first call.
    pub(crate) separator: String,
    /// True if reasoning is kept apart from the text or removed, instead of written inside it.
    pub(crate) reasoning_apart: bool,
}

/// Makes the message of a turn whose well-formed calls are `calls`.
///
/// Calls are kept in their parsed form, and reasoning apart from the content. A turn with a
/// malformed call keeps all of its text as content, because there is no parsed form of it.
pub(crate) fn assistant_message(
    parsed: &ParsedTurn,
    calls: &[ToolCall],
    style: &TurnStyle,
) -> Message {
    let mut reasoning: Option<String> = None;
    let mut content = String::new();
    let malformed = parsed.attempts().any(|(_, call)| call.is_err());
    let mut called = false;
    for part in &parsed.parts {
        match part {
            Part::Think { text, .. } if content.trim().is_empty() && !called => {
                reasoning = Some(reasoning.map_or_else(|| (*text).to_owned(), |all| all + text));
            }
            Part::Text(text) if called && text.trim().is_empty() => {}
            // The template writes the line breaks after a think block.
            Part::Text(text)
                if style.reasoning_apart && reasoning.is_some() && content.is_empty() =>
            {
                content.push_str(text.trim_start_matches('\n'));
            }
            // A later think block cannot be told from the content.
            Part::Text(text) | Part::Think { text, .. } | Part::StrayThinkClose(text) => {
                content.push_str(text);
            }
            Part::Attempt { text, .. } => {
                if malformed {
                    content.push_str(text);
                } else if !called
                    && let Some(before) = content.strip_suffix(style.separator.as_str())
                {
                    content.truncate(before.len());
                }
                called = !malformed;
            }
        }
    }
    Message {
        role: Role::Assistant,
        content: vec![Content::Text(content)],
        reasoning_content: reasoning,
        tool_calls: if malformed {
            Vec::new()
        } else {
            calls.to_vec()
        },
    }
}
