//! Embeddings: a vector for each text.

use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::answer::{MAX_TOKENS, beginning};
use crate::endpoint::Endpoint;
use crate::error::EndpointError;

/// The embeddings of several texts.
#[derive(Debug, Clone, PartialEq)]
pub struct Embedded {
    /// One vector for each text, in their order. All have the same dimension, and none is zero or has a number that is not
    /// finite.
    pub vectors: Vec<Vec<f32>>,
    /// Tokens of the texts, if the endpoint counts them.
    pub tokens: Option<u64>,
}

/// The answer. Other keys are ignored.
#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    data: Vec<Row>,
    #[serde(default)]
    usage: Value,
}

#[derive(Deserialize)]
struct Row {
    /// Place of its text. Without it, rows are in the order of the texts.
    index: Option<usize>,
    embedding: Vec<f32>,
}

/// The reason why a body does not embed the texts.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum EmbeddingsError {
    #[error("{why}; it begins with {beginning:?}")]
    Unreadable { why: String, beginning: String },
    #[error("it has {got} vectors for {wanted} texts")]
    Rows { wanted: usize, got: usize },
    #[error("it has a vector for text {index}, and there are {texts} texts, counted from 0")]
    NoSuchText { index: usize, texts: usize },
    #[error("it has two vectors for text {index}")]
    Twice { index: usize },
    #[error("text {index} has {got} numbers, and an earlier one has {wanted}")]
    Dimension {
        index: usize,
        wanted: usize,
        got: usize,
    },
    #[error("the vector of text {index} has a number that is not finite")]
    NotFinite { index: usize },
    #[error("the vector of text {index} is zero or empty")]
    Zero { index: usize },
}

impl Endpoint {
    /// Asks for a vector for each text, all in one request. Without a text, nothing is asked.
    pub fn embed<'a>(
        &'a self,
        texts: &'a [String],
    ) -> BoxFuture<'a, Result<Embedded, EndpointError>> {
        Box::pin(async move {
            if texts.is_empty() {
                let (vectors, tokens) = (Vec::new(), Some(0));
                return Ok(Embedded { vectors, tokens });
            }
            let inner = &*self.inner;
            let mut body: Map<String, Value> = inner.config.extra.clone();
            body.insert("model".into(), inner.config.model.as_str().into());
            body.insert("input".into(), json!(texts));
            let body = Value::Object(body).to_string().into_bytes();
            let read = |body: &[u8]| {
                read(body, texts.len()).map_err(|error| EndpointError::NoEmbeddings {
                    host: inner.host.clone(),
                    reason: error.to_string(),
                })
            };
            inner.post(&inner.embeddings_target, &body, 0, read).await
        })
    }
}

/// Parses the body of an answer about this number of texts.
fn read(body: &[u8], texts: usize) -> Result<Embedded, EmbeddingsError> {
    let answer: Answer =
        serde_json::from_slice(body).map_err(|error| EmbeddingsError::Unreadable {
            why: error.to_string(),
            beginning: beginning(body),
        })?;
    if answer.data.len() != texts {
        let got = answer.data.len();
        return Err(EmbeddingsError::Rows { wanted: texts, got });
    }
    let mut vectors: Vec<Vec<f32>> = vec![Vec::new(); texts];
    let mut dimension = None;
    for (place, row) in answer.data.into_iter().enumerate() {
        let index = row.index.unwrap_or(place);
        let vector = row.embedding;
        let slot = vectors
            .get_mut(index)
            .ok_or(EmbeddingsError::NoSuchText { index, texts })?;
        if !slot.is_empty() {
            return Err(EmbeddingsError::Twice { index });
        }
        if vector.iter().any(|number| !number.is_finite()) {
            return Err(EmbeddingsError::NotFinite { index });
        }
        if vector.iter().all(|number| *number == 0.0) {
            return Err(EmbeddingsError::Zero { index });
        }
        let wanted = *dimension.get_or_insert(vector.len());
        if vector.len() != wanted {
            let got = vector.len();
            return Err(EmbeddingsError::Dimension { index, wanted, got });
        }
        *slot = vector;
    }
    // Some servers leave it out or write something else. That is no reason to lose the answer.
    let tokens = answer.usage["prompt_tokens"].as_u64();
    let tokens = tokens.filter(|tokens| *tokens <= MAX_TOKENS);
    Ok(Embedded { vectors, tokens })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_for(texts: usize, data: &Value) -> Result<Embedded, String> {
        let body = json!({"data": data, "usage": {"prompt_tokens": 7}});
        read(body.to_string().as_bytes(), texts).map_err(|error| error.to_string())
    }

    #[test]
    fn vectors_are_in_the_order_of_the_texts() {
        let swapped =
            json!([{"index": 1, "embedding": [0, 1]}, {"index": 0, "embedding": [2.5, 0]}]);
        let read = read_for(2, &swapped).unwrap();
        assert_eq!(read.vectors, [[2.5, 0.0], [0.0, 1.0]]);
        assert_eq!(read.tokens, Some(7));
        let unnumbered = json!([{"embedding": [1, 2]}, {"embedding": [3, 4]}]);
        let read = read_for(2, &unnumbered).unwrap();
        assert_eq!(read.vectors, [[1.0, 2.0], [3.0, 4.0]]);
    }

    #[test]
    fn an_answer_that_does_not_embed_every_text_is_refused() {
        for (data, why) in [
            (
                json!([{"index": 0, "embedding": [1]}]),
                "1 vectors for 2 texts",
            ),
            (json!([]), "0 vectors for 2 texts"),
            (
                json!([{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]),
                "two vectors for text 0",
            ),
            (
                json!([{"index": 0, "embedding": [1]}, {"index": 2, "embedding": [1]}]),
                "a vector for text 2",
            ),
            (
                json!([{"index": 0, "embedding": [1, 2]}, {"index": 1, "embedding": [1]}]),
                "text 1 has 1 numbers, and an earlier one has 2",
            ),
            (
                json!([{"index": 0, "embedding": [1, 2]}, {"index": 1, "embedding": [0, 0.0]}]),
                "the vector of text 1 is zero or empty",
            ),
            (
                json!([{"index": 0, "embedding": []}, {"index": 1, "embedding": [1]}]),
                "the vector of text 0 is zero or empty",
            ),
            (
                json!([{"index": 0, "embedding": [1e300]}, {"index": 1, "embedding": [1]}]),
                "number out of range",
            ),
            (
                json!([{"index": 0, "embedding": [null]}, {"index": 1, "embedding": [1]}]),
                "null",
            ),
            (
                json!([{"index": 0, "embedding": "AAAAAA=="}, {"index": 1, "embedding": "AAAAAA=="}]),
                "invalid type: string",
            ),
        ] {
            let error = read_for(2, &data).unwrap_err();
            assert!(error.contains(why), "{data}: {error}");
        }
        // Python writes numbers that JSON does not have.
        let nan = read(br#"{"data": [{"index": 0, "embedding": [NaN, 1.0]}]}"#, 1);
        assert!(nan.unwrap_err().to_string().contains("[NaN, 1.0]"));
    }
}
