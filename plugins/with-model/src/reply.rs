//! Reading a model's reply.

use rlf_plugin::Role;
use rlf_plugin::model::{Answer, Question};
use rlf_plugin::serde_json::{self, Map, Value};

use crate::cut::cut;

/// Maximum number of characters of a parser's message, which may quote the whole reply.
const MAX_EXPLANATION_CHARS: usize = 300;

/// The reply without the model's thoughts and without white space around it. It is empty if the thoughts never end.
pub fn spoken(reply: &str) -> &str {
    match reply.rsplit_once("</think>") {
        Some((_, spoken)) => spoken.trim(),
        None if reply.trim_start().starts_with("<think>") => "",
        None => reply.trim(),
    }
}

/// The JSON object that a reply consists of: alone, or in one code fence, after thoughts or without.
///
/// Anything else is an error, which says to the model what was wrong.
pub fn object(answer: &Answer) -> Result<Map<String, Value>, String> {
    let reply = answer.text.trim();
    // A value may contain the tag that ends thoughts.
    let reply = if reply.starts_with(['{', '`']) {
        reply
    } else {
        spoken(reply)
    };
    serde_json::from_str(unfenced(reply)).map_err(|error| {
        if answer.cut_short {
            return "the reply was cut off at its maximum length, so it must be shorter".to_owned();
        }
        let why = cut(&error.to_string(), MAX_EXPLANATION_CHARS);
        format!("the reply must be one JSON object and nothing else: {why}")
    })
}

fn unfenced(reply: &str) -> &str {
    let inside = reply
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"));
    inside.map_or(reply, |inside| {
        inside.strip_prefix("json").unwrap_or(inside).trim()
    })
}

/// The question, then the model's reply to it, then the next message to the model.
#[must_use]
pub fn follow_up(question: Question, reply: &Answer, next: &str) -> Question {
    // Some models refuse an empty message.
    let said = match spoken(&reply.text) {
        "" => "(no reply)",
        said => said,
    };
    question
        .message(Role::Assistant, said)
        .message(Role::User, next)
}

#[cfg(test)]
mod tests {
    use rlf_plugin::serde_json::json;

    use super::*;

    fn read(text: &str) -> Result<Value, String> {
        object(&Answer::text(text)).map(Value::Object)
    }

    #[test]
    fn an_object_is_read_alone_in_a_fence_and_after_thoughts() {
        for reply in [
            r#"{"a": 1}"#,
            "```json\n{\"a\": 1}\n```",
            "```\n{\"a\": 1}\n```\n",
            "<think>{\"a\": 2}</think>\n{\"a\": 1}",
            // Chat templates may open the thoughts themselves.
            "It is 1.</think>```json\n{\"a\": 1}```",
        ] {
            assert_eq!(read(reply), Ok(json!({"a": 1})), "{reply}");
        }
        let tag = r#"{"a": "before </think> after"}"#;
        assert_eq!(read(tag), Ok(json!({"a": "before </think> after"})));
    }

    #[test]
    fn anything_but_one_object_is_an_error_of_bounded_length() {
        let long = format!("\"{}\"", "x".repeat(10_000));
        for reply in [
            "",
            "[1]",
            "Here it is: {\"a\": 1}",
            "{\"a\": 1} {\"a\": 2}",
            "```json\n{\"a\": 1}\n```\n```json\n{\"a\": 2}\n```",
            "<think>{\"a\": 1}",
            "```",
            &long,
        ] {
            let why = read(reply).unwrap_err();
            assert!(why.contains("one JSON object"), "{reply}: {why}");
            assert!(why.len() < 400, "{}", why.len());
        }
    }

    #[test]
    fn a_reply_that_was_cut_short_is_told_to_be_shorter() {
        let cut_short = |text: &str| Answer {
            cut_short: true,
            ..Answer::text(text)
        };
        let why = object(&cut_short(r#"{"a": "#)).unwrap_err();
        assert!(why.contains("cut off"), "{why}");
        assert!(object(&cut_short(r#"{"a": 1}"#)).is_ok());
    }

    #[test]
    fn no_message_of_a_follow_up_is_empty_or_contains_thoughts() {
        for (reply, said) in [
            ("<think>hm</think> yes", "yes"),
            ("<think>hm", "(no reply)"),
        ] {
            let question = follow_up(Question::new("?"), &Answer::text(reply), "sure?");
            let texts: Vec<&str> = question.messages.iter().map(|one| &*one.text).collect();
            assert_eq!(texts, ["?", said, "sure?"]);
            assert_eq!(question.messages[1].role, Role::Assistant);
        }
    }
}
