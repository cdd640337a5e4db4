//! A server's tools, first messages and results in the host's form.

use rlf_dialogue::message::{Message, Role};
use rlf_plugins::bindings::types;
use rlf_plugins::offered_tools::{LoadedTool, OfferedToolsError};
use serde::Deserialize;
use serde_json::{Value, json};

use super::error::ToolListError;
use crate::host_form::{ListedTool, load, of_content, safe};
use crate::rewards::Failure;

/// The way a model acts in an environment.
#[derive(Debug, Clone)]
pub(crate) enum Acting {
    /// It calls the environment's tools.
    Tools,
    /// It calls one tool, whose arguments are the action.
    Action(Box<LoadedTool>),
}

impl Acting {
    /// Decides by the schema of actions. `tool` and `description` are those of the one tool.
    pub(crate) fn new(
        schema: &Value,
        tool: &str,
        description: &str,
    ) -> Result<Self, OfferedToolsError> {
        let mut schema = schema.clone();
        // Every action has it, for what no model has to write.
        let own = schema.get_mut("properties").and_then(Value::as_object_mut);
        let own = own.map(|properties| {
            properties.remove("metadata");
            !properties.is_empty()
        });
        let calls_tools = |schema: &Value| schema.pointer("/properties/tool_name").is_some();
        let one_of = ["oneOf", "anyOf"]
            .iter()
            .filter_map(|key| schema.get(key).and_then(Value::as_array))
            .flatten()
            .any(calls_tools);
        if calls_tools(&schema) || one_of || own != Some(true) {
            return Ok(Self::Tools);
        }
        let acting = ListedTool {
            name: tool.to_owned(),
            description: Some(description.to_owned()),
            input_schema: schema.as_object().cloned(),
        };
        let tool = load(vec![acting])?.into_iter().next();
        tool.map(|tool| Self::Action(Box::new(tool)))
            .ok_or(OfferedToolsError::NoTools)
    }
}

/// The request of JSON-RPC for the tools.
pub(crate) fn tools_request() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}})
}

/// The tools in the response to [`tools_request`].
pub(crate) fn tools(response: &Value) -> Result<Vec<LoadedTool>, ToolListError> {
    if let Some(message) = response.pointer("/error/message").and_then(Value::as_str) {
        return Err(ToolListError::Refused(safe(message)));
    }
    let listed = response.pointer("/result/tools").unwrap_or(&Value::Null);
    Ok(load(Vec::<ListedTool>::deserialize(listed)?)?)
}

#[derive(Deserialize)]
struct WireMessage {
    role: Role,
    content: String,
}

/// The first messages of an episode. They are in `metadata.messages`, as rlf-host's own server has them. Anything else
/// that the environment shows is one message of the user.
pub(crate) fn messages(observation: &Value) -> Vec<Message> {
    let listed = observation.pointer("/metadata/messages");
    if let Some(messages) = listed.and_then(|listed| Vec::<WireMessage>::deserialize(listed).ok()) {
        let message = |message: WireMessage| Message::text(message.role, safe(&message.content));
        return messages.into_iter().map(message).collect();
    }
    match shown(observation) {
        Value::Object(members) if members.is_empty() => Vec::new(),
        Value::Null => Vec::new(),
        shown => vec![Message::text(Role::User, safe(&shown.to_string()))],
    }
}

/// The part of an observation that a model sees: all of it, except keys without a value, and metadata.
fn shown(observation: &Value) -> Value {
    match observation {
        Value::Object(members) => {
            let seen = |(key, value): &(&String, &Value)| *key != "metadata" && !value.is_null();
            let members = members.iter().filter(seen);
            Value::Object(
                members
                    .map(|(key, value)| (key.clone(), value.clone()))
                    .collect(),
            )
        }
        other => other.clone(),
    }
}

/// The result of an action.
pub(crate) fn action_result(observation: &Value) -> types::Observation {
    of_content(
        types::Content::Structured(shown(observation).to_string()),
        false,
    )
}

/// The result of a tool. The error is a failure between the server and its tool. A server reports a failure as an
/// object, or as a text, which has no kind. False and an empty text report none.
pub(crate) fn tool_result(observation: &Value) -> Result<types::Observation, Failure> {
    match observation.get("error") {
        Some(Value::String(text)) if !text.is_empty() => {
            return Err(Failure::Inside(text.clone()));
        }
        None | Some(Value::Null | Value::Bool(false) | Value::String(_)) => {}
        Some(error) => {
            let text = |key: &str| error.get(key).and_then(Value::as_str).map(str::to_owned);
            let message = text("message").unwrap_or_else(|| error.to_string());
            return Err(match text("error_type").as_deref() {
                Some("invalid_args" | "tool_not_found") => Failure::Arguments(message),
                _ => Failure::Inside(message),
            });
        }
    }
    let result = observation.get("result").unwrap_or(&Value::Null);
    let failed = result.get("is_error") == Some(&Value::Bool(true));
    let blocks = result.get("content").and_then(Value::as_array);
    let texts = blocks.map(|blocks| {
        let text = |block: &Value| {
            let text = block.get("text").and_then(Value::as_str);
            text.map_or_else(|| block.to_string(), str::to_owned)
        };
        blocks.iter().map(text).collect::<Vec<_>>().join("\n")
    });
    let content = match (texts, result) {
        (Some(text), _) => types::Content::Text(text),
        (None, Value::String(text)) => types::Content::Text(text.clone()),
        (None, other) => types::Content::Structured(other.to_string()),
    };
    Ok(of_content(content, failed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_of_actions_says_how_a_model_acts() {
        let action = |schema: Value| Acting::new(&schema, "step", "Plays.").unwrap();
        let typed = json!({
            "type": "object",
            "properties": {"metadata": {"type": "object"}, "code": {"type": "string"}},
            "required": ["code"],
        });
        let Acting::Action(tool) = action(typed) else {
            panic!("a typed action is a tool");
        };
        assert_eq!(tool.definition.name, "step");
        let properties = &tool.definition.input_schema["properties"];
        assert_eq!(*properties, json!({"code": {"type": "string"}}));
        for schema in [
            json!({"type": "object", "properties": {"metadata": {}}}),
            json!({"type": "object", "properties": {"tool_name": {}, "arguments": {}}}),
            json!({"oneOf": [{"properties": {"text": {}}}, {"properties": {"tool_name": {}}}]}),
            json!({}),
        ] {
            assert!(matches!(action(schema), Acting::Tools));
        }
    }

    #[test]
    fn first_messages_and_results_are_what_a_model_reads() {
        let own = json!({"metadata": {"messages": [{"role": "system", "content": "Be brief."}]}});
        assert_eq!(messages(&own), [Message::text(Role::System, "Be brief.")]);
        let board = json!({"board": "..x", "hint": null, "metadata": {"internal": 1}});
        assert_eq!(
            messages(&board),
            [Message::text(Role::User, "{\"board\":\"..x\"}")]
        );
        assert!(messages(&json!({})).is_empty());
        let text = |observation: Value| match &tool_result(&observation).unwrap().content[..] {
            [types::Content::Text(text) | types::Content::Structured(text)] => text.clone(),
            other => panic!("{other:?}"),
        };
        let blocks = json!({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "data": "a"});
        assert_eq!(text(json!({"result": blocks})), "a\nb");
        assert_eq!(text(json!({"result": "a"})), "a");
        assert_eq!(
            text(json!({"result": {"n": 1}, "error": null})),
            "{\"n\":1}"
        );
    }

    #[test]
    fn a_failure_is_an_object_or_a_text() {
        let inside = |message: &str| Failure::Inside(message.to_owned());
        for (error, failure) in [
            (
                json!({"error_type": "timeout", "message": "late"}),
                inside("late"),
            ),
            (
                json!({"error_type": "invalid_args", "message": "no"}),
                Failure::Arguments("no".to_owned()),
            ),
            (json!({"reason": "late"}), inside(r#"{"reason":"late"}"#)),
            (json!("late"), inside("late")),
            (json!(true), inside("true")),
        ] {
            let failed = tool_result(&json!({"error": error, "result": null})).unwrap_err();
            assert_eq!(failed, failure, "{error}");
        }
        for none in [json!(null), json!(false), json!("")] {
            let result = tool_result(&json!({"error": none, "result": "done"})).unwrap();
            assert!(!result.failed, "{none}");
        }
    }

    #[test]
    fn tools_are_read_in_both_spellings() {
        let response = json!({"result": {"tools": [
            {"name": "a", "description": "A", "inputSchema": {"type": "object", "properties": {}}},
            {"name": "b", "input_schema": {"properties": {}}},
        ]}});
        let names: Vec<String> = (tools(&response).unwrap().into_iter())
            .map(|tool| tool.definition.name)
            .collect();
        assert_eq!(names, ["a", "b"]);
        let refused = json!({"error": {"code": -1, "message": "no MCP"}});
        let error = |response: &Value| tools(response).unwrap_err().to_string();
        assert!(error(&refused).contains("no MCP"));
        assert!(error(&json!({})).contains("another form"));
    }
}
