//! Formats a tool's JSON Schema as one line: `search(query: string, top_k?: integer = 3)`.

use serde_json::{Map, Value};

/// Enumerations are cut after this many variants.
const MAX_VARIANTS: usize = 6;
/// Schemas nested deeper than this are printed as `…`.
const DEEPEST: usize = 2;

/// Formats the tool as a function of its arguments.
pub(crate) fn signature(name: &str, schema: &Value) -> String {
    format!("{name}({})", fields(schema, schema, 0))
}

fn fields(schema: &Value, root: &Value, depth: usize) -> String {
    let empty = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&empty);
    let required = |name: &str| {
        let names = schema["required"].as_array();
        names.is_some_and(|names| names.iter().any(|required| required == name))
    };
    let field = |(name, schema): (&String, &Value)| {
        let optional = if required(name) { "" } else { "?" };
        let default = match &schema["default"] {
            Value::Null => String::new(),
            default => format!(" = {default}"),
        };
        format!("{name}{optional}: {}{default}", kind(schema, root, depth))
    };
    properties.iter().map(field).collect::<Vec<_>>().join(", ")
}

fn kind(schema: &Value, root: &Value, depth: usize) -> String {
    if depth > DEEPEST {
        return "…".to_owned();
    }
    if let Some(target) = schema["$ref"].as_str() {
        let target = target.strip_prefix('#').and_then(|path| root.pointer(path));
        return target.map_or_else(|| "any".to_owned(), |target| kind(target, root, depth + 1));
    }
    if let Some(variants) = schema["enum"].as_array() {
        let mut shown: Vec<String> = variants
            .iter()
            .take(MAX_VARIANTS)
            .map(ToString::to_string)
            .collect();
        if variants.len() > MAX_VARIANTS {
            shown.push(format!("… {} more", variants.len() - MAX_VARIANTS));
        }
        return shown.join(" | ");
    }
    if let Some(only) = schema.get("const") {
        return only.to_string();
    }
    for several in ["anyOf", "oneOf"] {
        if let Some(variants) = schema[several].as_array() {
            let kinds: Vec<String> = variants
                .iter()
                .map(|variant| kind(variant, root, depth + 1))
                .collect();
            return kinds.join(" | ");
        }
    }
    let of = |kind_name: &str| match kind_name {
        "array" => match schema.get("items") {
            Some(items) => format!("[{}]", kind(items, root, depth + 1)),
            None => "[any]".to_owned(),
        },
        "object" if schema["properties"].is_object() => {
            format!("{{{}}}", fields(schema, root, depth + 1))
        }
        other => other.to_owned(),
    };
    match &schema["type"] {
        Value::String(name) => of(name),
        Value::Array(names) => {
            let names: Vec<String> = names.iter().filter_map(Value::as_str).map(of).collect();
            names.join(" | ")
        }
        _ => "any".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_schema_reads_as_a_function() {
        for (schema, expected) in [
            (json!({"type": "object"}), "f()"),
            (
                json!({"properties": {"expression": {"type": "string"}}, "required": ["expression"]}),
                "f(expression: string)",
            ),
            (
                json!({"properties": {"query": {"type": "string"}, "top_k": {"type": ["integer", "null"], "default": 3}},
                       "required": ["query"]}),
                "f(query: string, top_k?: integer | null = 3)",
            ),
            (
                json!({"properties": {"column": {"enum": ["a", "b"]}, "rows": {"type": "array", "items": {"type": "integer"}}},
                       "required": ["column", "rows"]}),
                "f(column: \"a\" | \"b\", rows: [integer])",
            ),
            (
                json!({"properties": {"at": {"$ref": "#/$defs/Point"}}, "required": ["at"],
                       "$defs": {"Point": {"type": "object", "properties": {"x": {"type": "number"}}}}}),
                "f(at: {x?: number})",
            ),
            (
                json!({"properties": {"n": {"enum": [1, 2, 3, 4, 5, 6, 7, 8]}, "any": true, "one": {"const": 1},
                       "either": {"anyOf": [{"type": "string"}, {"type": "array"}]}}}),
                "f(n?: 1 | 2 | 3 | 4 | 5 | 6 | … 2 more, any?: any, one?: 1, either?: string | [any])",
            ),
            (
                json!({"properties": {"x": {"$ref": "#/$defs/X"}}, "$defs": {"X": {"$ref": "#/$defs/X"}}}),
                "f(x?: …)",
            ),
        ] {
            assert_eq!(signature("f", &schema), expected);
        }
    }
}
