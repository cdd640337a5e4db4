//! The cost of a schema once every reference is followed.

use std::collections::HashMap;

use jsonschema::{Draft, PatternOptions};
use serde_json::{Value, json};

use super::error::{
    MAX_PATTERN_BYTES, MAX_SCHEMA_DEPTH, MAX_SCHEMA_NODES, MAX_UNFOLDED_DEPTH, SchemaError,
};

/// Sizes to which the size of a compiled expression is rounded up.
const PATTERN_SIZES: [usize; 5] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, MAX_PATTERN_BYTES];
/// Steps of one division in arbitrary precision.
const MULTIPLE_OF_STEPS: usize = 16;

/// Options for compiling schemas, with a limit in bytes for each expression.
pub(super) fn options(pattern_bytes: usize) -> jsonschema::ValidationOptions<'static> {
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
pub(super) struct Cost {
    /// Number of schema values, each of which may be examined for each value of the arguments.
    pub(super) checks: usize,
    /// Bytes of compiled expressions, each of which may be examined for each byte of text.
    pub(super) scans: usize,
}

impl Cost {
    /// Adds another cost.
    fn checked_add(self, other: Self) -> Result<Self, SchemaError> {
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
    /// The extra cost if the same schema object has an `unevaluated…` keyword, which checks everything that applies to
    /// the value a second time.
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

/// Measures a schema with references followed, and refuses one that would not end. Returns its cost, and the size of its
/// compiled expressions in bytes.
pub(super) fn measure(schema: &Value) -> Result<(Cost, usize), SchemaError> {
    let mut bounds = Bounds {
        root: schema,
        unfolded: HashMap::new(),
        patterns: HashMap::new(),
    };
    let cost = bounds.extent(schema, 0, 0)?.once;
    Ok((cost, bounds.patterns.values().sum()))
}

/// A schema under measurement.
struct Bounds<'s> {
    root: &'s Value,
    /// The extent of each reference's target; `None` while it is being measured.
    unfolded: HashMap<&'s str, Option<Extent>>,
    /// Each expression with its compiled size.
    patterns: HashMap<&'s str, usize>,
}

impl<'s> Bounds<'s> {
    /// Measures a part of a schema. `depth` is counted from the root or from the last reference, `total` from the root.
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
                        whole.again = whole
                            .again
                            .checked_add(part.once)?
                            .checked_add(part.again)?;
                    } else if key.starts_with("unevaluated") {
                        whole.again = whole.again.checked_add(part.once)?;
                    }
                }
                if members.keys().any(|key| key.starts_with("unevaluated")) {
                    whole.once = whole.once.checked_add(whole.again)?;
                }
            }
            Value::Array(items) => {
                for item in items {
                    let part = self.extent(item, depth + 1, total + 1)?;
                    whole.add(part)?;
                    whole.again = whole.again.checked_add(part.again)?;
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
                    table.again = table.again.checked_add(part.again)?;
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
        self.once = self.once.checked_add(part.once)?;
        self.depth = self.depth.max(part.depth + 1);
        Ok(())
    }
}
