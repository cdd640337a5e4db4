//! Postconditions of composed operations. They state every condition and every effect a second time, so that
//! verification finds an operation that was changed later: it no longer does what it promises.
//!
//! A postcondition sees the state after the effects. An expression that reads what the effects change is computed
//! before them, as a binding.

use std::collections::{BTreeMap, BTreeSet};

use rlf_specification::model::{Binding, Effect, Operation, Postcondition, Specification, Update};

/// Name of the binding with the conditions that cannot be tested afterwards.
const ALLOWED: &str = "was_allowed";

/// Adds postconditions to all operations.
pub(super) fn add(specification: &mut Specification) {
    let entities = specification.entities.iter();
    let collections: BTreeMap<String, String> = entities
        .map(|entity| (entity.name.clone(), entity.collection.clone()))
        .collect();
    let keys: BTreeMap<String, String> = specification
        .entities
        .iter()
        .map(|entity| (entity.name.clone(), entity.key.name.clone()))
        .collect();
    for operation in &mut specification.operations {
        name_new_keys(operation, &keys);
        let changed = changed(operation, &collections);
        let mut promises = Promises {
            collections: &collections,
            changed,
            bindings: Vec::new(),
            requires: Vec::new(),
        };
        promises.conditions(operation);
        promises.effects(operation);
        let Promises {
            bindings, requires, ..
        } = promises;
        operation.bindings.extend(bindings);
        let requires = requires.into_iter();
        operation
            .postconditions
            .extend(requires.map(|require| Postcondition { require }));
    }
}

/// Names the keys of new entities, so that postconditions can speak of them.
fn name_new_keys(operation: &mut Operation, keys: &BTreeMap<String, String>) {
    let mut number = 0;
    for effect in &mut operation.effects {
        if let Effect::Insert(insert) = effect
            && insert.name.is_none()
            && insert.when.is_none()
            && insert.each.is_none()
        {
            number += 1;
            let suffix = if number > 1 {
                format!("_{number}")
            } else {
                String::new()
            };
            let key = keys.get(&insert.entity).map_or("key", String::as_str);
            insert.name = Some(format!("new_{key}{suffix}"));
        }
    }
}

/// Names of the collections and single values that an operation changes.
fn changed(operation: &Operation, collections: &BTreeMap<String, String>) -> BTreeSet<String> {
    let name = |effect: &Effect| match effect {
        Effect::Insert(insert) => collections.get(&insert.entity).cloned(),
        Effect::Set(update) => collections.get(&update.entity).cloned(),
        Effect::Delete(delete) => collections.get(&delete.entity).cloned(),
        Effect::Assign(assign) => Some(assign.name.clone()),
    };
    operation.effects.iter().filter_map(name).collect()
}

/// The postconditions of one operation, while they are collected.
struct Promises<'a> {
    collections: &'a BTreeMap<String, String>,
    changed: BTreeSet<String>,
    bindings: Vec<Binding>,
    requires: Vec<String>,
}

impl Promises<'_> {
    /// True if an expression has the same value before and after the effects.
    fn is_constant(&self, source: &str) -> bool {
        !identifiers(source).any(|name| self.changed.contains(name))
    }

    /// Adds the promise that the operation's conditions held before its effects.
    fn conditions(&mut self, operation: &Operation) {
        let mut before = None;
        for (index, condition) in operation.preconditions.iter().enumerate() {
            // After a condition that something is not null, its type no longer allows the test.
            let tests_null = identifiers(&condition.require).any(|name| name == "null");
            if self.is_constant(&condition.require) && !tests_null {
                self.requires.push(condition.require.clone());
            } else {
                before = Some(index);
            }
        }
        // Earlier conditions come first, because later ones may have no value without them.
        if let Some(last) = before {
            let all = operation.preconditions[..=last].iter();
            let all: Vec<String> = all.map(|one| format!("({})", one.require)).collect();
            self.bindings.push(Binding::Compute {
                name: ALLOWED.to_owned(),
                value: all.join(" && "),
            });
            self.requires.push(ALLOWED.to_owned());
        }
    }

    fn effects(&mut self, operation: &Operation) {
        let mut deleted: BTreeSet<&str> = BTreeSet::new();
        for effect in operation.effects.iter().rev() {
            match effect {
                Effect::Insert(insert) => {
                    if let Some(key) = &insert.name {
                        let require = self.fields(&insert.entity, key, &insert.values, false);
                        self.requires.extend(require);
                    }
                }
                Effect::Set(update)
                    if update.when.is_none() && !deleted.contains(update.entity.as_str()) =>
                {
                    let require = self.update(update);
                    self.requires.extend(require);
                }
                Effect::Delete(delete) if delete.when.is_none() && delete.each.is_none() => {
                    deleted.insert(&delete.entity);
                    if let Some(collection) = self.collections.get(&delete.entity)
                        && self.is_constant(&delete.key)
                    {
                        self.requires
                            .push(format!("!({} in {collection})", delete.key));
                    }
                }
                _ => {}
            }
        }
    }

    fn update(&mut self, update: &Update) -> Option<String> {
        if !self.is_constant(&update.key) {
            return None;
        }
        let Some(each) = &update.each else {
            return self.fields(&update.entity, &update.key, &update.values, true);
        };
        if !self.is_constant(&each.of) {
            return None;
        }
        let require = self.fields(&update.entity, &update.key, &update.values, false)?;
        Some(format!("{}.all({}, {require})", each.of, each.name))
    }

    /// Adds the promise that the fields of an entity have the values that an effect gives them. A value that cannot be
    /// computed afterwards is computed before the effects if `before` allows that, and is otherwise left out.
    fn fields(
        &mut self,
        entity: &str,
        key: &str,
        values: &BTreeMap<String, String>,
        before: bool,
    ) -> Option<String> {
        let collection = self.collections.get(entity)?;
        let mut equal = Vec::new();
        for (field, value) in values {
            if self.is_constant(value) {
                let has_comparison = value.contains(['=', '<', '>', '&', '|', '?']);
                let value = if has_comparison {
                    format!("({value})")
                } else {
                    value.clone()
                };
                equal.push(format!("{collection}[{key}].{field} == {value}"));
            } else if before {
                let name = format!("expected_{field}");
                equal.push(format!("{collection}[{key}].{field} == {name}"));
                self.bindings.push(Binding::Compute {
                    name,
                    value: value.clone(),
                });
            }
        }
        (!equal.is_empty()).then(|| equal.join(" && "))
    }
}

/// The names in an expression, without those of fields and functions, and without what is in quotes.
fn identifiers(source: &str) -> impl Iterator<Item = &str> {
    let mut names = Vec::new();
    let mut rest = source;
    let mut after_dot = false;
    while let Some(first) = rest.chars().next() {
        let is_name = |one: char| one.is_alphanumeric() || one == '_';
        let length = if first == '\'' || first == '"' {
            rest[1..].find(first).map_or(rest.len(), |end| end + 2)
        } else if is_name(first) {
            let length = rest.find(|one| !is_name(one)).unwrap_or(rest.len());
            if !after_dot {
                names.push(&rest[..length]);
            }
            length
        } else {
            first.len_utf8()
        };
        after_dot = first == '.';
        rest = &rest[length..];
    }
    names.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_fields_and_texts_are_no_names_of_collections() {
        let names = |source| identifiers(source).collect::<Vec<_>>();
        assert_eq!(
            names("loans.exists(x, loans[x].items == 'books') && today < a.b"),
            ["loans", "x", "loans", "x", "today", "a"]
        );
        assert_eq!(names("'it is \"open\""), Vec::<&str>::new());
    }
}
