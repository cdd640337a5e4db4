//! Messages as agents send them, and when two are the same.

use rlf_dialogue::message::{Message, Role};
use rlf_dialogue::tool::ToolCall;
use serde_json::Value;

/// A message of an agent's conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentMessage {
    /// The message.
    pub message: Message,
    /// For the result of a tool call, the id of the call.
    pub call_id: Option<String>,
    /// True if it is the result of a call that failed, as the agent says.
    pub failed: bool,
}

impl AgentMessage {
    /// A message that is not the result of a tool call.
    pub fn new(message: Message) -> Self {
        Self {
            message,
            call_id: None,
            failed: false,
        }
    }

    /// True if `sent` is this message, as an agent sends it back. Agents may leave out reasoning, and white space at the
    /// ends of a text.
    pub(super) fn is_sent_as(&self, sent: &Self) -> bool {
        let (known, other) = (&self.message, &sent.message);
        if known.role != other.role {
            return false;
        }
        let (text, others) = (known.plain_text(), other.plain_text());
        if known.role != Role::Assistant {
            return text == others && self.call_id == sent.call_id;
        }
        let same_reasoning =
            other.reasoning_content.is_none() || known.reasoning_content == other.reasoning_content;
        text.trim() == others.trim()
            && same_reasoning
            && known.tool_calls.len() == other.tool_calls.len()
            && (known.tool_calls.iter())
                .zip(&other.tool_calls)
                .all(|(known, other)| is_same_call(known, other))
    }
}

fn is_same_call(known: &ToolCall, other: &ToolCall) -> bool {
    known.call_id == other.call_id
        && known.name == other.name
        && is_same_json(&known.arguments, &other.arguments)
}

/// True if two values are the same JSON. 1 and 1.0 are the same number, because not every language tells them apart.
pub(super) fn is_same_json(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => {
            one == other || ((one.is_f64() || other.is_f64()) && one.as_f64() == other.as_f64())
        }
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len()
                && (one.iter().zip(other)).all(|(one, other)| is_same_json(one, other))
        }
        (Value::Object(one), Value::Object(other)) => {
            one.len() == other.len()
                && one.iter().all(|(key, one)| {
                    let other = other.get(key);
                    other.is_some_and(|other| is_same_json(one, other))
                })
        }
        (one, other) => one == other,
    }
}

/// The messages that come after the known ones, if the conversation begins with these.
pub(super) fn after<'a>(
    known: &[AgentMessage],
    sent: &'a [AgentMessage],
) -> Option<&'a [AgentMessage]> {
    let (begin, rest) = sent.split_at_checked(known.len())?;
    let is_same = known
        .iter()
        .zip(begin)
        .all(|(known, sent)| known.is_sent_as(sent));
    (is_same && !rest.is_empty()).then_some(rest)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn turn(reasoning: Option<&str>, id: &str) -> AgentMessage {
        AgentMessage::new(Message {
            reasoning_content: reasoning.map(str::to_owned),
            tool_calls: vec![ToolCall {
                call_id: id.into(),
                name: "look".into(),
                arguments: json!({ "at": 1 }),
            }],
            ..Message::text(Role::Assistant, "I look.")
        })
    }

    #[test]
    fn a_turn_may_come_back_without_its_reasoning_and_with_no_other_change() {
        let known = turn(Some("hm"), "call_0");
        assert!(known.is_sent_as(&known));
        assert!(known.is_sent_as(&turn(None, "call_0")));
        assert!(!known.is_sent_as(&turn(Some("other"), "call_0")));
        assert!(!known.is_sent_as(&turn(None, "call_1")));
        let mut edited = turn(None, "call_0");
        edited.message.tool_calls[0].arguments = json!({ "at": 2 });
        assert!(!known.is_sent_as(&edited));
        // As JavaScript writes 1.0, and the other way round.
        edited.message.tool_calls[0].arguments = json!({ "at": 1.0 });
        assert!(known.is_sent_as(&edited) && edited.is_sent_as(&turn(None, "call_0")));
        let mut edited = turn(None, "call_0");
        edited.message.content = Message::text(Role::Assistant, "I looked.").content;
        assert!(!known.is_sent_as(&edited));
    }

    #[test]
    fn a_conversation_continues_another_if_it_begins_with_all_of_it() {
        let said = |text: &str| AgentMessage::new(Message::text(Role::User, text));
        let known = [said("a"), said("b")];
        let sent = [said("a"), said("b"), said("c")];
        assert_eq!(after(&known, &sent), Some(&sent[2..]));
        assert_eq!(after(&known, &known), None);
        assert_eq!(after(&known, &sent[..1]), None);
        assert_eq!(after(&known, &[said("a"), said("x"), said("c")]), None);
    }
}
