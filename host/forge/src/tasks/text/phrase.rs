//! Phrases: words of the grammar and values, kept apart so that the template of a text is known.

use serde_json::Value;

use super::words::raised;

/// A piece of a text.
#[derive(Debug, Clone, PartialEq)]
enum Piece {
    /// Words of the grammar or of a tool's description.
    Words(String),
    /// A value of the task.
    Value(String),
}

/// A piece of text that remembers which parts are values.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Phrase(Vec<Piece>);

impl Phrase {
    pub(super) fn words(words: impl Into<String>) -> Self {
        Self::default().and(words)
    }

    pub(super) fn value(value: &Value) -> Self {
        Self(vec![Piece::Value(spoken(value))])
    }

    /// Adds words.
    pub(super) fn and(mut self, words: impl Into<String>) -> Self {
        let words = words.into();
        if let Some(Piece::Words(last)) = self.0.last_mut() {
            last.push_str(&words);
        } else if !words.is_empty() {
            self.0.push(Piece::Words(words));
        }
        self
    }

    /// Adds a phrase.
    pub(super) fn then(mut self, other: &Self) -> Self {
        for piece in &other.0 {
            match piece {
                Piece::Words(words) => self = self.and(words.clone()),
                value @ Piece::Value(_) => self.0.push(value.clone()),
            }
        }
        self
    }

    pub(super) fn text(&self) -> String {
        let piece = |piece: &Piece| match piece {
            Piece::Words(text) | Piece::Value(text) => text.clone(),
        };
        self.0.iter().map(piece).collect()
    }

    /// The text with `<>` in place of each value.
    pub(super) fn template(&self) -> String {
        let piece = |piece: &Piece| match piece {
            Piece::Words(text) => text.clone(),
            Piece::Value(_) => "<>".to_owned(),
        };
        self.0.iter().map(piece).collect()
    }

    /// The phrase with a large first letter.
    pub(super) fn capitalised(mut self) -> Self {
        if let Some(Piece::Words(first)) = self.0.first_mut() {
            *first = raised(first);
        }
        self
    }

    /// True if it is a number and nothing else.
    pub(super) fn is_number(&self) -> bool {
        self.text().parse::<f64>().is_ok()
    }

    /// True if it ends in a mark that ends a sentence.
    pub(super) fn is_ended(&self) -> bool {
        self.text().ends_with(['.', '?', '!'])
    }
}

/// A value as a user says it.
pub fn spoken(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Array(items) => items.iter().map(spoken).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}
