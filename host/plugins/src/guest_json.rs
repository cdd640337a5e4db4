//! The contract's values as JSON, for interpreters that run source files.

use rlf_dialogue::tool::Ended;
use serde_json::{Value, json};

use crate::bindings::code::Captured;
use crate::bindings::types;
use crate::convert::{ended_to_guest, error_parts};

/// The name of the end of a call.
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
    let head = String::from_utf8_lossy(&captured.head);
    let tail = String::from_utf8_lossy(&captured.tail);
    match captured.omitted {
        0 => format!("{head}{tail}"),
        omitted => format!("{head}\n[{omitted} bytes left out]\n{tail}"),
    }
}
