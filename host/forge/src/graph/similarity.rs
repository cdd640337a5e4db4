//! Measures of how likely two parameters mean the same.

use std::collections::BTreeMap;
use std::error::Error;

/// The words of a parameter, which a measure compares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wording<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its type in words.
    pub kind: String,
    /// Its description, which may be empty.
    pub description: &'a str,
}

impl Wording<'_> {
    /// The whole wording as one text, as EnvFactory embeds it: `name (type): description`.
    pub fn text(&self) -> String {
        format!("{} ({}): {}", self.name, self.kind, self.description)
    }
}

/// The score of two wordings, named by their places in the list that was prepared: from 0 (nothing in common) to 1.
pub type Score<'a> = Box<dyn Fn(usize, usize) -> f64 + 'a>;

/// A measure of similarity. [`super::Lexical`] compares words, and [`super::Embeddings`] vectors of an embedding endpoint.
pub trait Similarity {
    /// Name of the measure in reports.
    fn name(&self) -> &str;

    /// Minimum score of an edge.
    fn threshold(&self) -> f64;

    /// Everything else that the scores depend on, such as a model, for the graph's record. Default: nothing.
    fn details(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }

    /// Prepares all wordings at once, so that a measure can embed them in batches.
    fn prepare<'a>(
        &'a self,
        wordings: &[Wording<'_>],
    ) -> Result<Score<'a>, Box<dyn Error + Send + Sync>>;
}
