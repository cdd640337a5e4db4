//! From the template of an operation to the operation.

use std::collections::{BTreeMap, BTreeSet};

use rlf_specification::model::{
    Binding, Delete, Each, Effect, Insert, Operation, Outcome, OutcomeField, Precondition, Type,
    Update,
};

use super::archetype::{Archetype, ListTemplate, OperationTemplate};
use super::draft::{Draft, Made};
use super::parameters::Inputs;

pub(super) fn make(
    draft: &Draft<'_>,
    archetype: &Archetype,
    template: &OperationTemplate,
) -> Result<Operation, String> {
    let words = &draft.words;
    let mut inputs = Inputs::default();
    for role in &template.by {
        inputs.find(draft, draft.made(role)?)?;
    }
    let mut effects = Vec::new();
    let mut result = Vec::new();
    if let Some(role) = &template.create {
        let made = draft.made(role)?;
        effects.push(inputs.create(draft, made)?);
        result.push(key_field(made, &made.entity.key.name));
        result.extend(changed(made, &template.returns, &made.entity.key.name));
    }
    inputs
        .parameters
        .extend(draft.read_all(archetype, &template.parameters)?);
    inputs
        .bindings
        .extend(draft.read_all::<Binding>(archetype, &template.bindings)?);
    for precondition in &template.preconditions {
        if draft
            .plan
            .flags
            .hold(&archetype.name, &precondition.condition)
        {
            inputs.preconditions.push(Precondition {
                require: words.expression(&precondition.require)?,
                error: words.sentence(&precondition.error)?,
            });
        }
    }
    effects.extend(draft.read_all::<Effect>(archetype, &template.effects)?);
    if let Some(change) = &template.create_as {
        let made = draft.made(&change.role)?;
        let mut values = made.initial.clone();
        values.extend(existing(draft, made, &change.values)?);
        let name = format!("new_{}", made.entity.key.name);
        result.push(key_field(made, &name));
        effects.push(Effect::Insert(Insert {
            entity: made.entity.name.clone(),
            values,
            key: None,
            name: Some(name),
            when: None,
            each: None,
        }));
    }
    if let Some(change) = &template.update {
        let made = draft.made(&change.role)?;
        let key = &made.entity.key.name;
        let values = existing(draft, made, &change.values)?;
        let names: Vec<String> = template
            .returns
            .iter()
            .chain(values.keys())
            .cloned()
            .collect();
        result.push(key_field(made, key));
        result.extend(changed(made, &names, key));
        effects.push(Effect::Set(Update {
            entity: made.entity.name.clone(),
            key: key.clone(),
            values,
            when: None,
            each: None,
        }));
    }
    if let Some(role) = &template.delete {
        let made = draft.made(role)?;
        let key = &made.entity.key.name;
        result.push(key_field(made, key));
        effects.push(Effect::Delete(Delete {
            entity: made.entity.name.clone(),
            key: key.clone(),
            when: None,
            each: None,
        }));
    }
    if let Some(role) = &template.get {
        let made = draft.made(role)?;
        result.push(key_field(made, &made.entity.key.name));
        let record = &made.entity.name;
        result.extend(fields(made, |field| format!("{record}.{field}")));
    }
    let mut each = None;
    if let Some(list) = &template.list {
        each = Some(self::list(draft, archetype, list, &mut result)?);
    }
    result.extend(draft.read_all::<OutcomeField>(archetype, &template.fields)?);
    Ok(Operation {
        name: words.expression(&template.name)?,
        description: words.sentence(&template.description)?,
        read_only: effects.is_empty(),
        parameters: inputs.parameters,
        bindings: inputs.bindings,
        preconditions: inputs.preconditions,
        effects,
        postconditions: Vec::new(),
        result: Outcome {
            each,
            fields: result,
        },
    })
}

/// Adds the fields of a list's items; returns the list.
fn list(
    draft: &Draft<'_>,
    archetype: &Archetype,
    template: &ListTemplate,
    result: &mut Vec<OutcomeField>,
) -> Result<Each, String> {
    let made = draft.made(&template.role)?;
    let collection = &made.entity.collection;
    let mut condition = draft.words.expression(&template.condition)?;
    for further in &template.and {
        if draft.plan.flags.hold(&archetype.name, &further.condition) {
            let further = draft.words.expression(&further.holds)?;
            condition = if condition == "true" {
                further
            } else {
                format!("{condition} && {further}")
            };
        }
    }
    result.push(key_field(made, "x"));
    let is_brief = template
        .brief
        .as_ref()
        .is_some_and(|option| draft.plan.flags.has(&archetype.name, option));
    let label = made.label.as_ref().filter(|_| is_brief);
    let all = fields(made, |field| format!("{collection}[x].{field}"));
    result.extend(
        all.into_iter()
            .filter(|field| label.is_none_or(|label| field.name == *label)),
    );
    if draft.labels && !is_brief {
        for field in &made.entity.fields {
            let (Type::Reference(target), false) = (&field.kind, field.optional) else {
                continue;
            };
            let target = draft.named(target)?;
            let name = field
                .name
                .strip_suffix("_id")
                .unwrap_or(&field.name)
                .to_owned()
                + "_name";
            if let Some(label) = &target.label
                && result.iter().all(|field| field.name != name)
            {
                result.push(OutcomeField {
                    name,
                    kind: Type::Text,
                    description: String::new(),
                    optional: false,
                    value: format!(
                        "{}[{collection}[x].{}].{label}",
                        target.entity.collection, field.name
                    ),
                });
            }
        }
    }
    let of = format!("{collection}.filter(x, {condition})");
    Ok(Each {
        name: "x".to_owned(),
        of,
    })
}

fn key_field(made: &Made, value: &str) -> OutcomeField {
    OutcomeField {
        name: made.entity.key.name.clone(),
        kind: Type::Reference(made.entity.name.clone()),
        description: made.entity.key.description.clone(),
        optional: false,
        value: value.to_owned(),
    }
}

fn fields(made: &Made, value: impl Fn(&str) -> String) -> Vec<OutcomeField> {
    let field = |field: &rlf_specification::model::Field| OutcomeField {
        name: field.name.clone(),
        kind: field.kind.clone(),
        description: field.description.clone(),
        optional: field.optional,
        value: value(&field.name),
    };
    made.entity.fields.iter().map(field).collect()
}

/// Some fields of an entity after the effects.
fn changed(made: &Made, names: &[String], key: &str) -> Vec<OutcomeField> {
    let collection = &made.entity.collection;
    let all = fields(made, |field| format!("{collection}[{key}].{field}"));
    all.into_iter()
        .filter(|field| names.contains(&field.name))
        .collect()
}

/// The values of fields that this environment has.
fn existing(
    draft: &Draft<'_>,
    made: &Made,
    values: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, String> {
    let mut kept = BTreeMap::new();
    for (name, value) in values {
        let name = draft.words.expression(name)?;
        if made.entity.fields.iter().any(|field| field.name == name) {
            kept.insert(name, draft.words.expression(value)?);
        }
    }
    Ok(kept)
}

/// Fills in the names of operations in messages. What follows a semicolon is left out if it names one that is not there.
pub(super) fn name_operations(draft: &Draft<'_>, operations: &mut [Operation]) {
    let names: BTreeSet<String> = operations
        .iter()
        .map(|operation| operation.name.clone())
        .collect();
    // The operations from which keys are learnt: lists that do not need the key themselves.
    let mut finders: BTreeMap<String, String> = BTreeMap::new();
    for made in &draft.entities {
        let entity = Type::Reference(made.entity.name.clone());
        let finder = operations.iter().find(|operation| {
            let needs = operation
                .parameters
                .iter()
                .any(|parameter| parameter.required && parameter.kind == entity);
            let first = operation.result.fields.first();
            operation.result.each.is_some()
                && !needs
                && first.is_some_and(|field| field.kind == entity)
        });
        if let Some(finder) = finder {
            finders.insert(made.entity.name.clone(), finder.name.clone());
        }
    }
    for operation in operations {
        for binding in &mut operation.bindings {
            if let Binding::Find(lookup) = binding {
                lookup.error = match finders.get(&lookup.entity) {
                    Some(finder) => lookup.error.replace("{operation}", finder),
                    None if lookup.error.contains("{operation}") => without_hint(&lookup.error),
                    None => lookup.error.clone(),
                };
            }
        }
        for precondition in &mut operation.preconditions {
            precondition.error = with_operations(&precondition.error, &names);
        }
    }
}

fn without_hint(error: &str) -> String {
    error
        .split_once(';')
        .map_or(error, |(message, _)| message)
        .to_owned()
}

fn with_operations(error: &str, names: &BTreeSet<String>) -> String {
    let mut made = String::new();
    let mut rest = error;
    while let Some(at) = rest.find(['{', '[']) {
        made.push_str(&rest[..at]);
        let close = if rest[at..].starts_with('{') {
            '}'
        } else {
            ']'
        };
        let Some(end) = rest.find(close) else {
            break;
        };
        if close == '}' {
            made.push_str(&rest[at..=end]);
        } else if names.contains(&rest[at + 1..end]) {
            made.push_str(&rest[at + 1..end]);
        } else {
            return without_hint(&made);
        }
        rest = &rest[end + 1..];
    }
    made + rest
}
