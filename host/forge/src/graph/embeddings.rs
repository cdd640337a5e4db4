//! The measure of similarity by an embedding endpoint: the cosine of two vectors.
//!
//! As EnvFactory does, `name (type): description` of every input and output is embedded. Vectors stay on disk, under the
//! model that made them, so nothing is asked twice, and the same graph can be built again without the endpoint.

mod vectors;

pub use vectors::{VectorError, Vectors};

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::error::Error;

use async_trait::async_trait;
use rlf_endpoint::{Embedded, Endpoint, EndpointError, tokens_of};
use serde_json::json;

use super::Tool;
use super::similarity::{Score, Similarity, Wording};

/// Maximum number of texts of one request.
const BATCH: usize = 32;
/// Maximum number of bytes of a text that are embedded. The rest of a longer text is left out.
const MAX_TEXT_BYTES: usize = 8_192;

/// A model that embeds texts.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// The model's name, and everything else that vectors depend on.
    fn identity(&self) -> String;

    /// The model's name.
    fn model(&self) -> String;

    /// A vector for each text, all of one dimension.
    async fn embed(&self, texts: &[String]) -> Result<Embedded, EndpointError>;
}

#[async_trait]
impl Embedder for Endpoint {
    /// The model and its settings. The address is left out, because a model may move.
    fn identity(&self) -> String {
        let config = self.config();
        json!({ "model": config.model, "extra": config.extra }).to_string()
    }

    fn model(&self) -> String {
        Endpoint::model(self).to_owned()
    }

    async fn embed(&self, texts: &[String]) -> Result<Embedded, EndpointError> {
        Endpoint::embed(self, texts).await
    }
}

/// The reason why there are no embeddings. Embeddings that arrived before the failure are on disk.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    /// The endpoint gave none.
    #[error(transparent)]
    Endpoint(#[from] EndpointError),
    /// The file of vectors cannot be used.
    #[error(transparent)]
    Vectors(#[from] VectorError),
    /// The texts have more tokens than the limit.
    #[error(
        "{texts} texts are to be embedded, with about {tokens} tokens, and the limit is {limit}"
    )]
    TooMany {
        /// Number of texts.
        texts: usize,
        /// An estimate of their tokens.
        tokens: u64,
        /// The limit.
        limit: u64,
    },
}

/// The texts of a graph that are not on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Number of texts of the graph, each counted once.
    pub all: usize,
    /// The texts to ask for, in their order.
    pub texts: Vec<String>,
}

impl Missing {
    /// Compares the texts of tools with vectors on disk.
    pub fn new(tools: &[Tool], vectors: &Vectors) -> Self {
        let all = texts(tools);
        Self {
            all: all.len(),
            texts: all
                .into_iter()
                .filter(|text| vectors.get(text).is_none())
                .collect(),
        }
    }

    /// An estimate of their tokens: one for every three bytes.
    pub fn tokens(&self) -> u64 {
        self.texts.iter().map(|text| tokens_of(text)).sum()
    }

    /// Number of requests that ask for them.
    pub fn requests(&self) -> usize {
        self.texts.len().div_ceil(BATCH)
    }
}

/// Compares inputs and outputs by the cosine of their embeddings; a negative one counts as 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Embeddings {
    /// Minimum score of an edge.
    pub threshold: f64,
    model: String,
    digest: String,
    vectors: HashMap<String, Vec<f32>>,
}

impl Embeddings {
    /// The default threshold, which EnvFactory uses.
    pub const THRESHOLD: f64 = 0.85;

    /// Returns the embeddings of all inputs and outputs of these tools. The endpoint is asked for those that are not on
    /// disk, and each of its answers is written to disk at once. Fails if it would have to embed more than `max_tokens`
    /// tokens.
    pub async fn fetch(
        tools: &[Tool],
        embedder: &dyn Embedder,
        vectors: &mut Vectors,
        max_tokens: u64,
    ) -> Result<Self, EmbedError> {
        let missing = Missing::new(tools, vectors);
        if missing.tokens() > max_tokens {
            return Err(EmbedError::TooMany {
                texts: missing.texts.len(),
                tokens: missing.tokens(),
                limit: max_tokens,
            });
        }
        for batch in missing.texts.chunks(BATCH) {
            let embedded = embedder.embed(batch).await?;
            vectors.add(batch, embedded.vectors)?;
        }
        let mut used = HashMap::new();
        let mut hasher = blake3::Hasher::new();
        for text in texts(tools) {
            let Some(vector) = vectors.get(&text) else {
                return Err(VectorError::Missing { text }.into());
            };
            hasher.update(text.as_bytes());
            for number in vector {
                hasher.update(&number.to_le_bytes());
            }
            used.insert(text, vector.to_vec());
        }
        Ok(Self {
            threshold: Self::THRESHOLD,
            model: embedder.model(),
            digest: hasher.finalize().to_hex()[..16].to_owned(),
            vectors: used,
        })
    }
}

impl Similarity for Embeddings {
    fn name(&self) -> &'static str {
        "embeddings"
    }

    fn threshold(&self) -> f64 {
        self.threshold
    }

    /// The model, and a hash of all texts and vectors: two graphs with the same hash were built from the same vectors.
    fn details(&self) -> BTreeMap<String, String> {
        let dimension = self.vectors.values().next().map_or(0, Vec::len);
        BTreeMap::from([
            ("model".to_owned(), self.model.clone()),
            ("dimension".to_owned(), dimension.to_string()),
            ("vectors".to_owned(), self.vectors.len().to_string()),
            ("digest".to_owned(), self.digest.clone()),
        ])
    }

    fn prepare<'a>(
        &'a self,
        wordings: &[Wording<'_>],
    ) -> Result<Score<'a>, Box<dyn Error + Send + Sync>> {
        let units = wordings
            .iter()
            .map(|wording| {
                let text = text(wording);
                let vector = self.vectors.get(&text);
                vector
                    .map(|vector| unit(vector))
                    .ok_or(VectorError::Missing { text })
            })
            .collect::<Result<Vec<_>, _>>()?;
        Ok(Box::new(move |one, other| {
            let products = units[one].iter().zip(&units[other]);
            products
                .map(|(one, other)| one * other)
                .sum::<f64>()
                .max(0.0)
        }))
    }
}

/// A vector of length 1 in the direction of one that is not zero.
fn unit(vector: &[f32]) -> Vec<f64> {
    let length = vector
        .iter()
        .map(|number| f64::from(*number).powi(2))
        .sum::<f64>()
        .sqrt();
    vector
        .iter()
        .map(|number| f64::from(*number) / length)
        .collect()
}

/// The text of a wording that is embedded.
fn text(wording: &Wording<'_>) -> String {
    let mut text = wording.text();
    let end = text.floor_char_boundary(MAX_TEXT_BYTES);
    text.truncate(end);
    text
}

/// The texts of all inputs and outputs, each once.
fn texts(tools: &[Tool]) -> BTreeSet<String> {
    let inputs = tools.iter().flat_map(|tool| &tool.inputs);
    let outputs = tools.iter().flat_map(|tool| &tool.outputs);
    let inputs = inputs.map(|input| (&input.name, &input.kind, &input.description));
    let outputs = outputs.map(|output| (&output.name, &output.kind, &output.description));
    inputs
        .chain(outputs)
        .map(|(name, kind, description)| {
            text(&Wording {
                name,
                kind: kind.to_string(),
                description,
            })
        })
        .collect()
}
