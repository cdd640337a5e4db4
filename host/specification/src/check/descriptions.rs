//! Descriptions: present, and silent about what only the state knows.

use std::collections::BTreeSet;

use crate::finding::{Finding, Kind};
use crate::model::{Generator, Specification, Type};
use crate::names::has_word;

/// Shorter words are not looked for: they occur in ordinary sentences.
const SHORTEST: usize = 4;

pub(super) fn check(specification: &Specification, findings: &mut Vec<Finding>) {
    let secrets = secrets(specification);
    let prefixes: Vec<&str> = specification
        .entities
        .iter()
        .map(|entity| entity.key.prefix.as_str())
        .collect();
    let mut look = |text: &str, place: String, wanted: bool| {
        if text.trim().is_empty() {
            if wanted {
                findings.push(Finding::new(
                    Kind::MissingDescription,
                    place,
                    "there is no description",
                    "say what it is, for a reader who sees nothing else",
                ));
            }
            return;
        }
        let leaked = leak(text, &secrets, &prefixes);
        if let Some(leaked) = leaked {
            findings.push(Finding::new(
                Kind::LeakingDescription,
                place,
                format!("the description says `{leaked}`, which is a value of generated states"),
                "describe it without values of the state",
            ));
        }
    };
    look(&specification.description, "/description".into(), true);
    if let Some(instructions) = &specification.instructions {
        look(instructions, "/instructions".into(), false);
    }
    for (index, operation) in specification.operations.iter().enumerate() {
        let at = format!("/operations/{index}");
        look(&operation.description, format!("{at}/description"), true);
        for (number, parameter) in operation.parameters.iter().enumerate() {
            look(
                &parameter.description,
                format!("{at}/parameters/{number}/description"),
                true,
            );
        }
        for (number, field) in operation.result.fields.iter().enumerate() {
            look(
                &field.description,
                format!("{at}/result/fields/{number}/description"),
                false,
            );
        }
    }
}

/// The texts of generated states that are not values of enumerations.
fn secrets(specification: &Specification) -> BTreeSet<String> {
    let mut secrets: BTreeSet<String> = specification
        .vocabularies
        .values()
        .flatten()
        .cloned()
        .collect();
    let fields = specification
        .values
        .iter()
        .chain(specification.entities.iter().flat_map(|e| &e.fields));
    let plain = fields
        .filter(|field| field.kind == Type::Text)
        .filter_map(|field| field.generate.as_ref());
    for generator in plain {
        match generator {
            Generator::Constant(serde_json::Value::String(text)) => {
                secrets.insert(text.clone());
            }
            Generator::Choice(values) => {
                secrets.extend(
                    values
                        .iter()
                        .filter_map(|value| value.as_str())
                        .map(str::to_owned),
                );
            }
            _ => {}
        }
    }
    secrets.retain(|secret| secret.chars().count() >= SHORTEST);
    secrets
}

/// The first value of generated states in a text, as a word of its own.
fn leak(text: &str, secrets: &BTreeSet<String>, prefixes: &[&str]) -> Option<String> {
    if let Some(secret) = secrets.iter().find(|secret| has_word(text, secret)) {
        return Some(secret.clone());
    }
    let words = text.split(|one: char| !one.is_alphanumeric() && one != '-' && one != '_');
    for word in words {
        let is_key = prefixes.iter().any(|prefix| {
            word.strip_prefix(prefix).is_some_and(|rest| {
                !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit())
            })
        });
        if is_key {
            return Some(word.to_owned());
        }
    }
    None
}
