//! Sessions of environments as tools. The protocol has no sessions of its own in its newer revision, so a session is an
//! argument.

use rlf_dialogue::episode::Reply;
use rlf_dialogue::message::plain_text;
use rlf_dialogue::tool::{CallOutcome, ToolCall};
use rlf_environments::error::{OpenError, SessionError};
use rlf_environments::session::EnvironmentSession;
use rlf_plugins::turn::TurnContext;
use rmcp::model::{CallToolResult, ContentBlock, ErrorData, JsonObject, Tool, ToolAnnotations};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::convert::answer;
use crate::answer::Refusal;
use crate::exposure::Exposure;
use crate::queue::WaitBudget;
use crate::service::Service;
use crate::sessions::{Progress, SessionRefusal};

const OPEN: &str = "open_environment";
const CALL: &str = "call_environment";
const SAY: &str = "say_to_environment";
const VERIFY: &str = "verify_environment";
const CLOSE: &str = "close_environment";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Open {
    environment: String,
    setup: Option<Map<String, Value>>,
    seed: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    session: String,
    tool: String,
    #[serde(default)]
    arguments: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Say {
    session: String,
    text: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Verify {
    session: String,
    reference: Value,
    answer: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Close {
    session: String,
}

/// True if a tool is one of these. There are none without environments.
pub(super) fn is_tool(name: &str, exposure: &Exposure) -> bool {
    !exposure.environments.is_empty() && [OPEN, CALL, SAY, VERIFY, CLOSE].contains(&name)
}

/// The tools that open and use sessions of the environments.
pub(super) fn definitions(exposure: &Exposure) -> Vec<Tool> {
    let environments: Vec<&String> = exposure.environments.keys().collect();
    if environments.is_empty() {
        return Vec::new();
    }
    let session =
        json!({"type": "string", "description": "The session, as open_environment returned it"});
    let tool =
        |name: &'static str, description: &'static str, required: &[&str], properties: Value| {
            let schema = json!({
                "type": "object",
                "properties": properties,
                "required": required,
                "additionalProperties": false,
            });
            let schema = schema.as_object().cloned().unwrap_or_default();
            let annotations = ToolAnnotations::new().destructive(false).open_world(false);
            Tool::new(name, description, schema).with_annotations(annotations)
        };
    vec![
        tool(
            OPEN,
            "Opens a session of an environment. Returns the session, its first messages, and the tools that \
             call_environment can call in it.",
            &["environment"],
            json!({
                "environment": {"type": "string", "enum": environments},
                "setup": {"type": "object", "description": "The task's setup, as the environment wants it. Default: that of one of its scenarios, chosen by the seed"},
                "seed": {"type": "integer", "minimum": 0, "description": "Seed of all randomness in the session"},
            }),
        ),
        tool(
            CALL,
            "Calls a tool of a session. Calls of one session run one after the other.",
            &["session", "tool"],
            json!({
                "session": session,
                "tool": {"type": "string", "description": "The tool's name"},
                "arguments": {"type": "object", "description": "The tool's arguments. Default: none"},
            }),
        ),
        tool(
            SAY,
            "Says something in a session without calling a tool. Returns the reply, if somebody answers.",
            &["session", "text"],
            json!({"session": session, "text": {"type": "string"}}),
        ),
        tool(
            VERIFY,
            "Compares the state of a session with a task's reference. Changes nothing.",
            &["session", "reference"],
            json!({
                "session": session,
                "reference": {"description": "The task's reference, as the environment wants it"},
                "answer": {"type": "string", "description": "The final answer, if the task asks for one"},
            }),
        ),
        tool(
            CLOSE,
            "Closes a session.",
            &["session"],
            json!({"session": session}),
        ),
    ]
}

/// Calls one of these tools.
pub(super) async fn call(
    service: &Service,
    name: &str,
    arguments: JsonObject,
    id: &str,
    seed: u64,
    wait: &mut WaitBudget,
) -> Result<CallToolResult, ErrorData> {
    let acted = match name {
        OPEN => open(service, parse(arguments), seed, wait).await,
        CALL => call_tool(service, parse(arguments), id, wait).await,
        SAY => say(service, parse(arguments), id, wait).await,
        VERIFY => verify(service, parse(arguments), wait).await,
        _ => close(service, parse(arguments)),
    };
    acted.or_else(|stop| match stop {
        Stop::Wrong(what) => Ok(CallToolResult::error(vec![ContentBlock::text(format!(
            "error: {what}"
        ))])),
        Stop::Unavailable(what) => Err(ErrorData::internal_error(what, None)),
        Stop::Error(error) => Err(error),
    })
}

/// The reason why a tool has no result.
enum Stop {
    /// The caller's mistake. The caller reads the text.
    Wrong(String),
    /// An infrastructure failure.
    Unavailable(String),
    Error(ErrorData),
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        Self::Unavailable(refusal.reason())
    }
}

impl From<SessionRefusal> for Stop {
    fn from(refusal: SessionRefusal) -> Self {
        let what = refusal.to_string();
        match refusal {
            SessionRefusal::Open(OpenError::Unavailable { .. } | OpenError::Broke { .. })
            | SessionRefusal::NoRandomness(_) => Self::Unavailable(what),
            SessionRefusal::Open(_) | SessionRefusal::Full(_) | SessionRefusal::None(_) => {
                Self::Wrong(what)
            }
        }
    }
}

impl From<SessionError> for Stop {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Refused(_) => Self::Wrong(error.to_string()),
            error => Self::Unavailable(error.to_string()),
        }
    }
}

fn parse<T: DeserializeOwned>(arguments: JsonObject) -> Result<T, Stop> {
    let parsed = T::deserialize(Value::Object(arguments));
    parsed.map_err(|error| Stop::Wrong(format!("the arguments do not fit: {error}")))
}

/// An answer of JSON, as text and as structured content.
fn structured(value: Value) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(value.to_string())]);
    result.structured_content = Some(value);
    result
}

async fn open(
    service: &Service,
    arguments: Result<Open, Stop>,
    seed: u64,
    wait: &mut WaitBudget,
) -> Result<CallToolResult, Stop> {
    let Open {
        environment,
        setup,
        seed: own,
    } = arguments?;
    if !service.exposure.environments.contains_key(&environment) {
        let names: Vec<&str> = service
            .exposure
            .environments
            .keys()
            .map(String::as_str)
            .collect();
        return Err(Stop::Wrong(format!(
            "there is no environment {environment:?}; there are: {}",
            names.join(", ")
        )));
    }
    let (sessions, seed) = (&service.sessions, own.unwrap_or(seed));
    let _place = service.call_place(wait).await?;
    let setup = match setup {
        Some(setup) => Value::Object(setup),
        None => sessions.default_setup(&environment, seed).await?,
    };
    let opened = sessions.open(&environment, &setup, seed, Progress::default());
    let (name, session) = opened.await?;
    let session = service.lock_session(&session, wait).await?;
    let session = &session.environment;
    let messages: Vec<Value> = (session.messages().iter())
        .map(|message| json!({"role": message.role, "content": plain_text(&message.content)}))
        .collect();
    Ok(structured(
        json!({"session": name, "messages": messages, "tools": tools(session)}),
    ))
}

fn tools(session: &EnvironmentSession) -> Vec<Value> {
    let tools = session.tools();
    tools
        .map(|tool| json!({"name": tool.name, "description": tool.description, "inputSchema": tool.input_schema}))
        .collect()
}

fn context(id: &str) -> TurnContext {
    TurnContext {
        trajectory_id: id.to_owned(),
        turn: 0,
        seed: 0,
    }
}

async fn call_tool(
    service: &Service,
    arguments: Result<Call, Stop>,
    id: &str,
    wait: &mut WaitBudget,
) -> Result<CallToolResult, Stop> {
    let Call {
        session,
        tool,
        arguments,
    } = arguments?;
    let session = service.sessions.get(&session, None)?;
    let mut session = service.lock_session(&session, wait).await?;
    let session = &mut session.environment;
    let _place = service.call_place(wait).await?;
    let call = ToolCall {
        call_id: format!("{id}/0/0"),
        name: tool,
        arguments: Value::Object(arguments),
    };
    let outcome: CallOutcome = session.call(call, &context(id)).await;
    let (reward, state) = (outcome.step_reward, outcome.state.clone());
    let mut result = answer(outcome).map_err(Stop::Error)?;
    let meta = result.meta.get_or_insert_default();
    if let Some(reward) = reward {
        meta.0.insert("rlf-host/reward".to_owned(), json!(reward));
    }
    if let Some(state) = state {
        meta.0.insert("rlf-host/state".to_owned(), json!(state));
    }
    if session.is_terminated() {
        meta.0.insert("rlf-host/terminated".to_owned(), json!(true));
    }
    if session.take_tools_changed() {
        meta.0
            .insert("rlf-host/tools".to_owned(), json!(tools(session)));
    }
    Ok(result)
}

async fn say(
    service: &Service,
    arguments: Result<Say, Stop>,
    id: &str,
    wait: &mut WaitBudget,
) -> Result<CallToolResult, Stop> {
    let Say { session, text } = arguments?;
    let session = service.sessions.get(&session, None)?;
    let mut session = service.lock_session(&session, wait).await?;
    let session = &mut session.environment;
    let _place = service.call_place(wait).await?;
    let (reply, feedback) = session.say(&text, &context(id)).await?;
    let reply = match reply {
        Reply::Said(content) => Some(plain_text(&content)),
        Reply::Silence | Reply::Ended => None,
    };
    Ok(structured(json!({
        "reply": reply,
        "reward": feedback.step_reward,
        "terminated": session.is_terminated(),
    })))
}

async fn verify(
    service: &Service,
    arguments: Result<Verify, Stop>,
    wait: &mut WaitBudget,
) -> Result<CallToolResult, Stop> {
    let Verify {
        session,
        reference,
        answer,
    } = arguments?;
    let session = service.sessions.get(&session, None)?;
    let session = service.lock_session(&session, wait).await?;
    let session = &session.environment;
    let _place = service.call_place(wait).await?;
    let verdict = session.verify(answer.as_deref(), &reference).await?;
    Ok(structured(json!({
        "success": verdict.success,
        "score": verdict.score,
        "reason": verdict.reason,
    })))
}

fn close(service: &Service, arguments: Result<Close, Stop>) -> Result<CallToolResult, Stop> {
    let Close { session } = arguments?;
    let closed = service.sessions.close(&session, None);
    Ok(structured(json!({"closed": closed})))
}
