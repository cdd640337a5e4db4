//! Checks an environment's messages and verdicts, and converts them to the host's types.

use rlf_dialogue::message::{Message, Role};
use rlf_dialogue::trajectory::Verdict;
use rlf_plugins::bindings::types;
use rlf_plugins::convert::{ContractError, content_from_guest};
use rlf_plugins::safe_text::make_string_safe;

/// Converts a message of the environment.
pub(crate) fn message_from_guest(message: types::Message) -> Result<Message, ContractError> {
    Ok(Message {
        role: match message.role {
            types::Role::System => Role::System,
            types::Role::User => Role::User,
            types::Role::Assistant => Role::Assistant,
            types::Role::Tool => Role::Tool,
        },
        content: message
            .content
            .into_iter()
            .map(content_from_guest)
            .collect::<Result<_, _>>()?,
        reasoning_content: None,
        tool_calls: Vec::new(),
    })
}

/// Converts a verdict. Its score must be from 0 to 1.
pub(crate) fn verdict_from_guest(verdict: types::Verdict) -> Result<Verdict, ContractError> {
    let types::Verdict {
        success,
        score,
        reason,
    } = verdict;
    if !(0.0..=1.0).contains(&score) {
        return Err(ContractError::NoShare {
            place: "the verdict's score".into(),
            value: score.to_string(),
        });
    }
    Ok(Verdict {
        success,
        score,
        reason: make_string_safe(reason),
    })
}
