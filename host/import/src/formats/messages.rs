//! OpenAI's messages. The assistant's messages are imitated, except those with a `weight` of 0.

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
    let places = messages.iter().enumerate();
    let places = places.filter(|(_, message)| is_left_out(message));
    let places: Vec<String> = places.map(|(at, _)| format!("messages[{at}]")).collect();
    let all = conversation.places.iter().enumerate();
    let left_out: Vec<usize> = all
        .filter(|(_, place)| places.contains(place))
        .map(|(at, _)| at)
        .collect();
    // What comes before the first turn to imitate is the prompt.
    let mut given = conversation.first_turn_from(0);
    while left_out.contains(&given) {
        given = conversation.first_turn_from(given + 1);
    }
    let mut read = Demonstration::from_conversation(row, context, offered, conversation, given)?;
    read.left_out = left_out.into_iter().filter(|at| *at > given).collect();
    Ok(read)
}
