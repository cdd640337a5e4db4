//! OpenAI's messages. All of the assistant's messages are imitated, except those up to the last one with a `weight` of 0.

use serde_json::Value;

use crate::conversation::Conversation;
use crate::demonstration::Demonstration;
use crate::error::RowError;
use crate::field::{Row, list};
use crate::row_context::RowContext;
use crate::tools;

pub(crate) fn demonstration(row: &Row, context: &RowContext) -> Result<Demonstration, RowError> {
    let offered = tools::definitions(row.get("tools"), "tools")?;
    let messages = list(row, "messages")?;
    let conversation = Conversation::from_openai("messages", messages)?;
    let is_left_out = |message: &Value| {
        let weight = message.get("weight").and_then(Value::as_f64);
        message.get("role").and_then(Value::as_str) == Some("assistant") && weight == Some(0.0)
    };
    let left_out = messages
        .iter()
        .rposition(is_left_out)
        .map(|at| format!("messages[{at}]"));
    let read_only = left_out.and_then(|place| {
        conversation
            .places
            .iter()
            .rposition(|other| *other == place)
    });
    let given = conversation.first_turn_from(read_only.map_or(0, |at| at + 1));
    Demonstration::from_conversation(row, context, offered, conversation, given)
}
