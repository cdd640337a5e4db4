//! OpenEnv's messages, actions and errors, as its clients read and write them.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// A message of a client, in a session over a WebSocket.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ClientMessage {
    /// Begins an episode.
    Reset {
        /// `seed`, `episode_id`, `reference`, and the setup of the task.
        #[serde(default)]
        data: Map<String, Value>,
    },
    /// Acts.
    Step {
        /// The action.
        data: Value,
    },
    /// Asks for the state.
    State,
    /// Ends the session.
    Close,
    /// Asks for the tools, or calls one.
    Mcp {
        /// A JSON-RPC request.
        data: Value,
    },
}

/// The types of [`ClientMessage`].
const MESSAGE_TYPES: [&str; 5] = ["reset", "step", "state", "close", "mcp"];

/// An answer to a client's message.
#[derive(Debug, Serialize)]
#[serde(tag = "type", content = "data", rename_all = "snake_case")]
pub(super) enum ServerMessage {
    /// The answer to `reset` and `step`.
    Observation(Observed),
    /// The answer to `state`.
    State(Value),
    /// The answer to `mcp`.
    Mcp(Value),
    /// The reason why a message has no answer.
    Error(Fault),
    /// The answer to a client that speaks JSON-RPC alone.
    #[serde(untagged)]
    Rpc(Value),
}

/// An observation, with its reward.
#[derive(Debug, Serialize)]
pub(super) struct Observed {
    /// The observation.
    pub(super) observation: Value,
    /// The reward of the step, if there is one.
    pub(super) reward: Option<f64>,
    /// True if the episode is over.
    pub(super) done: bool,
}

/// The kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(super) enum Code {
    /// The message is not JSON.
    InvalidJson,
    /// The message has an unknown type.
    UnknownType,
    /// The message does not fit its type, or the environment does not open the task.
    ValidationError,
    /// The environment did not do as it was asked.
    ExecutionError,
    /// Too many sessions are open.
    CapacityReached,
    /// The session is gone.
    SessionError,
}

/// The reason why a message has no answer.
#[derive(Debug, Serialize)]
pub(super) struct Fault {
    pub(super) message: String,
    pub(super) code: Code,
}

impl Fault {
    pub(super) fn new(code: Code, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { message, code }
    }
}

/// Reads a client's message.
pub(super) fn read_message(text: &str) -> Result<ClientMessage, Fault> {
    let message: Value = rlf_json::from_str(text).map_err(|error| {
        if error.is_data() {
            // It is JSON, with an integer of more than 64 bits.
            return Fault::new(Code::ValidationError, format!("Invalid message: {error}"));
        }
        Fault::new(Code::InvalidJson, format!("Invalid JSON: {error}"))
    })?;
    let kind = message.get("type").and_then(Value::as_str);
    if !kind.is_some_and(|kind| MESSAGE_TYPES.contains(&kind)) {
        let known = MESSAGE_TYPES.join(", ");
        let what = format!("Unknown message type; there are: {known}");
        return Err(Fault::new(Code::UnknownType, what));
    }
    read(message, "message")
}

/// An action.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Action {
    /// Asks for the tools on offer.
    ListTools {},
    /// Calls a tool.
    CallTool {
        /// The tool's name.
        tool_name: String,
        /// Its arguments.
        #[serde(default)]
        arguments: Map<String, Value>,
    },
    /// Says something to the environment, without a call.
    Say {
        /// The words.
        text: String,
    },
    /// Ends the episode and asks for the environment's verdict as its reward.
    Answer {
        /// The final answer, if the task asks for one.
        answer: Option<String>,
    },
}

/// Reads an action.
pub(super) fn read_action(action: Value) -> Result<Action, Fault> {
    read(action, "action")
}

fn read<T: serde::de::DeserializeOwned>(value: Value, what: &str) -> Result<T, Fault> {
    T::deserialize(value)
        .map_err(|error| Fault::new(Code::ValidationError, format!("Invalid {what}: {error}")))
}

/// The schema of actions.
pub(super) fn action_schema() -> Value {
    let kind = |name: &str, required: &[&str], mut properties: Value| {
        properties["type"] = json!({"const": name});
        let required: Vec<&str> = std::iter::once("type")
            .chain(required.iter().copied())
            .collect();
        json!({"type": "object", "properties": properties, "required": required})
    };
    json!({"oneOf": [
        kind("list_tools", &[], json!({})),
        kind("call_tool", &["tool_name"], json!({
            "tool_name": {"type": "string"},
            "arguments": {"type": "object"},
        })),
        kind("say", &["text"], json!({"text": {"type": "string"}})),
        kind("answer", &[], json!({"answer": {"type": ["string", "null"]}})),
    ]})
}

/// The schema of observations. Which keys there are depends on the action.
pub(super) fn observation_schema() -> Value {
    json!({"type": "object", "properties": {
        "tools": {"type": "array", "description": "The tools, after `list_tools`", "items": {"type": "object"}},
        "tool_name": {"type": "string", "description": "The tool, after `call_tool`"},
        "result": {"description": "What the tool returned: `content`, `data` and `is_error`"},
        "error": {"type": ["object", "null"], "description": "The reason why the call has no result"},
        "reply": {"type": ["string", "null"], "description": "What the environment said, after `say`"},
        "metadata": {"type": "object", "description": "The first `messages`, after a reset; the verdict, after `answer`"},
    }})
}

/// The schema of states.
pub(super) fn state_schema() -> Value {
    json!({"type": "object", "properties": {
        "episode_id": {"type": ["string", "null"]},
        "step_count": {"type": "integer", "minimum": 0},
        "state": {"description": "The environment's state"},
    }})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_integer_that_would_be_rounded_is_named() {
        let step = |by: &str| {
            let action = r#"{"type": "call_tool", "tool_name": "add", "arguments": {"by": BY}}"#;
            let message = format!(r#"{{"type": "step", "data": {action}}}"#).replace("BY", by);
            read_message(&message)
        };
        assert!(step("18446744073709551615").is_ok());
        let fault = step("18446744073709551616").unwrap_err();
        assert_eq!(fault.code, Code::ValidationError);
        let says = "the integer 18446744073709551616 has more than 64 bits";
        assert!(fault.message.contains(says), "{}", fault.message);
        assert_eq!(step("1]").unwrap_err().code, Code::InvalidJson);
    }
}
