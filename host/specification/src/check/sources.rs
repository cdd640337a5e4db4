//! Checks that the values of parameters can come from somewhere.

use std::collections::BTreeSet;

use crate::finding::{Finding, Kind};
use crate::model::{Parameter, Specification};

/// Reports parameters that are keys which neither the user knows nor any operation returns, as far as operations can be
/// called at all.
pub(super) fn check(specification: &Specification, findings: &mut Vec<Finding>) {
    let mut known: BTreeSet<&str> = BTreeSet::new();
    let fillable = |parameter: &Parameter, known: &BTreeSet<&str>| {
        let entity = parameter.kind.referenced();
        !parameter.required
            || parameter.from_user
            || entity.is_none_or(|entity| known.contains(entity))
    };
    loop {
        let before = known.len();
        for operation in &specification.operations {
            if operation
                .parameters
                .iter()
                .all(|parameter| fillable(parameter, &known))
            {
                let fields = operation.result.fields.iter();
                known.extend(fields.filter_map(|field| field.kind.referenced()));
            }
        }
        if known.len() == before {
            break;
        }
    }
    for (index, operation) in specification.operations.iter().enumerate() {
        for (number, parameter) in operation.parameters.iter().enumerate() {
            if !fillable(parameter, &known) {
                let entity = parameter.kind.referenced().unwrap_or_default();
                findings.push(Finding::new(
                    Kind::UnfillableParameter,
                    format!("/operations/{index}/parameters/{number}"),
                    format!("nobody knows `{}`: no operation that can be called returns a key of {entity}", parameter.name),
                    "return the key from an operation that finds or lists, or set `from_user = true`",
                ));
            }
        }
    }
}
