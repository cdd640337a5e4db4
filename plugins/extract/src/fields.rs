//! The fields that the caller asks for.

use std::ops::RangeInclusive;

use rlf_plugin::serde_json::{Map, Value, json};

/// The key of the result that lists fields whose values are not in the text. No field can have this name.
pub(crate) const NOT_FOUND: &str = "not_found_in_text";

const COUNT: RangeInclusive<usize> = 1..=20;
const NAME_CHARS: RangeInclusive<usize> = 1..=64;
const DESCRIPTION_CHARS: RangeInclusive<usize> = 1..=500;

/// Checked fields: descriptions by name, in the caller's order.
pub(crate) struct Fields<'a>(&'a Map<String, Value>);

impl<'a> Fields<'a> {
    /// Checks the argument `fields`. An error says to the caller how to mend it.
    pub(crate) fn read(fields: &'a Map<String, Value>) -> Result<Self, String> {
        if !COUNT.contains(&fields.len()) {
            return Err(format!(
                "`fields` has {} to {} fields, not {}",
                COUNT.start(),
                COUNT.end(),
                fields.len()
            ));
        }
        for (name, description) in fields {
            if !NAME_CHARS.contains(&name.chars().count()) {
                return Err(format!(
                    "the name of a field has {} to {} characters",
                    NAME_CHARS.start(),
                    NAME_CHARS.end()
                ));
            }
            if name == NOT_FOUND {
                return Err(format!(
                    "the name `{NOT_FOUND}` is reserved; give this field another one"
                ));
            }
            let length = description.as_str().map(|text| text.trim().chars().count());
            if !length.is_some_and(|length| DESCRIPTION_CHARS.contains(&length)) {
                return Err(format!(
                    "the description of `{name}` is a text of {} to {} characters: say what to find",
                    DESCRIPTION_CHARS.start(),
                    DESCRIPTION_CHARS.end()
                ));
            }
        }
        Ok(Self(fields))
    }

    /// The names, in the caller's order.
    pub(crate) fn names(&self) -> impl Iterator<Item = &'a str> {
        self.0.keys().map(String::as_str)
    }

    /// The JSON Schema of the model's reply: a value for each field, and nothing else.
    pub(crate) fn schema(&self) -> Value {
        let plain = ["string", "number", "boolean"];
        let value = json!({
            "type": ["string", "number", "boolean", "null", "array"],
            "items": { "type": plain },
        });
        let properties: Map<String, Value> = self
            .names()
            .map(|name| (name.to_owned(), value.clone()))
            .collect();
        let names: Vec<&str> = self.names().collect();
        json!({
            "type": "object",
            "properties": properties,
            "required": names,
            "additionalProperties": false,
        })
    }

    /// The JSON object from names to descriptions.
    pub(crate) fn to_json(&self) -> String {
        Value::Object(self.0.clone()).to_string()
    }
}
