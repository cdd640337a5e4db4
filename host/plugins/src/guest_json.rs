//! The contract's values as JSON, for interpreters that run source files.

use rlf_dialogue::tool::Ended;
use serde_json::{Value, json};

use crate::bindings::code::Captured;
use crate::bindings::types;
use crate::convert::{ended_to_guest, error_parts};

/// The name of how a call ended, such as `timeout`.
pub fn ended_name(given: types::Ended) -> Option<&'static str> {
    let mut all = Ended::ALL.into_iter();
    all.find(|ended| ended_to_guest(*ended) == given)
        .map(Ended::as_str)
}

/// A part of a message or an observation. Of an image, audio or a file, only the type is sent.
pub fn content_to_json(content: &types::Content) -> Value {
    match content {
        types::Content::Text(text) => json!({ "text": text }),
        types::Content::Structured(structured) => json!({ "structured": structured }),
        types::Content::Image(blob) | types::Content::Audio(blob) | types::Content::File(blob) => {
            json!({ "media_type": blob.media_type })
        }
    }
}

/// An observation, without its metrics.
pub(crate) fn observation_to_json(observation: &types::Observation) -> Value {
    let content = observation.content.iter().map(content_to_json);
    json!({ "content": content.collect::<Vec<_>>(), "failed": observation.failed })
}

/// `{"error": {"kind", "message"}}`.
pub(crate) fn error_to_json(error: &types::Error) -> Value {
    let (kind, message) = error_parts(error);
    json!({ "error": { "kind": kind, "message": message } })
}

/// The text of a stream, with a mark where its middle was left out.
pub(crate) fn captured_text(captured: &Captured) -> String {
    let Captured {
        head,
        tail,
        omitted,
    } = captured;
    // A character may begin in the head and end in the tail.
    if *omitted == 0 {
        return String::from_utf8_lossy(&[head.as_slice(), tail].concat()).into_owned();
    }
    let [head, tail] = [head, tail].map(|part| String::from_utf8_lossy(part));
    format!("{head}\n[{omitted} bytes left out]\n{tail}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_character_on_the_edge_of_head_and_tail_stays_whole() {
        let [first, second] = [0, 1].map(|at| vec!["é".as_bytes()[at]]);
        let mut captured = Captured {
            head: first,
            tail: second,
            omitted: 0,
        };
        assert_eq!(captured_text(&captured), "é");
        captured.omitted = 7;
        assert_eq!(
            captured_text(&captured),
            "\u{fffd}\n[7 bytes left out]\n\u{fffd}"
        );
    }
}
