//! OpenAI's messages. The assistant's messages are imitated, except those with a `weight` of 0.

use rlf_dialogue::Role;
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
    let mut places = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        let place = format!("messages[{at}]");
        match message.get("weight").map(Value::as_f64) {
            None | Some(Some(1.0)) => {}
            Some(Some(0.0)) => places.push(place),
            Some(_) => {
                let problem = "is neither 0 (read only) nor 1 (imitated)";
                return Err(RowError::field(format!("{place}.weight"), problem));
            }
        }
    }
    let all = conversation.places.iter().zip(&conversation.messages);
    let left_out: Vec<usize> = all
        .enumerate()
        .filter(|(_, (place, message))| message.role == Role::Assistant && places.contains(place))
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
