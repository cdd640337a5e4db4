//! The JSON form of states.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use crate::expression::{MAX_ITEMS, MAX_TEXT, Schema, ValueType};
use crate::program::Program;
use crate::state::{State, Table};
use crate::value::Value;

impl Program {
    /// The state as JSON with sorted keys: equal states give equal bytes.
    ///
    /// Single values are at their names, entities in their collections by key, and `next_ENTITY` is the number in the
    /// next generated key.
    pub fn state_json(&self, state: &State) -> Json {
        let mut all: BTreeMap<String, Json> = BTreeMap::new();
        for ((name, _), value) in self.schema.values.iter().zip(&state.values) {
            all.insert(name.clone(), value.to_json());
        }
        for (index, entity) in self.schema.entities.iter().enumerate() {
            let rows: Map<String, Json> = state.tables[index]
                .iter()
                .map(|(key, record)| {
                    let fields: BTreeMap<&str, Json> = entity
                        .fields
                        .iter()
                        .zip(record.iter())
                        .map(|((name, _), value)| (name.as_str(), value.to_json()))
                        .collect();
                    let fields: Map<String, Json> = fields
                        .into_iter()
                        .map(|(name, value)| (name.to_owned(), value))
                        .collect();
                    (key.to_string(), Json::Object(fields))
                })
                .collect();
            all.insert(entity.collection.clone(), Json::Object(rows));
            if self.counted[index] {
                all.insert(next_name(&entity.name), state.next[index].into());
            }
        }
        Json::Object(all.into_iter().collect())
    }

    /// Reads a state from the JSON that `state_json` writes. Collections may be missing; all rules must hold.
    pub fn load(&self, json: &Json) -> Result<State, String> {
        let Json::Object(given) = json else {
            return Err("a state is an object".to_owned());
        };
        let mut known: Vec<String> = Vec::new();
        let mut state = State {
            values: Vec::new(),
            tables: Vec::new(),
            next: Vec::new(),
        };
        for (name, kind) in &self.schema.values {
            let missing = || format!("`{name}` is missing");
            let value = given.get(name).ok_or_else(missing)?;
            let read = read(&self.schema, kind, value);
            state
                .values
                .push(read.map_err(|why| format!("`{name}`: {why}"))?);
            known.push(name.clone());
        }
        for (index, entity) in self.schema.entities.iter().enumerate() {
            let mut table = Table::new();
            let mut most = 0;
            let rows = match given.get(&entity.collection) {
                None => &Map::new(),
                Some(Json::Object(rows)) => rows,
                Some(_) => return Err(format!("`{}` is not an object", entity.collection)),
            };
            if rows.len() > MAX_ITEMS {
                return Err(format!(
                    "`{}` has more than {MAX_ITEMS} items",
                    entity.collection
                ));
            }
            for (key, row) in rows {
                let place = |why: String| format!("`{}.{key}`: {why}", entity.collection);
                let Json::Object(row) = row else {
                    return Err(place("not an object".to_owned()));
                };
                if let Some(unknown) = row
                    .keys()
                    .find(|name| entity.fields.iter().all(|(field, _)| field != *name))
                {
                    return Err(place(format!("unknown field `{unknown}`")));
                }
                let mut record = Vec::with_capacity(entity.fields.len());
                for (position, (name, kind)) in entity.fields.iter().enumerate() {
                    let value = match (row.get(name), position, kind) {
                        (Some(value), ..) => read(&self.schema, kind, value)
                            .map_err(|why| place(format!("`{name}`: {why}")))?,
                        (None, 0, _) => Value::text(key),
                        (None, _, ValueType::Optional(_)) => Value::Null,
                        (None, ..) => return Err(place(format!("`{name}` is missing"))),
                    };
                    record.push(value);
                }
                if record[0] != Value::text(key) {
                    return Err(place(format!("`{}` is another key", entity.fields[0].0)));
                }
                if let Some(number) = self.key_number(index, key) {
                    most = most.max(number);
                }
                table.insert(key.as_str().into(), record.into());
            }
            state.tables.push(Arc::new(table));
            let next_name = next_name(&entity.name);
            let after = most.saturating_add(1);
            let next = match given.get(&next_name) {
                Some(number) if self.counted[index] => number
                    .as_i64()
                    .filter(|number| *number >= after)
                    .ok_or_else(|| format!("`{next_name}` is not an integer from {after}"))?,
                _ => after,
            };
            state.next.push(next);
            if self.counted[index] {
                known.push(next_name);
            }
            known.push(entity.collection.clone());
        }
        if let Some(unknown) = given.keys().find(|name| !known.contains(name)) {
            return Err(format!("unknown key `{unknown}`"));
        }
        match self.broken_rule(&state) {
            None => Ok(state),
            Some(rule) => Err(format!("the state breaks the rule {rule}")),
        }
    }

    /// The number in a key that looks like a generated one.
    fn key_number(&self, entity: usize, key: &str) -> Option<i64> {
        let prefix = &self.specification.entities[entity].key.prefix;
        key.strip_prefix(prefix.as_str())?.parse().ok()
    }
}

/// The name of the counter of an entity's keys.
pub(crate) fn next_name(entity: &str) -> String {
    format!("next_{entity}")
}

/// Reads a value of a type.
pub(crate) fn read(schema: &Schema, kind: &ValueType, json: &Json) -> Result<Value, String> {
    let value = match (kind, json) {
        (ValueType::Optional(_), Json::Null) => Some(Value::Null),
        (ValueType::Optional(inner), _) => return read(schema, inner, json),
        (ValueType::Boolean, Json::Bool(truth)) => Some(Value::Boolean(*truth)),
        // JSON Schema takes 3.0 for an integer.
        (ValueType::Integer, Json::Number(number)) => {
            number.as_i64().map(Value::Integer).or_else(|| {
                let number = number.as_f64()?;
                let is_whole = number.fract() == 0.0 && number.abs() < 9e15;
                is_whole.then_some(Value::Integer(number as i64))
            })
        }
        (ValueType::Number, Json::Number(number)) => {
            let number = number.as_f64().filter(|number| number.is_finite());
            number.map(Value::Number)
        }
        (ValueType::List(item), Json::Array(items)) if items.len() <= MAX_ITEMS => {
            let items: Result<Vec<Value>, String> =
                items.iter().map(|one| read(schema, item, one)).collect();
            Some(Value::List(items?.into()))
        }
        (kind, Json::String(text)) if kind.takes(text) && text.len() <= MAX_TEXT => {
            Some(Value::text(text))
        }
        _ => None,
    };
    value.ok_or_else(|| {
        let mut shown = json.to_string();
        if shown.chars().count() > 60 {
            shown = shown.chars().take(60).collect::<String>() + "..";
        }
        format!("{shown} is not {}", schema.shown(kind))
    })
}
