//! Single calls, and what each says about the environment.

use rlf_dialogue::message::{Content, plain_text};
use rlf_dialogue::tool::{CallOutcome, Ended, ToolCall};
use rlf_environments::session::EnvironmentSession;
use rlf_plugins::turn::TurnContext;
use rlf_specification::UNDONE;
use serde_json::{Map, Value};

/// A call and its end.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Played {
    pub(crate) ended: Ended,
    /// The text that the model reads.
    pub(crate) text: String,
    /// The structured part of the observation, if there is one, or the text as JSON.
    pub(crate) result: Option<Value>,
    pub(crate) structured: bool,
    /// Hash of the state after the call.
    pub(crate) state: Option<String>,
    /// For logs.
    pub(crate) detail: String,
}

impl Played {
    /// True if the call broke the environment. Mistakes of the caller do not count.
    pub(crate) fn is_broken(&self) -> bool {
        !matches!(
            self.ended,
            Ended::Ok | Ended::Failed | Ended::InvalidArguments
        )
    }

    /// True if a specification refused the call because it would break a rule.
    pub(crate) fn is_undone(&self) -> bool {
        self.ended != Ended::Ok && self.text.starts_with(UNDONE)
    }
}

/// Makes one call as a turn of its own.
pub(crate) async fn call(
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_refusal_that_begins_with_the_words_of_a_specification_says_that_a_rule_would_break() {
        for (ended, before, expected) in [
            (Ended::Failed, "", true),
            (Ended::Ok, "", false),
            (Ended::Failed, "The note says: ", false),
        ] {
            let played = Played {
                ended,
                text: format!("{before}{UNDONE}it breaks the rule `x`"),
                result: None,
                structured: false,
                state: None,
                detail: String::new(),
            };
            assert_eq!(played.is_undone(), expected, "{played:?}");
        }
    }
}
