//! Requests and answers in OpenAI's form: chat completions.

use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::response::Response;
use http::StatusCode;
use rlf_dialogue::message::{Message, Role};
use rlf_dialogue::tool::{ToolCall, ToolDefinition};
use rlf_policy::SamplingParams;
use rlf_rollout::agent::{AgentMessage, Stopped, Turn, TurnRequest};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::wire::{self, Neutral, Refusal, Sampling};

/// Keys that are read, or that change nothing about the answer.
const USED: [&str; 16] = [
    "messages",
    "tools",
    "max_tokens",
    "max_completion_tokens",
    "stream",
    "stream_options",
    "model",
    "user",
    "metadata",
    "store",
    "seed",
    "service_tier",
    "safety_identifier",
    "prompt_cache_key",
    "reasoning_effort",
    "verbosity",
];

/// Parameters that can be given only with these values.
const NEUTRAL: [Neutral; 13] = [
    ("top_p", wire::is_one),
    ("n", wire::is_one),
    ("presence_penalty", wire::is_zero),
    ("frequency_penalty", wire::is_zero),
    ("logit_bias", wire::is_empty),
    ("stop", wire::is_empty),
    ("logprobs", |value| value == false),
    ("top_logprobs", wire::is_zero),
    ("tool_choice", |value| value == "auto"),
    ("parallel_tool_calls", |value| value == true),
    ("response_format", |value| value["type"] == "text"),
    ("modalities", |value| *value == json!(["text"])),
    ("functions", wire::is_empty),
];

#[derive(Deserialize)]
struct SentMessage {
    role: String,
    #[serde(default)]
    content: Value,
    #[serde(default)]
    reasoning_content: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<SentCall>>,
    #[serde(default)]
    tool_call_id: Option<String>,
}

#[derive(Deserialize)]
struct SentCall {
    id: String,
    function: SentFunction,
}

#[derive(Deserialize)]
struct SentFunction {
    name: String,
    arguments: String,
}

#[derive(Deserialize)]
struct SentTool {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    function: Option<SentDefinition>,
}

#[derive(Deserialize)]
struct SentDefinition {
    name: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    parameters: Option<Value>,
}

/// A request, with the form in which its answer is sent.
pub(crate) struct Request {
    pub(crate) turn: TurnRequest,
    /// The sampling parameters, if the request may choose them.
    pub(crate) params: SamplingParams,
    /// The seed. Ignored where the seed of a run decides.
    pub(crate) seed: Option<u64>,
    model: Value,
    stream: bool,
    with_usage: bool,
}

impl Request {
    /// Reads the body of a request.
    pub(crate) fn read(body: &[u8], sampling: Sampling) -> Result<Self, Refusal> {
        let request: Map<String, Value> = rlf_json::from_slice(body)
            .map_err(|error| Refusal::invalid(format!("the body is no JSON object: {error}")))?;
        wire::check_parameters(&request, &USED, &NEUTRAL, sampling)?;
        let messages: Vec<Value> = wire::list(&request, "messages")?;
        let messages = messages.into_iter().enumerate().map(|(place, value)| {
            let wrong = |why: String| Refusal::invalid(format!("messages[{place}]: {why}"));
            let sent =
                SentMessage::deserialize(&value).map_err(|error| wrong(error.to_string()))?;
            sent.message().map_err(wrong)
        });
        let messages = messages.collect::<Result<Vec<_>, _>>()?;
        if messages
            .last()
            .is_some_and(|last| last.message.role == Role::Assistant)
        {
            return Err(Refusal::invalid(
                "the last message is the assistant's own; send what it answers",
            ));
        }
        let tools: Vec<Value> = wire::list(&request, "tools")?;
        let tools = tools.into_iter().enumerate().map(|(place, value)| {
            let sent = SentTool::deserialize(&value);
            let sent =
                sent.map_err(|error| Refusal::invalid(format!("tools[{place}]: {error}")))?;
            sent.definition()
        });
        let is = |key: &str| request.get(key).is_some_and(|value| value == true);
        Ok(Self {
            turn: TurnRequest {
                messages,
                tools: wire::unique(tools.collect::<Result<_, _>>()?)?,
                max_tokens: wire::max_tokens(&request, &["max_completion_tokens", "max_tokens"])?,
            },
            params: wire::params(&request, sampling)?,
            seed: wire::count(&request, "seed")?,
            model: request.get("model").cloned().unwrap_or(json!("policy")),
            stream: is("stream"),
            with_usage: request
                .get("stream_options")
                .is_some_and(|options| options["include_usage"] == true),
        })
    }

    /// The answer, in the form that the request asks for. `id` is unique.
    pub(crate) fn answer(&self, turn: &Turn, id: &str) -> Response {
        let created = SystemTime::now().duration_since(UNIX_EPOCH);
        let created = created.map_or(0, |since| since.as_secs());
        let usage = json!({
            "prompt_tokens": turn.prompt_tokens,
            "completion_tokens": turn.sampled_tokens,
            "total_tokens": turn.prompt_tokens + turn.sampled_tokens,
        });
        let whole = |object: &str, choices: Value| {
            json!({
                "id": format!("chatcmpl-{id}"), "object": object, "created": created,
                "model": self.model, "choices": choices,
            })
        };
        if !self.stream {
            let choice = json!({
                "index": 0, "message": said(&turn.message), "logprobs": null,
                "finish_reason": finish_reason(turn.stopped),
            });
            let mut body = whole("chat.completion", json!([choice]));
            body["usage"] = usage;
            return wire::answer(StatusCode::OK, &body);
        }
        let mut delta = said(&turn.message);
        for (place, call) in delta["tool_calls"]
            .as_array_mut()
            .into_iter()
            .flatten()
            .enumerate()
        {
            call["index"] = json!(place);
        }
        let chunk = |choices: Value| whole("chat.completion.chunk", choices);
        let mut chunks = vec![
            chunk(json!([{ "index": 0, "delta": delta, "finish_reason": null }])),
            chunk(json!([{
                "index": 0, "delta": {}, "finish_reason": finish_reason(turn.stopped),
            }])),
        ];
        if self.with_usage {
            let mut last = chunk(json!([]));
            last["usage"] = usage;
            chunks.push(last);
        }
        let mut events = String::new();
        for chunk in &chunks {
            _ = write!(events, "data: {chunk}\n\n");
        }
        events.push_str("data: [DONE]\n\n");
        wire::events(events)
    }
}

impl SentMessage {
    fn message(self) -> Result<AgentMessage, String> {
        let role = match self.role.as_str() {
            "system" | "developer" => Role::System,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "tool" => Role::Tool,
            other => return Err(format!("the role `{other}` is not known")),
        };
        if role == Role::Tool && self.tool_call_id.is_none() {
            return Err("a message of a tool needs `tool_call_id`".to_owned());
        }
        let calls = self.tool_calls.unwrap_or_default();
        let calls = calls
            .into_iter()
            .map(SentCall::call)
            .collect::<Result<_, _>>()?;
        Ok(AgentMessage {
            message: Message {
                reasoning_content: self.reasoning_content,
                tool_calls: calls,
                ..Message::text(role, text(&self.content)?)
            },
            call_id: self.tool_call_id,
            failed: false,
        })
    }
}

impl SentCall {
    fn call(self) -> Result<ToolCall, String> {
        let SentFunction { name, arguments } = self.function;
        let arguments: Value = rlf_json::from_str(&arguments)
            .map_err(|error| format!("the arguments of call {}: {error}", self.id))?;
        if !arguments.is_object() {
            return Err(format!("the arguments of call {} are no object", self.id));
        }
        Ok(ToolCall {
            call_id: self.id,
            name,
            arguments,
        })
    }
}

impl SentTool {
    fn definition(self) -> Result<ToolDefinition, Refusal> {
        match self.function {
            Some(function) if self.kind == "function" => wire::tool(
                &function.name,
                function.description.as_deref(),
                function.parameters,
            ),
            _ => Err(Refusal::invalid(format!(
                "a tool of the type `{}` cannot be offered; only functions can",
                self.kind
            ))),
        }
    }
}

/// The tools in OpenAI's form.
pub(crate) fn tools(definitions: &[ToolDefinition]) -> Value {
    let tools = definitions.iter().map(|tool| {
        let function = json!({
            "name": tool.name, "description": tool.description, "parameters": tool.input_schema,
        });
        json!({ "type": "function", "function": function })
    });
    tools.collect()
}

/// Messages in OpenAI's form.
pub(crate) fn messages(messages: &[Message]) -> Value {
    messages.iter().map(said).collect()
}

/// A message in OpenAI's form.
fn said(message: &Message) -> Value {
    let text = message.plain_text();
    let calls = message.tool_calls.iter().map(|call| {
        let function = json!({ "name": call.name, "arguments": call.arguments.to_string() });
        json!({ "id": call.call_id, "type": "function", "function": function })
    });
    let calls: Vec<Value> = calls.collect();
    let mut said = json!({ "role": message.role, "content": text });
    if let Some(reasoning) = &message.reasoning_content {
        said["reasoning_content"] = json!(reasoning);
    }
    if !calls.is_empty() {
        if text.is_empty() {
            said["content"] = Value::Null;
        }
        said["tool_calls"] = json!(calls);
    }
    said
}

fn finish_reason(stopped: Stopped) -> &'static str {
    match stopped {
        Stopped::Ended => "stop",
        Stopped::Calls => "tool_calls",
        Stopped::Length => "length",
    }
}

/// The text of a message's content: a text, parts of text, or nothing.
fn text(content: &Value) -> Result<String, String> {
    match content {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text.clone()),
        Value::Array(parts) => {
            let texts = parts
                .iter()
                .map(|part| match (&part["type"], &part["text"]) {
                    (Value::String(kind), Value::String(text)) if kind == "text" => {
                        Ok(text.as_str())
                    }
                    (kind, _) => Err(format!(
                        "a part of the type {kind} cannot be read; only text can"
                    )),
                });
            texts.collect()
        }
        _ => Err("`content` is neither a text nor a list of parts".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(body: &Value) -> String {
        match Request::read(body.to_string().as_bytes(), Sampling::Fixed(1.0)) {
            Ok(_) => panic!("{body} was accepted"),
            Err(refusal) => refusal.message,
        }
    }

    #[test]
    fn a_request_of_the_python_sdk_is_read() {
        let body = json!({
            "model": "policy", "temperature": 1.0, "top_p": 1, "n": 1, "stream": false, "max_tokens": 7,
            "messages": [
                { "role": "developer", "content": "be brief" },
                { "role": "user", "content": [{ "type": "text", "text": "hi" }] },
                { "role": "assistant", "content": null, "refusal": null, "annotations": null, "audio": null,
                  "function_call": null,
                  "tool_calls": [{ "id": "c", "type": "function",
                                   "function": { "name": "look", "arguments": "{\"at\": 1}" } }] },
                { "role": "tool", "tool_call_id": "c", "content": "nothing" },
            ],
            "tools": [{ "type": "function", "function": { "name": "look", "strict": true } }],
        });
        let request = Request::read(body.to_string().as_bytes(), Sampling::Fixed(1.0)).unwrap();
        let roles = request.turn.messages.iter().map(|sent| sent.message.role);
        assert_eq!(
            roles.collect::<Vec<_>>(),
            [Role::System, Role::User, Role::Assistant, Role::Tool]
        );
        assert_eq!(request.turn.messages[1].message.plain_text(), "hi");
        assert_eq!(
            request.turn.messages[2].message.tool_calls[0].arguments,
            json!({ "at": 1 })
        );
        assert_eq!(request.turn.messages[3].call_id.as_deref(), Some("c"));
        assert_eq!(request.turn.tools[0].name, "look");
        assert_eq!(request.turn.max_tokens, Some(7));
    }

    #[test]
    fn what_would_change_the_distribution_is_refused_by_name() {
        let with = |key: &str, value: Value| {
            let mut body = json!({ "messages": [{ "role": "user", "content": "hi" }] });
            body[key] = value;
            body
        };
        for (key, value) in [
            ("temperature", json!(0.7)),
            ("top_p", json!(0.9)),
            ("n", json!(2)),
            ("presence_penalty", json!(0.1)),
            ("logit_bias", json!({ "1": 5 })),
            ("stop", json!(["\n"])),
            ("logprobs", json!(true)),
            ("tool_choice", json!("required")),
            ("response_format", json!({ "type": "json_object" })),
            ("min_p", json!(0.1)),
            ("max_tokens", json!(0)),
            ("messages", json!("hi")),
        ] {
            let message = refused(&with(key, value));
            assert!(message.contains(&format!("`{key}`")), "{message}");
        }
    }

    #[test]
    fn a_message_that_cannot_be_read_is_named_by_its_place() {
        let with =
            |message: Value| json!({ "messages": [{ "role": "user", "content": "hi" }, message] });
        for (message, part) in [
            (json!({ "role": "judge", "content": "x" }), "`judge`"),
            (json!({ "role": "tool", "content": "x" }), "`tool_call_id`"),
            (
                json!({ "role": "user", "content": [{ "type": "image_url" }] }),
                "image_url",
            ),
            (json!({ "role": "user", "content": 3 }), "`content`"),
            (
                json!({ "role": "assistant",
                        "tool_calls": [{ "id": "c", "function": { "name": "a", "arguments": "{" } }] }),
                "call c",
            ),
        ] {
            let said = refused(&with(message));
            assert!(
                said.contains("messages[1]") && said.contains(part),
                "{said}"
            );
        }
        let own = refused(&with(json!({ "role": "assistant", "content": "x" })));
        assert!(own.contains("the assistant's own"), "{own}");
    }
}
