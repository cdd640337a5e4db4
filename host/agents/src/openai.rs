//! OpenAI's form of requests and answers: chat completions.

use std::fmt::Write as _;

use rlf_dialogue::message::{Message, Role};
use rlf_dialogue::tool::{ToolCall, ToolDefinition};
use rlf_rollout::agent::{AgentMessage, Stopped, Turn};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::body::{self, Object};
use crate::form::{self, Form, Reply};
use crate::parameters::{Neutral, is_empty, is_one, is_zero};
use crate::refusal::Refusal;

/// OpenAI's form.
pub(crate) struct OpenAi;

#[derive(Deserialize)]
struct SentMessage {
    role: String,
    #[serde(default)]
    content: Value,
    #[serde(default)]
    reasoning_content: Option<String>,
    #[serde(default)]
    tool_calls: Option<Vec<Object<SentCall>>>,
    #[serde(default)]
    tool_call_id: Option<String>,
}

#[derive(Deserialize)]
struct SentCall {
    id: String,
    function: Object<SentFunction>,
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
    function: Option<Object<SentDefinition>>,
}

#[derive(Deserialize)]
struct SentDefinition {
    name: String,
    #[serde(default)]
    description: Option<String>,
    #[serde(default)]
    parameters: Option<Value>,
}

impl Form for OpenAi {
    const PATH: &'static str = "/v1/chat/completions";

    const USED: &'static [&'static str] = &[
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

    const NEUTRAL: &'static [Neutral] = &[
        ("top_p", is_one),
        ("n", is_one),
        ("presence_penalty", is_zero),
        ("frequency_penalty", is_zero),
        ("logit_bias", is_empty),
        ("stop", is_empty),
        ("logprobs", |value| value == false),
        ("top_logprobs", is_zero),
        ("tool_choice", |value| value == "auto"),
        ("parallel_tool_calls", |value| value == true),
        ("response_format", |value| value["type"] == "text"),
        ("modalities", |value| *value == json!(["text"])),
        ("functions", is_empty),
    ];

    const MAX_TOKENS: &'static [&'static str] = &["max_completion_tokens", "max_tokens"];

    fn messages(request: &Map<String, Value>) -> Result<Vec<AgentMessage>, Refusal> {
        form::items(request, "messages", |sent| {
            body::object::<SentMessage>(sent)?.message()
        })
    }

    fn tool(sent: &Value) -> Result<ToolDefinition, Refusal> {
        let SentTool { kind, function } = body::object(sent)?;
        match function {
            Some(Object(function)) if kind == "function" => {
                form::tool(function.name, function.description, function.parameters)
            }
            _ => Err(Refusal::invalid(format!(
                "a tool of the type `{kind}` cannot be offered; only functions can"
            ))),
        }
    }

    fn whole(turn: &Turn, reply: &Reply) -> Value {
        let choice = json!({
            "index": 0, "message": said(&turn.message), "logprobs": null,
            "finish_reason": finish_reason(turn.stopped),
        });
        let mut whole = envelope("chat.completion", reply, &[choice]);
        whole["usage"] = usage(turn);
        whole
    }

    fn events(turn: &Turn, reply: &Reply) -> String {
        let chunk = |choices: &[Value]| envelope("chat.completion.chunk", reply, choices);
        let mut delta = said(&turn.message);
        let calls = delta["tool_calls"].as_array_mut().into_iter().flatten();
        for (place, call) in calls.enumerate() {
            call["index"] = json!(place);
        }
        let end = finish_reason(turn.stopped);
        let mut chunks = vec![
            chunk(&[json!({ "index": 0, "delta": delta, "finish_reason": null })]),
            chunk(&[json!({ "index": 0, "delta": {}, "finish_reason": end })]),
        ];
        if reply.with_usage {
            let mut last = chunk(&[]);
            last["usage"] = usage(turn);
            chunks.push(last);
        }
        let mut events = String::new();
        for chunk in &chunks {
            _ = write!(events, "data: {chunk}\n\n");
        }
        events.push_str("data: [DONE]\n\n");
        events
    }

    fn error(refusal: &Refusal) -> Value {
        let kind = if refusal.status.is_server_error() {
            "server_error"
        } else {
            "invalid_request_error"
        };
        json!({ "error": {
            "message": refusal.message, "type": kind, "param": null, "code": refusal.code,
        } })
    }
}

impl SentMessage {
    fn message(self) -> Result<AgentMessage, Refusal> {
        let role = match self.role.as_str() {
            "system" | "developer" => Role::System,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "tool" => Role::Tool,
            other => {
                return Err(Refusal::invalid(format!("the role `{other}` is not known")));
            }
        };
        if role == Role::Tool && self.tool_call_id.is_none() {
            return Err(Refusal::invalid("a message of a tool needs `tool_call_id`"));
        }
        let calls = self.tool_calls.into_iter().flatten();
        let calls = calls.map(|Object(call)| call.call());
        Ok(AgentMessage {
            message: Message {
                reasoning_content: self.reasoning_content,
                tool_calls: calls.collect::<Result<_, _>>()?,
                ..Message::text(role, form::text(&self.content)?)
            },
            call_id: self.tool_call_id,
            failed: false,
        })
    }
}

impl SentCall {
    fn call(self) -> Result<ToolCall, Refusal> {
        let Object(SentFunction { name, arguments }) = self.function;
        match rlf_json::from_str::<Object<Map<String, Value>>>(&arguments) {
            Ok(Object(arguments)) => Ok(ToolCall {
                call_id: self.id,
                name,
                arguments: Value::Object(arguments),
            }),
            Err(error) => Err(Refusal::invalid(format!(
                "the arguments of call {}: {error}",
                self.id
            ))),
        }
    }
}

/// The members that a whole answer and every chunk of a stream have.
fn envelope(object: &str, reply: &Reply, choices: &[Value]) -> Value {
    json!({
        "id": format!("chatcmpl-{}", reply.id), "object": object, "created": reply.created,
        "model": reply.model, "choices": choices,
    })
}

fn usage(turn: &Turn) -> Value {
    json!({
        "prompt_tokens": turn.prompt_tokens,
        "completion_tokens": turn.sampled_tokens,
        "total_tokens": turn.prompt_tokens + turn.sampled_tokens,
    })
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
pub(crate) fn said(message: &Message) -> Value {
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

#[cfg(test)]
mod tests {
    use rlf_rollout::agent::TurnRequest;

    use super::*;
    use crate::parameters::Sampling;

    fn read(body: &Value) -> Result<TurnRequest, Refusal> {
        let read = form::read::<OpenAi>(body.to_string().as_bytes(), Sampling::Fixed(1.0));
        read.map(|(asked, _)| asked.turn)
    }

    fn refused(body: &Value) -> String {
        match read(body) {
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
        let request = read(&body).unwrap();
        let roles = request.messages.iter().map(|sent| sent.message.role);
        assert_eq!(
            roles.collect::<Vec<_>>(),
            [Role::System, Role::User, Role::Assistant, Role::Tool]
        );
        assert_eq!(request.messages[1].message.plain_text(), "hi");
        assert_eq!(
            request.messages[2].message.tool_calls[0].arguments,
            json!({ "at": 1 })
        );
        assert_eq!(request.messages[3].call_id.as_deref(), Some("c"));
        assert_eq!(request.tools[0].name, "look");
        assert_eq!(request.max_tokens, Some(7));
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
