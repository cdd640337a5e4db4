//! What both forms of requests share: sampling parameters, refusals, streams.

use std::collections::BTreeSet;

use axum::body::Body;
use axum::response::Response;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, StatusCode};
use rlf_dialogue::tool::{Hints, ToolDefinition};
use rlf_policy::SamplingParams;
use rlf_rollout::agent::TurnRefused;
use serde_json::{Map, Value, json};

/// The refusal of a request.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: StatusCode,
    /// A short name, as in OpenAI's `error.code`.
    pub(crate) code: &'static str,
    pub(crate) message: String,
}

impl Refusal {
    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            code: "invalid_request",
            message: message.into(),
        }
    }

    pub(crate) fn unauthorized(message: &str) -> Self {
        Self {
            status: StatusCode::UNAUTHORIZED,
            code: "unauthorized",
            message: message.to_owned(),
        }
    }

    /// The refusal in OpenAI's form.
    pub(crate) fn openai(&self) -> Response {
        let kind = if self.status.is_server_error() {
            "server_error"
        } else {
            "invalid_request_error"
        };
        let error =
            json!({ "message": self.message, "type": kind, "param": null, "code": self.code });
        answer(self.status, &json!({ "error": error }))
    }

    /// The refusal in Anthropic's form.
    pub(crate) fn anthropic(&self) -> Response {
        let kind = match self.status {
            StatusCode::NOT_FOUND => "not_found_error",
            status if status.is_server_error() => "api_error",
            _ => "invalid_request_error",
        };
        let error = json!({ "type": kind, "message": self.message });
        answer(self.status, &json!({ "type": "error", "error": error }))
    }
}

impl From<TurnRefused> for Refusal {
    fn from(refused: TurnRefused) -> Self {
        let (status, code) = match &refused {
            TurnRefused::Invalid(_) => (StatusCode::BAD_REQUEST, "invalid_request"),
            TurnRefused::NoTurns(_) => (StatusCode::BAD_REQUEST, "max_turns"),
            TurnRefused::TooLong(_) => (StatusCode::BAD_REQUEST, "context_length_exceeded"),
            TurnRefused::Over(_) => (StatusCode::GONE, "over"),
            TurnRefused::Unavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, "unavailable"),
        };
        Self {
            status,
            code,
            message: refused.to_string(),
        }
    }
}

/// An answer of JSON.
pub(crate) fn answer(status: StatusCode, body: &Value) -> Response {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = status;
    let kind = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// An answer of events. The turn is complete before the first one, so they are sent together.
pub(crate) fn events(events: String) -> Response {
    let mut response = Response::new(Body::from(events));
    let kind = HeaderValue::from_static("text/event-stream");
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// A parameter, with a test for the values that change nothing.
pub(crate) type Neutral = (&'static str, fn(&Value) -> bool);

/// The sampling parameters that requests may have.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Sampling {
    /// Only this temperature, at which training samples. With other parameters, the recorded log-probabilities would be
    /// wrong.
    Fixed(f32),
    /// Any that the policy can be sampled with.
    Free,
}

/// Refuses parameters that would change what is sampled, if that is fixed, or the form of the answer. All others may be
/// left out or have neutral values.
pub(crate) fn check_parameters(
    request: &Map<String, Value>,
    used: &[&str],
    neutral: &[Neutral],
    sampling: Sampling,
) -> Result<(), Refusal> {
    for (name, value) in request {
        if value.is_null() || used.contains(&name.as_str()) {
            continue;
        }
        if matches!(sampling, Sampling::Free) && FREE.contains(&name.as_str()) {
            continue;
        }
        if let Sampling::Fixed(temperature) = sampling
            && name == "temperature"
        {
            let same = value
                .as_f64()
                .is_some_and(|asked| (asked as f32 - temperature).abs() < 1e-6);
            if !same {
                return Err(Refusal::invalid(format!(
                    "`temperature` is {value}; the run decides how the policy is sampled ({temperature} in training), so leave it out"
                )));
            }
            continue;
        }
        match neutral.iter().find(|(known, _)| known == name) {
            Some((_, is_neutral)) if is_neutral(value) => {}
            Some(_) => {
                return Err(Refusal::invalid(format!(
                    "`{name}` = {value} would change what is sampled or recorded; leave it out"
                )));
            }
            None => {
                return Err(Refusal::invalid(format!(
                    "`{name}` is not known here; leave it out"
                )));
            }
        }
    }
    Ok(())
}

/// Parameters that are read if sampling is free.
const FREE: [&str; 3] = ["temperature", "top_p", "top_k"];

/// The sampling parameters of a request, if sampling is free.
pub(crate) fn params(
    request: &Map<String, Value>,
    sampling: Sampling,
) -> Result<SamplingParams, Refusal> {
    let mut params = SamplingParams::default();
    if matches!(sampling, Sampling::Fixed(_)) {
        return Ok(params);
    }
    let number = |name: &str| match request.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => (value.as_f64().map(Some))
            .ok_or_else(|| Refusal::invalid(format!("`{name}` is {value}, and no number"))),
    };
    if let Some(temperature) = number("temperature")? {
        // Logits that are divided by less do not fit into single precision.
        if temperature != 0.0 && !(0.01..=100.0).contains(&temperature) {
            return Err(Refusal::invalid(format!(
                "`temperature` is {temperature}; write 0, or 0.01 to 100"
            )));
        }
        params.temperature = temperature as f32;
    }
    if let Some(top_p) = number("top_p")? {
        params.top_p = top_p as f32;
    }
    if let Some(top_k) = count(request, "top_k")? {
        params.top_k = usize::try_from(top_k).unwrap_or(usize::MAX);
    }
    Ok(params)
}

/// True for 1, 1.0.
pub(crate) fn is_one(value: &Value) -> bool {
    value.as_f64() == Some(1.0)
}

/// True for 0, 0.0.
pub(crate) fn is_zero(value: &Value) -> bool {
    value.as_f64() == Some(0.0)
}

/// True for `[]`, `{}` and the empty text.
pub(crate) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

/// A tool that an agent offers.
pub(crate) fn tool(
    name: &str,
    description: Option<&str>,
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
        name: name.to_owned(),
        description: description.unwrap_or_default().to_owned(),
        input_schema: schema,
        output_schema: None,
        hints: Hints::default(),
        extra: Vec::new(),
    })
}

/// Refuses two tools of the same name.
pub(crate) fn unique(tools: Vec<ToolDefinition>) -> Result<Vec<ToolDefinition>, Refusal> {
    let mut names = BTreeSet::new();
    match tools.iter().find(|tool| !names.insert(&tool.name)) {
        Some(twice) => Err(Refusal::invalid(format!(
            "two tools are called `{}`",
            twice.name
        ))),
        None => Ok(tools),
    }
}

/// The number of tokens that a request asks for.
pub(crate) fn max_tokens(
    request: &Map<String, Value>,
    names: &[&str],
) -> Result<Option<usize>, Refusal> {
    for name in names {
        match count(request, name)? {
            None => {}
            Some(0) => {
                return Err(Refusal::invalid(format!("`{name}` is 0; write at least 1")));
            }
            Some(count) => return Ok(Some(usize::try_from(count).unwrap_or(usize::MAX))),
        }
    }
    Ok(None)
}

/// A whole number in a request, which may be missing.
pub(crate) fn count(request: &Map<String, Value>, name: &str) -> Result<Option<u64>, Refusal> {
    match request.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => (value.as_u64().map(Some)).ok_or_else(|| {
            Refusal::invalid(format!("`{name}` is {value}; write a whole number from 0"))
        }),
    }
}

/// The items of a list in a request, which may be missing.
pub(crate) fn list(request: &Map<String, Value>, key: &str) -> Result<Vec<Value>, Refusal> {
    match request.get(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => Ok(items.clone()),
        Some(_) => Err(Refusal::invalid(format!("`{key}` is not a list"))),
    }
}
