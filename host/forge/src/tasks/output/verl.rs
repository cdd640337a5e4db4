//! EnvFactory's rows for RL, which verl reads: the conversation up to a query, the calls that answer it, and the
//! environments with their first and last states.

use rlf_dialogue::message::{Message, Role};
use serde_json::{Value, json};

use super::Naming;
use super::conversation::before;
use super::tasks::masked;
use crate::tasks::record::TaskRecord;
use crate::tasks::suite::Suite;

/// The rows of a task, one for each turn that is more than context.
pub(super) fn rows(suite: &Suite, task: &TaskRecord, naming: &Naming) -> Vec<Value> {
    let servers: Vec<&String> = task.servers.keys().collect();
    let mut state = &task.initial;
    let mut rows = Vec::with_capacity(task.turns.len());
    for (number, turn) in task.turns.iter().enumerate() {
        let begins = std::mem::replace(&mut state, &turn.goal);
        if turn.context_only {
            continue;
        }
        let prompt: Vec<Value> = before(task, number).iter().map(message).collect();
        let truth: Vec<Value> = turn
            .calls
            .iter()
            .map(|call| {
                json!({
                    "name": call.tool, "arguments": call.arguments, "masked_arguments": masked(suite, call),
                })
            })
            .collect();
        // Nested values are texts of JSON, because columns of Parquet have one type.
        rows.push(json!({
            "data_source": naming.source,
            "agent_name": "tool_agent",
            "prompt": prompt,
            "ability": "tool_use",
            "reward_model": { "style": "rule", "ground_truth": Value::Array(truth).to_string() },
            "extra_info": {
                "split": task.split,
                "index": format!("{}-{}", task.id, number + 1),
                "mcp_factory_kwargs": {
                    "mcp_servers": json!(servers).to_string(),
                    "initial_config": json!(begins).to_string(),
                    "final_config": json!(turn.goal).to_string(),
                },
            },
        }));
    }
    rows
}

/// A message in the form of OpenAI's API, with calls and results in tags as EnvFactory's rows have them.
fn message(message: &Message) -> Value {
    let calls: Vec<String> = message
        .tool_calls
        .iter()
        .map(|call| {
            let written = json!({ "name": call.name, "arguments": call.arguments });
            format!("<tool_call>\n{written}\n</tool_call>\n")
        })
        .collect();
    let text = message.plain_text();
    match message.role {
        Role::Tool => {
            let text = format!("<tool_response>\n{text}\n</tool_response>\n");
            json!({ "role": "user", "content": text })
        }
        Role::Assistant if !calls.is_empty() => {
            json!({ "role": "assistant", "content": text + &calls.concat() })
        }
        role => json!({ "role": role, "content": text }),
    }
}
