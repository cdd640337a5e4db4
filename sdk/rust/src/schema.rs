//! JSON Schemas that are short enough for a prompt.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use crate::Error;

/// The schema of a struct of arguments: draft 2020-12, in one piece, without the keywords that only code generators
/// read (`$schema`, `title`, the numeric `format`s).
pub(crate) fn for_arguments<A: JsonSchema>() -> Result<Value, Error> {
    let generator = SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .into_generator();
    let mut schema = generator.into_root_schema_for::<A>().to_value();
    simplify(&mut schema);
    if let Some(root) = schema.as_object_mut() {
        // The tool's own description replaces the one of the struct.
        root.shift_remove("description");
    }
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err(Error::Internal(format!(
            "the arguments of a tool are a struct with named fields, not {}",
            std::any::type_name::<A>()
        )));
    }
    Ok(schema)
}

/// Keywords whose value is one schema.
const ONE: [&str; 9] = [
    "items",
    "additionalProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "unevaluatedProperties",
];
/// Keywords whose value is a list of schemas.
const LIST: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];
/// Keywords whose value maps names, which are not keywords, to schemas.
const NAMED: [&str; 4] = [
    "properties",
    "patternProperties",
    "$defs",
    "dependentSchemas",
];

fn simplify(schema: &mut Value) {
    let Some(object) = schema.as_object_mut() else {
        return;
    };
    object.shift_remove("$schema");
    object.shift_remove("title");
    if numeric(object) {
        object.shift_remove("format");
    }
    if let Some(Value::String(description)) = object.get_mut("description") {
        *description = description.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    for (key, value) in object.iter_mut() {
        if ONE.contains(&key.as_str()) {
            simplify(value);
        } else if LIST.contains(&key.as_str()) {
            value
                .as_array_mut()
                .into_iter()
                .flatten()
                .for_each(simplify);
        } else if NAMED.contains(&key.as_str()) {
            value
                .as_object_mut()
                .into_iter()
                .flat_map(Map::values_mut)
                .for_each(simplify);
        }
    }
    // A fixed order, whatever the generator's: the type, its parts, the required parts.
    for key in ["required", "additionalProperties"] {
        if let Some(value) = object.shift_remove(key) {
            object.insert(key.to_owned(), value);
        }
    }
}

fn numeric(object: &Map<String, Value>) -> bool {
    let is = |kind: &Value| matches!(kind.as_str(), Some("integer" | "number"));
    object
        .get("type")
        .is_some_and(|kind| is(kind) || kind.as_array().is_some_and(|kinds| kinds.iter().any(is)))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    /// Not shown: the tool has a description.
    struct Arguments {
        /// What to look for,
        /// in words.
        query: String,
        /// At most this many.
        #[serde(default = "three")]
        #[schemars(range(min = 1, max = 10))]
        top_k: u32,
        order: Order,
        title: Option<Inner>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    #[allow(dead_code)]
    enum Order {
        Best,
        Newest,
    }

    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct Inner {
        exact: bool,
    }

    fn three() -> u32 {
        3
    }

    #[test]
    fn a_schema_is_short_in_one_piece_and_in_the_order_of_the_fields() {
        assert_eq!(
            for_arguments::<Arguments>().unwrap().to_string(),
            concat!(
                r#"{"type":"object","properties":{"#,
                r#""query":{"type":"string","description":"What to look for, in words."},"#,
                r#""top_k":{"type":"integer","minimum":1,"description":"At most this many.","maximum":10,"default":3},"#,
                r#""order":{"type":"string","enum":["best","newest"]},"#,
                r#""title":{"type":["object","null"],"properties":{"exact":{"type":"boolean"}},"required":["exact"]}"#,
                r#"},"required":["query","order"],"additionalProperties":false}"#,
            )
        );
    }

    #[test]
    fn arguments_that_are_not_an_object_are_refused() {
        let error = for_arguments::<Vec<u32>>().unwrap_err();
        assert!(crate::error_message(&error).contains("named fields"));
    }
}
