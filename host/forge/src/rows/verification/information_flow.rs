//! Every argument of a gold call has to be known: the question says it, an earlier result says it, or the schema offers it.

use serde_json::Value;

use crate::rows::matching::plain;
use crate::rows::rejection::{Check, Finding};
use crate::rows::row::Row;

/// Checks all gold calls. `results` are their texts, in order.
pub(super) fn check(row: &Row, results: &[&str]) -> Vec<Finding> {
    let mut known = Known::default();
    known.add(&row.question);
    let mut findings = Vec::new();
    for (index, call) in row.calls.iter().enumerate() {
        if let Some(tool) = row.tool(&call.tool) {
            for (name, value) in &call.arguments {
                let schema = &tool.parameters["properties"][name];
                known.check(value, schema, name, &mut |place, value| {
                    let reason = format!(
                        "nobody can know {place} = {value} of gold call {} to `{}`: neither the question nor an earlier result says it",
                        index + 1,
                        call.tool
                    );
                    findings.push(Finding::new(Check::InformationFlow, reason));
                });
            }
        }
        if let Some(result) = results.get(index) {
            known.add(result);
        }
    }
    findings
}

/// The texts and numbers that were said so far.
#[derive(Default)]
struct Known {
    texts: Vec<String>,
    numbers: Vec<f64>,
}

impl Known {
    fn add(&mut self, text: &str) {
        // Inside JSON, a text has escapes.
        let text = match serde_json::from_str::<Value>(text) {
            Ok(value) if !value.is_number() => spoken(&value),
            _ => text.to_owned(),
        };
        self.numbers.extend(numbers(&text));
        self.texts.push(plain(&text));
    }

    /// Calls `unknown` with the place of every value that is not known.
    fn check(
        &self,
        value: &Value,
        schema: &Value,
        place: &str,
        unknown: &mut impl FnMut(&str, &Value),
    ) {
        let offered = schema["enum"]
            .as_array()
            .is_some_and(|values| values.contains(value))
            || schema.get("default") == Some(value)
            || schema.get("const") == Some(value);
        if offered {
            return;
        }
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    let schema = &schema["properties"][name];
                    self.check(value, schema, &format!("{place}.{name}"), unknown);
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.check(item, &schema["items"], place, unknown);
                }
            }
            // A schema offers both values.
            Value::Bool(_) | Value::Null => {}
            Value::Number(number) => {
                let number = number.as_f64();
                if !self.numbers.iter().any(|known| Some(*known) == number) {
                    unknown(place, value);
                }
            }
            Value::String(text) => {
                let sought = plain(text);
                if sought.is_empty() || !self.texts.iter().any(|known| known.contains(&sought)) {
                    unknown(place, value);
                }
            }
        }
    }
}

/// All texts and numbers in a JSON value.
fn spoken(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(spoken).collect::<Vec<_>>().join("\n"),
        Value::Object(fields) => fields.values().map(spoken).collect::<Vec<_>>().join("\n"),
        other => other.to_string(),
    }
}

/// The numbers in a text, with or without thousands commas.
fn numbers(text: &str) -> Vec<f64> {
    let is_part = |one: char| one.is_ascii_digit() || one == '.' || one == ',' || one == '-';
    text.split(|one: char| !is_part(one))
        .filter_map(|word| {
            let plain = word.replace(',', "");
            plain.trim_matches('.').parse().ok()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::numbers;

    #[test]
    fn numbers_are_found_in_sentences() {
        assert_eq!(numbers("The result is 1,024."), [1024.0]);
        assert_eq!(numbers("{\"result\": 7.5, \"from\": -3}"), [7.5, -3.0]);
        assert!(numbers("2019-12-31").is_empty());
    }
}
