//! Tools of a specification.

use rlf_specification::Specification;
use rlf_specification::model::{Operation, Type};

use super::{FromUser, Input, Output, Tool, ValueType};

/// The tools of a specification, in its order.
pub fn specified_tools(specification: &Specification) -> Vec<Tool> {
    let tool = |operation: &Operation| tool(&specification.name, operation);
    specification.operations.iter().map(tool).collect()
}

fn tool(server: &str, operation: &Operation) -> Tool {
    let inputs = operation.parameters.iter().map(|parameter| Input {
        name: parameter.name.clone(),
        kind: value_type(server, &parameter.kind),
        description: parameter.description.clone(),
        required: parameter.required,
        from_user: if parameter.from_user {
            Some(FromUser::Declared)
        } else {
            let is_key = parameter.kind.referenced().is_some();
            (!is_key).then_some(FromUser::ByRule)
        },
    });
    let outputs = operation.result.fields.iter().map(|field| Output {
        name: field.name.clone(),
        kind: value_type(server, &field.kind),
        description: field.description.clone(),
    });
    Tool {
        server: server.to_owned(),
        name: operation.name.clone(),
        description: operation.description.clone(),
        inputs: inputs.collect(),
        outputs: outputs.collect(),
    }
}

fn value_type(server: &str, kind: &Type) -> ValueType {
    match kind {
        Type::Text => ValueType::Text,
        Type::Integer => ValueType::Integer,
        Type::Number => ValueType::Number,
        Type::Boolean => ValueType::Boolean,
        Type::Date => ValueType::Date,
        Type::Enumeration(values) => ValueType::Enumeration(values.clone()),
        // Two environments have states of their own, so a key of one means nothing in the other.
        Type::Reference(entity) => ValueType::Key(format!("{server}.{entity}")),
        Type::List(item) => ValueType::List(Box::new(value_type(server, item))),
    }
}
