//! Conversions between the contract's records and the host's types. Values from a guest are never trusted: JSON must be
//! JSON, numbers must be finite, and text must be safe.

use rlf_dialogue::message::{Blob, Content};
use rlf_dialogue::tool::{Ended, Hints, Metric, Observation, ToolDefinition};
use serde_json::Value;

use crate::bindings::types;
use crate::safe_text::{make_string_safe, make_value_safe};

/// A value from a guest that the contract does not allow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ContractError {
    /// Text that is not JSON although it should be.
    #[error("{place} is not one JSON value: {what}")]
    NotJson {
        /// The place of the value.
        place: String,
        /// The parser's message.
        what: String,
    },
    /// A share outside 0 to 1.
    #[error("{place} is {value}, not between 0 and 1")]
    NoShare {
        /// The place of the value.
        place: String,
        /// The number.
        value: String,
    },
    /// NaN or an infinity.
    #[error("{place} is {value}, not a finite number")]
    NotFinite {
        /// The place of the value.
        place: String,
        /// The number.
        value: String,
    },
}

fn json(text: &str, place: &str) -> Result<Value, ContractError> {
    rlf_json::from_str(text).map_err(|error| ContractError::NotJson {
        place: place.into(),
        what: error.to_string(),
    })
}

/// Refuses NaN and infinities. The error names the place.
pub fn finite(value: f64, place: impl FnOnce() -> String) -> Result<f64, ContractError> {
    if value.is_finite() {
        Ok(value)
    } else {
        Err(ContractError::NotFinite {
            place: place(),
            value: value.to_string(),
        })
    }
}

fn extra(pairs: types::Extra) -> Result<Vec<(String, Value)>, ContractError> {
    pairs
        .into_iter()
        .map(|(name, text)| {
            let value = make_value_safe(json(&text, &format!("extra value `{name}`"))?);
            Ok((make_string_safe(name), value))
        })
        .collect()
}

/// Checks numbers that a guest returned; each must be finite.
pub fn metrics(metrics: Vec<types::Metric>) -> Result<Vec<Metric>, ContractError> {
    metrics
        .into_iter()
        .map(|types::Metric { name, value }| {
            let value = finite(value, || format!("metric `{name}`"))?;
            Ok(Metric {
                name: make_string_safe(name),
                value,
            })
        })
        .collect()
}

/// Converts a part of a message or an observation.
pub fn content_from_guest(part: types::Content) -> Result<Content, ContractError> {
    let blob = |blob: types::Blob| Blob {
        media_type: make_string_safe(blob.media_type),
        data: blob.data,
    };
    Ok(match part {
        types::Content::Text(text) => Content::Text(make_string_safe(text)),
        types::Content::Structured(text) => Content::Structured(make_value_safe(json(
            &text,
            "a structured part of the result",
        )?)),
        types::Content::Image(image) => Content::Image(blob(image)),
        types::Content::Audio(audio) => Content::Audio(blob(audio)),
        types::Content::File(file) => Content::File(blob(file)),
    })
}

/// Converts and checks a guest's observation.
pub fn observation_from_guest(
    observation: types::Observation,
) -> Result<Observation, ContractError> {
    let types::Observation {
        content,
        failed,
        metrics: numbers,
        extra: pairs,
    } = observation;
    Ok(Observation {
        content: content
            .into_iter()
            .map(content_from_guest)
            .collect::<Result<_, _>>()?,
        failed,
        metrics: metrics(numbers)?,
        extra: extra(pairs)?,
    })
}

/// Number of bytes in a guest's observation, names included.
pub fn observation_bytes(observation: &types::Observation) -> usize {
    let content = observation.content.iter().map(|part| match part {
        types::Content::Text(text) | types::Content::Structured(text) => text.len(),
        types::Content::Image(blob) | types::Content::Audio(blob) | types::Content::File(blob) => {
            blob.media_type.len() + blob.data.len()
        }
    });
    let metrics = observation
        .metrics
        .iter()
        .map(|metric| metric.name.len() + size_of::<f64>());
    let extra = observation
        .extra
        .iter()
        .map(|(name, value)| name.len() + value.len());
    content.chain(metrics).chain(extra).sum()
}

/// Converts a guest's definition of a tool. Its schemas are parsed, but not checked.
pub fn definition_from_guest(
    definition: types::ToolDefinition,
) -> Result<ToolDefinition, ContractError> {
    let types::ToolDefinition {
        name,
        description,
        input_schema,
        output_schema,
        hints,
        extra: pairs,
    } = definition;
    Ok(ToolDefinition {
        input_schema: json(&input_schema, &format!("the input schema of `{name}`"))?,
        output_schema: output_schema
            .map(|schema| json(&schema, &format!("the output schema of `{name}`")))
            .transpose()?,
        description: make_string_safe(description),
        hints: Hints {
            read_only: hints.contains(types::Hints::READ_ONLY),
            idempotent: hints.contains(types::Hints::IDEMPOTENT),
            deterministic: hints.contains(types::Hints::DETERMINISTIC),
            open_world: hints.contains(types::Hints::OPEN_WORLD),
        },
        extra: extra(pairs)?,
        name,
    })
}

/// Converts the definition of a tool for guests.
pub fn definition_to_guest(definition: &ToolDefinition) -> types::ToolDefinition {
    let hints = [
        (definition.hints.read_only, types::Hints::READ_ONLY),
        (definition.hints.idempotent, types::Hints::IDEMPOTENT),
        (definition.hints.deterministic, types::Hints::DETERMINISTIC),
        (definition.hints.open_world, types::Hints::OPEN_WORLD),
    ];
    types::ToolDefinition {
        name: definition.name.clone(),
        description: definition.description.clone(),
        input_schema: definition.input_schema.to_string(),
        output_schema: definition.output_schema.as_ref().map(Value::to_string),
        hints: hints
            .into_iter()
            .filter(|(set, _)| *set)
            .fold(types::Hints::empty(), |all, (_, hint)| all | hint),
        extra: extra_to_guest(&definition.extra),
    }
}

fn extra_to_guest(pairs: &[(String, Value)]) -> types::Extra {
    pairs
        .iter()
        .map(|(name, value)| (name.clone(), value.to_string()))
        .collect()
}

/// Converts a part of a message or an observation for guests.
pub fn content_to_guest(part: &Content) -> types::Content {
    let blob = |blob: &Blob| types::Blob {
        media_type: blob.media_type.clone(),
        data: blob.data.clone(),
    };
    match part {
        Content::Text(text) => types::Content::Text(text.clone()),
        Content::Structured(value) => types::Content::Structured(value.to_string()),
        Content::Image(image) => types::Content::Image(blob(image)),
        Content::Audio(audio) => types::Content::Audio(blob(audio)),
        Content::File(file) => types::Content::File(blob(file)),
    }
}

/// Converts an observation for guests.
pub fn observation_to_guest(observation: &Observation) -> types::Observation {
    types::Observation {
        content: observation.content.iter().map(content_to_guest).collect(),
        failed: observation.failed,
        metrics: observation
            .metrics
            .iter()
            .map(|metric| types::Metric {
                name: metric.name.clone(),
                value: metric.value,
            })
            .collect(),
        extra: extra_to_guest(&observation.extra),
    }
}

/// Converts the end of a call for guests.
pub fn ended_to_guest(ended: Ended) -> types::Ended {
    match ended {
        Ended::Ok => types::Ended::Ok,
        Ended::Failed => types::Ended::Failed,
        Ended::InvalidArguments => types::Ended::InvalidArguments,
        Ended::Timeout => types::Ended::Timeout,
        Ended::MemoryLimit => types::Ended::MemoryLimit,
        Ended::OutputLimit => types::Ended::OutputLimit,
        Ended::Trap => types::Ended::Trap,
        Ended::Exited => types::Ended::Exited,
        Ended::Denied => types::Ended::Denied,
        Ended::Unavailable => types::Ended::Unavailable,
        Ended::Cancelled => types::Ended::Cancelled,
    }
}

/// The kind of an error by its name in the contract, and its message.
pub(crate) fn error_parts(error: &types::Error) -> (&'static str, &str) {
    match error {
        types::Error::InvalidArguments(message) => ("invalid-arguments", message),
        types::Error::NotFound(message) => ("not-found", message),
        types::Error::Denied(message) => ("denied", message),
        types::Error::Exhausted(message) => ("exhausted", message),
        types::Error::Unavailable(message) => ("unavailable", message),
        types::Error::Cancelled => ("cancelled", ""),
        types::Error::Internal(message) => ("internal", message),
    }
}

/// Writes a guest's error in words, for logs.
pub fn error_text(error: &types::Error) -> String {
    let (kind, message) = error_parts(error);
    let message: String = make_string_safe(message.chars().take(500).collect());
    if message.is_empty() {
        kind.into()
    } else {
        format!("{kind}: {message}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn observation(content: types::Content) -> types::Observation {
        types::Observation {
            content: vec![content],
            failed: false,
            metrics: vec![],
            extra: vec![],
        }
    }

    #[test]
    fn structured_results_must_be_json() {
        let broken = observation(types::Content::Structured("{\"a\":".into()));
        let error = observation_from_guest(broken).unwrap_err().to_string();
        assert!(
            error.starts_with("a structured part of the result is not one JSON value"),
            "{error}"
        );
        let two = observation(types::Content::Structured("1 2".into()));
        assert!(observation_from_guest(two).is_err());
        let deep = observation(types::Content::Structured("[".repeat(10_000)));
        assert!(observation_from_guest(deep).is_err());
    }

    #[test]
    fn metrics_must_be_finite() {
        let mut bad = observation(types::Content::Text("ok".into()));
        bad.metrics = vec![types::Metric {
            name: "score".into(),
            value: f64::NAN,
        }];
        assert_eq!(
            observation_from_guest(bad).unwrap_err().to_string(),
            "metric `score` is NaN, not a finite number"
        );
    }

    #[test]
    fn text_is_made_safe_on_the_way_in() {
        let escape = observation(types::Content::Text("\u{1b}[31mred".into()));
        assert_eq!(
            observation_from_guest(escape).unwrap().content,
            [Content::Text("\u{241b}[31mred".into())]
        );
    }

    #[test]
    fn a_definition_survives_the_way_to_a_reward_and_back() {
        let definition = ToolDefinition {
            name: "search".into(),
            description: "Finds".into(),
            input_schema: serde_json::json!({"type": "object", "b": 1, "a": 2}),
            output_schema: Some(serde_json::json!({"type": "array"})),
            hints: Hints {
                read_only: true,
                deterministic: true,
                ..Hints::default()
            },
            extra: vec![("x".into(), serde_json::json!([1]))],
        };
        let back = definition_from_guest(definition_to_guest(&definition)).unwrap();
        assert_eq!(back, definition);
        assert_eq!(
            back.input_schema.to_string(),
            r#"{"type":"object","b":1,"a":2}"#
        );
    }
}
