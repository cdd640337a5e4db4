//! Reads turns that a data set keeps as a model's text, with reasoning, calls and results in tags.

use rlf_dialogue::ToolCall;
use rlf_dialogue::parser::{self, Diagnostic, Part};
use rlf_dialogue::protocol::{Protocol, THINK_CLOSE, THINK_OPEN};
use serde_json::Value;

use crate::error::RowError;

const RESPONSE_OPEN: &str = "<tool_response>";
const RESPONSE_CLOSE: &str = "</tool_response>";

/// A turn, parsed.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Turn {
    pub(crate) reasoning: Option<String>,
    pub(crate) content: String,
    pub(crate) calls: Vec<ToolCall>,
}

/// True if a turn's text has reasoning or calls in tags.
pub(crate) fn has_form(text: &str) -> bool {
    let spec = Protocol::Hermes.spec();
    [spec.open, THINK_OPEN, THINK_CLOSE]
        .iter()
        .any(|tag| text.contains(tag))
}

/// Reads a turn. Its calls must be well-formed and come last, as templates write them. `field` is the name of its
/// field.
pub(crate) fn turn(text: &str, field: &str) -> Result<Turn, RowError> {
    let fail = |problem: &str| Err(RowError::field(field, problem));
    let spec = Protocol::Hermes.spec();
    // The tools are not known here, so every good call is parsed as a call to an unknown tool.
    let parsed = parser::parse(text, false, spec, &[] as &[&str]);
    let mut turn = Turn::default();
    for part in &parsed.parts {
        let untouched = turn.content.trim().is_empty() && turn.calls.is_empty();
        match part {
            Part::Think { closed: false, .. } => return fail("its think block is not closed"),
            Part::StrayThinkClose(_) => {
                return fail("it closes a think block that it did not open");
            }
            Part::Think { text, .. } if untouched && turn.reasoning.is_none() => {
                turn.reasoning = Some(text.trim_matches('\n').to_owned());
            }
            Part::Think { .. } => return fail("it thinks again after it spoke"),
            Part::Text(text) if text.trim().is_empty() || turn.calls.is_empty() => {
                turn.content.push_str(text);
            }
            Part::Text(_) => return fail("it goes on after its calls"),
            Part::Attempt { text, call } => turn.calls.push(match call {
                Ok((name, arguments)) => call_of(name, arguments),
                Err(malformed) if malformed.diagnostic == Diagnostic::UnknownTool => {
                    inside(text, field)?
                }
                Err(malformed) => {
                    return fail(&format!("its call cannot be read: {}", malformed.detail));
                }
            }),
        }
    }
    turn.content = turn.content.trim().to_owned();
    turn.reasoning = turn
        .reasoning
        .filter(|reasoning| !reasoning.trim().is_empty());
    Ok(turn)
}

/// Reads a good call from its text with tags.
fn inside(text: &str, field: &str) -> Result<ToolCall, RowError> {
    let spec = Protocol::Hermes.spec();
    let text = text.strip_prefix(spec.open).unwrap_or(text);
    let text = spec
        .close
        .and_then(|close| text.strip_suffix(close))
        .unwrap_or(text);
    let call: Value = rlf_json::from_str(text.trim())
        .map_err(|error| RowError::field(field, format!("its call is not JSON: {error}")))?;
    match (
        call.get("name").and_then(Value::as_str),
        call.get("arguments"),
    ) {
        (Some(name), Some(arguments)) => Ok(call_of(name, arguments)),
        _ => Err(RowError::field(
            field,
            "its call has no `name` or no `arguments`",
        )),
    }
}

fn call_of(name: &str, arguments: &Value) -> ToolCall {
    ToolCall {
        call_id: String::new(),
        name: name.to_owned(),
        arguments: arguments.clone(),
    }
}

/// The results in a user's turn that has only results.
pub(crate) fn responses(text: &str) -> Option<Vec<String>> {
    let mut rest = text.trim();
    let mut found = Vec::new();
    while !rest.is_empty() {
        let (body, after) = rest
            .strip_prefix(RESPONSE_OPEN)?
            .split_once(RESPONSE_CLOSE)?;
        let body = body.strip_prefix('\n').unwrap_or(body);
        found.push(body.strip_suffix('\n').unwrap_or(body).to_owned());
        rest = after.trim_start();
    }
    (!found.is_empty()).then_some(found)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{responses, turn};

    #[test]
    fn a_turn_is_reasoning_then_text_then_calls() {
        let text = "<think>\nsix</think>\n\nLet me see.\n<tool_call>\n{\"name\": \"S-add\", \"arguments\": \
                    {\"text\": \"</tool_call>\"}}\n</tool_call>\n<tool_call>{\"name\":\"b\",\"arguments\":{}}</tool_call>\n";
        let read = turn(text, "output").unwrap();
        assert_eq!(read.reasoning.as_deref(), Some("six"));
        assert_eq!(read.content, "Let me see.");
        let calls: Vec<_> = read
            .calls
            .iter()
            .map(|call| (call.name.as_str(), &call.arguments))
            .collect();
        assert_eq!(
            calls,
            [
                ("S-add", &json!({"text": "</tool_call>"})),
                ("b", &json!({}))
            ]
        );
        for bad in [
            "<think>six",
            "</think>",
            "<tool_call>{}</tool_call>",
            "<tool_call>{\"name\":\"b\",\"arguments\":{}}</tool_call> and so on",
            "six<think>seven</think>",
        ] {
            assert!(turn(bad, "output").is_err(), "{bad}");
        }
    }

    #[test]
    fn results_are_told_from_what_a_user_says_about_them() {
        let two =
            "<tool_response>\n{\"a\": 1}\n</tool_response>\n<tool_response>\n\n</tool_response>\n";
        assert_eq!(responses(two).unwrap(), ["{\"a\": 1}", ""]);
        assert_eq!(
            responses("<tool_response>\n1\n</tool_response> thanks"),
            None
        );
        assert_eq!(responses("hello"), None);
        assert_eq!(responses(" "), None);
    }
}
