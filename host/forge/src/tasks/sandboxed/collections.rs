//! Collections of entities in a state, and fields with a vocabulary.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use crate::graph::KEY_WORDS;
use crate::tasks::environment::Rows;
use crate::tasks::text::{is_plural, singular, spaced};

/// The keys of the entities in states, and the texts of their fields.
#[derive(Debug, Clone, Default)]
pub(super) struct Collections {
    /// Keys by the name of one entity: `book`.
    keys: BTreeMap<String, BTreeSet<String>>,
    /// Texts by the name of their field. The keys of a collection are here by its name: `books`.
    texts: BTreeMap<String, BTreeSet<String>>,
}

impl Collections {
    /// Adds what a state has.
    pub(super) fn learn(&mut self, state: &Value) {
        match state {
            Value::Object(fields) => {
                for (name, value) in fields {
                    self.field(name, value);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.learn(item)),
            _ => {}
        }
    }

    fn field(&mut self, name: &str, value: &Value) {
        match value {
            Value::String(text) => self.text(name, text),
            Value::Object(entries) => {
                if is_collection(name, entries) {
                    for key in entries.keys() {
                        self.text(name, key);
                        self.key(&singular(name), key);
                    }
                }
                self.learn(value);
            }
            Value::Array(items) => {
                for item in items {
                    if let Value::String(text) = item {
                        self.text(name, text);
                    }
                    if let Some((entity, key)) = listed(name, item) {
                        self.key(&entity, key);
                    }
                    self.learn(item);
                }
            }
            _ => {}
        }
    }

    fn text(&mut self, field: &str, text: &str) {
        let texts = self.texts.entry(field.to_owned()).or_default();
        texts.insert(text.to_owned());
    }

    fn key(&mut self, entity: &str, key: &str) {
        let keys = self.keys.entry(entity.to_owned()).or_default();
        keys.insert(key.to_owned());
    }

    /// True if there are entities of this name.
    pub(super) fn has(&self, entity: &str) -> bool {
        self.keys.contains_key(entity)
    }

    /// The entity whose keys all these texts are. Of several, it is the one that the name says.
    pub(super) fn entity(&self, name: &str, texts: &BTreeSet<&str>) -> Option<&str> {
        let fits = |keys: &BTreeSet<String>| texts.iter().all(|text| keys.contains(*text));
        let all: Vec<&str> = self
            .keys
            .iter()
            .filter(|(_, keys)| !texts.is_empty() && fits(keys))
            .map(|(entity, _)| entity.as_str())
            .collect();
        let last_word = |name: &str| {
            name.rsplit([' ', '_'])
                .next()
                .unwrap_or_default()
                .to_owned()
        };
        let named = all.iter().find(|entity| **entity == name).or_else(|| {
            all.iter()
                .find(|entity| last_word(entity) == last_word(name))
        });
        match (&all[..], named) {
            (_, Some(named)) => Some(*named),
            ([only], None) => Some(*only),
            _ => None,
        }
    }

    /// The field or collection whose texts all these are: the one that the name says, or else the smallest.
    pub(super) fn vocabulary(&self, name: &str, texts: &BTreeSet<&str>) -> Option<&str> {
        let fits = |known: &BTreeSet<String>| texts.iter().all(|text| known.contains(*text));
        let found = self
            .texts
            .iter()
            .filter(|(_, known)| !texts.is_empty() && fits(known));
        let rank = |field: &str, size: usize| (singular(field) != singular(name), size);
        let best = found.min_by_key(|(field, known)| rank(field, known.len()));
        best.map(|(field, _)| field.as_str())
    }
}

/// Adds the entities of this name in a state. They are found as [`Collections`] finds keys.
pub(super) fn rows<'s>(state: &'s Value, entity: &str, found: &mut Rows<'s>) {
    match state {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::Object(entries)
                        if is_collection(name, entries) && singular(name) == entity =>
                    {
                        let row = |(key, row): (&'s String, &'s Value)| {
                            Some((key.as_str(), row.as_object()?))
                        };
                        found.extend(entries.iter().filter_map(row));
                    }
                    Value::Array(items) => {
                        for item in items {
                            if let (Some((kind, key)), Some(row)) =
                                (listed(name, item), item.as_object())
                                && kind == entity
                            {
                                found.insert(key, row);
                            }
                        }
                    }
                    _ => {}
                }
                rows(value, entity, found);
            }
        }
        Value::Array(items) => {
            for item in items {
                rows(item, entity, found);
            }
        }
        _ => {}
    }
}

/// True if a field of a state has entities by their keys.
fn is_collection(name: &str, entries: &Map<String, Value>) -> bool {
    !entries.is_empty()
        && entries.values().all(Value::is_object)
        && (is_plural(name) || entries.keys().all(|key| is_opaque(key)))
}

/// The name and the key of the entity that is an item of a list. `name` is the name of the list.
fn listed<'s>(name: &str, item: &'s Value) -> Option<(String, &'s str)> {
    let fields = item.as_object()?.iter();
    let mut texts = fields.filter_map(|(field, value)| Some((field, value.as_str()?)));
    let (field, key) = texts.find(|(field, _)| is_key_name(field))?;
    let named = without_key_word(field);
    let entity = if named.is_empty() {
        singular(name)
    } else {
        named
    };
    Some((entity, key))
}

/// True if a text reads as a key and not as a word: it has a digit.
pub(super) fn is_opaque(text: &str) -> bool {
    !text.contains(' ') && text.chars().any(|letter| letter.is_ascii_digit())
}

/// True if the last word of a name says that it is a key: `book_id`.
pub(super) fn is_key_name(name: &str) -> bool {
    let words = spaced(name);
    words
        .rsplit(' ')
        .next()
        .is_some_and(|last| KEY_WORDS.contains(&last))
}

/// The name without the word that says that it is a key: `book_id` is `book`.
pub(super) fn without_key_word(name: &str) -> String {
    let words = spaced(name);
    let mut words: Vec<&str> = words.split(' ').collect();
    if is_key_name(name) {
        words.pop();
    }
    words.join("_")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_entities_of_a_state_are_those_whose_keys_are_known() {
        let state = json!({
            "books": { "b1": { "title": "Night" }, "b2": { "title": "Salt" } },
            "desk": { "loans": [{ "loan_id": "L1", "book_id": "b1" }, { "loan_id": "L2", "book_id": "b2" }] },
            "tank": { "litres": 3 },
        });
        let keys = |entity: &str| {
            let mut found = Rows::new();
            rows(&state, entity, &mut found);
            found.keys().copied().map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(keys("book"), ["b1", "b2"]);
        assert_eq!(keys("loan"), ["L1", "L2"]);
        assert!(keys("tank").is_empty());
    }
}
