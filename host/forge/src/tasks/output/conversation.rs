//! The conversation of a task: what the user says, the gold calls one a turn, their results, and the answers.

use rlf_dialogue::message::{Message, Role};
use rlf_dialogue::tool::{ToolCall, ToolDefinition};
use serde_json::{Value, json};

use super::Naming;
use crate::tasks::record::{TaskRecord, Turn};
use crate::tasks::suite::Suite;

/// The messages of a turn after the words of the user.
pub(super) fn solution(task: &TaskRecord, number: usize, turn: &Turn) -> Vec<Message> {
    let mut messages = Vec::with_capacity(2 * turn.calls.len() + 1);
    for (place, call) in turn.calls.iter().enumerate() {
        messages.push(Message {
            tool_calls: vec![ToolCall {
                call_id: format!("{}/{number}/{place}", task.id),
                name: call.tool.clone(),
                arguments: Value::Object(call.arguments.clone()),
            }],
            ..Message::text(Role::Assistant, "")
        });
        messages.push(Message::text(Role::Tool, call.result.to_string()));
    }
    messages.push(Message::text(Role::Assistant, turn.answer.clone()));
    messages
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
    definitions.cloned().collect()
}

/// The whole conversation as a demonstration.
pub(super) fn demonstration(suite: &Suite, task: &TaskRecord, naming: &Naming) -> Value {
    let mut messages = before(task, task.turns.len().saturating_sub(1));
    if let Some(last) = task.turns.last() {
        messages.extend(solution(task, task.turns.len() - 1, last));
    }
    json!({
        "id": task.id, "source": naming.source, "tools": tools(suite, task), "messages": messages, "given": 1,
    })
}
