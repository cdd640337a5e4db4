//! Words in templates: nouns with articles and plurals, and the placeholders of archetypes.
//!
//! | placeholder | in identifiers and expressions | in sentences |
//! |---|---|---|
//! | `<item>`, `<items>` | `mountain_bike`, `mountain_bikes` | `mountain bike`, `mountain bikes` |
//! | `<an item>`, `<An item>` | | `a mountain bike`, `A mountain bike` |
//! | `<~find>`, `<~Find>` | `look_up` | `Look up` |
//! | `<#most>` | a limit | a limit |
//! | `<=clash>` | a part of an expression | |
//! | `<day+5>` | a date, counted from the environment's own | |
//! | `<*categories>` | a whole list | |
//! | `<about>`, `<currency>` | | texts of the business |
//!
//! In sentences, `{..}` is an expression, and `[..]` is the name of an operation.

use std::collections::BTreeMap;

use rlf_specification::date;
use toml::{Table, Value};

use super::error::TemplateError;
use crate::english::with_article;

/// A noun in singular and plural.
#[derive(Debug, Clone)]
pub(super) struct Noun {
    pub(super) one: String,
    pub(super) many: String,
}

impl Noun {
    /// Reads `mountain bike|mountain bikes`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (one, many) = text.split_once('|')?;
        Some(Self {
            one: one.to_owned(),
            many: many.to_owned(),
        })
    }

    pub(super) fn identifier(&self) -> String {
        identifier(&self.one)
    }

    pub(super) fn collection(&self) -> String {
        identifier(&self.many)
    }

    pub(super) fn key(&self) -> String {
        self.identifier() + "_id"
    }

    /// The noun with `a` or `an`.
    pub(super) fn with_article(&self) -> String {
        with_article(&self.one)
    }
}

fn identifier(text: &str) -> String {
    text.to_lowercase().replace([' ', '-'], "_")
}

/// The text with a capital first letter, as at the beginning of a sentence.
pub(super) fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    match characters.next() {
        Some(first) => first.to_uppercase().chain(characters).collect(),
        None => String::new(),
    }
}

/// Joins words to a list in a sentence: `a, b and c`.
pub(super) fn enumerated(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// Everything that placeholders stand for in one environment.
#[derive(Debug, Default)]
pub(super) struct Words {
    pub(super) nouns: BTreeMap<String, Noun>,
    /// Verbs as in names, and as in sentences.
    pub(super) verbs: BTreeMap<String, (String, String)>,
    pub(super) texts: BTreeMap<String, String>,
    pub(super) lists: BTreeMap<String, Vec<String>>,
    pub(super) limits: BTreeMap<String, i64>,
    pub(super) expressions: BTreeMap<String, String>,
    /// The environment's date, as a day number.
    pub(super) day: i64,
}

impl Words {
    pub(super) fn noun(&self, role: &str) -> Result<&Noun, TemplateError> {
        self.nouns
            .get(role)
            .ok_or_else(|| TemplateError::NoRole(role.to_owned()))
    }

    /// Fills in an identifier or an expression.
    pub(super) fn expression(&self, text: &str) -> Result<String, TemplateError> {
        self.filled(text, false)
    }

    /// Fills in a sentence.
    pub(super) fn sentence(&self, text: &str) -> Result<String, TemplateError> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '[']) {
            filled += &self.filled(&rest[..at], true)?;
            let (open, close) = if rest[at..].starts_with('{') {
                ('{', '}')
            } else {
                ('[', ']')
            };
            let end = rest.find(close).ok_or_else(|| TemplateError::Open {
                text: text.to_owned(),
                close,
            })?;
            filled.push(open);
            filled += &self.filled(&rest[at + 1..end], false)?;
            filled.push(close);
            rest = &rest[end + 1..];
        }
        Ok(filled + &self.filled(rest, true)?)
    }

    fn filled(&self, text: &str, prose: bool) -> Result<String, TemplateError> {
        let mut filled = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('<') {
            let inner = rest[at + 1..]
                .find('>')
                .map(|end| &rest[at + 1..at + 1 + end]);
            let Some(inner) = inner.filter(|inner| is_placeholder(inner)) else {
                filled += &rest[..=at];
                rest = &rest[at + 1..];
                continue;
            };
            filled += &rest[..at];
            filled += &self.placeholder(inner, prose)?;
            rest = &rest[at + inner.len() + 2..];
        }
        Ok(filled + rest)
    }

    fn placeholder(&self, inner: &str, prose: bool) -> Result<String, TemplateError> {
        let unknown = || TemplateError::NoPlaceholder(inner.to_owned());
        if let Some(verb) = inner.strip_prefix('~') {
            let (name, sentence) = self.verbs.get(&verb.to_lowercase()).ok_or_else(unknown)?;
            return Ok(if prose { sentence } else { name }.clone());
        }
        if let Some(limit) = inner.strip_prefix('#') {
            return self
                .limits
                .get(limit)
                .map(i64::to_string)
                .ok_or_else(unknown);
        }
        if let Some(name) = inner.strip_prefix('=') {
            let part = self.expressions.get(name).ok_or_else(unknown)?;
            return self.filled(part, false);
        }
        if let Some(days) = inner
            .strip_prefix("day")
            .and_then(|days| days.parse::<i64>().ok())
        {
            return date::format(self.day + days).ok_or_else(unknown);
        }
        if let Some(text) = self.texts.get(inner) {
            return Ok(text.clone());
        }
        if let Some((article, role)) = inner.split_once(' ') {
            let noun = self.noun(role)?.with_article();
            let capital = article.starts_with('A');
            return Ok(if capital { capitalised(&noun) } else { noun });
        }
        let (word, noun) = if let Some(noun) = self.nouns.get(inner) {
            (&noun.one, noun.identifier())
        } else {
            let role = inner.strip_suffix('s');
            let noun = role.and_then(|role| self.nouns.get(role));
            let noun = noun.ok_or_else(unknown)?;
            (&noun.many, noun.collection())
        };
        Ok(if prose { word.clone() } else { noun })
    }

    /// Fills in a table: descriptions and errors are sentences, everything else is not.
    pub(super) fn table(&self, table: &Table) -> Result<Table, TemplateError> {
        let mut filled = Table::new();
        for (name, value) in table {
            let value = match value {
                Value::String(text) if matches!(name.as_str(), "description" | "error") => {
                    Value::String(self.sentence(text)?)
                }
                other => self.value(other)?,
            };
            filled.insert(self.expression(name)?, value);
        }
        Ok(filled)
    }

    pub(super) fn value(&self, value: &Value) -> Result<Value, TemplateError> {
        Ok(match value {
            Value::String(text) => {
                let whole = text
                    .strip_prefix('<')
                    .and_then(|text| text.strip_suffix('>'));
                let list = whole.and_then(|name| name.strip_prefix('*'));
                let limit = whole
                    .and_then(|name| name.strip_prefix('#'))
                    .and_then(|name| self.limits.get(name));
                match (list, limit) {
                    (Some(list), _) => {
                        let items = self
                            .lists
                            .get(list)
                            .ok_or_else(|| TemplateError::NoList(list.to_owned()))?;
                        Value::Array(items.iter().cloned().map(Value::String).collect())
                    }
                    (_, Some(limit)) => Value::Integer(*limit),
                    _ => Value::String(self.expression(text)?),
                }
            }
            Value::Array(items) => Value::Array(
                items
                    .iter()
                    .map(|item| self.value(item))
                    .collect::<Result<_, _>>()?,
            ),
            Value::Table(table) => Value::Table(self.table(table)?),
            other => other.clone(),
        })
    }
}

fn is_placeholder(inner: &str) -> bool {
    let starts = inner.strip_prefix(['~', '#', '=', '*']).unwrap_or(inner);
    starts.starts_with(|first: char| first.is_ascii_alphabetic())
        && inner
            .chars()
            .all(|one| one.is_ascii_alphanumeric() || "~#=*_+- ".contains(one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_told_from_comparisons() {
        let mut words = Words {
            day: 19_782,
            ..Words::default()
        };
        words.nouns.insert(
            "item".into(),
            Noun::parse("mountain bike|mountain bikes").unwrap(),
        );
        words.limits.insert("most".into(), 3);
        words
            .expressions
            .insert("all".into(), "<items>.size()".into());
        let expression = "a < b && <=all> <= <#most> && <items>[x].day > '<day+1>'";
        assert_eq!(
            words.expression(expression).unwrap(),
            "a < b && mountain_bikes.size() <= 3 && mountain_bikes[x].day > '2024-03-01'"
        );
        let sentence = "<An item> of {<item>.name}; [find_<items>] gives <#most> <items>";
        assert_eq!(
            words.sentence(sentence).unwrap(),
            "A mountain bike of {mountain_bike.name}; [find_mountain_bikes] gives 3 mountain bikes"
        );
        assert!(words.expression("<order>").is_err());
    }
}
