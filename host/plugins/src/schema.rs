//! The JSON Schema of a tool's arguments: written by a stranger, so bounded before it is compiled.
//!
//! Refused are schemas that are too large, too deep, refer outside themselves or to themselves, or
//! unfold into too many checks; and expressions that need backtracking. What is left validates any
//! arguments in time linear in their size, for all practical purposes.

use std::collections::HashMap;

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::Value;

/// Longest schema, in bytes of compact JSON.
pub const MAX_SCHEMA_BYTES: usize = 64 * 1024;
/// Deepest nesting of values inside a schema.
pub const MAX_SCHEMA_DEPTH: usize = 32;
/// Most values in a schema after every `$ref` is replaced by what it stands for.
pub const MAX_SCHEMA_NODES: usize = 20_000;
/// Largest compiled regular expression, in bytes.
pub const MAX_PATTERN_BYTES: usize = 1 << 20;

/// Why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// Not JSON at all.
    #[error("the schema is not JSON: {0}")]
    NotJson(String),
    /// The root is not `"type": "object"`.
    #[error("the schema's root must have \"type\": \"object\", because arguments are an object")]
    RootNotObject,
    /// Over [`MAX_SCHEMA_BYTES`].
    #[error("the schema has {0} bytes; at most {MAX_SCHEMA_BYTES} are allowed")]
    TooLong(usize),
    /// Over [`MAX_SCHEMA_DEPTH`].
    #[error("the schema is nested more than {MAX_SCHEMA_DEPTH} deep")]
    TooDeep,
    /// Over [`MAX_SCHEMA_NODES`].
    #[error(
        "the schema unfolds into more than {MAX_SCHEMA_NODES} values once every $ref is followed"
    )]
    TooManyNodes,
    /// A reference that leaves the schema, or one resolved by name at run time.
    #[error(
        "\"{keyword}\": \"{target}\" is not allowed; only \"$ref\": \"#/…\" into the same schema is"
    )]
    ForeignReference {
        /// The keyword, such as `$ref`.
        keyword: String,
        /// What it refers to.
        target: String,
    },
    /// A reference to nothing.
    #[error("\"$ref\": \"{0}\" refers to nothing in the schema")]
    DanglingReference(String),
    /// A reference that leads back to itself.
    #[error("\"$ref\": \"{0}\" leads back to itself; write the levels out")]
    CyclicReference(String),
    /// Not a valid schema, or an expression that the linear-time engine does not know.
    #[error("not a valid JSON Schema (2020-12), at {at}: {what}")]
    Invalid {
        /// JSON pointer into the schema; `/` is its root.
        at: String,
        /// What is wrong there.
        what: String,
    },
}

/// A schema that passed the bounds, ready to validate.
#[derive(Debug)]
pub struct ToolSchema {
    value: Value,
    validator: Validator,
}

impl ToolSchema {
    /// Checks and compiles a schema given as JSON text.
    pub fn parse(text: &str) -> Result<Self, SchemaError> {
        if text.len() > MAX_SCHEMA_BYTES {
            return Err(SchemaError::TooLong(text.len()));
        }
        let value =
            serde_json::from_str(text).map_err(|error| SchemaError::NotJson(error.to_string()))?;
        Self::new(value)
    }

    /// Checks and compiles a schema.
    pub fn new(value: Value) -> Result<Self, SchemaError> {
        if value.get("type") != Some(&Value::from("object")) {
            return Err(SchemaError::RootNotObject);
        }
        Bounds {
            root: &value,
            unfolded: HashMap::new(),
        }
        .nodes(&value, 0)?;
        let validator = jsonschema::options()
            .with_draft(Draft::Draft202012)
            .with_pattern_options(
                PatternOptions::regex()
                    .size_limit(MAX_PATTERN_BYTES)
                    .dfa_size_limit(MAX_PATTERN_BYTES),
            )
            .build(&value)
            .map_err(|error| {
                let at = error.instance_path().as_str();
                SchemaError::Invalid {
                    at: if at.is_empty() { "/".into() } else { at.into() },
                    what: error.to_string().chars().take(300).collect(),
                }
            })?;
        Ok(Self { value, validator })
    }

    /// The schema itself, key order as written.
    pub fn value(&self) -> &Value {
        &self.value
    }

    pub(crate) fn validator(&self) -> &Validator {
        &self.validator
    }
}

/// Counts the values of a schema with references followed, and refuses what would not end.
struct Bounds<'s> {
    root: &'s Value,
    /// Number of values behind each reference; `None` while it is being counted.
    unfolded: HashMap<&'s str, Option<usize>>,
}

impl<'s> Bounds<'s> {
    fn nodes(&mut self, value: &'s Value, depth: usize) -> Result<usize, SchemaError> {
        if depth > MAX_SCHEMA_DEPTH {
            return Err(SchemaError::TooDeep);
        }
        let mut count = 1_usize;
        match value {
            Value::Object(members) => {
                for (key, member) in members {
                    count += match (key.as_str(), member) {
                        ("$ref", Value::String(target)) => self.reference(target)?,
                        ("$dynamicRef" | "$recursiveRef" | "$id", Value::String(target)) => {
                            return Err(SchemaError::ForeignReference {
                                keyword: key.clone(),
                                target: target.clone(),
                            });
                        }
                        // Examples and constants are data, not schemas: a "$ref" in them is a word.
                        ("const" | "enum" | "default" | "examples", data) => {
                            Self::data(data, depth + 1)?
                        }
                        _ => self.nodes(member, depth + 1)?,
                    };
                    if count > MAX_SCHEMA_NODES {
                        return Err(SchemaError::TooManyNodes);
                    }
                }
            }
            Value::Array(items) => {
                for item in items {
                    count += self.nodes(item, depth + 1)?;
                    if count > MAX_SCHEMA_NODES {
                        return Err(SchemaError::TooManyNodes);
                    }
                }
            }
            _ => {}
        }
        Ok(count)
    }

    fn reference(&mut self, target: &'s str) -> Result<usize, SchemaError> {
        let Some(pointer) = target
            .strip_prefix('#')
            .filter(|p| p.is_empty() || p.starts_with('/'))
        else {
            return Err(SchemaError::ForeignReference {
                keyword: "$ref".into(),
                target: target.chars().take(120).collect(),
            });
        };
        match self.unfolded.get(pointer) {
            Some(Some(count)) => return Ok(*count),
            Some(None) => return Err(SchemaError::CyclicReference(target.into())),
            None => {}
        }
        let Some(referred) = self.root.pointer(pointer) else {
            return Err(SchemaError::DanglingReference(
                target.chars().take(120).collect(),
            ));
        };
        self.unfolded.insert(pointer, None);
        let count = self.nodes(referred, 0)?;
        self.unfolded.insert(pointer, Some(count));
        Ok(count)
    }

    fn data(value: &Value, depth: usize) -> Result<usize, SchemaError> {
        if depth > MAX_SCHEMA_DEPTH {
            return Err(SchemaError::TooDeep);
        }
        let members: Vec<&Value> = match value {
            Value::Object(members) => members.values().collect(),
            Value::Array(items) => items.iter().collect(),
            _ => Vec::new(),
        };
        members.into_iter().try_fold(
            1,
            |count, member| Ok(count + Self::data(member, depth + 1)?),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refusal(schema: Value) -> String {
        ToolSchema::new(schema).unwrap_err().to_string()
    }

    #[test]
    fn schemas_as_schemars_writes_them_are_taken() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Arguments",
            "type": "object",
            "properties": {
                "unit": { "$ref": "#/$defs/Unit" },
                "top_k": { "type": ["integer", "null"], "minimum": 1, "default": 3 },
                "$ref": { "type": "string", "description": "a property of that name" },
            },
            "required": ["unit"],
            "$defs": { "Unit": { "enum": ["km", "mi"] } },
        });
        let schema = ToolSchema::new(schema).unwrap();
        assert!(
            schema
                .validator()
                .is_valid(&json!({"unit": "km", "top_k": null}))
        );
        assert!(!schema.validator().is_valid(&json!({"unit": "m"})));
    }

    #[test]
    fn arguments_are_an_object() {
        let said =
            "the schema's root must have \"type\": \"object\", because arguments are an object";
        assert_eq!(refusal(json!({"type": "array"})), said);
        assert_eq!(refusal(json!({})), said);
        assert_eq!(refusal(json!(true)), said);
    }

    #[test]
    fn references_stay_inside_and_end() {
        let with = |target: &str| {
            json!({"type": "object", "properties": {"a": {"$ref": target}},
            "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}}})
        };
        assert_eq!(
            refusal(with("https://example.com/s.json")),
            "\"$ref\": \"https://example.com/s.json\" is not allowed; only \"$ref\": \"#/…\" into \
             the same schema is"
        );
        assert!(refusal(with("file:///etc/passwd")).contains("is not allowed"));
        assert!(refusal(with("#anchor")).contains("is not allowed"));
        assert_eq!(
            refusal(with("#/$defs/c")),
            "\"$ref\": \"#/$defs/c\" refers to nothing in the schema"
        );
        assert_eq!(
            refusal(with("#/$defs/a")),
            "\"$ref\": \"#/$defs/a\" leads back to itself; write the levels out"
        );
        assert!(refusal(with("#")).contains("leads back to itself"));
        let dynamic = json!({"type": "object", "properties": {"a": {"$dynamicRef": "#x"}}});
        assert!(refusal(dynamic).contains("$dynamicRef"));
    }

    #[test]
    fn a_schema_that_unfolds_without_measure_is_refused() {
        let mut defs = serde_json::Map::new();
        for level in 0..30 {
            let next = json!({"$ref": format!("#/$defs/l{}", level + 1)});
            defs.insert(format!("l{level}"), json!({"allOf": [next, next]}));
        }
        defs.insert("l30".into(), json!({"type": "string"}));
        let schema =
            json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/l0"}}, "$defs": defs});
        assert_eq!(
            ToolSchema::new(schema).unwrap_err(),
            SchemaError::TooManyNodes
        );
    }

    #[test]
    fn depth_and_length_are_bounded() {
        let mut deep = json!({"type": "string"});
        for _ in 0..40 {
            deep = json!({"items": deep});
        }
        assert_eq!(
            refusal(json!({"type": "object", "properties": {"a": deep}})),
            "the schema is nested more than 32 deep"
        );
        let mut data = json!(1);
        for _ in 0..40 {
            data = json!([data]);
        }
        assert_eq!(
            ToolSchema::new(json!({"type": "object", "properties": {"a": {"const": data}}}))
                .unwrap_err(),
            SchemaError::TooDeep
        );
        let text = format!(
            "{{\"type\":\"object\",\"title\":\"{}\"}}",
            "x".repeat(MAX_SCHEMA_BYTES)
        );
        assert!(matches!(
            ToolSchema::parse(&text),
            Err(SchemaError::TooLong(_))
        ));
        // serde_json stops at 128 levels, so a bomb of brackets is an error and not an overflow.
        let brackets = "[".repeat(20_000);
        assert!(matches!(
            ToolSchema::parse(&brackets),
            Err(SchemaError::NotJson(_))
        ));
    }

    #[test]
    fn patterns_run_in_linear_time_or_not_at_all() {
        let with = |pattern: &str| {
            ToolSchema::new(json!({"type": "object", "properties": {
                "a": {"type": "string", "pattern": pattern}}}))
        };
        let SchemaError::Invalid { .. } = with("(?=a)b").unwrap_err() else {
            panic!("look-ahead needs a backtracking engine");
        };
        // Takes a backtracking engine longer than the age of the universe.
        let schema = with("^(a+)+$").unwrap();
        let hostile = format!("{}!", "a".repeat(50_000));
        assert!(!schema.validator().is_valid(&json!({"a": hostile})));
    }

    #[test]
    fn what_is_not_a_schema_says_where() {
        let error = ToolSchema::new(json!({"type": "object", "properties": {
            "a": {"type": "strin"}}}))
        .unwrap_err();
        let SchemaError::Invalid { at, .. } = error else {
            panic!("{error}")
        };
        assert_eq!(at, "/properties/a/type");
    }
}
