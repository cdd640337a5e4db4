//! The values in a model's reply.

use rlf_plugin::model::Answer;
use rlf_plugin::serde_json::{Map, Value};
use with_model::{cut, object};

use crate::fields::Fields;

/// Maximum number of characters of a list of names that the model made up.
const MAX_NAMES_CHARS: usize = 200;

/// Reads one value for each field, in the caller's order. An error says to the model what was wrong with its reply.
pub(crate) fn read(answer: &Answer, fields: &Fields) -> Result<Map<String, Value>, String> {
    let mut given = object(answer)?;
    let mut values = Map::new();
    let (mut missing, mut nested) = (Vec::new(), Vec::new());
    for name in fields.names() {
        match given.shift_remove(name).map(value) {
            Some(Some(value)) => _ = values.insert(name.to_owned(), value),
            Some(None) => nested.push(name),
            None => missing.push(name),
        }
    }
    let unknown: Vec<&str> = given.keys().map(String::as_str).collect();
    let mut wrong = Vec::new();
    if !missing.is_empty() {
        wrong.push(format!("it lacks the fields {}", missing.join(", ")));
    }
    if !unknown.is_empty() {
        let names = cut(&unknown.join(", "), MAX_NAMES_CHARS);
        wrong.push(format!("it has fields that were not asked for: {names}"));
    }
    if !nested.is_empty() {
        let names = nested.join(", ");
        wrong.push(format!(
            "these values are not a string, number, boolean, list of such, or null: {names}"
        ));
    }
    if wrong.is_empty() {
        Ok(values)
    } else {
        Err(wrong.join("; "))
    }
}

/// The value as callers get it, or `None` if its form is not allowed. Blank strings say nothing: they become null, and
/// lists lose them.
fn value(value: Value) -> Option<Value> {
    let blank = |value: &Value| value.as_str().is_some_and(|text| text.trim().is_empty());
    match value {
        Value::Object(_) => None,
        Value::Array(mut items) => {
            let nested = |item: &Value| item.is_array() || item.is_object() || item.is_null();
            if items.iter().any(nested) {
                return None;
            }
            items.retain(|item| !blank(item));
            Some(Value::Array(items))
        }
        text if blank(&text) => Some(Value::Null),
        plain => Some(plain),
    }
}
