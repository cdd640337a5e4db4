//! The description of the service in OpenAPI 3.1, from the routes and the types that they read and write.

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::answer::RefusalBody;
use crate::route::{Answers, Route};

/// Describes routes.
pub(crate) fn document(routes: &[Route]) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let mut paths = Map::new();
    for route in routes {
        let operation = operation(route, &mut generator);
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_ascii_lowercase()] = operation;
    }
    let schemas = generator.take_definitions(true);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "rlf-host serve",
            "description": "Programs, tools and rewards in sandboxes. `/run_code` and `/run_jupyter` are SandboxFusion's.",
            "version": env!("CARGO_PKG_VERSION"),
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "password": {"type": "http", "scheme": "basic", "description": "The token as the password."},
            },
        },
        "security": [{}, {"token": []}, {"password": []}],
    })
}

fn operation(route: &Route, generator: &mut SchemaGenerator) -> Value {
    let content = |schema: Value| json!({"application/json": {"schema": schema}});
    let refusal = content(generator.subschema_for::<RefusalBody>().to_value());
    let answer = match route.answers {
        Answers::Json(describe) => content(describe(generator).to_value()),
        Answers::Text(kind) => json!({kind: {"schema": {"type": "string"}}}),
    };
    let mut operation = json!({
        "summary": route.summary,
        "responses": {
            "200": {"description": "Done", "content": answer},
            "default": {"description": "Refused", "content": refusal},
        },
    });
    if let Some(describe) = route.takes {
        operation["requestBody"] =
            json!({"required": true, "content": content(describe(generator).to_value())});
        operation["responses"]["504"] = json!({
            "description": "No turn came in time, or the machine had no room: worth repeating",
            "content": refusal,
        });
    }
    let parameters: Vec<Value> = (route.path.split('/'))
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
        .map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}))
        .collect();
    if !parameters.is_empty() {
        operation["parameters"] = parameters.into();
    }
    operation
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::routes;

    fn references(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(map) => {
                found.extend(map.get("$ref").and_then(Value::as_str).map(str::to_owned));
                map.values().for_each(|value| references(value, found));
            }
            Value::Array(values) => values.iter().for_each(|value| references(value, found)),
            _ => {}
        }
    }

    #[test]
    fn every_route_is_described_and_every_reference_leads_somewhere() {
        let routes = routes::all();
        let document = document(&routes);
        for route in &routes {
            let operation =
                &document["paths"][route.path][route.method.as_str().to_ascii_lowercase()];
            assert_eq!(operation["summary"], route.summary, "{}", route.path);
            assert_eq!(
                operation["requestBody"].is_object(),
                route.takes.is_some(),
                "{}",
                route.path
            );
        }
        let mut found = BTreeSet::new();
        references(&document, &mut found);
        assert!(!found.is_empty());
        for reference in found {
            let place = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(place).is_some(), "{reference}");
        }
    }

    #[test]
    fn requests_are_described_as_they_are_read() {
        let document = document(&routes::all());
        let schema = &document["components"]["schemas"]["RunCodeRequest"];
        let fields: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        assert_eq!(
            fields,
            [
                "compile_timeout",
                "run_timeout",
                "memory_limit_MB",
                "code",
                "stdin",
                "language",
                "files",
                "fetch_files"
            ]
        );
        assert_eq!(schema["required"], json!(["code", "language"]));
        assert_eq!(schema["properties"]["run_timeout"]["type"], "number");
        assert_eq!(
            document["components"]["schemas"]["RunStatus"]["oneOf"][2]["const"],
            "SandboxError"
        );
    }
}
