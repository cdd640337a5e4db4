//! Arguments for random walks: mostly valid, from the state and the schema.

use rlf_random::Key;
use serde_json::{Map, Value as Json, json};

use crate::date;
use crate::model::{Operation, Parameter, Type};
use crate::program::Program;
use crate::state::State;

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
            let texts = texts(&program.state_json(state), is_date);
            let drawn = match texts.get(key.below(0, texts.len().max(1) as u64) as usize) {
                Some(text) if key.below(1, 4) > 0 => text.clone(),
                _ if is_date => "2024-05-01".to_owned(),
                _ => ["", "a", "Ada Byron", " e "][key.below(2, 4) as usize].to_owned(),
            };
            if is_date {
                let day = date::parse(&drawn).unwrap_or(0) + key.below(3, 20) as i64 - 5;
                return json!(date::format(day).unwrap_or(drawn));
            }
            json!(drawn)
        }
        Type::Integer => {
            let least = parameter
                .minimum
                .as_ref()
                .and_then(serde_json::Number::as_i64);
            let most = parameter
                .maximum
                .as_ref()
                .and_then(serde_json::Number::as_i64);
            let least = least.unwrap_or(-2);
            let most = most.unwrap_or(least.saturating_add(1_000)).max(least);
            let span = most.abs_diff(least);
            // Small ones are more often possible.
            let span = if key.below(1, 3) > 0 {
                span.min(10)
            } else {
                span
            };
            json!(least.saturating_add_unsigned(key.below(0, span.saturating_add(1))))
        }
        Type::Number => {
            let least = parameter
                .minimum
                .as_ref()
                .and_then(serde_json::Number::as_f64)
                .unwrap_or(0.0);
            let most = parameter
                .maximum
                .as_ref()
                .and_then(serde_json::Number::as_f64);
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

/// The texts of a state: dates, or all others.
fn texts(state: &Json, dates: bool) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![state];
    while let Some(next) = open.pop() {
        match next {
            Json::String(text) if date::parse(text).is_some() == dates => found.push(text.clone()),
            Json::Array(items) => open.extend(items),
            Json::Object(fields) => open.extend(fields.values()),
            _ => {}
        }
    }
    found
}
