//! The JSON Schema of a tool's arguments. A stranger wrote it, so it is bounded before it is compiled.
//!
//! A schema is refused if it is too large or too deep, refers outside itself or to itself, or unfolds into too many
//! checks. So are expressions that need backtracking or much memory. The cost of any other schema is a known number of
//! steps for each value and each byte of the arguments. Arguments that would take more than [`MAX_STEPS`] are refused
//! unchecked, so validation needs no clock to end, and ends alike in every replay.

use std::collections::HashMap;

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::{Value, json};

/// Maximum length of a schema, in bytes of compact JSON.
pub const MAX_SCHEMA_BYTES: usize = 64 * 1024;
/// Maximum nesting of values in a schema.
pub const MAX_SCHEMA_DEPTH: usize = 32;
/// Maximum nesting of values in a schema after every `$ref` is replaced by its target.
pub const MAX_UNFOLDED_DEPTH: usize = 96;
/// Maximum number of values in a schema after every `$ref` is replaced by its target. Values that
/// `unevaluatedProperties` and `unevaluatedItems` look at again are counted again.
pub const MAX_SCHEMA_NODES: usize = 20_000;
/// Maximum size of all compiled regular expressions of a schema, in bytes.
pub const MAX_PATTERN_BYTES: usize = 1 << 20;
/// Maximum number of steps for validating the arguments of one call: a tenth of a second in the worst case.
pub const MAX_STEPS: u64 = 20_000_000;
/// Sizes to which the size of a compiled expression is rounded up.
const PATTERN_SIZES: [usize; 5] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, MAX_PATTERN_BYTES];
/// Bytes of a compiled expression that are examined in one step, for one byte of text.
const PATTERN_BYTES_A_STEP: u64 = 1024;
/// Steps of one division in arbitrary precision.
const MULTIPLE_OF_STEPS: usize = 16;

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

/// The reason why a schema cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// The text is not JSON.
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
    /// Over [`MAX_UNFOLDED_DEPTH`].
    #[error("the schema is nested more than {MAX_UNFOLDED_DEPTH} deep once every $ref is followed")]
    UnfoldsTooDeep,
    /// Over [`MAX_PATTERN_BYTES`].
    #[error(
        "the schema's regular expressions need more than {MAX_PATTERN_BYTES} bytes once they are compiled"
    )]
    PatternsTooLarge,
    /// Over [`MAX_SCHEMA_NODES`].
    #[error(
        "the schema unfolds into more than {MAX_SCHEMA_NODES} values once every $ref is followed"
    )]
    TooManyNodes,
    /// A reference that leaves the schema, or that is resolved by name at run time.
    #[error(
        "\"{keyword}\": \"{target}\" is not allowed; only \"$ref\": \"#/…\" into the same schema is"
    )]
    ForeignReference {
        /// The keyword, such as `$ref`.
        keyword: String,
        /// The target of the reference.
        target: String,
    },
    /// A reference to something that does not exist.
    #[error("\"$ref\": \"{0}\" refers to nothing in the schema")]
    DanglingReference(String),
    /// A reference that leads back to itself.
    #[error("\"$ref\": \"{0}\" leads back to itself; write the levels out")]
    CyclicReference(String),
    /// An invalid schema, or an expression that the linear-time engine does not support.
    #[error("not a valid JSON Schema (2020-12), at {at}: {what}")]
    Invalid {
        /// JSON pointer into the schema; `/` is its root.
        at: String,
        /// The error at that place.
        what: String,
    },
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
        let mut bounds = Bounds {
            root: &value,
            unfolded: HashMap::new(),
            patterns: HashMap::new(),
        };
        let cost = bounds.extent(&value, 0, 0)?.once;
        let pattern_bytes = bounds.patterns.values().sum();
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

    /// Whether arguments fit, without a limit of steps. Use it only for the host's own arguments.
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

/// Options for compiling schemas, with a limit in bytes for each expression.
fn options(pattern_bytes: usize) -> jsonschema::ValidationOptions<'static> {
    jsonschema::options()
        .with_draft(Draft::Draft202012)
        .with_pattern_options(
            PatternOptions::regex()
                .size_limit(pattern_bytes)
                .dfa_size_limit(MAX_PATTERN_BYTES),
        )
}

/// The cost of checking a value against a schema.
#[derive(Debug, Clone, Copy, Default)]
struct Cost {
    /// Number of schema values, each of which may be examined for each value of the arguments.
    checks: usize,
    /// Bytes of compiled expressions, each of which may be examined for each byte of text.
    scans: usize,
}

impl Cost {
    fn plus(self, other: Self) -> Result<Self, SchemaError> {
        let checks = self.checks + other.checks;
        if checks > MAX_SCHEMA_NODES {
            return Err(SchemaError::TooManyNodes);
        }
        Ok(Self {
            checks,
            scans: self.scans.saturating_add(other.scans),
        })
    }
}

/// The size of a part of a schema after every reference is followed.
#[derive(Debug, Clone, Copy, Default)]
struct Extent {
    once: Cost,
    /// The additional cost of an `unevaluated…` keyword beside it. Everything that applies to the same value is checked
    /// again, to find what it evaluated.
    again: Cost,
    depth: usize,
}

/// Keywords whose subschemas apply to the same value as the schema that contains them.
const IN_PLACE: [&str; 9] = [
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentSchemas",
    "$ref",
];

/// Measures a schema with references followed, and refuses one that would not end.
struct Bounds<'s> {
    root: &'s Value,
    /// The extent of each reference's target; `None` while it is being measured.
    unfolded: HashMap<&'s str, Option<Extent>>,
    /// Each expression with its compiled size.
    patterns: HashMap<&'s str, usize>,
}

impl<'s> Bounds<'s> {
    /// `depth` is counted from the root or from the last reference, `total` from the root.
    fn extent(
        &mut self,
        value: &'s Value,
        depth: usize,
        total: usize,
    ) -> Result<Extent, SchemaError> {
        if depth > MAX_SCHEMA_DEPTH {
            return Err(SchemaError::TooDeep);
        }
        if total > MAX_UNFOLDED_DEPTH {
            return Err(SchemaError::UnfoldsTooDeep);
        }
        let mut whole = Extent::default();
        whole.once.checks = 1;
        match value {
            Value::Object(members) => {
                for (key, member) in members {
                    let part = self.member(key, member, depth, total)?;
                    whole.add(part)?;
                    // For these keywords, the expressions are evaluated a second time.
                    if key == "patternProperties" {
                        whole.again.scans = whole.again.scans.saturating_add(part.once.scans);
                    }
                    if IN_PLACE.contains(&key.as_str()) {
                        whole.again = whole.again.plus(part.once)?.plus(part.again)?;
                    } else if key.starts_with("unevaluated") {
                        whole.again = whole.again.plus(part.once)?;
                    }
                }
                if members.keys().any(|key| key.starts_with("unevaluated")) {
                    whole.once = whole.once.plus(whole.again)?;
                }
            }
            Value::Array(items) => {
                for item in items {
                    let part = self.extent(item, depth + 1, total + 1)?;
                    whole.add(part)?;
                    whole.again = whole.again.plus(part.again)?;
                }
            }
            _ => {}
        }
        Ok(whole)
    }

    fn member(
        &mut self,
        key: &'s str,
        member: &'s Value,
        depth: usize,
        total: usize,
    ) -> Result<Extent, SchemaError> {
        match (key, member) {
            ("$ref", Value::String(target)) => self.reference(target, total),
            ("$dynamicRef" | "$recursiveRef" | "$id", Value::String(target)) => {
                Err(SchemaError::ForeignReference {
                    keyword: key.into(),
                    target: target.clone(),
                })
            }
            // Examples and constants are data, not schemas: a "$ref" in them means nothing.
            ("const" | "enum" | "default" | "examples", data) => {
                let mut extent = Extent::default();
                extent.once.checks = Self::data(data, depth + 1)?;
                Ok(extent)
            }
            ("pattern", Value::String(pattern)) => {
                let mut extent = self.extent(member, depth + 1, total + 1)?;
                extent.once.scans = self.pattern(pattern)?;
                Ok(extent)
            }
            ("multipleOf", _) => {
                let mut extent = Extent::default();
                extent.once.checks = MULTIPLE_OF_STEPS;
                Ok(extent)
            }
            // The names here are the author's, so a name such as "const" is not a keyword.
            (
                "properties" | "patternProperties" | "dependentSchemas" | "$defs" | "definitions",
                Value::Object(schemas),
            ) => {
                let mut table = Extent::default();
                table.once.checks = 1;
                for (name, schema) in schemas {
                    let mut part = self.extent(schema, depth + 2, total + 2)?;
                    if key == "patternProperties" {
                        let scans = self.pattern(name)?;
                        part.once.scans = part.once.scans.saturating_add(scans);
                    }
                    table.add(part)?;
                    table.again = table.again.plus(part.again)?;
                }
                Ok(table)
            }
            _ => self.extent(member, depth + 1, total + 1),
        }
    }

    fn reference(&mut self, target: &'s str, total: usize) -> Result<Extent, SchemaError> {
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
            Some(Some(extent)) if total + extent.depth > MAX_UNFOLDED_DEPTH => {
                return Err(SchemaError::UnfoldsTooDeep);
            }
            Some(Some(extent)) => return Ok(*extent),
            Some(None) => return Err(SchemaError::CyclicReference(target.into())),
            None => {}
        }
        let Some(referred) = self.root.pointer(pointer) else {
            return Err(SchemaError::DanglingReference(
                target.chars().take(120).collect(),
            ));
        };
        self.unfolded.insert(pointer, None);
        let extent = self.extent(referred, 0, total + 1)?;
        self.unfolded.insert(pointer, Some(extent));
        Ok(extent)
    }

    /// The size of a compiled expression, rounded up. An invalid expression is left to the compiler of the whole
    /// schema, which reports its place.
    fn pattern(&mut self, pattern: &'s str) -> Result<usize, SchemaError> {
        if let Some(bytes) = self.patterns.get(pattern) {
            return Ok(*bytes);
        }
        let schema = json!({ "pattern": pattern });
        let fits = |bytes: &usize| options(*bytes).build(&schema).is_ok();
        let bytes = PATTERN_SIZES.into_iter().find(fits);
        let bytes = bytes.unwrap_or(MAX_PATTERN_BYTES);
        self.patterns.insert(pattern, bytes);
        if self.patterns.values().sum::<usize>() > MAX_PATTERN_BYTES {
            return Err(SchemaError::PatternsTooLarge);
        }
        Ok(bytes)
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

impl Extent {
    /// Adds a part from one level below.
    fn add(&mut self, part: Self) -> Result<(), SchemaError> {
        self.once = self.once.plus(part.once)?;
        self.depth = self.depth.max(part.depth + 1);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
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
