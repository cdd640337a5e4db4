//! The tools of a session over JSON-RPC: `tools/list` and `tools/call`, and the sessions of clients over HTTP.

use rlf_dialogue::tool::ToolDefinition;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::episode::Episode;
use super::protocol::{Code, Fault, Observed};
use crate::answer::Refusal;
use crate::queue::WaitBudget;

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
        Fault::from(refusal).into()
    }
}

/// The way in which a client holds its session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Client {
    /// Its WebSocket is the session.
    Socket,
    /// Each request names the session in `params.session_id`, or gets a fresh one.
    Http,
}

/// The answer to a request for which the service has no room. It is not read, so nobody knows its id.
pub(super) fn refused(refusal: Refusal) -> Value {
    failure(&Value::Null, refusal.into())
}

/// Answers a request as text. A request without an id is a notification: it is carried out and has no answer.
pub(super) async fn answer_text(
    episode: &mut Episode,
    text: &[u8],
    client: Client,
    wait: &mut WaitBudget,
) -> Option<Value> {
    let request: Value = match serde_json::from_slice(text) {
        Ok(request) => request,
        Err(error) => {
            let what = format!("Parse error: {error}");
            return Some(failure(&Value::Null, Failed::new(PARSE_ERROR, what)));
        }
    };
    match rlf_json::check(text) {
        Ok(()) => answer(episode, request, client, wait).await,
        Err(error) => Some(invalid(request.get("id"), &error)),
    }
}

/// Like [`answer_text`], for a request that was read.
pub(super) async fn answer(
    episode: &mut Episode,
    request: Value,
    client: Client,
    wait: &mut WaitBudget,
) -> Option<Value> {
    let id = request.get("id").cloned();
    // Serde would accept a list that has the fields' values in order.
    let read = serde_json::from_value::<Map<String, Value>>(request)
        .and_then(|request| Request::deserialize(Value::Object(request)));
    let request = match read {
        Ok(request) => request,
        Err(error) => return Some(invalid(id.as_ref(), &error)),
    };
    let result = result(episode, request, client, wait).await;
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

fn failure(
    id: &Value,
    Failed {
        code,
        message,
        data,
    }: Failed,
) -> Value {
    let error = json!({"code": code, "message": message, "data": data});
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}

async fn result(
    episode: &mut Episode,
    Request { method, params }: Request,
    client: Client,
    wait: &mut WaitBudget,
) -> Result<Value, Failed> {
    let named = match params.get("session_id") {
        None | Some(Value::Null) => None,
        Some(Value::String(name)) => Some(name.as_str()),
        Some(_) => {
            let what = "Invalid params: `session_id` must be a string";
            return Err(Failed::new(INVALID_PARAMS, what));
        }
    };
    if let Some(name) = named
        && client == Client::Http
        && method.starts_with("tools/")
    {
        episode.resume(name).map_err(|_| unknown_session())?;
    }
    match method.as_str() {
        "openenv/session/create" => {
            let options = reset_options(params)?;
            let mut begun = Value::Null;
            if client == Client::Http || !options.is_empty() {
                begun = episode.reset(options, wait).await?.observation;
            }
            let name = episode.name(wait).await?;
            if client == Client::Http {
                episode.keep();
            }
            let meta = json!({"rlf-host/messages": begun["metadata"]["messages"]});
            Ok(json!({"session_id": name, "_meta": meta}))
        }
        "openenv/session/close" => {
            let missing = "Invalid params - 'session_id' is required";
            let name = named.ok_or_else(|| Failed::new(INVALID_PARAMS, missing))?;
            if episode.open_name() == Some(name) {
                let what = "a WebSocket's own session ends with the WebSocket";
                return Err(Failed::new(INVALID_REQUEST, what));
            }
            let answer = params.get("answer").cloned().unwrap_or_default();
            if !(answer.is_null() || answer.is_string()) {
                let what = "Invalid params: `answer` must be a string";
                return Err(Failed::new(INVALID_PARAMS, what));
            }
            let judged = episode.close_other(name, answer, wait).await;
            let (reward, reason) = match judged.ok_or_else(unknown_session)? {
                Err(fault) if fault.code == Code::CapacityReached => return Err(fault.into()),
                Ok(Observed {
                    mut observation,
                    reward,
                    ..
                }) => (reward, observation["metadata"]["reason"].take()),
                Err(fault) => (None, Value::String(fault.message)),
            };
            let meta = json!({"rlf-host/reward": reward, "rlf-host/reason": reason});
            Ok(json!({"session_id": name, "closed": true, "_meta": meta}))
        }
        "tools/list" => {
            let tool = |tool: &ToolDefinition| json!({"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema});
            Ok(json!({"tools": episode.tools(tool, wait).await?}))
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
            } = episode.step(action, wait).await?;
            let meta = json!({"rlf-host/reward": reward, "rlf-host/done": done});
            if let Some(Value::Object(error)) = observation.get("error") {
                let message = error.get("message").and_then(Value::as_str);
                return Err(Failed {
                    data: json!({ "_meta": meta }),
                    ..Failed::new(INTERNAL_ERROR, message.unwrap_or_default())
                });
            }
            let mut result = observation["result"].take();
            result["_meta"] = meta;
            Ok(result)
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
    params.remove("setup");
    for (key, value) in params {
        if !["seed", "episode_id", "reference"].contains(&key.as_str()) {
            let what = format!(
                "Invalid params: there is no `{key}`; there are: setup, seed, episode_id, reference"
            );
            return Err(Failed::new(INVALID_PARAMS, what));
        }
        options.insert(key, value);
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
