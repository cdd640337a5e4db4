//! JSON schemas of documents.

use serde_json::{Map, Value, json};

use crate::rows::document::{Document, Parameter, ParameterKind};

/// The schema of a document's arguments, as published rows have it.
pub(super) fn schema(document: &Document) -> Value {
    object(&document.parameters)
}

fn object(parameters: &[Parameter]) -> Value {
    let properties: Map<String, Value> = parameters
        .iter()
        .map(|parameter| (parameter.name.clone(), property(parameter)))
        .collect();
    let required: Vec<&str> = parameters
        .iter()
        .filter(|parameter| parameter.required)
        .map(|parameter| parameter.name.as_str())
        .collect();
    json!({ "type": "object", "properties": properties, "required": required })
}

fn property(parameter: &Parameter) -> Value {
    let mut made = match &parameter.kind {
        ParameterKind::Text => json!({ "type": "string" }),
        ParameterKind::Texts => json!({ "type": "array", "items": { "type": "string" } }),
        ParameterKind::Numbers => {
            json!({ "type": "array", "items": { "type": "number" }, "minItems": 2 })
        }
        ParameterKind::Integer(least, most) => {
            json!({ "type": "integer", "minimum": least, "maximum": most })
        }
        ParameterKind::Share => json!({ "type": "number", "minimum": 0, "maximum": 1 }),
        ParameterKind::Boolean => json!({ "type": "boolean" }),
        ParameterKind::Choice(values) => json!({ "type": "string", "enum": values }),
        ParameterKind::Date => json!({ "type": "string", "format": "date" }),
        ParameterKind::Object(fields) => object(fields),
    };
    if let Some(made) = made.as_object_mut() {
        made.shift_insert(1, "description".into(), json!(parameter.description));
        if !parameter.default.is_null() {
            made.insert("default".into(), parameter.default.clone());
        }
    }
    made
}
