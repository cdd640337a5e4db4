//! Limits, defaults and enumerations that contradict themselves.

use serde_json::{Number, Value as Json};

use crate::expression::Schema;
use crate::finding::{Finding, Kind};
use crate::model::{Specification, Type};
use crate::program::within;
use crate::state_json::read;

pub(super) fn check(specification: &Specification, findings: &mut Vec<Finding>) {
    let schema = Schema::new(specification);
    for (index, value) in specification.values.iter().enumerate() {
        let at = format!("/values/{index}");
        limits(
            &value.kind,
            value.minimum.as_ref(),
            value.maximum.as_ref(),
            &at,
            findings,
        );
    }
    for (index, entity) in specification.entities.iter().enumerate() {
        for (number, field) in entity.fields.iter().enumerate() {
            let at = format!("/entities/{index}/fields/{number}");
            limits(
                &field.kind,
                field.minimum.as_ref(),
                field.maximum.as_ref(),
                &at,
                findings,
            );
        }
    }
    for (index, operation) in specification.operations.iter().enumerate() {
        for (number, parameter) in operation.parameters.iter().enumerate() {
            let at = format!("/operations/{index}/parameters/{number}");
            let (minimum, maximum) = (parameter.minimum.as_ref(), parameter.maximum.as_ref());
            limits(&parameter.kind, minimum, maximum, &at, findings);
            let Some(default) = &parameter.default else {
                continue;
            };
            let mut wrong = |message: String, mend: &str| {
                let place = format!("{at}/default");
                findings.push(Finding::new(Kind::BadRange, place, message, mend));
            };
            if parameter.required {
                wrong(
                    format!("`{}` is required and has a default", parameter.name),
                    "set `required = false`, or leave out the default",
                );
            }
            match read(&schema, &schema.resolve(&parameter.kind, false), default) {
                Err(error) => wrong(error.to_string(), "use a value of that type"),
                Ok(value) if !within(&value, minimum, maximum) => {
                    wrong(
                        format!("{default} is outside of the limits"),
                        "use a value within them",
                    );
                }
                Ok(_) => {}
            }
        }
    }
}

fn limits(
    kind: &Type,
    minimum: Option<&Number>,
    maximum: Option<&Number>,
    at: &str,
    findings: &mut Vec<Finding>,
) {
    let mut wrong = |place: &str, message: String, mend: &str| {
        findings.push(Finding::new(
            Kind::BadRange,
            format!("{at}{place}"),
            message,
            mend,
        ));
    };
    let is_limit = |limit: &Number| match kind {
        Type::Integer => limit.as_i64().is_some(),
        Type::Number => limit.as_f64().is_some(),
        _ => false,
    };
    for (place, limit) in [("/minimum", minimum), ("/maximum", maximum)] {
        if let Some(limit) = limit.filter(|limit| !is_limit(limit)) {
            let message = format!("{limit} is no limit of {kind}");
            wrong(
                place,
                message,
                "limits are for integers and numbers, and of their type",
            );
        }
    }
    if let (Some(least), Some(most)) = (
        minimum.and_then(Number::as_f64),
        maximum.and_then(Number::as_f64),
    ) && least > most
    {
        let message = format!("the minimum {least} is above the maximum {most}");
        wrong("/minimum", message, "exchange them");
    }
    let mut inner = kind;
    while let Type::List(item) = inner {
        inner = item;
    }
    if let Type::Enumeration(values) = inner {
        let repeated = values
            .iter()
            .enumerate()
            .any(|(at, value)| values[..at].contains(value));
        if values.is_empty() || repeated || values.iter().any(String::is_empty) {
            let shown = Json::from(values.clone());
            let message = format!("{shown} is no enumeration");
            wrong(
                "/type",
                message,
                "list at least one value, each once, none empty",
            );
        }
    }
}
