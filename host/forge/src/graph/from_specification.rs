//! Tools of a specification.

use rlf_specification::Specification;
use rlf_specification::model::Operation;

use super::{FromUser, Input, Output, Tool, ValueType};

/// The tools of a specification, in its order.
pub fn specified_tools(specification: &Specification) -> Vec<Tool> {
    let tool = |operation: &Operation| tool(&specification.name, operation);
    specification.operations.iter().map(tool).collect()
}

fn tool(server: &str, operation: &Operation) -> Tool {
    let inputs = operation.parameters.iter().map(|parameter| Input {
        name: parameter.name.clone(),
        kind: ValueType::from_declared(&parameter.kind, server),
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
        kind: ValueType::from_declared(&field.kind, server),
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
