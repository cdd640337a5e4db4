//! Conversations of data sets as messages, with reasoning and calls apart from text, and results in the order of the
//! calls.

use rlf_dialogue::protocol::{THINK_CLOSE, THINK_OPEN};
use rlf_dialogue::{Content, Message, Role, ToolCall, ToolDefinition};
use serde_json::{Map, Value};

use crate::error::RowError;
use crate::protocol_text;
use crate::tools::is_tool_name;

/// One message as in the data set.
#[derive(Debug, Clone)]
pub(crate) struct RawMessage {
    /// Its place in the row.
    pub(crate) place: String,
    pub(crate) role: Role,
    pub(crate) text: String,
    pub(crate) reasoning: Option<String>,
    pub(crate) calls: Vec<ToolCall>,
    /// Id of the call whose result it is.
    pub(crate) answers: Option<String>,
}

impl RawMessage {
    pub(crate) fn new(place: String, role: Role, text: &str) -> Self {
        Self {
            place,
            role,
            text: text.to_owned(),
            reasoning: None,
            calls: Vec::new(),
            answers: None,
        }
    }

    /// Reads a message in the form of OpenAI's API.
    pub(crate) fn from_openai(value: &Value, place: String) -> Result<Self, RowError> {
        let fail = |problem: String| RowError::field(&place, problem);
        let role = value.get("role").and_then(Value::as_str);
        let role = role.ok_or_else(|| fail("`role` is missing".into()))?;
        let role = role_of(role).ok_or_else(|| {
            fail(format!(
                "role {role:?} is none of system, user, assistant and tool"
            ))
        })?;
        let text = match value.get("content") {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(parts)) => {
                let text = |part: &Value| Some(part.get("text")?.as_str()?.to_owned());
                let parts = parts.iter().map(text).collect::<Option<String>>();
                parts.ok_or_else(|| fail("only text parts are read".into()))?
            }
            Some(_) => return Err(fail("`content` must be text".into())),
        };
        let reasoning = ["reasoning_content", "reasoning"]
            .iter()
            .find_map(|name| value.get(*name)?.as_str());
        let calls = match value.get("tool_calls") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(calls)) => calls
                .iter()
                .enumerate()
                .map(|(at, call)| {
                    call_of(call).map_err(|what| fail(format!("`tool_calls[{at}]`: {what}")))
                })
                .collect::<Result<_, _>>()?,
            Some(_) => return Err(fail("`tool_calls` must be a list".into())),
        };
        if !calls.is_empty() && role != Role::Assistant {
            return Err(fail("only an assistant calls tools".into()));
        }
        let answers = value.get("tool_call_id").and_then(Value::as_str);
        Ok(Self {
            reasoning: reasoning.map(str::to_owned),
            calls,
            answers: answers.filter(|id| !id.is_empty()).map(str::to_owned),
            ..Self::new(place, role, &text)
        })
    }

    /// Splits it into messages. There are several if a user's turn has the results of several calls.
    fn parts(mut self, after_calls: bool) -> Result<Vec<Self>, RowError> {
        match self.role {
            Role::Assistant => {
                if self.text_has_form() {
                    let turn = protocol_text::turn(&self.text, &self.place)?;
                    self.text = turn.content;
                    self.reasoning = self.reasoning.or(turn.reasoning);
                    self.calls.extend(turn.calls);
                }
                self.reasoning = self.reasoning.filter(|text| !text.trim().is_empty());
            }
            Role::Tool => {
                if let Some(mut bodies) = protocol_text::responses(&self.text)
                    && bodies.len() == 1
                {
                    self.text = bodies.swap_remove(0);
                }
            }
            Role::User if after_calls => {
                if let Some(bodies) = protocol_text::responses(&self.text) {
                    let part = |body: &String| Self::new(self.place.clone(), Role::Tool, body);
                    return Ok(bodies.iter().map(part).collect());
                }
            }
            Role::System | Role::User => {}
        }
        Ok(vec![self])
    }

    /// True if the text has reasoning or calls in tags. If the message has calls of its own, only reasoning counts.
    fn text_has_form(&self) -> bool {
        if self.calls.is_empty() {
            protocol_text::has_form(&self.text)
        } else {
            self.text.trim_start().starts_with(THINK_OPEN)
        }
    }

    /// Takes a think block at the start of an assistant's text apart from it; calls in the text stay text.
    pub(crate) fn split_leading_reasoning(mut self) -> Self {
        if self.role == Role::Assistant
            && self.reasoning.is_none()
            && let Some(thought) = self.text.trim_start().strip_prefix(THINK_OPEN)
            && let Some((thought, rest)) = thought.split_once(THINK_CLOSE)
        {
            self.reasoning = Some(thought.trim_matches('\n').to_owned());
            self.text = rest.trim_start_matches('\n').to_owned();
        }
        self
    }

    pub(crate) fn into_message(self) -> Message {
        Message {
            role: self.role,
            content: vec![Content::Text(self.text)],
            reasoning_content: self.reasoning,
            tool_calls: self.calls,
        }
    }
}

/// The role with this name, in any data set.
pub(crate) fn role_of(name: &str) -> Option<Role> {
    match name {
        "system" | "developer" => Some(Role::System),
        "user" | "human" => Some(Role::User),
        "assistant" | "gpt" | "function_call" => Some(Role::Assistant),
        "tool" | "observation" | "function" | "function_response" => Some(Role::Tool),
        _ => None,
    }
}

/// The reason why a call cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    #[error("`name` is missing")]
    NoName,
    #[error("the text in `arguments` is not JSON: {0}")]
    NotJson(serde_json::Error),
    #[error("`arguments` must be an object")]
    NotAnObject,
}

/// Reads a call, `{function: {name, arguments}}` or `{name, arguments}`, with arguments as an object or as JSON in a text.
pub(crate) fn call_of(call: &Value) -> Result<ToolCall, CallError> {
    let function = call.get("function").unwrap_or(call);
    let name = function.get("name").and_then(Value::as_str);
    let name = name.ok_or(CallError::NoName)?;
    let arguments = match function.get("arguments") {
        None | Some(Value::Null) => Value::Object(Map::new()),
        Some(Value::String(text)) if text.trim().is_empty() => Value::Object(Map::new()),
        Some(Value::String(text)) => rlf_json::from_str(text).map_err(CallError::NotJson)?,
        Some(other) => other.clone(),
    };
    let arguments = if arguments.is_null() {
        Value::Object(Map::new())
    } else {
        arguments
    };
    if !arguments.is_object() {
        return Err(CallError::NotAnObject);
    }
    let id = call.get("id").and_then(Value::as_str).unwrap_or_default();
    Ok(ToolCall {
        call_id: id.to_owned(),
        name: name.to_owned(),
        arguments,
    })
}

/// A conversation, with the place of each message in the row.
#[derive(Debug)]
pub(crate) struct Conversation {
    pub(crate) messages: Vec<Message>,
    pub(crate) places: Vec<String>,
}

impl Conversation {
    /// Reads messages in the form of OpenAI's API. `field` is the name of their field.
    pub(crate) fn from_openai(field: &str, messages: &[Value]) -> Result<Self, RowError> {
        let said = messages
            .iter()
            .enumerate()
            .map(|(at, message)| RawMessage::from_openai(message, format!("{field}[{at}]")));
        Self::new(said.collect::<Result<_, _>>()?)
    }

    /// Index of the model's first turn from message `start` on. If there is none, the number of messages.
    pub(crate) fn first_turn_from(&self, start: usize) -> usize {
        let behind = &self.messages[start.min(self.messages.len())..];
        let first = behind
            .iter()
            .position(|message| message.role == Role::Assistant);
        first.map_or(self.messages.len(), |at| start + at)
    }

    /// Makes a conversation: takes calls and results out of texts, and sorts results in the order of their calls.
    pub(crate) fn new(said: Vec<RawMessage>) -> Result<Self, RowError> {
        let mut parts: Vec<RawMessage> = Vec::with_capacity(said.len());
        // The calls whose results may follow, and the index of the first result.
        let mut calls: Vec<ToolCall> = Vec::new();
        let mut results = 0;
        for said in said {
            for part in said.parts(!calls.is_empty())? {
                if part.role == Role::Tool {
                    if parts.len() - results == calls.len() {
                        return Err(RowError::field(
                            part.place,
                            "it is the result of a call, but there is no call that it answers",
                        ));
                    }
                    parts.push(part);
                } else {
                    in_call_order(&calls, &mut parts[results..])?;
                    calls.clone_from(&part.calls);
                    parts.push(part);
                    results = parts.len();
                }
            }
        }
        in_call_order(&calls, &mut parts[results..])?;
        let places = parts.iter().map(|part| part.place.clone()).collect();
        let messages = parts.into_iter().map(RawMessage::into_message).collect();
        Ok(Self { messages, places })
    }

    /// The messages as the prompt of a task. The last one must not be the model's. `field` is the field that has them.
    pub(crate) fn into_prompt(self, field: &str) -> Result<Vec<Message>, RowError> {
        match (self.messages.last(), self.places.last()) {
            (Some(last), Some(place)) if last.role == Role::Assistant => Err(RowError::field(
                place,
                "the model has spoken last, so there is nothing for it to answer",
            )),
            (Some(_), _) => Ok(self.messages),
            (None, _) => Err(RowError::field(field, "there are no messages in it")),
        }
    }

    /// Checks whether the conversation can be played, message by message, with these tools on offer.
    pub(crate) fn check(&self, tools: &[ToolDefinition]) -> Result<(), RowError> {
        let fail = |at: usize, problem: &str| {
            let place = self.places.get(at).map_or("messages", String::as_str);
            Err(RowError::field(place, problem))
        };
        let mut open = 0_usize;
        let mut before: Option<Role> = None;
        for (at, message) in self.messages.iter().enumerate() {
            let begins = matches!(before, None | Some(Role::System));
            if open > 0 && message.role != Role::Tool {
                return fail(at, "calls before it have no result");
            }
            match message.role {
                Role::System if !begins => {
                    return fail(at, "a system message can only stand first");
                }
                Role::User if before == Some(Role::User) => {
                    return fail(at, "two users' messages follow each other");
                }
                Role::User if before == Some(Role::Tool) => {
                    return fail(
                        at,
                        "a user speaks before the model has seen the results of its calls",
                    );
                }
                Role::Assistant if begins => {
                    return fail(at, "the model speaks before it is asked");
                }
                Role::Assistant if before == Some(Role::Assistant) => {
                    return fail(at, "two of the model's messages follow each other");
                }
                Role::Assistant
                    if message.tool_calls.is_empty() && message.plain_text().trim().is_empty() =>
                {
                    return fail(at, "the model neither speaks nor calls a tool");
                }
                Role::Tool => open = open.saturating_sub(1),
                Role::System | Role::User => {}
                Role::Assistant => {
                    open = message.tool_calls.len();
                    if let Some(call) = message
                        .tool_calls
                        .iter()
                        .find(|call| !tools.iter().any(|tool| tool.name == call.name))
                    {
                        let offered = if is_tool_name(&call.name) && tools.is_empty() {
                            "the row lists no tools; give them in `tools`".to_owned()
                        } else {
                            let names: Vec<&str> =
                                tools.iter().map(|tool| tool.name.as_str()).collect();
                            format!("its tools are {}", names.join(", "))
                        };
                        return fail(
                            at,
                            &format!("it calls {:?}, which is not on offer; {offered}", call.name),
                        );
                    }
                }
            }
            before = Some(message.role);
        }
        // The last turn's calls may have no results or all of them, but not some.
        let last = self.messages.last().map(|message| message.role);
        match last {
            Some(Role::Assistant) => Ok(()),
            Some(Role::Tool) if open == 0 => Ok(()),
            Some(Role::Tool) => fail(
                self.messages.len() - 1,
                "the results of some calls are missing",
            ),
            _ => fail(
                self.messages.len().saturating_sub(1),
                "it does not end with the model's turn",
            ),
        }
    }
}

/// Sorts the results of a turn's calls, if both have ids.
fn in_call_order(calls: &[ToolCall], results: &mut [RawMessage]) -> Result<(), RowError> {
    if calls.iter().any(|call| call.call_id.is_empty()) {
        return Ok(());
    }
    let mut places = Vec::with_capacity(results.len());
    for result in results.iter() {
        let Some(id) = &result.answers else {
            return Ok(());
        };
        let fail = |what: &str| {
            let problem = format!("`tool_call_id` {id:?} {what}");
            Err(RowError::field(&result.place, problem))
        };
        match calls.iter().position(|call| call.call_id == *id) {
            None => return fail("is that of no call in the turn before"),
            Some(at) if places.contains(&at) => return fail("was answered before"),
            Some(at) => places.push(at),
        }
    }
    let mut sorted: Vec<(usize, RawMessage)> =
        places.into_iter().zip(results.iter().cloned()).collect();
    sorted.sort_by_key(|(at, _)| *at);
    for (slot, (_, said)) in results.iter_mut().zip(sorted) {
        *slot = said;
    }
    Ok(())
}
