//! Single calls, and what each says about the environment.

use rlf_dialogue::message::{Content, plain_text};
use rlf_dialogue::tool::{CallOutcome, Ended, ToolCall};
use rlf_environments::session::EnvironmentSession;
use rlf_plugins::turn::TurnContext;
use serde_json::{Map, Value};

/// A call and its end.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Played {
    pub(super) ended: Ended,
    /// The text that the model reads.
    pub(super) text: String,
    /// The structured part of the observation, if there is one, or the text as JSON.
    pub(super) result: Option<Value>,
    pub(super) structured: bool,
    /// Hash of the state after the call.
    pub(super) state: Option<String>,
    /// For logs.
    pub(super) detail: String,
}

impl Played {
    /// True if the call broke the environment. Mistakes of the caller do not count.
    pub(super) fn is_broken(&self) -> bool {
        !matches!(
            self.ended,
            Ended::Ok | Ended::Failed | Ended::InvalidArguments
        )
    }
}

/// Makes one call as a turn of its own.
pub(super) async fn call(
    session: &mut EnvironmentSession,
    number: usize,
    tool: &str,
    arguments: &Map<String, Value>,
) -> Played {
    let call = ToolCall {
        call_id: format!("verify/{number}/0"),
        name: tool.to_owned(),
        arguments: Value::Object(arguments.clone()),
    };
    let turn = TurnContext {
        trajectory_id: "verify".to_owned(),
        turn: u32::try_from(number).unwrap_or(u32::MAX),
        seed: 0,
    };
    let outcome: CallOutcome = session.call(call, &turn).await;
    let content = outcome
        .observation
        .as_ref()
        .map_or(&[][..], |seen| &seen.content);
    let text = plain_text(content);
    let structured = content.iter().find_map(|part| match part {
        Content::Structured(value) => Some(value.clone()),
        _ => None,
    });
    Played {
        ended: outcome.ended,
        structured: structured.is_some(),
        result: structured.or_else(|| rlf_json::from_str(&text).ok()),
        text,
        state: outcome.state,
        detail: outcome.detail.unwrap_or_default(),
    }
}
