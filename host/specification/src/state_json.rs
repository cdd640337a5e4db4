//! The JSON form of states.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use crate::error::{StateError, WrongValue};
use crate::expression::{MAX_ITEMS, MAX_TEXT, Schema, ValueType};
use crate::program::Program;
use crate::state::{State, Table};
use crate::value::Value;

impl Program {
    /// The state as JSON with sorted keys: equal states give equal bytes.
    ///
    /// Single values are at their names, and entities in their collections by key. `next_ENTITY` is the smallest number
    /// that the next generated key can have.
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
    pub fn load(&self, json: &Json) -> Result<State, StateError> {
        let Json::Object(given) = json else {
            return Err(StateError::NotAnObject);
        };
        let mut known: Vec<String> = Vec::new();
        let mut state = State {
            values: Vec::new(),
            tables: Vec::new(),
            next: Vec::new(),
        };
        for (name, kind) in &self.schema.values {
            let value = given
                .get(name)
                .ok_or_else(|| malformed("", format!("`{name}` is missing")))?;
            let read = read(&self.schema, kind, value);
            state
                .values
                .push(read.map_err(|wrong| malformed(&format!("`{name}`: "), wrong.to_string()))?);
            known.push(name.clone());
        }
        for (index, entity) in self.schema.entities.iter().enumerate() {
            let (table, last) = self.load_table(index, given.get(&entity.collection))?;
            state.tables.push(Arc::new(table));
            let next_name = next_name(&entity.name);
            let next = match given.get(&next_name) {
                _ if !self.counted[index] => 1,
                None => last + 1,
                Some(number) => number
                    .as_i64()
                    .filter(|number| *number >= 1)
                    .ok_or_else(|| {
                        malformed("", format!("`{next_name}` is not an integer from 1"))
                    })?,
            };
            state.next.push(next);
            if self.counted[index] {
                known.push(next_name);
            }
            known.push(entity.collection.clone());
        }
        if let Some(unknown) = given.keys().find(|name| !known.contains(name)) {
            return Err(malformed("", format!("unknown key `{unknown}`")));
        }
        match self.broken_rule(&state) {
            None => Ok(state),
            Some(rule) => Err(StateError::BreaksRule(rule)),
        }
    }

    /// Reads the entities of one kind. Returns the largest number in a key, too.
    fn load_table(&self, index: usize, json: Option<&Json>) -> Result<(Table, i64), StateError> {
        let entity = &self.schema.entities[index];
        let collection = &entity.collection;
        let mut table = Table::new();
        let mut last = 0;
        let rows = match json {
            None => return Ok((table, last)),
            Some(Json::Object(rows)) => rows,
            Some(_) => return Err(malformed("", format!("`{collection}` is not an object"))),
        };
        if rows.len() > MAX_ITEMS {
            let problem = format!("`{collection}` has more than {MAX_ITEMS} items");
            return Err(malformed("", problem));
        }
        for (key, row) in rows {
            let wrong = |problem: String| malformed(&format!("`{collection}.{key}`: "), problem);
            let Json::Object(row) = row else {
                return Err(wrong("not an object".to_owned()));
            };
            if let Some(unknown) = row
                .keys()
                .find(|name| entity.fields.iter().all(|(field, _)| field != *name))
            {
                return Err(wrong(format!("unknown field `{unknown}`")));
            }
            let mut record = Vec::with_capacity(entity.fields.len());
            for (position, (name, kind)) in entity.fields.iter().enumerate() {
                let value = match (row.get(name), position, kind) {
                    (Some(value), ..) => read(&self.schema, kind, value)
                        .map_err(|error| wrong(format!("`{name}`: {error}")))?,
                    (None, 0, _) => Value::text(key),
                    (None, _, ValueType::Optional(_)) => Value::Null,
                    (None, ..) => return Err(wrong(format!("`{name}` is missing"))),
                };
                record.push(value);
            }
            if record[0] != Value::text(key) {
                return Err(wrong(format!("`{}` is another key", entity.fields[0].0)));
            }
            if let Some(number) = self.key_number(index, key) {
                last = last.max(number);
            }
            table.insert(key.as_str().into(), record.into());
        }
        Ok((table, last))
    }

    /// The number in a key that looks like a generated one: at most 18 digits after the prefix.
    fn key_number(&self, entity: usize, key: &str) -> Option<i64> {
        let prefix = &self.specification.entities[entity].key.prefix;
        let digits = key.strip_prefix(prefix.as_str())?;
        let is_number = digits.len() <= 18 && digits.bytes().all(|one| one.is_ascii_digit());
        digits.parse().ok().filter(|_| is_number)
    }
}

/// The name of the counter of an entity's keys.
pub(crate) fn next_name(entity: &str) -> String {
    format!("next_{entity}")
}

fn malformed(place: &str, problem: impl Into<String>) -> StateError {
    StateError::Malformed {
        place: place.to_owned(),
        problem: problem.into(),
    }
}

/// Reads a value of a type.
pub(crate) fn read(schema: &Schema, kind: &ValueType, json: &Json) -> Result<Value, WrongValue> {
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
            let items: Result<Vec<Value>, WrongValue> =
                items.iter().map(|one| read(schema, item, one)).collect();
            Some(Value::List(items?.into()))
        }
        (kind, Json::String(text)) if kind.takes(text) && text.len() <= MAX_TEXT => {
            Some(Value::text(text))
        }
        _ => None,
    };
    value.ok_or_else(|| {
        let mut value = json.to_string();
        if value.chars().count() > 60 {
            value = value.chars().take(60).collect::<String>() + "..";
        }
        let expected = schema.shown(kind).to_string();
        WrongValue { value, expected }
    })
}
