//! Compares what a tool gives with what a description says.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde_json::Value;

use crate::graph::{Tool, ValueType};
use crate::tasks::make::{items, own_key};
use crate::tasks::record::Arguments;
use crate::tasks::request::{Description, Fact, order};

/// The field of a tool's result that has the keys of the described kind of entity. The keys are those of the items
/// themselves or, if the description goes through another entity, of what the items refer to.
pub(super) fn key_field<'a>(tool: &'a Tool, description: &'a Description) -> Option<&'a str> {
    let own = own_key(tool)?;
    let Some(through) = &description.through else {
        return (own.entity == description.entity).then_some(own.field);
    };
    let refers = tool.outputs.iter().any(|output| {
        output.name == through.field
            && matches!(&output.kind, ValueType::Key(one) if *one == description.entity)
    });
    (own.entity == through.entity && refers).then_some(through.field.as_str())
}

/// The ways to call a tool with what a description says. None if a required input is not said.
pub(super) fn inputs(
    tool: &Tool,
    description: &Description,
    others: &BTreeMap<String, Value>,
) -> Vec<Arguments> {
    let mut plain = Arguments::new();
    let mut searched = None;
    for input in &tool.inputs {
        let stated = description.facts.iter().find_map(|fact| match fact {
            Fact::Among { parameter, value } if *parameter == input.name => Some(value),
            Fact::Is { field, value } if *field == input.name => Some(value),
            _ => None,
        });
        let of = description
            .facts
            .iter()
            .find_map(|fact| match (fact, &input.kind) {
                (
                    Fact::Of {
                        parameter, entity, ..
                    },
                    ValueType::Key(one),
                ) if one == entity && (*parameter == input.name || tool.inputs.len() == 1) => {
                    others.get(parameter)
                }
                _ => None,
            });
        match of.or(stated) {
            Some(value) => {
                plain.insert(input.name.clone(), value.clone());
            }
            None if input.required && input.kind == ValueType::Text && searched.is_none() => {
                searched = Some(input.name.clone());
            }
            None if input.required => return Vec::new(),
            None => {}
        }
    }
    let Some(searched) = searched else {
        return vec![plain];
    };
    let texts = description.facts.iter().filter_map(|fact| match fact {
        Fact::Is { value, .. } | Fact::Among { value, .. } if value.is_string() => Some(value),
        _ => None,
    });
    texts
        .map(|text| {
            let mut arguments = plain.clone();
            arguments.insert(searched.clone(), text.clone());
            arguments
        })
        .collect()
}

/// The items of a result that fit a description.
pub(super) struct Fitting<'a> {
    pub(super) items: Vec<&'a Value>,
    /// True if every fact could be compared.
    pub(super) is_sure: bool,
}

/// The items of a tool's result that fit a description, as far as they show it.
pub(super) fn fitting<'a>(
    tool: &Tool,
    description: &Description,
    others: &BTreeMap<String, Value>,
    arguments: &Arguments,
    result: &'a Value,
) -> Fitting<'a> {
    let mut fit: Vec<&Value> = items(result).iter().collect();
    let mut is_sure = true;
    for fact in &description.facts {
        match fact {
            Fact::Is { field, value } => {
                is_sure &= fit.iter().all(|item| item.get(field).is_some())
                    || arguments.get(field) == Some(value);
                fit.retain(|item| item.get(field).is_none_or(|other| other == value));
            }
            Fact::Of {
                parameter, entity, ..
            } => {
                let Some(key) = others.get(parameter) else {
                    continue;
                };
                if arguments.values().any(|value| value == key) {
                    continue;
                }
                let field = tool
                    .outputs
                    .iter()
                    .find(|output| matches!(&output.kind, ValueType::Key(one) if one == entity));
                match field {
                    Some(field) => fit.retain(|item| item.get(&field.name) == Some(key)),
                    None => is_sure = false,
                }
            }
            Fact::Among { parameter, value } => {
                is_sure &= arguments.values().any(|one| one == value)
                    || fit.iter().all(|item| item.get(parameter) == Some(value));
            }
            Fact::Extreme { .. } | Fact::Only => {}
        }
    }
    for fact in &description.facts {
        if let Fact::Extreme { field, highest } = fact {
            is_sure &= fit.iter().all(|item| !item[field].is_null());
            let beaten = if *highest {
                Ordering::Less
            } else {
                Ordering::Greater
            };
            let all = fit.clone();
            fit.retain(|item| {
                all.iter()
                    .all(|other| order(&item[field], &other[field]) != Some(beaten))
            });
        }
    }
    Fitting {
        items: fit,
        is_sure,
    }
}
