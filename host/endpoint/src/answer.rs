//! Answers of an endpoint.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::message::ChatCall;

/// The answer of the model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Completion {
    /// The text, empty if there is none.
    pub text: String,
    /// The reasoning before the text, if the endpoint gives it apart.
    pub reasoning: Option<String>,
    /// The calls of the tools that were on offer, in order.
    pub calls: Vec<ChatCall>,
    /// True if `max_tokens` cut it short.
    pub cut_short: bool,
    /// The tokens that the endpoint counted, if it reports them.
    pub usage: Option<Usage>,
}

/// The tokens of one question and its answer, as the endpoint counts them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the messages.
    pub prompt_tokens: u64,
    /// Tokens of the answer, thoughts included.
    pub completion_tokens: u64,
}

/// Maximum number of tokens of one request that is believed. Sums of such numbers do not overflow.
pub(crate) const MAX_TOKENS: u64 = 1 << 32;

/// A chat completion. Other keys are ignored.
#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    choices: Vec<Choice>,
    #[serde(default)]
    usage: Value,
    #[serde(default)]
    error: Value,
}

#[derive(Deserialize)]
struct Choice {
    message: Message,
    #[serde(default)]
    finish_reason: Option<String>,
    #[serde(default)]
    error: Value,
}

#[derive(Deserialize)]
struct Message {
    #[serde(default)]
    content: Option<String>,
    /// Servers name the reasoning in one of two ways, or in both.
    #[serde(default)]
    reasoning_content: Value,
    #[serde(default)]
    reasoning: Value,
    #[serde(default)]
    tool_calls: Option<Vec<ChatCall>>,
}

/// The reason why a body is not a completion.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AnswerError {
    #[error("{source}; it begins with {beginning:?}")]
    Unreadable {
        source: serde_json::Error,
        beginning: String,
    },
    #[error("it has no choices")]
    NoChoices,
    #[error("the model behind it failed: {0}")]
    Failed(String),
    #[error("a content filter removed it")]
    Filtered,
}

/// Parses the body of an answer.
pub(crate) fn read(body: &[u8]) -> Result<Completion, AnswerError> {
    let answer: Answer =
        serde_json::from_slice(body).map_err(|source| AnswerError::Unreadable {
            source,
            beginning: beginning(body),
        })?;
    let choice = answer.choices.into_iter().next();
    // Some services report the failure of the model behind them in an answer with status 200.
    let of_choice = choice.as_ref().map_or(&Value::Null, |choice| &choice.error);
    let has_failed = |choice: &Choice| choice.finish_reason.as_deref() == Some("error");
    let error = [&answer.error, of_choice]
        .into_iter()
        .find(|error| !error.is_null());
    if error.is_some() || choice.as_ref().is_some_and(has_failed) {
        let error = error.unwrap_or(&Value::Null);
        let message = (error.as_str()).or_else(|| error.get("message")?.as_str());
        let message = message.map_or_else(|| error.to_string(), str::to_owned);
        return Err(AnswerError::Failed(beginning(message.as_bytes())));
    }
    let choice = choice.ok_or(AnswerError::NoChoices)?;
    let message = choice.message;
    let says_nothing = (message.content.as_deref()).is_none_or(|text| text.trim().is_empty())
        && (message.tool_calls.as_ref()).is_none_or(Vec::is_empty);
    // The model did not say this, so it must not count as an empty answer.
    if says_nothing && choice.finish_reason.as_deref() == Some("content_filter") {
        return Err(AnswerError::Filtered);
    }
    let reasoning = [&message.reasoning_content, &message.reasoning]
        .into_iter()
        .filter_map(Value::as_str)
        .find(|text| !text.is_empty())
        .map(str::to_owned);
    Ok(Completion {
        text: message.content.unwrap_or_default(),
        reasoning,
        calls: message.tool_calls.unwrap_or_default(),
        cut_short: choice.finish_reason.as_deref() == Some("length"),
        // Some servers leave it out or write something else. That is no reason to lose the answer.
        usage: Usage::deserialize(&answer.usage)
            .ok()
            .filter(|usage| usage.prompt_tokens.max(usage.completion_tokens) <= MAX_TOKENS),
    })
}

/// The start of a body for messages, on one line.
pub(crate) fn beginning(body: &[u8]) -> String {
    const MAX_CHARS: usize = 300;
    let text = String::from_utf8_lossy(&body[..body.len().min(4 * MAX_CHARS)]);
    let words: Vec<&str> = text.split_whitespace().collect();
    let plain = |c: &char| !c.is_control();
    words
        .join(" ")
        .chars()
        .filter(plain)
        .take(MAX_CHARS)
        .collect()
}
