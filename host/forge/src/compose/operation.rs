//! From the template of an operation to the operation.

use std::collections::{BTreeMap, BTreeSet};

use rlf_specification::model::{
    Binding, Delete, Each, Effect, Insert, Operation, Outcome, OutcomeField, Precondition, Type,
    Update,
};

use super::archetype::{Archetype, ListTemplate, OperationTemplate};
use super::draft::{Draft, DraftEntity};
use super::error::TemplateError;
use super::parameters::Inputs;

pub(super) fn make(
    draft: &Draft<'_>,
    archetype: &Archetype,
    template: &OperationTemplate,
) -> Result<Operation, TemplateError> {
    let words = &draft.words;
    let mut inputs = Inputs::default();
    for role in &template.by {
        inputs.find(draft, draft.by_role(role)?)?;
    }
    let mut effects = Vec::new();
    let mut result = Vec::new();
    if let Some(role) = &template.create {
        let drafted = draft.by_role(role)?;
        effects.push(inputs.create(draft, drafted)?);
        result.push(key_field(drafted, &drafted.entity.key.name));
        result.extend(changed(
            drafted,
            &template.returns,
            &drafted.entity.key.name,
        ));
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
        let drafted = draft.by_role(&change.role)?;
        let mut values = drafted.initial.clone();
        values.extend(existing(draft, drafted, &change.values)?);
        let name = format!("new_{}", drafted.entity.key.name);
        result.push(key_field(drafted, &name));
        effects.push(Effect::Insert(Insert {
            entity: drafted.entity.name.clone(),
            values,
            key: None,
            name: Some(name),
            when: None,
            each: None,
        }));
    }
    if let Some(change) = &template.update {
        let drafted = draft.by_role(&change.role)?;
        let key = &drafted.entity.key.name;
        let values = existing(draft, drafted, &change.values)?;
        let names: Vec<String> = template
            .returns
            .iter()
            .chain(values.keys())
            .cloned()
            .collect();
        result.push(key_field(drafted, key));
        result.extend(changed(drafted, &names, key));
        effects.push(Effect::Set(Update {
            entity: drafted.entity.name.clone(),
            key: key.clone(),
            values,
            when: None,
            each: None,
        }));
    }
    if let Some(role) = &template.delete {
        let drafted = draft.by_role(role)?;
        let key = &drafted.entity.key.name;
        result.push(key_field(drafted, key));
        effects.push(Effect::Delete(Delete {
            entity: drafted.entity.name.clone(),
            key: key.clone(),
            when: None,
            each: None,
        }));
    }
    if let Some(role) = &template.get {
        let drafted = draft.by_role(role)?;
        result.push(key_field(drafted, &drafted.entity.key.name));
        let record = &drafted.entity.name;
        result.extend(fields(drafted, |field| format!("{record}.{field}")));
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
) -> Result<Each, TemplateError> {
    let drafted = draft.by_role(&template.role)?;
    let collection = &drafted.entity.collection;
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
    result.push(key_field(drafted, "x"));
    let is_brief = template
        .brief
        .as_ref()
        .is_some_and(|option| draft.plan.flags.has(&archetype.name, option));
    let label = drafted.label.as_ref().filter(|_| is_brief);
    let all = fields(drafted, |field| format!("{collection}[x].{field}"));
    result.extend(
        all.into_iter()
            .filter(|field| label.is_none_or(|label| field.name == *label)),
    );
    if draft.labels && !is_brief {
        for field in &drafted.entity.fields {
            let (Type::Reference(target), false) = (&field.kind, field.optional) else {
                continue;
            };
            let target = draft.by_name(target)?;
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

fn key_field(drafted: &DraftEntity, value: &str) -> OutcomeField {
    OutcomeField {
        name: drafted.entity.key.name.clone(),
        kind: Type::Reference(drafted.entity.name.clone()),
        description: drafted.entity.key.description.clone(),
        optional: false,
        value: value.to_owned(),
    }
}

fn fields(drafted: &DraftEntity, value: impl Fn(&str) -> String) -> Vec<OutcomeField> {
    let field = |field: &rlf_specification::model::Field| OutcomeField {
        name: field.name.clone(),
        kind: field.kind.clone(),
        description: field.description.clone(),
        optional: field.optional,
        value: value(&field.name),
    };
    drafted.entity.fields.iter().map(field).collect()
}

/// Some fields of an entity after the effects.
fn changed(drafted: &DraftEntity, names: &[String], key: &str) -> Vec<OutcomeField> {
    let collection = &drafted.entity.collection;
    let all = fields(drafted, |field| format!("{collection}[{key}].{field}"));
    all.into_iter()
        .filter(|field| names.contains(&field.name))
        .collect()
}

/// The values of fields that this environment has.
fn existing(
    draft: &Draft<'_>,
    drafted: &DraftEntity,
    values: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, TemplateError> {
    let mut kept = BTreeMap::new();
    for (name, value) in values {
        let name = draft.words.expression(name)?;
        if drafted.entity.fields.iter().any(|field| field.name == name) {
            kept.insert(name, draft.words.expression(value)?);
        }
    }
    Ok(kept)
}

/// Fills in the names of operations in messages. The part of a message after a semicolon is left out if it names an
/// operation that the environment lacks.
pub(super) fn name_operations(draft: &Draft<'_>, operations: &mut [Operation]) {
    let names: BTreeSet<String> = operations
        .iter()
        .map(|operation| operation.name.clone())
        .collect();
    // The operations from which keys are learnt: lists that do not need the key themselves.
    let mut finders: BTreeMap<String, String> = BTreeMap::new();
    for drafted in &draft.entities {
        let entity = Type::Reference(drafted.entity.name.clone());
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
            finders.insert(drafted.entity.name.clone(), finder.name.clone());
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
    let mut text = String::new();
    let mut rest = error;
    while let Some(at) = rest.find(['{', '[']) {
        text.push_str(&rest[..at]);
        let close = if rest[at..].starts_with('{') {
            '}'
        } else {
            ']'
        };
        let Some(end) = rest.find(close) else {
            break;
        };
        if close == '}' {
            text.push_str(&rest[at..=end]);
        } else if names.contains(&rest[at + 1..end]) {
            text.push_str(&rest[at + 1..end]);
        } else {
            return without_hint(&text);
        }
        rest = &rest[end + 1..];
    }
    text + rest
}
