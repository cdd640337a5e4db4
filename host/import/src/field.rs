//! Reads fields of a row, with errors that name the field.

use serde_json::{Map, Value};

use crate::error::RowError;

pub(crate) type Row = Map<String, Value>;

/// A field that must exist and must not be null.
pub(crate) fn needed<'r>(row: &'r Row, name: &str) -> Result<&'r Value, RowError> {
    row.get(name)
        .filter(|value| !value.is_null())
        .ok_or_else(|| RowError::missing(name))
}

/// A field that must be text.
pub(crate) fn text<'r>(row: &'r Row, name: &str) -> Result<&'r str, RowError> {
    needed(row, name)?
        .as_str()
        .ok_or_else(|| RowError::field(name, "it must be text"))
}

/// A field that must be text if it exists.
pub(crate) fn optional_text<'r>(row: &'r Row, name: &str) -> Result<Option<&'r str>, RowError> {
    match row.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(RowError::field(name, "it must be text")),
    }
}

/// A field that must be a list.
pub(crate) fn list<'r>(row: &'r Row, name: &str) -> Result<&'r [Value], RowError> {
    needed(row, name)?
        .as_array()
        .map(Vec::as_slice)
        .ok_or_else(|| RowError::field(name, "it must be a list"))
}

/// A value that some data sets write as JSON in a text. `name` is the field's name, for errors.
pub(crate) fn unpacked(value: &Value, name: &str) -> Result<Value, RowError> {
    match value {
        Value::String(text) => rlf_json::from_str(text)
            .map_err(|error| RowError::field(name, format!("the text in it is not JSON: {error}"))),
        other => Ok(other.clone()),
    }
}

/// An object, possibly written as JSON in a text.
pub(crate) fn object(value: &Value, name: &str) -> Result<Row, RowError> {
    match unpacked(value, name)? {
        Value::Object(members) => Ok(members),
        _ => Err(RowError::field(name, "it must be an object")),
    }
}

/// A list, possibly written as JSON in a text.
pub(crate) fn unpacked_list(value: &Value, name: &str) -> Result<Vec<Value>, RowError> {
    match unpacked(value, name)? {
        Value::Array(items) => Ok(items),
        _ => Err(RowError::field(name, "it must be a list")),
    }
}

/// A text or a number as text, for ids.
pub(crate) fn label(row: &Row, name: &str) -> Option<String> {
    match row.get(name)? {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// A text, or a number as text.
pub(crate) fn number_or_text(value: Option<&Value>) -> Option<String> {
    match value? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// True if a reference says something. An empty one would be met by every answer.
pub(crate) fn is_answerable(reference: &Value) -> bool {
    match reference {
        Value::Null => false,
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(items) => items.iter().any(is_answerable),
        Value::Object(fields) => fields.values().any(is_answerable),
        Value::Bool(_) | Value::Number(_) => true,
    }
}
