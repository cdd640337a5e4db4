//! JSON schemas of operations, as tools have them.

use serde_json::{Map, Number, Value as Json, json};

use crate::model::{Operation, Outcome, Parameter, Type};

impl Operation {
    /// The JSON schema of the arguments.
    pub fn input_schema(&self) -> Json {
        let mut properties = Map::new();
        for parameter in &self.parameters {
            properties.insert(parameter.name.clone(), parameter.schema());
        }
        let required: Vec<&str> = self
            .parameters
            .iter()
            .filter(|parameter| parameter.required)
            .map(|parameter| parameter.name.as_str())
            .collect();
        json!({
            "type": "object", "properties": properties, "required": required, "additionalProperties": false,
        })
    }
}

impl Parameter {
    fn schema(&self) -> Json {
        let mut schema = of_type(&self.kind, self.can_be_null());
        limit(&mut schema, "minimum", self.minimum.as_ref());
        limit(&mut schema, "maximum", self.maximum.as_ref());
        schema["description"] = self.description.as_str().into();
        if let Some(default) = &self.default {
            schema["default"] = default.clone();
        }
        schema
    }
}

impl Outcome {
    /// The JSON schema of the result: an object, or an array of objects.
    pub fn schema(&self) -> Json {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for field in &self.fields {
            let mut schema = of_type(&field.kind, field.optional);
            if !field.description.is_empty() {
                schema["description"] = field.description.as_str().into();
            }
            properties.insert(field.name.clone(), schema);
            required.push(field.name.as_str());
        }
        let object = json!({ "type": "object", "properties": properties, "required": required });
        match self.each {
            Some(_) => json!({ "type": "array", "items": object }),
            None => object,
        }
    }
}

fn limit(schema: &mut Json, key: &str, limit: Option<&Number>) {
    if let Some(limit) = limit {
        schema[key] = Json::Number(limit.clone());
    }
}

fn of_type(kind: &Type, nullable: bool) -> Json {
    let mut schema = match kind {
        Type::Text | Type::Reference(_) => json!({ "type": "string" }),
        Type::Integer => json!({ "type": "integer" }),
        Type::Number => json!({ "type": "number" }),
        Type::Boolean => json!({ "type": "boolean" }),
        Type::Date => json!({ "type": "string", "format": "date" }),
        Type::Enumeration(values) => json!({ "type": "string", "enum": values }),
        Type::List(item) => json!({ "type": "array", "items": of_type(item, false) }),
    };
    if nullable {
        let plain = schema["type"].take();
        schema["type"] = json!([plain, "null"]);
        if let Some(Json::Array(values)) = schema.get_mut("enum") {
            values.push(Json::Null);
        }
    }
    schema
}
