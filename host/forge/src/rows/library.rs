//! The library of kinds, relations and words from which graphs of facts are generated.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// A kind of entity.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Kind {
    pub(super) name: String,
    /// Patterns of names, with lists of words in braces.
    pub(super) names: Vec<String>,
    /// True if sentences say "the" before a name.
    #[serde(default)]
    pub(super) article: bool,
    pub(super) relations: Vec<Shape>,
}

/// A relation of a kind.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Shape {
    pub(super) name: String,
    /// A kind, or `date`, `year` or `number`.
    pub(super) to: String,
    /// Minimum and maximum of a number or year.
    #[serde(default)]
    pub(super) range: Option<(u64, u64)>,
    #[serde(default)]
    pub(super) unit: String,
    pub(super) noun: String,
    pub(super) ask: Vec<String>,
    pub(super) tools: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kinds {
    kinds: Vec<Kind>,
}

static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    let read: Result<Kinds, _> = toml::from_str(include_str!("library/kinds.toml"));
    read.unwrap_or_else(|error| panic!("kinds.toml, which is part of this program: {error}"))
        .kinds
});

static WORDS: LazyLock<BTreeMap<String, Vec<String>>> = LazyLock::new(|| {
    toml::from_str(include_str!("library/words.toml"))
        .unwrap_or_else(|error| panic!("words.toml, which is part of this program: {error}"))
});

pub(super) fn kinds() -> &'static [Kind] {
    &KINDS
}

/// A list of words; empty if there is none of this name.
pub(super) fn words(name: &str) -> &'static [String] {
    WORDS.get(name).map_or(&[], Vec::as_slice)
}
