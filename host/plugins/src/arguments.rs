//! Arguments of a call: validated, explained to the model if they are wrong, and written in one canonical form for the
//! guest.

use std::fmt::Write as _;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, JsonTypeSet, ValidationError};
use serde_json::Value;

use crate::schema::{MAX_STEPS, Size, ToolSchema};

/// Maximum nesting of arguments; deeper ones are not validated.
pub const MAX_ARGUMENT_DEPTH: usize = 64;
/// If a schema makes more checks than this, mistakes are not explained: each mistake costs memory.
pub(crate) const MAX_EXPLAINED_CHECKS: u64 = 200_000;
/// Maximum length of the explanation for a model, in characters.
pub const MAX_EXPLANATION_CHARS: usize = 500;
/// Maximum number of mistakes that are explained at once.
const MAX_MISTAKES: usize = 3;
/// Maximum number of characters quoted of a wrong value.
const MAX_QUOTE_CHARS: usize = 60;

/// The reason why arguments are not passed to a tool, as a text that a model can act on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ArgumentsError {
    /// More than [`MAX_ARGUMENT_DEPTH`].
    #[error("the arguments are nested more than {MAX_ARGUMENT_DEPTH} deep")]
    TooDeep,
    /// Validating them would take more than [`MAX_STEPS`].
    #[error(
        "{values} values with {text_bytes} bytes of text are too much for this tool's schema; send less"
    )]
    TooLarge {
        /// Number of values and of member names.
        values: u64,
        /// Number of bytes in strings and names.
        text_bytes: u64,
    },
    /// The arguments break the schema in too many places.
    #[error("they do not fit the tool's schema, and are too large to say where; send less")]
    Unexplained,
    /// The arguments break the schema. The text names the argument, the expected value and the given value.
    #[error("{0}")]
    Invalid(String),
}

/// Validates arguments, in at most [`MAX_STEPS`].
pub fn validate(schema: &ToolSchema, arguments: &Value) -> Result<(), ArgumentsError> {
    let size = measured(arguments)?;
    if schema.steps(size) > MAX_STEPS {
        return Err(ArgumentsError::TooLarge {
            values: size.values,
            text_bytes: size.text_bytes,
        });
    }
    if schema.validator().is_valid(arguments) {
        return Ok(());
    }
    if schema.checks(size) > MAX_EXPLAINED_CHECKS {
        return Err(ArgumentsError::Unexplained);
    }
    let mut errors = schema.validator().iter_errors(arguments);
    let mut text = String::new();
    for error in errors.by_ref().take(MAX_MISTAKES) {
        if !text.is_empty() {
            text.push_str("; ");
        }
        text.push_str(&explain(&error, schema.value(), arguments));
    }
    if errors.next().is_some() {
        text.push_str("; and more");
    }
    let explanation = shorten(&text, MAX_EXPLANATION_CHARS);
    Err(ArgumentsError::Invalid(explanation))
}

/// Measures arguments. Fails if they are nested too deeply to be looked at.
pub(crate) fn measured(arguments: &Value) -> Result<Size, ArgumentsError> {
    let mut size = Size::default();
    if size.measure(arguments, MAX_ARGUMENT_DEPTH) {
        Ok(size)
    } else {
        Err(ArgumentsError::TooDeep)
    }
}

/// Writes the arguments as compact JSON with sorted keys: the same call gives the same text, whatever the order of its
/// keys. Values nested deeper than validation allows become `null`.
pub fn canonical_json(arguments: &Value) -> String {
    let mut out = String::with_capacity(64);
    write_canonical(arguments, MAX_ARGUMENT_DEPTH, &mut out);
    out
}

fn write_canonical(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Object(_) | Value::Array(_) if depth == 0 => out.push_str("null"),
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_unstable_by_key(|(key, _)| *key);
            out.push('{');
            for (index, (key, member)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_string(key, out);
                out.push(':');
                write_canonical(member, depth - 1, out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_canonical(item, depth - 1, out);
            }
            out.push(']');
        }
        Value::String(text) => write_string(text, out),
        scalar => _ = write!(out, "{scalar}"),
    }
}

fn write_string(text: &str, out: &mut String) {
    // `Value`'s `Display` writes serde_json's compact form. Borrowing avoids a copy, except for numbers.
    out.push_str(&serde_json::to_string(text).unwrap_or_default());
}

fn explain(error: &ValidationError<'_>, schema: &Value, arguments: &Value) -> String {
    use ValidationErrorKind as Kind;
    let at = readable_path(error.instance_path().as_str(), arguments);
    let got = quote(error.instance());
    match error.kind() {
        Kind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            let path = if at == ROOT {
                name.to_owned()
            } else {
                format!("{at}.{name}")
            };
            // Only the root's properties are looked up, because only there is the pointer certain.
            let expected = (at == ROOT)
                .then(|| schema.get("properties")?.get(name))
                .flatten();
            match expected.and_then(declared_type) {
                Some(expected) => format!("`{path}` is missing; it must be {expected}"),
                None => format!("`{path}` is missing"),
            }
        }
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            let known: Vec<&str> = (at == ROOT)
                .then(|| schema.get("properties")?.as_object())
                .flatten()
                .map(|properties| properties.keys().map(String::as_str).collect())
                .unwrap_or_default();
            unexpected_arguments(&at, unexpected, &known)
        }
        Kind::Type { kind } => format!("`{at}` must be {}, got {got}", types(kind)),
        Kind::Enum { options } => format!("`{at}` must be one of {}, got {got}", list(options)),
        Kind::Constant { expected_value } => {
            format!("`{at}` must be {}, got {got}", quote(expected_value))
        }
        Kind::Minimum { limit } => format!("`{at}` must be at least {limit}, got {got}"),
        Kind::Maximum { limit } => format!("`{at}` must be at most {limit}, got {got}"),
        Kind::ExclusiveMinimum { limit } => format!("`{at}` must be more than {limit}, got {got}"),
        Kind::ExclusiveMaximum { limit } => format!("`{at}` must be less than {limit}, got {got}"),
        Kind::MultipleOf { multiple_of } => {
            format!("`{at}` must be a multiple of {multiple_of}, got {got}")
        }
        Kind::MinLength { limit } => format!(
            "`{at}` must have at least {}, got {got}",
            counted(*limit, "character")
        ),
        Kind::MaxLength { limit } => format!(
            "`{at}` must have at most {}, got {got}",
            counted(*limit, "character")
        ),
        Kind::MinItems { limit } => format!(
            "`{at}` must have at least {}, got {got}",
            counted(*limit, "item")
        ),
        Kind::MaxItems { limit } => format!(
            "`{at}` must have at most {}, got {got}",
            counted(*limit, "item")
        ),
        Kind::UniqueItems => format!("`{at}` must not repeat an item, got {got}"),
        Kind::Pattern { pattern } => format!(
            "`{at}` must match the expression {}, got {got}",
            shorten(pattern, MAX_QUOTE_CHARS)
        ),
        Kind::AnyOf { .. } | Kind::OneOfNotValid { .. } => {
            format!("`{at}` has none of the allowed forms, got {got}")
        }
        Kind::OneOfMultipleValid { .. } => {
            format!("`{at}` has several of the allowed forms at once, got {got}")
        }
        Kind::FalseSchema => format!("`{at}` is not allowed"),
        other => format!("`{at}` breaks the rule \"{}\", got {got}", other.keyword()),
    }
}

/// The name of the arguments as a whole.
const ROOT: &str = "arguments";

fn unexpected_arguments(at: &str, unexpected: &[String], known: &[&str]) -> String {
    let prefix = if at == ROOT {
        String::new()
    } else {
        format!("{at}.")
    };
    let name = unexpected.first().map_or("", String::as_str);
    let mut text = format!(
        "`{prefix}{}` is not an argument",
        shorten(name, MAX_QUOTE_CHARS)
    );
    if let Some(near) = rlf_config::nearest(name, known.iter().copied()) {
        _ = write!(text, "; did you mean `{near}`?");
    } else if !known.is_empty() {
        _ = write!(
            text,
            "; the arguments are {}",
            shorten(&known.join(", "), 200)
        );
    }
    text
}

/// Writes a JSON pointer as people do: `/filters/0/year` becomes `filters[0].year`.
fn readable_path(pointer: &str, arguments: &Value) -> String {
    let mut path = String::new();
    let mut here = Some(arguments);
    for segment in pointer.split('/').skip(1) {
        let name = segment.replace("~1", "/").replace("~0", "~");
        if let Some(Value::Array(items)) = here {
            _ = write!(path, "[{name}]");
            here = name
                .parse::<usize>()
                .ok()
                .and_then(|index| items.get(index));
        } else {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(&name);
            here = here.and_then(|value| value.get(&name));
        }
    }
    if path.is_empty() {
        ROOT.into()
    } else {
        shorten(&path, 120)
    }
}

fn declared_type(schema: &Value) -> Option<String> {
    if let Some(options) = schema.get("enum") {
        return Some(format!("one of {}", list(options)));
    }
    match schema.get("type")? {
        Value::String(name) => Some(with_article(name)),
        Value::Array(names) => Some(
            names
                .iter()
                .filter_map(Value::as_str)
                .map(with_article)
                .collect::<Vec<_>>()
                .join(" or "),
        ),
        _ => None,
    }
}

fn types(kind: &TypeKind) -> String {
    let set = match kind {
        TypeKind::Single(one) => JsonTypeSet::from(*one),
        TypeKind::Multiple(several) => *several,
    };
    let mut names: Vec<&str> = set.iter().map(JsonType::as_str).collect();
    // Usual order of words: "an integer or null".
    names.sort_by_key(|name| *name == "null");
    names
        .into_iter()
        .map(with_article)
        .collect::<Vec<_>>()
        .join(" or ")
}

fn counted(count: u64, thing: &str) -> String {
    format!("{count} {thing}{}", if count == 1 { "" } else { "s" })
}

fn with_article(name: &str) -> String {
    match name {
        "null" => "null".into(),
        "integer" | "object" | "array" => format!("an {name}"),
        _ => format!("a {name}"),
    }
}

fn list(options: &Value) -> String {
    let texts: Vec<String> = options
        .as_array()
        .map(|all| all.iter().map(quote).collect())
        .unwrap_or_default();
    shorten(&texts.join(", "), 200)
}

fn quote(value: &Value) -> String {
    // Long strings are cut before they are escaped, so the cost depends only on the part that is shown.
    match value {
        Value::String(text) if text.len() > 4 * MAX_QUOTE_CHARS => {
            let head: String = text.chars().take(MAX_QUOTE_CHARS).collect();
            format!(
                "{}… ({} characters)",
                Value::String(head),
                text.chars().count()
            )
        }
        Value::Array(items) if items.len() > MAX_QUOTE_CHARS => {
            format!("an array of {} items", items.len())
        }
        other => shorten(&other.to_string(), MAX_QUOTE_CHARS),
    }
}

fn shorten(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> ToolSchema {
        ToolSchema::new(json!({
            "type": "object",
            "properties": {
                "query": {"type": "string", "minLength": 1, "maxLength": 20},
                "top_k": {"type": ["integer", "null"], "minimum": 1, "maximum": 10},
                "unit": {"enum": ["km", "mi"]},
                "year": {"type": "string", "pattern": "^[0-9]{4}$"},
                "filters": {"type": "array", "maxItems": 2, "items": {
                    "type": "object", "required": ["field"],
                    "properties": {"field": {"type": "string"}, "a/b": {"type": "boolean"}},
                }},
            },
            "required": ["query"],
            "additionalProperties": false,
        }))
        .unwrap()
    }

    #[test]
    fn a_mistake_is_explained_so_that_a_model_can_mend_it() {
        let cases = [
            (json!({}), "`query` is missing; it must be a string"),
            (json!({"query": 5}), "`query` must be a string, got 5"),
            (
                json!({"query": ""}),
                "`query` must have at least 1 character, got \"\"",
            ),
            (
                json!({"query": "x", "top_k": "3"}),
                "`top_k` must be an integer or null, got \"3\"",
            ),
            (
                json!({"query": "x", "top_k": 0}),
                "`top_k` must be at least 1, got 0",
            ),
            (
                json!({"query": "x", "top_k": 99}),
                "`top_k` must be at most 10, got 99",
            ),
            (
                json!({"query": "x", "unit": "m"}),
                "`unit` must be one of \"km\", \"mi\", got \"m\"",
            ),
            (
                json!({"query": "x", "year": "last"}),
                "`year` must match the expression ^[0-9]{4}$, got \"last\"",
            ),
            (
                json!({"query": "x", "topk": 3}),
                "`topk` is not an argument; did you mean `top_k`?",
            ),
            (
                json!({"query": "x", "zzzzzz": 3}),
                "`zzzzzz` is not an argument; the arguments are query, top_k, unit, year, filters",
            ),
            (
                json!({"query": "x", "filters": [{"field": "a"}, {}]}),
                "`filters[1].field` is missing",
            ),
            (
                json!({"query": "x", "filters": [{"field": "a", "a/b": 1}]}),
                "`filters[0].a/b` must be a boolean, got 1",
            ),
            (json!([1]), "`arguments` must be an object, got [1]"),
        ];
        for (arguments, said) in cases {
            let error = validate(&schema(), &arguments).unwrap_err();
            assert_eq!(error.to_string(), said);
        }
        assert_eq!(
            validate(&schema(), &json!({"query": "x", "top_k": 3})),
            Ok(())
        );
    }

    #[test]
    fn several_mistakes_come_in_one_bounded_text() {
        let arguments = json!({"query": "y".repeat(5_000), "top_k": 0, "unit": 1, "year": 1});
        let said = validate(&schema(), &arguments).unwrap_err().to_string();
        assert!(said.contains("(5000 characters)"), "{said}");
        assert!(said.ends_with("; and more"), "{said}");
        assert!(said.chars().count() <= MAX_EXPLANATION_CHARS + 1);
    }

    #[test]
    fn nesting_without_end_is_refused_before_validation() {
        let mut deep = json!(1);
        for _ in 0..1_000 {
            deep = json!([deep]);
        }
        assert_eq!(
            validate(&schema(), &json!({"query": deep}))
                .unwrap_err()
                .to_string(),
            "the arguments are nested more than 64 deep"
        );
    }

    #[test]
    fn what_would_take_too_many_steps_is_refused_unchecked() {
        let rules: Vec<Value> = (0..2_000).map(|n| json!({"not": {"const": n}})).collect();
        let schema = ToolSchema::new(json!({"type": "object", "properties": {
            "a": {"type": "array", "items": {"allOf": rules}}}}))
        .unwrap();
        let numbers =
            |count: i32| json!({"a": (0..count).map(|n| n - 200_000).collect::<Vec<_>>()});
        assert_eq!(validate(&schema, &numbers(1_000)), Ok(()));
        assert_eq!(
            validate(&schema, &numbers(100_000))
                .unwrap_err()
                .to_string(),
            "100003 values with 1 bytes of text are too much for this tool's schema; send less"
        );
        // Every value is wrong, which would make too long an explanation.
        let schema = ToolSchema::new(json!({"type": "object", "properties": {
            "a": {"type": "array", "items": {"type": "string"}}}}))
        .unwrap();
        assert_eq!(
            validate(&schema, &numbers(200_000))
                .unwrap_err()
                .to_string(),
            "they do not fit the tool's schema, and are too large to say where; send less"
        );
    }

    #[test]
    fn a_long_text_is_held_against_the_expressions_it_may_meet() {
        let with = |pattern: &str| {
            ToolSchema::new(json!({"type": "object", "properties": {"a": {"pattern": pattern}}}))
                .unwrap()
        };
        let text = |bytes: usize| json!({"a": "a".repeat(bytes)});
        assert_eq!(validate(&with("^[a-z0-9]*$"), &text(1 << 20)), Ok(()));
        assert_eq!(
            validate(&with("^(a|b)*a(a|b){400}$"), &text(100_000)),
            Ok(())
        );
        assert!(
            validate(&with("^(a|b)*a(a|b){3000}$"), &text(1 << 20))
                .unwrap_err()
                .to_string()
                .contains("too much for this tool's schema")
        );
    }

    #[test]
    fn the_canonical_form_does_not_depend_on_key_order() {
        let one: Value =
            serde_json::from_str(r#"{"b": [1.0, {"z": 1, "a": "é\n\""}], "a": null}"#).unwrap();
        let two: Value =
            serde_json::from_str(r#"{"a": null, "b": [1.0, {"a": "é\n\"", "z": 1}]}"#).unwrap();
        assert_eq!(
            canonical_json(&one),
            r#"{"a":null,"b":[1.0,{"a":"é\n\"","z":1}]}"#
        );
        assert_eq!(canonical_json(&one), canonical_json(&two));
    }

    #[test]
    fn the_canonical_form_is_the_same_value() {
        let value = json!({"x": [true, false, -1.5e300, 18_446_744_073_709_551_615_u64, "\u{1}"]});
        assert_eq!(
            serde_json::from_str::<Value>(&canonical_json(&value)).unwrap(),
            value
        );
    }
}
