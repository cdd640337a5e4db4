//! Messages with expressions in braces.

use std::borrow::Cow;

use super::Expr;
use super::compile::{Scope, Trouble};
use super::evaluate::{Fault, MAX_TEXT, Machine};
use super::types::ValueType;

/// A message: texts and expressions.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Template {
    pub(crate) parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Part {
    Text(String),
    Value(Expr),
}

impl Template {
    /// Parses a message. `{{` and `}}` are braces.
    pub(crate) fn compile(source: &str, scope: &mut Scope<'_>) -> Result<Self, Trouble> {
        let mut parts = Vec::new();
        let mut text = String::new();
        let mut rest = source;
        while let Some(at) = rest.find(['{', '}']) {
            text.push_str(&rest[..at]);
            let brace = &rest[at..=at];
            let after = &rest[at + 1..];
            if let Some(doubled) = after.strip_prefix(brace) {
                text.push_str(brace);
                rest = doubled;
                continue;
            }
            let end = after.find('}').filter(|_| brace == "{");
            let Some(end) = end else {
                return Err(Trouble::unknown(
                    format!("`{source}` has a brace without its other"),
                    "write `{expression}`, or `{{` and `}}` for braces",
                ));
            };
            if !text.is_empty() {
                parts.push(Part::Text(std::mem::take(&mut text)));
            }
            let (expr, kind) = scope.compile(&after[..end])?;
            let scalar = kind.is_text()
                || matches!(
                    kind,
                    ValueType::Integer | ValueType::Number | ValueType::Boolean
                );
            if !scalar {
                return Err(Trouble::mismatch(
                    format!("a message shows {}", scope.schema.shown(&kind)),
                    "show a text, a number or a boolean",
                ));
            }
            parts.push(Part::Value(expr));
            rest = &after[end + 1..];
        }
        text.push_str(rest);
        if !text.is_empty() {
            parts.push(Part::Text(text));
        }
        Ok(Self { parts })
    }

    /// Formats the message in a state, cut at [`MAX_TEXT`].
    pub(crate) fn show(&self, machine: &mut Machine<'_>) -> Result<String, Fault> {
        let mut shown = String::new();
        for part in &self.parts {
            let part = match part {
                Part::Text(text) => Cow::Borrowed(text.as_str()),
                Part::Value(expr) => Cow::Owned(machine.value(expr)?.shown()),
            };
            if shown.len() < MAX_TEXT {
                shown.push_str(&part);
            }
        }
        shown.truncate(shown.floor_char_boundary(MAX_TEXT));
        Ok(shown)
    }
}
