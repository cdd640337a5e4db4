//! Arguments for a tool: valid ones from its schema, the state and earlier results; boundary and erroneous ones.

use std::collections::BTreeMap;

use rlf_random::Key;
use rlf_specification::{date, walk};
use serde_json::{Map, Value, json};

/// Maximum number of values kept for one name.
const MAX_KEPT: usize = 200;

/// Values of the state and of results by the name of their field, and all texts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Known {
    by_name: BTreeMap<String, Vec<Value>>,
    texts: Vec<String>,
}

impl Known {
    /// Adds all values inside a state or a result.
    pub(crate) fn learn(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    match value {
                        Value::Object(_) => self.text(name),
                        Value::Array(_) => {}
                        value => self.keep(name, value),
                    }
                    self.learn(value);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.learn(item)),
            Value::String(text) => self.text(text),
            _ => {}
        }
    }

    fn keep(&mut self, name: &str, value: &Value) {
        let kept = self.by_name.entry(name.to_owned()).or_default();
        if kept.len() < MAX_KEPT && !kept.contains(value) {
            kept.push(value.clone());
        }
    }

    fn text(&mut self, text: &str) {
        if self.texts.len() < 4 * MAX_KEPT && !self.texts.iter().any(|known| known == text) {
            self.texts.push(text.to_owned());
        }
    }

    /// Texts of at least `least` characters that can identify something: names and keys. A single word in lower case is
    /// left out, because it is a collection, a status or an ordinary word.
    pub(super) fn identifying_texts(&self, least: usize) -> impl Iterator<Item = &str> {
        let texts = self.texts.iter().map(String::as_str);
        texts.filter(move |text| {
            let is_word = text.chars().all(|c| c.is_lowercase() || c == '_');
            text.chars().count() >= least && !is_word
        })
    }
}

fn pick<T>(items: &[T], key: Key) -> Option<&T> {
    items.get(key.below(0, items.len().max(1) as u64) as usize)
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema["properties"].as_object().into_iter().flatten()
}

fn is_required(schema: &Value, name: &str) -> bool {
    let required = schema["required"].as_array();
    required.is_some_and(|names| names.iter().any(|one| one == name))
}

/// Arguments that fit the schema, likely to succeed.
pub(crate) fn valid(schema: &Value, known: &Known, key: Key) -> Map<String, Value> {
    let mut arguments = Map::new();
    for (index, (name, property)) in properties(schema).enumerate() {
        let key = key.at(index as u64);
        if is_required(schema, name) || key.below(0, 2) == 0 {
            arguments.insert(
                name.clone(),
                value(name, property, schema, known, key.at(1), 6),
            );
        }
    }
    arguments
}

fn value(
    name: &str,
    property: &Value,
    root: &Value,
    known: &Known,
    key: Key,
    depth: usize,
) -> Value {
    let property = property["$ref"]
        .as_str()
        .and_then(|reference| root.pointer(reference.strip_prefix('#')?))
        .unwrap_or(property);
    if let Some(values) = property["enum"].as_array() {
        return pick(values, key).cloned().unwrap_or(Value::Null);
    }
    if let Some(choices) = property["anyOf"].as_array()
        && depth > 0
    {
        return match pick(choices, key) {
            Some(choice) => value(name, choice, root, known, key.at(1), depth - 1),
            None => Value::Null,
        };
    }
    let kind = match &property["type"] {
        Value::Array(kinds) => pick(kinds, key.at(2)).and_then(Value::as_str),
        kind => kind.as_str(),
    };
    let same_name = known.by_name.get(name).map_or(&[][..], Vec::as_slice);
    match kind {
        Some("boolean") => json!(key.below(0, 2) == 1),
        Some("integer") => integer(property, same_name, key),
        Some("number") => number(property, same_name, key),
        Some("array") if depth > 0 => (0..key.below(0, 4))
            .map(|index| {
                value(
                    name,
                    &property["items"],
                    root,
                    known,
                    key.at(index + 1),
                    depth - 1,
                )
            })
            .collect(),
        Some("object") if depth > 0 => Value::Object(valid(property, known, key)),
        Some("array") => json!([]),
        Some("object") => json!({}),
        Some("null") => Value::Null,
        _ => text(property, same_name, known, key),
    }
}

fn text(property: &Value, same_name: &[Value], known: &Known, key: Key) -> Value {
    let texts: Vec<&str> = same_name.iter().filter_map(Value::as_str).collect();
    let is_date =
        property["format"] == "date" || texts.iter().any(|text| date::parse(text).is_some());
    if is_date {
        let dates: Vec<i64> = known
            .texts
            .iter()
            .filter_map(|text| date::parse(text))
            .collect();
        let day = pick(&dates, key.at(1)).copied().unwrap_or(19_800);
        let day = day + key.below(2, 15) as i64 - 4;
        return json!(date::format(day).unwrap_or_else(|| "2024-03-18".to_owned()));
    }
    let drawn = match key.below(3, 10) {
        0 => pick(&["", "a", "x y", "X-0"], key.at(3)).copied(),
        1 | 2 => None,
        _ => pick(&texts, key.at(4)).copied(),
    };
    let drawn = drawn.or_else(|| pick(&known.texts, key.at(5)).map(String::as_str));
    let drawn = drawn.unwrap_or("a");
    // A part of a text finds what a whole one does not, and a new name is not taken.
    match key.below(6, 12) {
        0 => json!(drawn.chars().take(3).collect::<String>()),
        1 => json!(format!("{drawn} {}", key.below(7, 1_000))),
        _ => json!(drawn),
    }
}

/// The limits of a number in a schema.
fn limits(property: &Value) -> (Option<f64>, Option<f64>) {
    (property["minimum"].as_f64(), property["maximum"].as_f64())
}

fn integer(property: &Value, same_name: &[Value], key: Key) -> Value {
    let least = property["minimum"].as_i64();
    let most = property["maximum"].as_i64();
    if key.below(0, 3) == 0
        && let Some(number) = pick(same_name, key.at(1)).and_then(Value::as_i64)
        && least.is_none_or(|least| number >= least)
        && most.is_none_or(|most| number <= most)
    {
        return json!(number);
    }
    json!(walk::integer(least, most, key.at(2)))
}

fn number(property: &Value, same_name: &[Value], key: Key) -> Value {
    let (least, most) = limits(property);
    if key.below(0, 3) == 0
        && let Some(number) = pick(same_name, key.at(1)).and_then(Value::as_f64)
        && least.is_none_or(|least| number >= least)
        && most.is_none_or(|most| number <= most)
    {
        return json!(number);
    }
    let least = least.unwrap_or_else(|| most.map_or(-2.0, |most| most - 100.0));
    let most = most.unwrap_or(least + 100.0).max(least);
    let drawn = least + key.uniform(2) * (most - least);
    json!(((drawn * 100.0).round() / 100.0).clamp(least, most))
}

/// Arguments at the limits: the minimum and the maximum, empty texts, keys that do not exist.
pub(super) fn boundary(schema: &Value, known: &Known, key: Key) -> Vec<Map<String, Value>> {
    let mut all = Vec::new();
    for (name, property) in properties(schema) {
        let mut with = |value: Value| {
            let mut arguments = valid(schema, known, key.named(name).at(all.len() as u64));
            arguments.insert(name.clone(), value);
            all.push(arguments);
        };
        match property["type"].as_str() {
            Some("string") if property.get("enum").is_none() => {
                with(json!(""));
                with(json!("X-0"));
                with(json!("\u{fc} \u{1f600}"));
            }
            Some("integer" | "number") => {
                for limit in ["minimum", "maximum"] {
                    if let Some(limit) = property.get(limit) {
                        with(limit.clone());
                    }
                }
                if property.get("maximum").is_none() {
                    with(json!(9_007_199_254_740_991i64));
                }
            }
            Some("array") => with(json!([])),
            _ => {}
        }
    }
    all
}

/// Arguments that do not fit the schema.
pub(super) fn erroneous(schema: &Value, known: &Known, key: Key) -> Vec<Map<String, Value>> {
    let mut all = Vec::new();
    for (name, property) in properties(schema) {
        let base = || valid(schema, known, key.named(name));
        let mut with = |value: Value| {
            let mut arguments = base();
            arguments.insert(name.clone(), value);
            all.push(arguments);
        };
        // No tool takes this for anything else, not even one that converts.
        if property["type"].is_string() && property["type"] != "object" {
            with(json!({ "no": [{ "value": null }] }));
        }
        if property.get("enum").is_some() {
            with(json!("no such value"));
        }
        let (least, most) = limits(property);
        if let Some(least) = least {
            with(json!(least - 1.0));
        }
        if let Some(most) = most {
            with(json!(most + 1.0));
        }
        if is_required(schema, name) {
            let mut arguments = base();
            arguments.shift_remove(name);
            all.push(arguments);
        }
    }
    all
}
