//! ShareGPT's conversations, with LLaMA-Factory's `function_call` and `observation`.

use rlf_dialogue::Role;
use serde_json::Value;

use crate::conversation::{Conversation, RawMessage, call_of, role_of};
use crate::demonstration::Demonstration;
use crate::error::RowError;
use crate::field::{Row, list, optional_text};
use crate::row_context::RowContext;
use crate::tools;

pub(crate) fn demonstration(row: &Row, context: &RowContext) -> Result<Demonstration, RowError> {
    let mut offered = tools::definitions(row.get("tools"), "tools")?;
    let mut said = Vec::new();
    if let Some(system) = optional_text(row, "system")?.filter(|system| !system.trim().is_empty()) {
        said.push(RawMessage::new("system".into(), Role::System, system));
    }
    for (at, message) in list(row, "conversations")?.iter().enumerate() {
        let place = format!("conversations[{at}]");
        let member = |names: [&str; 2]| names.iter().find_map(|name| message.get(*name)?.as_str());
        let (Some(from), Some(text)) = (member(["from", "role"]), member(["value", "content"]))
        else {
            return Err(RowError::field(place, "it must be {from, value}"));
        };
        let role = role_of(from).ok_or_else(|| {
            let problem = format!(
                "{from:?} is none of system, human, gpt, function_call, observation and tool"
            );
            RowError::field(&place, problem)
        })?;
        let mut message = RawMessage::new(place, role, text);
        if from == "function_call" {
            message.calls = calls(text, &message.place)?;
            message.text.clear();
        }
        said.push(message);
    }
    for system in said.iter_mut().filter(|said| said.role == Role::System) {
        let (text, listed) = tools::listed_in(&system.text, &system.place)?;
        system.text = text;
        if offered.is_empty() {
            offered = listed;
        }
    }
    said.retain(|said| said.role != Role::System || !said.text.trim().is_empty());
    let conversation = Conversation::new(said)?;
    let given = conversation.first_turn_from(0);
    Demonstration::from_conversation(row, context, offered, conversation, given)
}

/// One call or a list of them, as JSON. `field` is the name of its field.
fn calls(text: &str, field: &str) -> Result<Vec<rlf_dialogue::ToolCall>, RowError> {
    let fail = |problem: String| RowError::field(field, problem);
    let value: Value =
        rlf_json::from_str(text).map_err(|error| fail(format!("it is not JSON: {error}")))?;
    let calls = match &value {
        Value::Array(calls) => calls.as_slice(),
        call => std::slice::from_ref(call),
    };
    if calls.is_empty() {
        return Err(fail("there is no call in it".into()));
    }
    let call = |call| call_of(call).map_err(|error| fail(error.to_string()));
    calls.iter().map(call).collect()
}
