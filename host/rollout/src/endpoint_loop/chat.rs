//! The conversation as the endpoint reads it, in the form of chat completions.
//!
//! The messages of an episode do not say which call a result is of, and a malformed call is part of a text there. An
//! endpoint wants to read each call that it returned, and exactly one result for each. So the turns are kept as they
//! were returned, and only the messages between them are taken from the episode.

use std::collections::VecDeque;

use rlf_dialogue::message::{Message, Role};
use rlf_endpoint::{ChatCall, ChatMessage, ChatRole, Completion};
use serde_json::{Map, Value, json};

/// The result of a call that the episode has not read, because the turn was cut before it.
const NOT_READ: &str = "Error: the turn was too long, so this call was not made.";

/// The text of a turn without words and calls. Some endpoints refuse an empty one.
const NOTHING: &str = "(nothing)";

/// The conversation of one trajectory.
#[derive(Debug, Default)]
pub(super) struct Chat {
    messages: Vec<ChatMessage>,
    /// Number of messages of the episode that are in the conversation, in one form or the other.
    read: usize,
    /// The ids of calls without a result, in order.
    waiting: VecDeque<String>,
}

impl Chat {
    /// The messages so far.
    pub(super) fn messages(&self) -> &[ChatMessage] {
        &self.messages
    }

    /// Adds the messages of the episode that are not in the conversation yet.
    pub(super) fn read(&mut self, episode: &[Message]) {
        for message in episode.iter().skip(self.read) {
            self.push(message);
        }
        self.read = episode.len();
        self.end_calls();
    }

    /// Adds a turn as the endpoint returned it. The episode has the same turn as its next message.
    pub(super) fn say(&mut self, turn: Completion) {
        self.push_turn(turn.text, turn.calls);
        self.read += 1;
    }

    fn push(&mut self, message: &Message) {
        let text = message.plain_text();
        match message.role {
            Role::System => self.messages.push(ChatMessage::system(text)),
            Role::User => {
                self.end_calls();
                self.push_user(text);
            }
            Role::Assistant => {
                self.end_calls();
                let calls = message.tool_calls.iter().map(|call| ChatCall {
                    id: call.call_id.clone(),
                    name: call.name.clone(),
                    arguments: call.arguments.to_string(),
                });
                self.push_turn(text, calls.collect());
            }
            Role::Tool => match self.waiting.pop_front() {
                Some(id) => self.messages.push(ChatMessage::tool(id, text)),
                // The model wrote the call into its text.
                None => self.push_user(text),
            },
        }
    }

    fn push_turn(&mut self, mut text: String, mut calls: Vec<ChatCall>) {
        if text.is_empty() && calls.is_empty() {
            NOTHING.clone_into(&mut text);
        }
        let number = self.messages.len();
        for (place, call) in calls.iter_mut().enumerate() {
            if call.id.is_empty() {
                call.id = format!("call_{number}_{place}");
            }
            call.arguments = sendable(&call.arguments);
        }
        self.waiting = calls.iter().map(|call| call.id.clone()).collect();
        self.messages.push(ChatMessage {
            tool_calls: calls,
            ..ChatMessage::assistant(text)
        });
    }

    /// Adds a message of the user. Many chat templates do not accept two of them in a row, so they become one.
    fn push_user(&mut self, text: String) {
        match self.messages.last_mut() {
            Some(last) if last.role == ChatRole::User => {
                last.content = format!("{}\n\n{text}", last.content);
            }
            _ => self.messages.push(ChatMessage::user(text)),
        }
    }

    /// Adds a result for each call that has none.
    fn end_calls(&mut self) {
        let ids = self.waiting.drain(..);
        (self.messages).extend(ids.map(|id| ChatMessage::tool(id, NOT_READ)));
    }
}

/// The arguments of a call as JSON. What is not JSON stays a text. Some endpoints return nothing for no arguments.
pub(super) fn arguments(written: &str) -> Value {
    if written.trim().is_empty() {
        return json!({});
    }
    rlf_json::from_str(written).unwrap_or_else(|_| Value::String(written.to_owned()))
}

/// Arguments that every endpoint accepts in an earlier turn: many refuse a question in which they are not an object.
fn sendable(written: &str) -> String {
    match arguments(written) {
        object @ Value::Object(_) => object.to_string(),
        // They have an integer that is too large to be read here.
        Value::String(_) if serde_json::from_str::<Map<String, Value>>(written).is_ok() => {
            written.to_owned()
        }
        _ => json!({ "arguments": written }).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use rlf_dialogue::tool::ToolCall;

    use super::*;

    fn call(id: &str, arguments: &str) -> ChatCall {
        ChatCall {
            id: id.into(),
            name: "add".into(),
            arguments: arguments.into(),
        }
    }

    fn turn(text: &str, calls: &[ChatCall]) -> Completion {
        Completion {
            text: text.into(),
            calls: calls.to_vec(),
            ..Completion::default()
        }
    }

    fn said(text: &str, calls: &[ChatCall]) -> ChatMessage {
        ChatMessage {
            tool_calls: calls.to_vec(),
            ..ChatMessage::assistant(text)
        }
    }

    #[test]
    fn each_call_has_its_result_whatever_the_model_wrote() {
        let mut chat = Chat::default();
        let mut episode = vec![
            Message::text(Role::System, "Add."),
            Message::text(Role::User, "1 + 1?"),
        ];
        chat.read(&episode);
        // The second call has no JSON, and the third no id.
        let calls = [
            call("x", r#"{"a": 1}"#),
            call("y", r#"{"a": "#),
            call("", ""),
        ];
        chat.say(turn("", &calls));
        episode.push(Message::text(Role::Assistant, "as the episode has it"));
        episode.extend(["2", "Error: no.", "0"].map(|text| Message::text(Role::Tool, text)));
        episode.push(Message::text(Role::User, "Well?"));
        chat.read(&episode);
        let sent = [
            call("x", r#"{"a":1}"#),
            call("y", r#"{"arguments":"{\"a\": "}"#),
            call("call_2_2", "{}"),
        ];
        assert_eq!(
            chat.messages(),
            [
                ChatMessage::system("Add."),
                ChatMessage::user("1 + 1?"),
                said("", &sent),
                ChatMessage::tool("x", "2"),
                ChatMessage::tool("y", "Error: no."),
                ChatMessage::tool("call_2_2", "0"),
                ChatMessage::user("Well?"),
            ]
        );
        // Nothing is read twice.
        chat.read(&episode);
        assert_eq!(chat.messages().len(), 7);
    }

    #[test]
    fn an_integer_that_would_be_rounded_is_sent_back_as_it_was_written() {
        let written = r#"{"n": 18446744073709551616}"#;
        let mut chat = Chat::default();
        chat.say(turn("", &[call("x", written)]));
        assert_eq!(chat.messages(), [said("", &[call("x", written)])]);
        assert_eq!(arguments(written), written);
    }

    #[test]
    fn results_of_calls_in_a_text_are_messages_of_the_user() {
        let mut chat = Chat::default();
        let mut episode = vec![Message::text(Role::User, "1 + 1?")];
        chat.read(&episode);
        let text = "<tool_call>{}</tool_call><tool_call>{}</tool_call>";
        chat.say(turn(text, &[]));
        episode.push(Message::text(Role::Assistant, text));
        episode.extend(["2", "3"].map(|text| Message::text(Role::Tool, text)));
        chat.read(&episode);
        assert_eq!(
            chat.messages()[1..],
            [ChatMessage::assistant(text), ChatMessage::user("2\n\n3")]
        );
    }

    #[test]
    fn a_call_that_was_cut_off_has_a_result_too() {
        let mut chat = Chat::default();
        let mut episode = vec![Message::text(Role::User, "1 + 1?")];
        chat.read(&episode);
        chat.say(turn("", &[call("x", "{}"), call("y", "{}")]));
        episode.push(Message::text(Role::Assistant, ""));
        episode.push(Message::text(Role::Tool, "2"));
        episode.push(Message::text(Role::User, "Well?"));
        chat.read(&episode);
        assert_eq!(
            chat.messages()[2..],
            [
                ChatMessage::tool("x", "2"),
                ChatMessage::tool("y", NOT_READ),
                ChatMessage::user("Well?"),
            ]
        );
    }

    #[test]
    fn calls_in_a_prompt_are_paired_with_their_results() {
        let called = Message {
            tool_calls: vec![ToolCall {
                call_id: String::new(),
                name: "add".into(),
                arguments: json!({"a": 1}),
            }],
            ..Message::text(Role::Assistant, "I add.")
        };
        let mut chat = Chat::default();
        chat.read(&[
            Message::text(Role::User, "1 + 1?"),
            called,
            Message::text(Role::Tool, "2"),
            Message::text(Role::User, "And 2 + 2?"),
        ]);
        assert_eq!(
            chat.messages(),
            [
                ChatMessage::user("1 + 1?"),
                said("I add.", &[call("call_1_0", r#"{"a":1}"#)]),
                ChatMessage::tool("call_1_0", "2"),
                ChatMessage::user("And 2 + 2?"),
            ]
        );
    }
}
