//! Arguments for random walks: mostly valid, from the state and the schema.

use rlf_random::Key;
use serde_json::{Map, Number, Value as Json, json};

use crate::date;
use crate::model::{Operation, Parameter, Type};
use crate::program::Program;
use crate::state::State;
use crate::value::Value;

/// Draws arguments of an operation. Keys are those of the state; texts and dates are often taken from it.
pub fn arguments(
    program: &Program,
    state: &State,
    operation: &Operation,
    key: Key,
) -> Map<String, Json> {
    let mut arguments = Map::new();
    for (index, parameter) in operation.parameters.iter().enumerate() {
        let key = key.at(index as u64);
        if parameter.required || key.below(9, 2) == 0 {
            let value = value(program, state, parameter, &parameter.kind, key);
            arguments.insert(parameter.name.clone(), value);
        }
    }
    arguments
}

fn value(program: &Program, state: &State, parameter: &Parameter, kind: &Type, key: Key) -> Json {
    match kind {
        Type::Reference(entity) => {
            let table = program
                .schema
                .entity(entity)
                .map(|entity| &state.tables[entity]);
            let table = table.filter(|table| !table.is_empty());
            let chosen =
                table.and_then(|table| table.keys().nth(key.below(0, table.len() as u64) as usize));
            match chosen {
                // One in sixteen does not exist.
                Some(chosen) if key.below(1, 16) > 0 => json!(&**chosen),
                _ => json!("X-0"),
            }
        }
        Type::Text | Type::Date => {
            let is_date = *kind == Type::Date;
            let texts = texts(state, is_date);
            let drawn = match texts.get(key.below(0, texts.len().max(1) as u64) as usize) {
                Some(text) if key.below(1, 4) > 0 => *text,
                _ if is_date => "2024-05-01",
                _ => ["", "a", "Ada Byron", " e "][key.below(2, 4) as usize],
            };
            if is_date {
                // Most days are near those of the state. A few are far away.
                let distance = match key.below(4, 12) {
                    0 => key.below(3, 800) as i64 - 400,
                    _ => key.below(3, 20) as i64 - 5,
                };
                let day = date::parse(drawn).unwrap_or(0) + distance;
                return json!(date::format(day).unwrap_or_else(|| drawn.to_owned()));
            }
            json!(drawn)
        }
        Type::Integer => {
            let limit = |limit: &Option<Number>| limit.as_ref().and_then(Number::as_i64);
            json!(integer(
                limit(&parameter.minimum),
                limit(&parameter.maximum),
                key
            ))
        }
        Type::Number => {
            let limit = |limit: &Option<Number>| limit.as_ref().and_then(Number::as_f64);
            let most = limit(&parameter.maximum);
            let least = limit(&parameter.minimum);
            let least = least.unwrap_or(most.map_or(0.0, |most| most.min(0.0)));
            let most = most.unwrap_or(least + 150.0);
            json!((least + key.uniform(0) * (most - least)).clamp(least, most))
        }
        Type::Boolean => json!(key.below(0, 2) == 1),
        Type::Enumeration(values) => {
            match values.get(key.below(0, values.len().max(1) as u64) as usize) {
                Some(value) => json!(value),
                None => Json::Null,
            }
        }
        Type::List(item) => (0..key.below(8, 5))
            .map(|index| value(program, state, parameter, item, key.at(index)))
            .collect(),
    }
}

/// Draws an integer within limits, more often one near the minimum, because small ones are more often possible.
pub fn integer(minimum: Option<i64>, maximum: Option<i64>, key: Key) -> i64 {
    let least = minimum.unwrap_or_else(|| maximum.map_or(-2, |most| most.saturating_sub(1_000)));
    let most = maximum.unwrap_or(least.saturating_add(1_000)).max(least);
    // A few are as large as possible, or larger than most limits that conditions state.
    let span = match key.below(1, 12) {
        0 => {
            return maximum
                .unwrap_or(least.saturating_add(10_000_000))
                .max(least);
        }
        1..=3 => most.abs_diff(least),
        _ => most.abs_diff(least).min(10),
    };
    least.saturating_add_unsigned(key.below(0, span.saturating_add(1)))
}

/// The texts of a state: dates, or all others.
fn texts(state: &State, dates: bool) -> Vec<&str> {
    let records = state.tables.iter().flat_map(|table| table.values());
    let values = records.flat_map(|record| record.iter());
    let texts = state
        .values
        .iter()
        .chain(values)
        .filter_map(|value| match value {
            Value::Text(text) => Some(&**text),
            _ => None,
        });
    texts
        .filter(|text| date::parse(text).is_some() == dates)
        .collect()
}
