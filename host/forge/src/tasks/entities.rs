//! The entities of a kind in a state, and their values of the fields that results show.
//!
//! A lookup can leave entities out. Whoever describes an entity, or checks a description, compares it with all of them.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::environment::Rows;
use super::request::order;
use super::suite::Suite;

/// An item of a result, after its key.
pub(super) type Shown<'s> = (&'s str, &'s Value);

/// The entities of a kind in a state.
pub(super) struct Entities<'s> {
    /// The entities, by key.
    pub(super) rows: Rows<'s>,
    /// The state of the environment.
    state: &'s Value,
    /// The fields that the entities, and those that they refer to, have in the state.
    sources: Vec<Source<'s>>,
}

/// A field in the state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Source<'s> {
    field: &'s str,
    /// True if it is a field of the entity. False if it is one of another entity that this one refers to.
    is_own: bool,
}

/// The values of a field for the entities of a kind.
pub(super) struct Values<'e, 's> {
    entities: &'e Entities<'s>,
    shown: &'e [Shown<'s>],
    /// The name of the field in results.
    field: &'e str,
    source: Option<Source<'s>>,
}

impl<'s> Entities<'s> {
    /// The entities of a kind, `Server.entity`, in the states of environments. None if the state does not show them.
    pub(super) fn of(suite: &Suite, states: &'s Map<String, Value>, kind: &str) -> Option<Self> {
        let (server, _) = kind.split_once('.')?;
        let mut entities = Self {
            rows: suite.playable().entities(states, kind)?,
            state: states.get(server)?,
            sources: Vec::new(),
        };
        let mut fields: BTreeSet<(&'s str, bool)> = BTreeSet::new();
        for row in entities.rows.values().copied() {
            fields.extend(row.keys().map(|field| (field.as_str(), true)));
            for other in entities.referred(row) {
                fields.extend(other.keys().map(|field| (field.as_str(), false)));
            }
        }
        let sources = fields
            .into_iter()
            .map(|(field, is_own)| Source { field, is_own });
        entities.sources = sources.collect();
        Some(entities)
    }

    /// The values of a field of results. `shown` has the items of earlier results: they say which field of the state it
    /// is, if that has another name, and have the values of a field that the state does not have.
    pub(super) fn values<'e>(&'e self, field: &'e str, shown: &'e [Shown<'s>]) -> Values<'e, 's> {
        let mut sources = self.sources.clone();
        let is_alike = |one: &str| one.contains(field) || field.contains(one);
        sources.sort_by_key(|source| {
            let name = source.field;
            (name != field, !is_alike(name), !source.is_own)
        });
        let mut sources = sources.into_iter();
        Values {
            entities: self,
            shown,
            field,
            source: sources.find(|source| self.is_shown_as(*source, field, shown)),
        }
    }

    /// True if results can show a field of the state under this name.
    fn is_shown_as(&self, source: Source<'s>, field: &str, shown: &[Shown<'s>]) -> bool {
        let (mut same_values, mut other_values) = (0, 0);
        for (key, item) in shown {
            let row = self.rows.get(*key).copied();
            if let (Some(row), Some(value)) = (row, item.get(field)) {
                if self.value(source, row).is_some_and(|own| same(own, value)) {
                    same_values += 1;
                } else {
                    other_values += 1;
                }
            }
        }
        if source.field == field {
            // It may have changed since it was shown.
            same_values > 0 || other_values == 0
        } else {
            same_values > 0 && other_values == 0
        }
    }

    fn value(&self, source: Source<'_>, row: &'s Map<String, Value>) -> Option<&'s Value> {
        if source.is_own {
            return row.get(source.field);
        }
        let others = self.referred(row).into_iter();
        let mut values = others.filter_map(|other| other.get(source.field));
        let first = values.next()?;
        values.all(|other| other == first).then_some(first)
    }

    /// The other entities whose keys an entity has.
    fn referred(&self, row: &'s Map<String, Value>) -> Vec<&'s Map<String, Value>> {
        let mut all = Vec::new();
        for key in row.values().filter_map(Value::as_str) {
            for collection in self.state.as_object().into_iter().flat_map(Map::values) {
                let other = collection.get(key).and_then(Value::as_object);
                all.extend(other.filter(|other| !std::ptr::eq(*other, row)));
            }
        }
        all
    }

    /// Items for the entities that a result does not show, with the fields of its item `this`. They have the values of
    /// `this` in the fields of which their own values are not known.
    pub(super) fn unseen(&self, shown: &[Shown<'s>], this: &Value) -> Vec<Value> {
        let seen: BTreeSet<&str> = shown.iter().map(|(key, _)| *key).collect();
        let fields: Vec<(&String, &Value)> = this.as_object().into_iter().flatten().collect();
        let values: Vec<Values<'_, 's>> = fields
            .iter()
            .map(|(field, _)| self.values(field.as_str(), shown))
            .collect();
        let keys = self.rows.keys().filter(|key| !seen.contains(**key));
        keys.map(|key| {
            let mut item = Map::new();
            for ((field, own), values) in fields.iter().zip(&values) {
                let value = values.of(key).unwrap_or(*own);
                item.insert((*field).clone(), value.clone());
            }
            Value::Object(item)
        })
        .collect()
    }
}

impl<'s> Values<'_, 's> {
    /// The value for an entity. None if it is not known.
    pub(super) fn of(&self, key: &str) -> Option<&'s Value> {
        if let Some(source) = self.source {
            let row = self.entities.rows.get(key).copied()?;
            return self.entities.value(source, row);
        }
        let mut shown = self.shown.iter().rev();
        shown.find_map(|(one, item)| {
            if *one == key {
                item.get(self.field)
            } else {
                None
            }
        })
    }
}

/// True if two values are the same. Whole numbers may be written in two ways.
pub(super) fn same(one: &Value, other: &Value) -> bool {
    one == other || order(one, other) == Some(Ordering::Equal)
}

#[cfg(test)]
mod tests {
    use rlf_specification::{Format, check_text};
    use serde_json::json;

    use super::*;

    /// A suite with volumes, and loans of volumes.
    fn suite() -> Suite {
        let text = include_str!("../../../../plugins/specified/examples/LendingLibrary.toml");
        let program = check_text(text, Format::Toml).program.unwrap();
        Suite::from_programs(vec![(program, "other".to_owned())]).unwrap()
    }

    fn states() -> Map<String, Value> {
        let states = json!({ "LendingLibrary": {
            "books": { "B1": { "book_id": "B1", "title": "Night" }, "B2": { "book_id": "B2", "title": "Salt" } },
            "members": { "M1": { "member_id": "M1", "full_name": "Ada" } },
            "loans": {
                "L1": { "loan_id": "L1", "book_id": "B1", "member_id": "M1", "due": "2024-05-01" },
                "L2": { "loan_id": "L2", "book_id": "B2", "member_id": "M1", "due": "2024-06-01" },
            },
        } });
        states.as_object().unwrap().clone()
    }

    #[test]
    fn a_field_is_found_by_its_name_or_by_what_results_show() {
        let (suite, states) = (suite(), states());
        let loans = Entities::of(&suite, &states, "LendingLibrary.loan").unwrap();
        let item = json!({ "loan_id": "L1", "until": "2024-05-01", "name": "Ada", "late": 3 });
        let shown = [("L1", &item)];
        for (field, expected) in [
            ("due", json!("2024-06-01")),
            ("title", json!("Salt")),
            ("until", json!("2024-06-01")),
            ("name", json!("Ada")),
        ] {
            assert_eq!(loans.values(field, &shown).of("L2"), Some(&expected));
        }
        let late = loans.values("late", &shown);
        assert_eq!((late.of("L1"), late.of("L2")), (Some(&json!(3)), None));
    }

    #[test]
    fn entities_that_a_result_leaves_out_are_items_too() {
        let (suite, states) = (suite(), states());
        let loans = Entities::of(&suite, &states, "LendingLibrary.loan").unwrap();
        let item = json!({ "loan_id": "L1", "title": "Night", "due": "2024-05-01", "late": 3 });
        let unseen = loans.unseen(&[("L1", &item)], &item);
        let expected = json!({ "loan_id": "L2", "title": "Salt", "due": "2024-06-01", "late": 3 });
        assert_eq!(unseen, [expected]);
        assert!(Entities::of(&suite, &states, "LendingLibrary.shelf").is_none());
    }
}
