//! Content: the parts that messages and observations are made of.

use serde::{Deserialize, Serialize};

/// Bytes with an IANA media type, such as `image/png`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Blob {
    /// For example `image/png`.
    pub media_type: String,
    /// The bytes themselves.
    pub data: Vec<u8>,
}

/// One part of a message or an observation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Content {
    /// Plain text.
    Text(String),
    /// A JSON value, shown to a text model as its compact JSON.
    Structured(serde_json::Value),
    /// A picture.
    Image(Blob),
    /// Sound.
    Audio(Blob),
    /// Any other file.
    File(Blob),
}

/// Joins content parts to one text, in order and without separators. Text stays as it is, structured parts become
/// compact JSON, and blobs become a note of their type and size.
pub fn plain_text(content: &[Content]) -> String {
    content
        .iter()
        .map(|part| match part {
            Content::Text(text) => text.clone(),
            Content::Structured(value) => value.to_string(),
            Content::Image(blob) | Content::Audio(blob) | Content::File(blob) => {
                format!("[{}, {} bytes]", blob.media_type, blob.data.len())
            }
        })
        .collect()
}
