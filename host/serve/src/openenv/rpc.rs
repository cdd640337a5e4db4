//! The tools of a session over JSON-RPC: `tools/list` and `tools/call`, and the sessions of clients over HTTP.

use rlf_dialogue::tool::ToolDefinition;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::episode::Episode;
use super::protocol::{Code, Fault, Observed};
use crate::answer::Refusal;

const PARSE_ERROR: i32 = -32_700;
const INVALID_REQUEST: i32 = -32_600;
const METHOD_NOT_FOUND: i32 = -32_601;
const INVALID_PARAMS: i32 = -32_602;
const INTERNAL_ERROR: i32 = -32_603;
const SERVER_ERROR: i32 = -32_000;

#[derive(Deserialize)]
struct Request {
    method: String,
    #[serde(default)]
    params: Map<String, Value>,
}

/// An error of JSON-RPC.
struct Failed {
    code: i32,
    message: String,
    data: Value,
}

impl Failed {
    fn new(code: i32, message: impl Into<String>) -> Self {
        let message = message.into();
        Self {
            code,
            message,
            data: Value::Null,
        }
    }
}

impl From<Fault> for Failed {
    fn from(fault: Fault) -> Self {
        let code = match fault.code {
            Code::CapacityReached => SERVER_ERROR,
            Code::ValidationError => INVALID_PARAMS,
            _ => INTERNAL_ERROR,
        };
        Self::new(code, fault.message)
    }
}

impl From<Refusal> for Failed {
    fn from(refusal: Refusal) -> Self {
        Self::new(INTERNAL_ERROR, refusal.reason())
    }
}

/// Answers a request of a client whose WebSocket is its session. A request without an id is a notification: it is
/// carried out and has no answer.
pub(super) async fn answer(episode: &mut Episode, request: Value) -> Option<Value> {
    respond(episode, request, true).await
}

/// Like [`answer`], for a request as text.
pub(super) async fn answer_text(episode: &mut Episode, text: &str) -> Option<Value> {
    respond_to_text(episode, text.as_bytes(), true).await
}

/// Like [`answer_text`], for a request that names its session in `params.session_id`, or gets a fresh one.
pub(super) async fn answer_over_http(episode: &mut Episode, body: &[u8]) -> Option<Value> {
    respond_to_text(episode, body, false).await
}

/// The answer to a request for which the service has no room. It is not read, so nobody knows its id.
pub(super) fn refused(refusal: Refusal) -> Value {
    failure(&Value::Null, refusal.into())
}

async fn respond_to_text(episode: &mut Episode, text: &[u8], is_session: bool) -> Option<Value> {
    let request: Value = match serde_json::from_slice(text) {
        Ok(request) => request,
        Err(error) => {
            let what = format!("Parse error: {error}");
            return Some(failure(&Value::Null, Failed::new(PARSE_ERROR, what)));
        }
    };
    match rlf_json::check(text) {
        Ok(()) => respond(episode, request, is_session).await,
        Err(error) => Some(invalid(request.get("id"), &error)),
    }
}

async fn respond(episode: &mut Episode, request: Value, is_session: bool) -> Option<Value> {
    let id = request.get("id").cloned();
    // Serde would accept a list that has the fields' values in order.
    let read = serde_json::from_value::<Map<String, Value>>(request)
        .and_then(|request| Request::deserialize(Value::Object(request)));
    let request = match read {
        Ok(request) => request,
        Err(error) => return Some(invalid(id.as_ref(), &error)),
    };
    let result = result(episode, request, is_session).await;
    let id = id?;
    Some(match result {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(failed) => failure(&id, failed),
    })
}

/// The answer to what is no request, or to one whose integers would be rounded.
fn invalid(id: Option<&Value>, error: &serde_json::Error) -> Value {
    let failed = Failed::new(INVALID_REQUEST, format!("Invalid request: {error}"));
    failure(id.unwrap_or(&Value::Null), failed)
}

fn failure(id: &Value, failed: Failed) -> Value {
    let Failed {
        code,
        message,
        data,
    } = failed;
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message, "data": data}})
}

async fn result(
    episode: &mut Episode,
    Request { method, params }: Request,
    is_session: bool,
) -> Result<Value, Failed> {
    let named = params.get("session_id").and_then(Value::as_str);
    // A WebSocket is a session itself, and has no other.
    if let Some(name) = named
        && !is_session
        && method.starts_with("tools/")
    {
        episode.resume(name).map_err(|_| unknown_session())?;
    }
    match method.as_str() {
        "openenv/session/create" => {
            let options = reset_options(params)?;
            if !options.is_empty() {
                episode.reset(options).await?;
            }
            let name = episode.name().await?;
            if !is_session {
                episode.keep();
            }
            Ok(json!({ "session_id": name }))
        }
        "openenv/session/close" => {
            let missing = "Invalid params - 'session_id' is required";
            let name = named.ok_or_else(|| Failed::new(INVALID_PARAMS, missing))?;
            if episode.open_name() == Some(name) {
                let what = "a WebSocket's own session ends with the WebSocket";
                return Err(Failed::new(INVALID_REQUEST, what));
            }
            if !episode.service.sessions.close(name) {
                return Err(unknown_session());
            }
            Ok(json!({"session_id": name, "closed": true}))
        }
        "tools/list" => {
            let tool = |tool: &ToolDefinition| json!({"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema});
            Ok(json!({"tools": episode.tools(tool).await?}))
        }
        "tools/call" => {
            let missing = "Invalid params: `name` must be the name of a tool";
            let tool = params.get("name").and_then(Value::as_str);
            let tool = tool.ok_or_else(|| Failed::new(INVALID_PARAMS, missing))?;
            let arguments = object(&params, "arguments")?;
            let action = json!({"type": "call_tool", "tool_name": tool, "arguments": arguments});
            let Observed {
                mut observation,
                reward,
                done,
            } = episode.step(action).await?;
            let meta = json!({"rlf-host/reward": reward, "rlf-host/done": done});
            match observation.get("error") {
                Some(Value::Object(error)) => {
                    let message = error.get("message").and_then(Value::as_str);
                    let message = message.unwrap_or_default();
                    Err(Failed {
                        data: json!({ "_meta": meta }),
                        ..Failed::new(INTERNAL_ERROR, message)
                    })
                }
                _ => {
                    let mut result = observation["result"].take();
                    result["_meta"] = meta;
                    Ok(result)
                }
            }
        }
        _ => Err(Failed::new(
            METHOD_NOT_FOUND,
            "Method not found; there are: tools/list, tools/call, openenv/session/create, openenv/session/close",
        )),
    }
}

/// The options of a reset: the task's setup, and the reset's own keys in it or beside it.
fn reset_options(mut params: Map<String, Value>) -> Result<Map<String, Value>, Failed> {
    let mut options = object(&params, "setup")?;
    for key in ["seed", "episode_id", "reference"] {
        if let Some(value) = params.remove(key) {
            options.insert(key.to_owned(), value);
        }
    }
    Ok(options)
}

/// A parameter that is an object; empty if it is missing.
fn object(params: &Map<String, Value>, key: &str) -> Result<Map<String, Value>, Failed> {
    match params.get(key) {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(object)) => Ok(object.clone()),
        Some(_) => {
            let what = format!("Invalid params: `{key}` must be an object");
            Err(Failed::new(INVALID_PARAMS, what))
        }
    }
}

fn unknown_session() -> Failed {
    Failed::new(INVALID_PARAMS, "Unknown session_id")
}
