//! Alpaca's rows. Only `output` is imitated. `history` is read: data sets that cut a conversation into rows, like
//! EnvFactory, have each of its turns as the output of a row.

use rlf_dialogue::Role;
use serde_json::Value;

use crate::conversation::{Conversation, RawMessage};
use crate::demonstration::Demonstration;
use crate::error::RowError;
use crate::field::{Row, optional_text, text};
use crate::row_context::RowContext;
use crate::tools;

pub(crate) fn demonstration(row: &Row, context: &RowContext) -> Result<Demonstration, RowError> {
    let mut offered = tools::definitions(row.get("tools"), "tools")?;
    let mut said = Vec::new();
    let mut say =
        |place: String, role: Role, text: &str| said.push(RawMessage::new(place, role, text));

    if let Some(system) = optional_text(row, "system")? {
        let (system, listed) = tools::listed_in(system, "system")?;
        if offered.is_empty() {
            offered = listed;
        }
        if !system.trim().is_empty() {
            say("system".into(), Role::System, &system);
        }
    }
    match row.get("history") {
        None | Some(Value::Null) => {}
        Some(Value::Array(rounds)) => {
            for (at, round) in rounds.iter().enumerate() {
                let texts: Option<Vec<&str>> = round
                    .as_array()
                    .map(Vec::as_slice)
                    .unwrap_or_default()
                    .iter()
                    .map(Value::as_str)
                    .collect();
                let Some([asked, answered]) = texts.as_deref() else {
                    return Err(RowError::field(
                        format!("history[{at}]"),
                        "it must be [instruction, output]",
                    ));
                };
                say(format!("history[{at}][0]"), Role::User, asked);
                say(format!("history[{at}][1]"), Role::Assistant, answered);
            }
        }
        Some(_) => {
            return Err(RowError::field(
                "history",
                "it must be a list of [instruction, output]",
            ));
        }
    }
    let instruction = text(row, "instruction")?;
    match optional_text(row, "input")?.filter(|input| !input.is_empty()) {
        Some(input) => say(
            "instruction".into(),
            Role::User,
            &format!("{instruction}\n{input}"),
        ),
        None => say("instruction".into(), Role::User, instruction),
    }
    say("output".into(), Role::Assistant, text(row, "output")?);

    let conversation = Conversation::new(said)?;
    let given = conversation.messages.len().saturating_sub(1);
    Demonstration::from_conversation(row, context, offered, conversation, given)
}
