//! The forms in which clients ask for turns, OpenAI's and Anthropic's: what differs between them, and what they share.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use axum::response::Response;
use http::StatusCode;
use rlf_dialogue::message::Role;
use rlf_dialogue::tool::{Hints, ToolDefinition};
use rlf_policy::SamplingParams;
use rlf_rollout::agent::{AgentMessage, Turn, TurnRequest};
use serde_json::{Map, Value, json};

use crate::body;
use crate::parameters::{self, Neutral, Sampling};
use crate::refusal::Refusal;

/// A form of requests and answers.
pub(crate) trait Form {
    /// The path of its requests, below a base URL.
    const PATH: &'static str;
    /// Keys that are read, or that change nothing about the answer.
    const USED: &'static [&'static str];
    /// Parameters that can be given only with certain values.
    const NEUTRAL: &'static [Neutral];
    /// Names of the maximum number of tokens. The first one that is given counts.
    const MAX_TOKENS: &'static [&'static str];

    /// The conversation of a request.
    fn messages(request: &Map<String, Value>) -> Result<Vec<AgentMessage>, Refusal>;

    /// A tool that a request offers.
    fn tool(sent: &Value) -> Result<ToolDefinition, Refusal>;

    /// The answer in one piece.
    fn whole(turn: &Turn, reply: &Reply) -> Value;

    /// The answer as a stream of server-sent events.
    fn events(turn: &Turn, reply: &Reply) -> String;

    /// The body of a refusal.
    fn error(refusal: &Refusal) -> Value;
}

/// A request for a turn.
pub(crate) struct Asked {
    pub(crate) turn: TurnRequest,
    /// The sampling parameters, if the request may choose them.
    pub(crate) params: SamplingParams,
    /// The seed. Ignored where the seed of a run decides.
    pub(crate) seed: Option<u64>,
}

/// The way in which a request is answered.
pub(crate) struct Reply {
    /// Unique in this process.
    pub(crate) id: String,
    /// Time of the request, in s since 1970.
    pub(crate) created: u64,
    /// The model, as the request names it.
    pub(crate) model: Value,
    /// True if a stream of OpenAI's form ends with the number of tokens.
    pub(crate) with_usage: bool,
    is_stream: bool,
}

impl Reply {
    /// The answer with a turn of the policy.
    pub(crate) fn render<F: Form>(&self, turn: &Turn) -> Response {
        if self.is_stream {
            body::events(F::events(turn, self))
        } else {
            body::json(StatusCode::OK, &F::whole(turn, self))
        }
    }
}

/// Reads the body of a request.
pub(crate) fn read<F: Form>(bytes: &[u8], sampling: Sampling) -> Result<(Asked, Reply), Refusal> {
    /// Number of requests so far, for the ids of their answers.
    static REQUESTS: AtomicU64 = AtomicU64::new(0);

    let request: Map<String, Value> = body::parse(bytes)?;
    let asked = asked::<F>(&request, sampling)?;
    let is_true = |value: Option<&Value>| value == Some(&Value::Bool(true));
    let usage = request
        .get("stream_options")
        .and_then(|options| options.get("include_usage"));
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let reply = Reply {
        id: format!("{:08x}", REQUESTS.fetch_add(1, Ordering::Relaxed)),
        created: since.map_or(0, |since| since.as_secs()),
        model: request.get("model").cloned().unwrap_or(json!("policy")),
        with_usage: is_true(usage),
        is_stream: is_true(request.get("stream")),
    };
    Ok((asked, reply))
}

/// Reads what a request asks for.
pub(crate) fn asked<F: Form>(
    request: &Map<String, Value>,
    sampling: Sampling,
) -> Result<Asked, Refusal> {
    parameters::check(request, F::USED, F::NEUTRAL, sampling)?;
    let messages = F::messages(request)?;
    if (messages.last()).is_some_and(|last| last.message.role == Role::Assistant) {
        return Err(Refusal::invalid(
            "the last message is the assistant's own, and a turn that is begun cannot be sampled; send what it answers",
        ));
    }
    let tools = items(request, "tools", F::tool)?;
    check_names(&tools)?;
    Ok(Asked {
        params: parameters::sampling_params(request, sampling)?,
        seed: parameters::count(request, "seed")?,
        turn: TurnRequest {
            messages,
            tools,
            max_tokens: parameters::max_tokens(request, F::MAX_TOKENS)?,
        },
    })
}

/// Refuses two tools of the same name.
fn check_names(tools: &[ToolDefinition]) -> Result<(), Refusal> {
    let mut names = BTreeSet::new();
    match tools.iter().find(|tool| !names.insert(&tool.name)) {
        Some(twice) => Err(Refusal::invalid(format!(
            "two tools are called `{}`",
            twice.name
        ))),
        None => Ok(()),
    }
}

/// The answer that refuses a request.
pub(crate) fn refused<F: Form>(refusal: &Refusal) -> Response {
    body::json(refusal.status, &F::error(refusal))
}

/// Reads the items of a list in a request, which may be missing. A refusal names the item.
pub(crate) fn items<T>(
    request: &Map<String, Value>,
    key: &str,
    read: impl Fn(&Value) -> Result<T, Refusal>,
) -> Result<Vec<T>, Refusal> {
    let items = match request.get(key) {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(items)) => items.iter().enumerate(),
        Some(_) => return Err(Refusal::invalid(format!("`{key}` is not a list"))),
    };
    let read = items.map(|(place, item)| {
        read(item).map_err(|refusal| refusal.at(format_args!("{key}[{place}]")))
    });
    read.collect()
}

/// The text of a message's content: a text, parts of text, or nothing.
pub(crate) fn text(content: &Value) -> Result<String, Refusal> {
    match content {
        Value::Null => Ok(String::new()),
        Value::String(text) => Ok(text.clone()),
        Value::Array(parts) => parts.iter().map(part).collect(),
        _ => Err(Refusal::invalid(
            "`content` is neither a text nor a list of parts",
        )),
    }
}

/// The text of a part of a message's content.
fn part(part: &Value) -> Result<&str, Refusal> {
    match (&part["type"], &part["text"]) {
        (Value::String(kind), Value::String(text)) if kind == "text" => Ok(text.as_str()),
        (kind, _) => Err(Refusal::invalid(format!(
            "a part of the type {kind} cannot be read; write {{\"type\": \"text\", \"text\": TEXT}}"
        ))),
    }
}

/// A tool that an agent offers.
pub(crate) fn tool(
    name: String,
    description: Option<String>,
    schema: Option<Value>,
) -> Result<ToolDefinition, Refusal> {
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if name.is_empty() || name.len() > 64 || !name.bytes().all(is_name) {
        return Err(Refusal::invalid(format!(
            "`{name}` is not a valid name of a tool; use 1 to 64 letters, digits, `_` and `-`"
        )));
    }
    let schema = schema.unwrap_or_else(|| json!({ "type": "object", "properties": {} }));
    if !schema.is_object() {
        return Err(Refusal::invalid(format!(
            "the parameters of tool `{name}` are not a JSON Schema object"
        )));
    }
    Ok(ToolDefinition {
        name,
        description: description.unwrap_or_default(),
        input_schema: schema,
        output_schema: None,
        hints: Hints::default(),
        extra: Vec::new(),
    })
}
