//! Arguments that a tool's schema allows, drawn from a seed. Some are values that scenarios pass under the same name,
//! others are made from the schema, the limits of its ranges included.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use rlf_plugins::seed;

/// Maximum depth of a generated value.
const MAX_DEPTH: usize = 12;

pub(super) struct Generator<'a> {
    schema: &'a Value,
    seen: &'a BTreeMap<String, Vec<Value>>,
    name: &'a str,
    drawn: u64,
}

impl<'a> Generator<'a> {
    pub(super) fn new(
        schema: &'a Value,
        seen: &'a BTreeMap<String, Vec<Value>>,
        name: &'a str,
    ) -> Self {
        Self {
            schema,
            seen,
            name,
            drawn: 0,
        }
    }

    /// Draws the next arguments. They fit the schema unless it uses keywords that are not read here.
    pub(super) fn draw(&mut self) -> Value {
        self.object(self.schema, MAX_DEPTH)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.drawn += 1;
        seed::derive(self.drawn, "generate", &[self.name]) % end.max(1)
    }

    fn object(&mut self, schema: &Value, depth: usize) -> Value {
        let mut object = Map::new();
        let required: Vec<&str> = schema["required"]
            .as_array()
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let Some(properties) = schema["properties"].as_object() else {
            return Value::Object(object);
        };
        for (name, property) in properties {
            if !required.contains(&name.as_str()) && self.below(2) == 0 {
                continue;
            }
            let value = match self.seen.get(name) {
                Some(values) if self.below(3) > 0 => {
                    let at = self.below(values.len() as u64) as usize;
                    values[at].clone()
                }
                _ => self.value(property, depth),
            };
            object.insert(name.clone(), value);
        }
        Value::Object(object)
    }

    fn value(&mut self, schema: &Value, depth: usize) -> Value {
        let schema = self.resolve(schema);
        if let Some(constant) = schema.get("const") {
            return constant.clone();
        }
        for key in ["enum", "examples"] {
            if let Some(values) = schema[key].as_array().filter(|values| !values.is_empty()) {
                return values[self.below(values.len() as u64) as usize].clone();
            }
        }
        if depth == 0 {
            return Value::Null;
        }
        for key in ["anyOf", "oneOf"] {
            if let Some(choices) = schema[key].as_array().filter(|choices| !choices.is_empty()) {
                let choice = &choices[self.below(choices.len() as u64) as usize];
                return self.value(choice, depth - 1);
            }
        }
        let kind = match &schema["type"] {
            Value::Array(kinds) if !kinds.is_empty() => {
                &kinds[self.below(kinds.len() as u64) as usize]
            }
            kind => kind,
        };
        match kind.as_str() {
            Some("boolean") => json!(self.below(2) == 1),
            Some("integer") => self.integer(schema),
            Some("number") => self.number(schema),
            Some("array") => {
                let least = schema["minItems"].as_u64().unwrap_or(0);
                let count = least + self.below(3);
                (0..count.min(8))
                    .map(|_| self.value(&schema["items"], depth - 1))
                    .collect()
            }
            Some("object") => self.object(schema, depth - 1),
            Some("null") => Value::Null,
            _ => self.text(schema),
        }
    }

    /// The target of a schema's reference within the tool's own schema.
    fn resolve<'s>(&self, schema: &'s Value) -> &'s Value
    where
        'a: 's,
    {
        let root: &'s Value = self.schema;
        schema["$ref"]
            .as_str()
            .and_then(|reference| root.pointer(reference.strip_prefix('#')?))
            .unwrap_or(schema)
    }

    fn integer(&mut self, schema: &Value) -> Value {
        let bound = |inclusive: &str, exclusive: &str, step: i64| {
            schema[inclusive]
                .as_i64()
                .or_else(|| schema[exclusive].as_i64().map(|value| value + step))
        };
        let least = bound("minimum", "exclusiveMinimum", 1);
        let most = bound("maximum", "exclusiveMaximum", -1);
        let (least, most) = match (least, most) {
            (Some(least), Some(most)) => (least, most.max(least)),
            (Some(least), None) => (least, least.saturating_add(20)),
            (None, Some(most)) => (most.saturating_sub(20), most),
            (None, None) => (-3, 20),
        };
        let span = most.abs_diff(least).saturating_add(1);
        json!(match self.below(4) {
            0 => least,
            1 => most,
            _ => least.saturating_add_unsigned(self.below(span)),
        })
    }

    fn number(&mut self, schema: &Value) -> Value {
        let least = schema["minimum"]
            .as_f64()
            .or(schema["exclusiveMinimum"].as_f64().map(|v| v + 0.5));
        let most = schema["maximum"]
            .as_f64()
            .or(schema["exclusiveMaximum"].as_f64().map(|v| v - 0.5));
        let least = least.unwrap_or_else(|| most.map_or(-2.5, |most| most - 50.0));
        let most = most.unwrap_or(least + 50.0).max(least);
        let share = self.below(1_001) as f64 / 1_000.0;
        json!(least + (most - least) * share)
    }

    fn text(&mut self, schema: &Value) -> Value {
        const TEXTS: [&str; 7] = [
            "a",
            "one two",
            "A-1",
            "2024-05-01",
            "\u{fc}n\u{ef}c\u{f6}de \u{1f600}",
            "",
            "x; drop",
        ];
        let least = schema["minLength"].as_u64().unwrap_or(0) as usize;
        let most = schema["maxLength"].as_u64().unwrap_or(200) as usize;
        let text = TEXTS[self.below(TEXTS.len() as u64) as usize];
        let padded = text.chars().chain(std::iter::repeat('x'));
        let length = text
            .chars()
            .count()
            .clamp(least.min(1_000), most.clamp(least.min(1_000), 1_000));
        json!(padded.take(length).collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_drawn_fits_the_schema_and_is_the_same_every_time() {
        let schema = json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "minLength": 2, "maxLength": 4},
                "count": {"type": "integer", "minimum": 1, "exclusiveMaximum": 5},
                "share": {"type": "number", "minimum": 0, "maximum": 1},
                "kind": {"enum": ["a", "b"]},
                "tags": {"type": "array", "items": {"$ref": "#/$defs/tag"}, "minItems": 1},
                "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "nested": {"type": "object", "properties": {"deep": {"type": "boolean"}}, "required": ["deep"]},
            },
            "required": ["name", "count", "share", "kind", "tags", "note", "nested"],
            "$defs": {"tag": {"const": "t"}},
        });
        let validator = jsonschema::validator_for(&schema).unwrap();
        let seen = BTreeMap::from([("kind".to_owned(), vec![json!("a")])]);
        let draw = || {
            let mut generator = Generator::new(&schema, &seen, "tool");
            (0..200).map(|_| generator.draw()).collect::<Vec<Value>>()
        };
        let drawn = draw();
        for arguments in &drawn {
            assert!(validator.is_valid(arguments), "{arguments}");
        }
        assert_eq!(drawn, draw());
        let counts: std::collections::BTreeSet<_> = drawn
            .iter()
            .filter_map(|arguments| arguments["count"].as_i64())
            .collect();
        assert_eq!(counts, [1, 2, 3, 4].into());
    }
}
