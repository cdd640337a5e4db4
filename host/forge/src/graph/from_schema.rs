//! Tools of definitions with JSON Schema, flattened.

use rlf_dialogue::tool::ToolDefinition;
use serde_json::{Map, Value};

use super::lexical::words;
use super::{FromUser, Input, Output, Tool, ValueType};

/// Last words of names of keys. The user does not know a key unless somebody declares it.
pub const KEY_WORDS: [&str; 7] = ["id", "identifier", "key", "uuid", "guid", "token", "handle"];

/// Maximum number of `$ref` that are followed for one schema.
const MAX_REFERENCES: usize = 8;

/// The tool of a definition. Without an output schema it has no outputs.
pub fn defined_tool(server: &str, definition: &ToolDefinition) -> Tool {
    let inputs = flatten(&definition.input_schema);
    let outputs = definition.output_schema.as_ref().map(flatten);
    Tool {
        server: server.to_owned(),
        name: definition.name.clone(),
        description: definition.description.clone(),
        inputs: inputs.into_iter().map(Property::input).collect(),
        outputs: outputs
            .into_iter()
            .flatten()
            .map(Property::output)
            .collect(),
    }
}

/// A flattened property.
struct Property {
    name: String,
    kind: ValueType,
    description: String,
    required: bool,
}

impl Property {
    fn input(self) -> Input {
        let words = words(&self.name);
        let is_key = words
            .last()
            .is_some_and(|last| KEY_WORDS.contains(&last.as_str()));
        Input {
            from_user: (!is_key).then_some(FromUser::ByRule),
            name: self.name,
            kind: self.kind,
            description: self.description,
            required: self.required,
        }
    }

    fn output(self) -> Output {
        Output {
            name: self.name,
            kind: self.kind,
            description: self.description,
        }
    }
}

/// The properties of an object, or of the objects in an array. A property that is an object, or an array of objects, is
/// replaced by its own properties. Another schema is one value, called `result`.
fn flatten(root: &Value) -> Vec<Property> {
    let Some(properties) = properties(root, root) else {
        let resolved = resolve(root, root);
        let is_empty = value_type(resolved, root) == ValueType::Object;
        let whole = Property {
            name: "result".to_owned(),
            kind: value_type(resolved, root),
            description: description(root, resolved),
            required: true,
        };
        return if is_empty { Vec::new() } else { vec![whole] };
    };
    let mut flat = Vec::new();
    for (name, schema, required) in properties {
        match self::properties(schema, root) {
            Some(inner) if !inner.is_empty() => {
                for (inner_name, inner_schema, inner_required) in inner {
                    let resolved = resolve(inner_schema, root);
                    flat.push(Property {
                        name: format!("{name}.{inner_name}"),
                        kind: value_type(resolved, root),
                        description: description(inner_schema, resolved),
                        required: required && inner_required,
                    });
                }
            }
            _ => {
                let resolved = resolve(schema, root);
                flat.push(Property {
                    name: name.to_owned(),
                    kind: value_type(resolved, root),
                    description: description(schema, resolved),
                    required,
                });
            }
        }
    }
    flat
}

/// The properties of an object, or of the objects in an array, each with its name and whether it is required. None for
/// everything else.
fn properties<'a>(schema: &'a Value, root: &'a Value) -> Option<Vec<(&'a str, &'a Value, bool)>> {
    let mut schema = resolve(schema, root);
    if type_name(schema) == Some("array") {
        schema = resolve(schema.get("items")?, root);
    }
    let properties = schema.get("properties")?.as_object()?;
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let is_required = |name: &str| required.contains(&name);
    let all = properties
        .iter()
        .map(|(name, schema)| (name.as_str(), schema, is_required(name)));
    Some(all.collect())
}

/// The schema itself: behind local references, and without the alternative of being null.
fn resolve<'a>(schema: &'a Value, root: &'a Value) -> &'a Value {
    let mut schema = schema;
    for _ in 0..MAX_REFERENCES {
        let target = schema.get("$ref").and_then(Value::as_str);
        let target = target.and_then(|target| root.pointer(target.strip_prefix('#')?));
        let next = target.or_else(|| only_alternative(schema.as_object()?));
        match next {
            Some(next) => schema = next,
            None => break,
        }
    }
    schema
}

/// The one alternative of `anyOf`, `oneOf` or `allOf` that is not null.
fn only_alternative(schema: &Map<String, Value>) -> Option<&Value> {
    let all = ["anyOf", "oneOf", "allOf"]
        .iter()
        .find_map(|key| schema.get(*key)?.as_array())?;
    let mut rest = all
        .iter()
        .filter(|one| one.get("type").and_then(Value::as_str) != Some("null"));
    match (rest.next(), rest.next()) {
        (Some(only), None) => Some(only),
        _ => None,
    }
}

/// The type in `type`, the first that is not null if there are several.
fn type_name(schema: &Value) -> Option<&str> {
    match schema.get("type")? {
        Value::String(name) => Some(name),
        Value::Array(names) => names
            .iter()
            .filter_map(Value::as_str)
            .find(|name| *name != "null"),
        _ => None,
    }
}

fn value_type(schema: &Value, root: &Value) -> ValueType {
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        let texts: Vec<String> = values
            .iter()
            .filter_map(|value| Some(value.as_str()?.to_owned()))
            .collect();
        if !texts.is_empty() {
            return ValueType::Enumeration(texts);
        }
    }
    match type_name(schema) {
        Some("string") if schema.get("format").and_then(Value::as_str) == Some("date") => {
            ValueType::Date
        }
        Some("string") => ValueType::Text,
        Some("integer") => ValueType::Integer,
        Some("number") => ValueType::Number,
        Some("boolean") => ValueType::Boolean,
        Some("object") => ValueType::Object,
        Some("array") => {
            // Arrays in arrays are rare. The schema is finite, but a reference can lead back to it.
            let item = schema.get("items").map(|items| resolve(items, root));
            let item = item.map_or(ValueType::Any, |item| match type_name(item) {
                Some("array") => ValueType::List(Box::new(ValueType::Any)),
                _ => value_type(item, root),
            });
            ValueType::List(Box::new(item))
        }
        _ => ValueType::Any,
    }
}

/// The description beside a reference, or else the one behind it.
fn description(schema: &Value, resolved: &Value) -> String {
    let text = |schema: &Value| {
        schema
            .get("description")
            .and_then(Value::as_str)
            .map(str::to_owned)
    };
    text(schema).or_else(|| text(resolved)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use rlf_dialogue::tool::Hints;
    use serde_json::json;

    use super::*;

    fn definition(input: Value, output: Option<Value>) -> ToolDefinition {
        ToolDefinition {
            name: "book_flight".into(),
            description: "Books a flight.".into(),
            input_schema: input,
            output_schema: output,
            hints: Hints::default(),
            extra: Vec::new(),
        }
    }

    fn outputs(schema: Value) -> Vec<(String, ValueType)> {
        let tool = defined_tool(
            "Air",
            &definition(json!({ "type": "object" }), Some(schema)),
        );
        tool.outputs
            .into_iter()
            .map(|output| (output.name, output.kind))
            .collect()
    }

    #[test]
    fn objects_and_arrays_of_objects_are_flattened_one_level() {
        let tool = defined_tool(
            "Air",
            &definition(
                json!({
                    "type": "object",
                    "properties": {
                        "flight_id": { "type": "string", "description": "Number of the flight" },
                        "passengers": {
                            "type": "array",
                            "items": {
                                "type": "object",
                                "properties": {
                                    "name": { "type": "string" },
                                    "address": { "type": "object", "properties": { "city": { "type": "string" } } },
                                },
                                "required": ["name"],
                            },
                        },
                        "contact": { "type": "object", "properties": { "email": { "type": "string" } }, "required": ["email"] },
                        "seats": { "type": "array", "items": { "type": "string" } },
                        "options": { "type": "object" },
                    },
                    "required": ["flight_id", "passengers"],
                }),
                None,
            ),
        );
        let found: Vec<(&str, String, bool)> = tool
            .inputs
            .iter()
            .map(|input| (input.name.as_str(), input.kind.to_string(), input.required))
            .collect();
        let expected = [
            ("flight_id", "text", true),
            ("passengers.name", "text", true),
            ("passengers.address", "object", false),
            ("contact.email", "text", false),
            ("seats", "list of text", false),
            ("options", "object", false),
        ];
        assert_eq!(
            found,
            expected.map(|(name, kind, required)| (name, kind.to_owned(), required))
        );
        assert_eq!(tool.inputs[0].description, "Number of the flight");
        assert_eq!(tool.full_name(), "Air-book_flight");
        assert!(tool.outputs.is_empty());
    }

    #[test]
    fn a_result_may_be_an_object_an_array_of_objects_or_a_value() {
        let object = json!({ "type": "object", "properties": { "id": { "type": "integer" } } });
        let id = vec![("id".to_owned(), ValueType::Integer)];
        assert_eq!(outputs(object.clone()), id);
        assert_eq!(outputs(json!({ "type": "array", "items": object })), id);
        let texts = json!({ "type": "array", "items": { "type": "string" } });
        assert_eq!(
            outputs(texts),
            [(
                "result".to_owned(),
                ValueType::List(Box::new(ValueType::Text))
            )]
        );
        assert_eq!(outputs(json!({ "type": "object" })), []);
        assert_eq!(outputs(json!({})), [("result".to_owned(), ValueType::Any)]);
    }

    #[test]
    fn references_and_optional_values_are_seen_through() {
        let schema = json!({
            "$defs": {
                "Status": { "type": "string", "enum": ["open", "shipped"], "description": "State of the order" },
                "Order": { "type": "object", "properties": { "status": { "$ref": "#/$defs/Status" }, "again": { "$ref": "#/$defs/Order" } } },
                "Loop": { "$ref": "#/$defs/Loop" },
            },
            "type": "object",
            "properties": {
                "order": { "anyOf": [{ "$ref": "#/$defs/Order" }, { "type": "null" }] },
                "day": { "type": ["string", "null"], "format": "date" },
                "amount": { "anyOf": [{ "type": "integer" }, { "type": "number" }] },
                "loop": { "$ref": "#/$defs/Loop" },
                "gone": { "$ref": "#/$defs/None" },
            },
        });
        let found: Vec<(String, String)> = outputs(schema)
            .into_iter()
            .map(|(name, kind)| (name, kind.to_string()))
            .collect();
        let expected = [
            ("order.status", "one of open, shipped"),
            ("order.again", "object"),
            ("day", "date"),
            ("amount", "any"),
            ("loop", "any"),
            ("gone", "any"),
        ];
        assert_eq!(
            found,
            expected.map(|(name, kind)| (name.to_owned(), kind.to_owned()))
        );
    }

    #[test]
    fn the_user_provides_what_has_no_name_of_a_key() {
        let names = [
            "query",
            "user_id",
            "userId",
            "order.id",
            "ids",
            "api_key",
            "keyword",
            "identity",
            "session-token",
        ];
        let properties: Map<String, Value> = names
            .iter()
            .map(|name| ((*name).to_owned(), json!({ "type": "string" })))
            .collect();
        let tool = defined_tool(
            "S",
            &definition(json!({ "type": "object", "properties": properties }), None),
        );
        let provided: Vec<&str> = tool
            .inputs
            .iter()
            .filter(|input| input.from_user.is_some())
            .map(|input| input.name.as_str())
            .collect();
        assert_eq!(provided, ["query", "keyword", "identity"]);
        assert!(
            tool.inputs
                .iter()
                .all(|input| input.from_user != Some(FromUser::Declared))
        );
    }
}
