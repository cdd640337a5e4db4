//! Anthropic's form of requests and answers: messages.

use std::fmt::Write as _;

use http::StatusCode;
use rlf_dialogue::message::{Message, Role};
use rlf_dialogue::tool::{ToolCall, ToolDefinition};
use rlf_rollout::agent::{AgentMessage, Stopped, Turn};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::body;
use crate::form::{self, Form, Reply};
use crate::parameters::{Neutral, is_empty, is_one, is_zero};
use crate::refusal::Refusal;

/// Anthropic's form.
pub(crate) struct Anthropic;

#[derive(Deserialize)]
struct SentMessage {
    role: String,
    content: Value,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum SentBlock {
    Text {
        text: String,
    },
    Thinking {
        thinking: String,
    },
    ToolUse {
        id: String,
        name: String,
        input: Map<String, Value>,
    },
    ToolResult {
        tool_use_id: String,
        #[serde(default)]
        content: Value,
        #[serde(default)]
        is_error: bool,
    },
}

#[derive(Deserialize)]
struct SentTool {
    /// `custom`, or one of the tools that Anthropic's service runs itself.
    #[serde(rename = "type", default)]
    kind: Option<String>,
    name: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    input_schema: Option<Value>,
}

impl Form for Anthropic {
    const PATH: &'static str = "/v1/messages";

    const USED: &'static [&'static str] = &[
        "messages",
        "system",
        "tools",
        "max_tokens",
        "stream",
        "model",
        "metadata",
        "service_tier",
    ];

    const NEUTRAL: &'static [Neutral] = &[
        ("top_p", is_one),
        ("top_k", is_zero),
        ("stop_sequences", is_empty),
        ("tool_choice", |value| {
            value["type"] == "auto" && value["disable_parallel_tool_use"] != true
        }),
        ("thinking", |value| value["type"] == "disabled"),
        ("mcp_servers", is_empty),
    ];

    const MAX_TOKENS: &'static [&'static str] = &["max_tokens"];

    fn messages(request: &Map<String, Value>) -> Result<Vec<AgentMessage>, Refusal> {
        let mut messages = Vec::new();
        if let Some(system) = request.get("system").filter(|system| !system.is_null()) {
            let text = form::text(system).map_err(|refusal| refusal.at("system"))?;
            messages.push(AgentMessage::new(Message::text(Role::System, text)));
        }
        let sent = form::items(request, "messages", |sent| {
            body::object::<SentMessage>(sent)?.messages()
        })?;
        messages.extend(sent.into_iter().flatten());
        Ok(messages)
    }

    fn tool(sent: &Value) -> Result<ToolDefinition, Refusal> {
        let sent: SentTool = body::object(sent)?;
        if let Some(kind) = sent.kind.filter(|kind| kind != "custom") {
            return Err(Refusal::invalid(format!(
                "a tool of the type `{kind}` cannot be offered; only custom ones can"
            )));
        }
        form::tool(sent.name, sent.description, sent.input_schema)
    }

    fn whole(turn: &Turn, reply: &Reply) -> Value {
        let reason = Some(stop_reason(turn.stopped));
        envelope(
            turn,
            reply,
            &blocks(&turn.message),
            reason,
            turn.sampled_tokens,
        )
    }

    fn events(turn: &Turn, reply: &Reply) -> String {
        let start = envelope(turn, reply, &[], None, 0);
        let mut events = vec![json!({ "type": "message_start", "message": start })];
        for (index, block) in blocks(&turn.message).iter().enumerate() {
            let (start, delta) = in_two(block);
            events.push(
                json!({ "type": "content_block_start", "index": index, "content_block": start }),
            );
            events.push(json!({ "type": "content_block_delta", "index": index, "delta": delta }));
            events.push(json!({ "type": "content_block_stop", "index": index }));
        }
        events.push(json!({
            "type": "message_delta",
            "delta": { "stop_reason": stop_reason(turn.stopped), "stop_sequence": null },
            "usage": { "output_tokens": turn.sampled_tokens },
        }));
        events.push(json!({ "type": "message_stop" }));
        let mut text = String::new();
        for event in &events {
            let kind = event["type"].as_str().unwrap_or_default();
            _ = write!(text, "event: {kind}\ndata: {event}\n\n");
        }
        text
    }

    fn error(refusal: &Refusal) -> Value {
        let kind = match refusal.status {
            StatusCode::NOT_FOUND => "not_found_error",
            status if status.is_server_error() => "api_error",
            _ => "invalid_request_error",
        };
        json!({ "type": "error", "error": { "type": kind, "message": refusal.message } })
    }
}

impl SentMessage {
    /// The message in our form. Results of tools are messages of their own.
    fn messages(self) -> Result<Vec<AgentMessage>, Refusal> {
        let role = match self.role.as_str() {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "system" => Role::System,
            other => {
                return Err(Refusal::invalid(format!("the role `{other}` is not known")));
            }
        };
        let Value::Array(blocks) = &self.content else {
            let text = form::text(&self.content)?;
            return Ok(vec![AgentMessage::new(Message::text(role, text))]);
        };
        let mut results = Vec::new();
        let mut said = Message::text(role, "");
        let mut texts = String::new();
        let mut has_text = false;
        for (place, block) in blocks.iter().enumerate() {
            let at = |refusal: Refusal| refusal.at(format_args!("content[{place}]"));
            match body::object::<SentBlock>(block).map_err(at)? {
                SentBlock::Text { text } => {
                    has_text = true;
                    texts.push_str(&text);
                }
                SentBlock::Thinking { thinking } => {
                    said.reasoning_content
                        .get_or_insert_default()
                        .push_str(&thinking);
                }
                SentBlock::ToolUse { id, name, input } => said.tool_calls.push(ToolCall {
                    call_id: id,
                    name,
                    arguments: Value::Object(input),
                }),
                SentBlock::ToolResult {
                    tool_use_id,
                    content,
                    is_error,
                } => results.push(AgentMessage {
                    message: Message::text(Role::Tool, form::text(&content).map_err(at)?),
                    call_id: Some(tool_use_id),
                    failed: is_error,
                }),
            }
        }
        if has_text || role == Role::Assistant || results.is_empty() {
            said.content = Message::text(role, texts).content;
            results.push(AgentMessage::new(said));
        }
        Ok(results)
    }
}

/// A message with these blocks, as whole answers and streams have it.
fn envelope(
    turn: &Turn,
    reply: &Reply,
    blocks: &[Value],
    reason: Option<&str>,
    sampled: usize,
) -> Value {
    json!({
        "id": format!("msg_{}", reply.id), "type": "message", "role": "assistant", "model": reply.model,
        "content": blocks, "stop_reason": reason, "stop_sequence": null,
        "usage": { "input_tokens": turn.prompt_tokens, "output_tokens": sampled },
    })
}

/// A turn as blocks of content.
fn blocks(message: &Message) -> Vec<Value> {
    let mut blocks = Vec::new();
    if let Some(reasoning) = &message.reasoning_content {
        blocks.push(json!({ "type": "thinking", "thinking": reasoning, "signature": "" }));
    }
    let text = message.plain_text();
    if !text.is_empty() {
        blocks.push(json!({ "type": "text", "text": text }));
    }
    blocks.extend(message.tool_calls.iter().map(|call| {
        json!({ "type": "tool_use", "id": call.call_id, "name": call.name, "input": call.arguments })
    }));
    blocks
}

/// A block as a stream sends it: its beginning, and what is added to it.
fn in_two(block: &Value) -> (Value, Value) {
    let mut start = block.clone();
    match block["type"].as_str() {
        Some("text") => {
            start["text"] = json!("");
            (
                start,
                json!({ "type": "text_delta", "text": block["text"] }),
            )
        }
        Some("thinking") => {
            start["thinking"] = json!("");
            let delta = json!({ "type": "thinking_delta", "thinking": block["thinking"] });
            (start, delta)
        }
        _ => {
            start["input"] = json!({});
            let input = block["input"].to_string();
            (
                start,
                json!({ "type": "input_json_delta", "partial_json": input }),
            )
        }
    }
}

fn stop_reason(stopped: Stopped) -> &'static str {
    match stopped {
        Stopped::Ended => "end_turn",
        Stopped::Calls => "tool_use",
        Stopped::Length => "max_tokens",
    }
}

#[cfg(test)]
mod tests {
    use rlf_rollout::agent::TurnRequest;

    use super::*;
    use crate::parameters::Sampling;

    fn read(body: &Value) -> Result<TurnRequest, Refusal> {
        let read = form::read::<Anthropic>(body.to_string().as_bytes(), Sampling::Fixed(1.0));
        read.map(|(asked, _)| asked.turn)
    }

    #[test]
    fn blocks_become_messages_and_results_come_before_text() {
        let body = json!({
            "model": "m", "max_tokens": 9, "system": [{ "type": "text", "text": "be brief" }],
            "messages": [
                { "role": "user", "content": "hi" },
                { "role": "assistant", "content": [
                    { "type": "thinking", "thinking": "hm", "signature": "" },
                    { "type": "text", "text": "I look." },
                    { "type": "tool_use", "id": "c", "name": "look", "input": { "at": 1 } },
                ] },
                { "role": "user", "content": [
                    { "type": "tool_result", "tool_use_id": "c", "content": [{ "type": "text", "text": "nothing" }] },
                    { "type": "text", "text": "go on" },
                ] },
            ],
            "tools": [{ "name": "look", "input_schema": { "type": "object" } }],
        });
        let request = read(&body).unwrap();
        let messages = &request.messages;
        let roles: Vec<Role> = messages.iter().map(|sent| sent.message.role).collect();
        assert_eq!(
            roles,
            [
                Role::System,
                Role::User,
                Role::Assistant,
                Role::Tool,
                Role::User
            ]
        );
        assert_eq!(messages[2].message.reasoning_content.as_deref(), Some("hm"));
        assert_eq!(messages[2].message.tool_calls[0].call_id, "c");
        assert_eq!(messages[3].call_id.as_deref(), Some("c"));
        assert_eq!(messages[4].message.plain_text(), "go on");
        assert_eq!(request.max_tokens, Some(9));
    }

    #[test]
    fn parameters_and_blocks_that_cannot_be_kept_are_named() {
        let with = |key: &str, value: Value| {
            let mut body =
                json!({ "max_tokens": 9, "messages": [{ "role": "user", "content": "hi" }] });
            body[key] = value;
            body
        };
        for (key, value) in [
            ("temperature", json!(0.5)),
            ("top_k", json!(40)),
            ("stop_sequences", json!(["x"])),
            (
                "thinking",
                json!({ "type": "enabled", "budget_tokens": 1024 }),
            ),
            ("tool_choice", json!({ "type": "any" })),
        ] {
            let Err(refusal) = read(&with(key, value)) else {
                panic!("{key} was accepted")
            };
            assert!(
                refusal.message.contains(&format!("`{key}`")),
                "{}",
                refusal.message
            );
        }
        let image = json!([{ "role": "user", "content": [{ "type": "image", "source": {} }] }]);
        let Err(refusal) = read(&with("messages", image)) else {
            panic!("an image was accepted")
        };
        assert!(
            refusal.message.contains("messages[0]: content[0]"),
            "{}",
            refusal.message
        );
    }
}
