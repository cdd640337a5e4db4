//! Requests and answers in Anthropic's form: messages.

use std::fmt::Write as _;

use axum::response::Response;
use http::StatusCode;
use rlf_dialogue::message::{Message, Role};
use rlf_dialogue::tool::ToolCall;
use rlf_policy::SamplingParams;
use rlf_rollout::agent::{AgentMessage, Stopped, Turn, TurnRequest};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::wire::{self, Neutral, Refusal, Sampling};

/// Keys that are read, or that change nothing about the answer.
const USED: [&str; 8] = [
    "messages",
    "system",
    "tools",
    "max_tokens",
    "stream",
    "model",
    "metadata",
    "service_tier",
];

/// Parameters that can be given only with these values.
const NEUTRAL: [Neutral; 6] = [
    ("top_p", wire::is_one),
    ("top_k", wire::is_zero),
    ("stop_sequences", wire::is_empty),
    ("tool_choice", |value| {
        value["type"] == "auto" && value["disable_parallel_tool_use"] != true
    }),
    ("thinking", |value| value["type"] == "disabled"),
    ("mcp_servers", wire::is_empty),
];

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
        input: Value,
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

/// A request, with the form in which its answer is sent.
pub(crate) struct Request {
    pub(crate) turn: TurnRequest,
    /// The sampling parameters, if the request may choose them.
    pub(crate) params: SamplingParams,
    model: Value,
    stream: bool,
}

impl Request {
    /// Reads the body of a request.
    pub(crate) fn read(body: &[u8], sampling: Sampling) -> Result<Self, Refusal> {
        let request: Map<String, Value> = rlf_json::from_slice(body)
            .map_err(|error| Refusal::invalid(format!("the body is no JSON object: {error}")))?;
        wire::check_parameters(&request, &USED, &NEUTRAL, sampling)?;
        let mut messages = Vec::new();
        if let Some(system) = request.get("system").filter(|system| !system.is_null()) {
            let text = text(system).map_err(|why| Refusal::invalid(format!("system: {why}")))?;
            messages.push(AgentMessage::new(Message::text(Role::System, text)));
        }
        for (place, value) in wire::list(&request, "messages")?.iter().enumerate() {
            let wrong = |why: String| Refusal::invalid(format!("messages[{place}]: {why}"));
            let sent = SentMessage::deserialize(value).map_err(|error| wrong(error.to_string()))?;
            messages.extend(sent.messages().map_err(wrong)?);
        }
        if messages
            .last()
            .is_some_and(|last| last.message.role == Role::Assistant)
        {
            return Err(Refusal::invalid(
                "the last message is the assistant's own, and a prefilled turn cannot be sampled; send what it answers",
            ));
        }
        let tools = wire::list(&request, "tools")?;
        let tools = tools.iter().enumerate().map(|(place, value)| {
            let sent = SentTool::deserialize(value);
            let sent =
                sent.map_err(|error| Refusal::invalid(format!("tools[{place}]: {error}")))?;
            if let Some(kind) = sent.kind.filter(|kind| kind != "custom") {
                return Err(Refusal::invalid(format!(
                    "tools[{place}]: a tool of the type `{kind}` cannot be offered; only custom ones can"
                )));
            }
            wire::tool(&sent.name, sent.description.as_deref(), sent.input_schema)
        });
        Ok(Self {
            turn: TurnRequest {
                messages,
                tools: wire::unique(tools.collect::<Result<_, _>>()?)?,
                max_tokens: wire::max_tokens(&request, &["max_tokens"])?,
            },
            params: wire::params(&request, sampling)?,
            model: request.get("model").cloned().unwrap_or(json!("policy")),
            stream: request.get("stream").is_some_and(|value| value == true),
        })
    }

    /// The answer, in the form that the request asks for. `id` is unique.
    pub(crate) fn answer(&self, turn: &Turn, id: &str) -> Response {
        let blocks = blocks(&turn.message);
        let reason = stop_reason(turn.stopped);
        let message = |blocks: &[Value], reason: Option<&str>, sampled: usize| {
            json!({
                "id": format!("msg_{id}"), "type": "message", "role": "assistant", "model": self.model,
                "content": blocks, "stop_reason": reason, "stop_sequence": null,
                "usage": { "input_tokens": turn.prompt_tokens, "output_tokens": sampled },
            })
        };
        if !self.stream {
            let body = message(&blocks, Some(reason), turn.sampled_tokens);
            return wire::answer(StatusCode::OK, &body);
        }
        let mut events = vec![json!({ "type": "message_start", "message": message(&[], None, 0) })];
        for (index, block) in blocks.iter().enumerate() {
            let (start, delta) = in_two(block);
            events.push(
                json!({ "type": "content_block_start", "index": index, "content_block": start }),
            );
            events.push(json!({ "type": "content_block_delta", "index": index, "delta": delta }));
            events.push(json!({ "type": "content_block_stop", "index": index }));
        }
        events.push(json!({
            "type": "message_delta", "delta": { "stop_reason": reason, "stop_sequence": null },
            "usage": { "output_tokens": turn.sampled_tokens },
        }));
        events.push(json!({ "type": "message_stop" }));
        let mut text = String::new();
        for event in &events {
            let kind = event["type"].as_str().unwrap_or_default();
            _ = write!(text, "event: {kind}\ndata: {event}\n\n");
        }
        wire::events(text)
    }
}

impl SentMessage {
    /// The message in our form. Results of tools are messages of their own.
    fn messages(self) -> Result<Vec<AgentMessage>, String> {
        let role = match self.role.as_str() {
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "system" => Role::System,
            other => return Err(format!("the role `{other}` is not known")),
        };
        let Value::Array(blocks) = &self.content else {
            return Ok(vec![AgentMessage::new(Message::text(
                role,
                text(&self.content)?,
            ))]);
        };
        let mut results = Vec::new();
        let mut said = Message::text(role, "");
        let mut texts = String::new();
        let mut has_text = false;
        for (place, block) in blocks.iter().enumerate() {
            let block = SentBlock::deserialize(block);
            let block = block.map_err(|error| format!("content[{place}]: {error}"))?;
            match block {
                SentBlock::Text { text } => {
                    has_text = true;
                    texts.push_str(&text);
                }
                SentBlock::Thinking { thinking } => {
                    said.reasoning_content
                        .get_or_insert_default()
                        .push_str(&thinking);
                }
                SentBlock::ToolUse { id, name, input } => {
                    if !input.is_object() {
                        return Err(format!("content[{place}]: the input of {id} is no object"));
                    }
                    said.tool_calls.push(ToolCall {
                        call_id: id,
                        name,
                        arguments: input,
                    });
                }
                SentBlock::ToolResult {
                    tool_use_id,
                    content,
                    is_error,
                } => results.push(AgentMessage {
                    message: Message::text(Role::Tool, text(&content)?),
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

/// A content's text: a text, blocks of text, or nothing.
fn text(content: &Value) -> Result<String, String> {
    match content {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text.clone()),
        Value::Array(blocks) => {
            let texts = blocks
                .iter()
                .map(|block| match (&block["type"], &block["text"]) {
                    (Value::String(kind), Value::String(text)) if kind == "text" => {
                        Ok(text.as_str())
                    }
                    (kind, _) => Err(format!(
                        "a block of the type {kind} cannot be read here; only text can"
                    )),
                });
            texts.collect()
        }
        _ => Err("`content` is neither a text nor a list of blocks".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &Value) -> Result<Request, Refusal> {
        Request::read(body.to_string().as_bytes(), Sampling::Fixed(1.0))
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
        let request = read(&body).map_err(|refusal| refusal.message).unwrap();
        let messages = &request.turn.messages;
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
        assert_eq!(request.turn.max_tokens, Some(9));
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
