//! Values that a user could name: taken from the state to find things, and from another state of the same kind to make
//! new ones.

use std::collections::BTreeMap;

use rlf_specification::date;
use serde_json::{Map, Value, json};

use crate::graph::{Input, Tool, ValueType};
use crate::sampling::Draws;
use crate::tasks::suite::Suite;

/// Texts of users for fields of which no state has a text.
const NOTES: [&str; 20] = [
    "call back on Friday",
    "prefers the morning",
    "waiting for an answer",
    "handle with care",
    "agreed by telephone",
    "asked for a receipt",
    "ring the bell twice",
    "needs a larger one",
    "arrives a little late",
    "paid in cash last time",
    "speaks French",
    "has moved house",
    "new since spring",
    "wants a quiet place",
    "look at the back door",
    "ask for the manager",
    "nobody was at home",
    "keep it for Monday",
    "comes by bicycle",
    "checked and in order",
];

/// The largest whole number that a user names if nothing else is known.
const LARGE: i64 = 40;

/// Values by the names of their fields.
#[derive(Debug, Clone, Default)]
struct Known(BTreeMap<String, Vec<Value>>);

impl Known {
    fn learn(&mut self, value: &Value) {
        match value {
            Value::Object(fields) => {
                for (name, value) in fields {
                    match value {
                        Value::Object(entries) => {
                            // The keys of a collection are values too: names of things on a shelf.
                            for (key, _) in entries.iter().filter(|(_, one)| one.is_object()) {
                                self.keep(name, &json!(key));
                            }
                            self.learn(value);
                        }
                        Value::Array(items) => items.iter().for_each(|item| self.keep(name, item)),
                        scalar => self.keep(name, scalar),
                    }
                }
            }
            Value::Array(items) => items.iter().for_each(|item| self.learn(item)),
            _ => {}
        }
    }

    fn keep(&mut self, name: &str, value: &Value) {
        if value.is_null() || value.is_object() || value.is_array() {
            return self.learn(value);
        }
        let kept = self.0.entry(name.to_owned()).or_default();
        if !kept.contains(value) {
            kept.push(value.clone());
        }
    }

    fn named(&self, name: &str) -> &[Value] {
        self.0.get(name).map_or(&[], Vec::as_slice)
    }
}

/// The values that users know in the environments of a task.
#[derive(Debug, Default)]
pub(super) struct Values {
    /// The initial state.
    here: Known,
    /// Another state of the same scenarios.
    elsewhere: Known,
}

impl Values {
    /// Collects the values of the initial states (`here`), and those of other states of the same scenarios
    /// (`elsewhere`).
    pub(super) fn new(here: &Map<String, Value>, elsewhere: &Map<String, Value>) -> Self {
        let mut values = Self::default();
        here.values().for_each(|state| values.here.learn(state));
        elsewhere
            .values()
            .for_each(|state| values.elsewhere.learn(state));
        values
    }

    /// A value for an input of a tool. None if no user could name one.
    pub(super) fn propose(
        &self,
        suite: &Suite,
        tool: &Tool,
        input: &Input,
        draws: &mut Draws,
    ) -> Option<Value> {
        let full_name = tool.full_name();
        if let Some(field) = suite.vocabulary(&full_name, &input.name)
            && let Some(known) = pick(self.here.named(field), draws)
        {
            return Some(known.clone());
        }
        let schema = suite.parameter(&full_name, &input.name);
        let read_only = suite.is_read_only(&full_name);
        self.value(tool, &input.name, &input.kind, schema, read_only, draws)
    }

    fn value(
        &self,
        tool: &Tool,
        name: &str,
        kind: &ValueType,
        schema: &Value,
        read_only: bool,
        draws: &mut Draws,
    ) -> Option<Value> {
        match kind {
            ValueType::Text if read_only => self.searched(tool, name, draws),
            ValueType::Text => Some(self.written(name, draws)),
            ValueType::Enumeration(values) => pick(values, draws).map(|value| json!(value)),
            ValueType::Boolean => Some(json!(draws.chance(0.5))),
            ValueType::Date => Some(self.day(name, read_only, draws)),
            ValueType::Integer => Some(self.integer(name, schema, draws)),
            ValueType::Number => Some(self.number(name, schema, draws)),
            ValueType::List(item) => {
                let count = 1 + draws.index(2);
                let mut items: Vec<Value> = Vec::new();
                for _ in 0..count {
                    let item = self.value(tool, name, item, &schema["items"], read_only, draws)?;
                    if !items.contains(&item) {
                        items.push(item);
                    }
                }
                Some(Value::Array(items))
            }
            ValueType::Key(_) | ValueType::Object | ValueType::Any => None,
        }
    }

    /// A text to search for: one that a result of the tool can contain, or a word of it.
    fn searched(&self, tool: &Tool, name: &str, draws: &mut Draws) -> Option<Value> {
        let texts = tool
            .outputs
            .iter()
            .filter(|output| output.kind == ValueType::Text)
            .map(|output| output.name.as_str());
        let mut pools: Vec<&[Value]> = texts.map(|field| self.here.named(field)).collect();
        pools.push(self.here.named(name));
        pools.retain(|pool| !pool.is_empty());
        // The first text field of a result is the name of the thing, more often than not.
        let pool = if draws.chance(0.7) {
            pools.first().copied()
        } else {
            draws.pick(&pools)
        };
        let text = pick(pool?, draws)?.as_str()?.to_owned();
        let words: Vec<&str> = text
            .split_whitespace()
            .filter(|word| word.len() > 3 && word.chars().all(char::is_alphanumeric))
            .collect();
        Some(match draws.pick(&words) {
            Some(word) if draws.chance(0.2) => json!(word),
            _ => json!(text),
        })
    }

    /// A text that the initial state does not have.
    fn written(&self, name: &str, draws: &mut Draws) -> Value {
        let plain = name.strip_prefix("new_").unwrap_or(name);
        let taken = self.here.named(plain);
        let several = format!("{plain}s");
        let new: Vec<&Value> = [plain, several.as_str()]
            .iter()
            .flat_map(|field| self.elsewhere.named(field))
            .filter(|value| value.is_string() && !taken.contains(value))
            .collect();
        match draws.pick(&new) {
            Some(value) => value.clone(),
            None => json!(NOTES[draws.index(NOTES.len())]),
        }
    }

    fn day(&self, name: &str, read_only: bool, draws: &mut Draws) -> Value {
        let plain = name.strip_prefix("new_").unwrap_or(name);
        let known = self.here.named(plain);
        if let Some(day) = pick(known, draws)
            && draws.chance(if read_only { 0.9 } else { 0.2 })
        {
            return day.clone();
        }
        let today = self.here.named("today").first().and_then(Value::as_str);
        let today = today.and_then(date::parse).unwrap_or(19_800);
        let day = today + 1 + draws.index(21) as i64;
        json!(date::format(day).unwrap_or_else(|| "2024-03-15".to_owned()))
    }

    fn integer(&self, name: &str, schema: &Value, draws: &mut Draws) -> Value {
        let least = schema["minimum"].as_i64().unwrap_or(1);
        let most = schema["maximum"].as_i64().unwrap_or(i64::MAX).max(least);
        let plain = name.strip_prefix("new_").unwrap_or(name);
        let fits: Vec<i64> = self
            .elsewhere
            .named(plain)
            .iter()
            .filter_map(Value::as_i64)
            .filter(|value| (least..=most).contains(value))
            .collect();
        if let Some(value) = draws.pick(&fits)
            && draws.chance(0.6)
        {
            return json!(value);
        }
        let near = if draws.chance(0.6) { 6 } else { LARGE };
        let span = most.saturating_sub(least).min(near);
        json!(least + draws.index(span as usize + 1) as i64)
    }

    fn number(&self, name: &str, schema: &Value, draws: &mut Draws) -> Value {
        let least = schema["minimum"].as_f64().unwrap_or(0.0);
        let most = schema["maximum"].as_f64().unwrap_or(f64::MAX).max(least);
        let fits: Vec<f64> = self
            .elsewhere
            .named(name)
            .iter()
            .filter_map(Value::as_f64)
            .filter(|value| (least..=most).contains(value))
            .collect();
        if let Some(value) = draws.pick(&fits)
            && draws.chance(0.6)
        {
            return json!(value);
        }
        let steps = ((most - least).min(30.0) * 2.0) as usize;
        let value = least + 0.5 * draws.index(steps + 1) as f64;
        json!(value.min(most))
    }
}

fn pick<'a, T>(items: &'a [T], draws: &mut Draws) -> Option<&'a T> {
    (!items.is_empty()).then(|| &items[draws.index(items.len())])
}
