//! The conversation of a task: what the user says, the gold calls one a turn, their results, and the answers.

use rlf_dialogue::message::{Message, Role};
use rlf_dialogue::tool::{ToolCall, ToolDefinition};
use serde_json::{Value, json};

use super::Naming;
use crate::tasks::record::{Arguments, Mistake, TaskRecord, Turn};
use crate::tasks::suite::Suite;

/// The messages of a turn after the words of the user, without mistakes.
fn solution(task: &TaskRecord, number: usize, turn: &Turn) -> Vec<Message> {
    let mut messages = Vec::with_capacity(2 * turn.calls.len() + 1);
    for (place, call) in turn.calls.iter().enumerate() {
        let id = format!("{}/{number}/{place}", task.id);
        messages.extend(called(id, &call.tool, &call.arguments, call.shown()));
    }
    messages.push(Message::text(Role::Assistant, turn.answer.clone()));
    messages
}

/// A call and what the tool answers.
fn called(call_id: String, tool: &str, arguments: &Arguments, answer: String) -> [Message; 2] {
    let call = Message {
        tool_calls: vec![ToolCall {
            call_id,
            name: tool.to_owned(),
            arguments: Value::Object(arguments.clone()),
        }],
        ..Message::text(Role::Assistant, "")
    };
    [call, Message::text(Role::Tool, answer)]
}

/// The messages before the model's first turn in a turn of the task: all earlier turns, and the words of the user.
pub(super) fn before(task: &TaskRecord, number: usize) -> Vec<Message> {
    let mut messages = Vec::new();
    for (place, turn) in task.turns.iter().enumerate().take(number + 1) {
        messages.push(Message::text(Role::User, turn.query.clone()));
        if place < number {
            messages.extend(solution(task, place, turn));
        }
    }
    messages
}

/// The tools that the model is offered.
pub(super) fn tools(suite: &Suite, task: &TaskRecord) -> Vec<ToolDefinition> {
    let definitions = task.tools.iter().filter_map(|tool| suite.definition(tool));
    definitions
        .map(|tool| task.shown.definition(tool.clone(), &task.id))
        .collect()
}

/// The whole conversation as demonstrations: one, and one more for each mistake. A demonstration ends before a mistake,
/// and the next one has the mistake in its history. So everything but the mistakes is taught exactly once.
pub(super) fn demonstrations(suite: &Suite, task: &TaskRecord, naming: &Naming) -> Vec<Value> {
    let tools = tools(suite, task);
    let mut rows: Vec<Value> = Vec::new();
    let mut messages: Vec<Message> = Vec::new();
    let mut given = 1;
    let mut end = |messages: &[Message], given: usize| {
        // A conversation ends with the model's turn or with results.
        let said = messages.last().map(|last| last.role);
        let length = messages.len() - usize::from(said == Some(Role::User));
        if length > given {
            let id = match rows.len() {
                0 => task.id.clone(),
                earlier => format!("{}~{}", task.id, earlier + 1),
            };
            let messages = task.shown.messages(messages[..length].to_vec());
            rows.push(json!({
                "id": id, "source": naming.source, "tools": tools, "messages": messages, "given": given,
            }));
        }
    };
    for (number, turn) in task.turns.iter().enumerate() {
        messages.push(Message::text(Role::User, turn.query.clone()));
        for (place, call) in turn.calls.iter().enumerate() {
            let id = format!("{}/{number}/{place}", task.id);
            if let Some(Mistake { arguments, refusal }) = &call.mistake {
                end(&messages, given);
                let id = format!("{id}/mistake");
                messages.extend(called(id, &call.tool, arguments, refusal.clone()));
                given = messages.len();
            }
            messages.extend(called(id, &call.tool, &call.arguments, call.shown()));
        }
        messages.push(Message::text(Role::Assistant, turn.answer.clone()));
    }
    end(&messages, given);
    rows
}
