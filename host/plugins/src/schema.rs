//! The JSON Schema of a tool's arguments, or of a model's answer. A stranger wrote it, so it is bounded before it is compiled.
//!
//! A schema is refused if it is too large or too deep, refers outside itself or to itself, or unfolds into too many
//! checks. So are expressions that need backtracking or much memory. The cost of any other schema is a known number of
//! steps for each value and each byte of the arguments. Arguments that would take more than [`MAX_STEPS`] are refused
//! unchecked, so validation needs no clock to end, and ends alike in every replay.

mod bounds;
mod error;

use jsonschema::Validator;
use serde_json::Value;

pub use self::error::{
    MAX_PATTERN_BYTES, MAX_SCHEMA_BYTES, MAX_SCHEMA_DEPTH, MAX_SCHEMA_NODES, MAX_UNFOLDED_DEPTH,
    SchemaError,
};

use self::bounds::{Cost, measure, options};

/// Maximum number of steps for validating the arguments of one call: a tenth of a second in the worst case.
pub const MAX_STEPS: u64 = 20_000_000;
/// Bytes of a compiled expression that are examined in one step, for one byte of text.
const PATTERN_BYTES_A_STEP: u64 = 1024;

/// The size of arguments.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Size {
    /// Number of values and of member names.
    pub(crate) values: u64,
    /// Number of bytes in strings and names.
    pub(crate) text_bytes: u64,
}

impl Size {
    /// Adds a value. Returns false if it is nested more than `depth` deep.
    pub(crate) fn measure(&mut self, value: &Value, depth: usize) -> bool {
        self.values += 1;
        match value {
            Value::Object(members) => {
                depth > 0
                    && members.iter().all(|(name, member)| {
                        self.values += 1;
                        self.text_bytes += name.len() as u64;
                        self.measure(member, depth - 1)
                    })
            }
            Value::Array(items) => {
                depth > 0 && items.iter().all(|item| self.measure(item, depth - 1))
            }
            Value::String(text) => {
                self.text_bytes += text.len() as u64;
                true
            }
            _ => true,
        }
    }
}

/// A schema within the bounds, ready to validate.
#[derive(Debug)]
pub struct ToolSchema {
    value: Value,
    validator: Validator,
    cost: Cost,
    pattern_bytes: usize,
}

impl ToolSchema {
    /// Checks and compiles a schema given as JSON text.
    pub fn parse(text: &str) -> Result<Self, SchemaError> {
        Self::new(bounded(text)?)
    }

    /// Checks and compiles a schema.
    pub fn new(value: Value) -> Result<Self, SchemaError> {
        require_object(&value)?;
        let (cost, pattern_bytes) = measure(&value)?;
        let validator = options(MAX_PATTERN_BYTES).build(&value).map_err(|error| {
            let at = error.instance_path().as_str();
            SchemaError::Invalid {
                at: if at.is_empty() { "/".into() } else { at.into() },
                what: error.to_string().chars().take(300).collect(),
            }
        })?;
        Ok(Self {
            value,
            validator,
            cost,
            pattern_bytes,
        })
    }

    /// Number of values in the schema after every `$ref` is followed.
    pub fn nodes(&self) -> usize {
        self.cost.checks
    }

    /// Size of its compiled regular expressions, in bytes.
    pub fn pattern_bytes(&self) -> usize {
        self.pattern_bytes
    }

    /// Maximum number of steps for validating arguments of this size.
    pub(crate) fn steps(&self, size: Size) -> u64 {
        let checks = self.checks(size);
        let scans = (self.cost.scans as u64).saturating_mul(size.text_bytes);
        checks.saturating_add(scans / PATTERN_BYTES_A_STEP)
    }

    /// Maximum number of checks among these steps. Each of them may find a mistake.
    pub(crate) fn checks(&self, size: Size) -> u64 {
        (self.cost.checks as u64).saturating_mul(size.values)
    }

    /// The schema itself, with its keys in the original order.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// True if arguments fit, without a limit of steps. Use it only for the host's own arguments.
    pub fn accepts(&self, arguments: &Value) -> bool {
        self.validator.is_valid(arguments)
    }

    pub(crate) fn validator(&self) -> &Validator {
        &self.validator
    }
}

/// Parses a schema that is only shown. It must be of an object, and no longer than one that is compiled.
pub(crate) fn bounded(text: &str) -> Result<Value, SchemaError> {
    if text.len() > MAX_SCHEMA_BYTES {
        return Err(SchemaError::TooLong(text.len()));
    }
    let value =
        serde_json::from_str(text).map_err(|error| SchemaError::NotJson(error.to_string()))?;
    require_object(&value)?;
    Ok(value)
}

fn require_object(schema: &Value) -> Result<(), SchemaError> {
    if schema.get("type") == Some(&Value::from("object")) {
        Ok(())
    } else {
        Err(SchemaError::RootNotObject)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
        let said = "the schema's root must have \"type\": \"object\", because arguments and answers are \
                    objects";
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
        // serde_json stops at 128 levels, so deeply nested brackets cause an error and not an overflow.
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
        // A backtracking engine would need longer than the age of the universe.
        let schema = with("^(a+)+$").unwrap();
        let hostile = format!("{}!", "a".repeat(50_000));
        assert!(!schema.validator().is_valid(&json!({"a": hostile})));
    }

    /// A chain of references. Each one refers to `step` of the next.
    fn chain(links: usize, step: impl Fn(Value) -> Value) -> Value {
        let mut defs = serde_json::Map::new();
        for link in 0..links {
            let next = json!({"$ref": format!("#/$defs/{}", link + 1)});
            defs.insert(link.to_string(), step(next));
        }
        defs.insert(links.to_string(), json!({"type": "string"}));
        json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/0"}}, "$defs": defs})
    }

    #[test]
    fn references_do_not_add_up_to_a_depth_that_no_stack_has() {
        let deeper = |mut inner: Value| {
            for _ in 0..28 {
                inner = json!({ "not": inner });
            }
            inner
        };
        for deep in [chain(1_000, |next| next), chain(60, deeper)] {
            assert_eq!(
                refusal(deep),
                "the schema is nested more than 96 deep once every $ref is followed"
            );
        }
        assert!(ToolSchema::new(chain(20, |next| next)).is_ok());
    }

    #[test]
    fn a_property_that_is_called_like_a_keyword_is_a_property() {
        let with = |name: &str, schema: Value| {
            refusal(
                json!({"type": "object", "properties": {name: schema}, "$defs": {
                "a": {"anyOf": [{"$ref": "#/$defs/a"}]}}}),
            )
        };
        for name in ["const", "enum", "default", "examples"] {
            assert!(with(name, json!({"$ref": "#/$defs/a"})).contains("leads back to itself"));
            assert!(with(name, json!({"$ref": "http://x"})).contains("is not allowed"));
        }
    }

    #[test]
    fn what_is_evaluated_again_for_an_unevaluated_keyword_counts_again() {
        let mut nested = json!({"type": "object"});
        for _ in 0..14 {
            nested = json!({"allOf": [nested], "unevaluatedProperties": false});
        }
        let value = json!({"type": "object", "allOf": [nested]});
        assert_eq!(
            ToolSchema::new(value).unwrap_err(),
            SchemaError::TooManyNodes
        );
        // Generators write it once in every nested object. That must not multiply the cost.
        let mut nested = json!({"type": "string"});
        for _ in 0..8 {
            nested = json!({"type": "object", "properties": {"a": nested}, "allOf": [
                {"properties": {"b": {"type": "string"}}}], "unevaluatedProperties": false});
        }
        assert!(ToolSchema::new(nested).unwrap().nodes() < 400);
    }

    #[test]
    fn all_expressions_together_fit_the_memory_for_them() {
        let mut properties = serde_json::Map::new();
        for name in 0..500 {
            let pattern = format!("^{name}\\w{{40}}$");
            properties.insert(name.to_string(), json!({ "pattern": pattern }));
        }
        let schema = json!({"type": "object", "properties": properties});
        assert_eq!(
            ToolSchema::new(schema).unwrap_err(),
            SchemaError::PatternsTooLarge
        );
        let brackets =
            json!({"type": "object", "properties": {"a": {"pattern": "(".repeat(30_000)}}});
        assert!(matches!(
            ToolSchema::new(brackets),
            Err(SchemaError::Invalid { .. })
        ));
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
