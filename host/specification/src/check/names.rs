//! Names: allowed, and each once.

use std::collections::BTreeSet;

use crate::finding::{Finding, Kind};
use crate::model::{Binding, Effect, Specification, Type};
use crate::names::{can_be_key, environment_problem, problem, suggestion};
use crate::state_json::next_name;

pub(super) fn check(specification: &Specification, findings: &mut Vec<Finding>) {
    if let Some(message) = environment_problem(&specification.name) {
        findings.push(Finding::new(Kind::BadName, "/name", message, "rename it"));
    }
    // The names of the state: collections, single values, counters.
    let mut state = Names::default();
    let mut entities = Names::default();
    for (index, value) in specification.values.iter().enumerate() {
        state.add(&value.name, format!("/values/{index}/name"), findings);
    }
    for (index, entity) in specification.entities.iter().enumerate() {
        let at = format!("/entities/{index}");
        entities.add(&entity.name, format!("{at}/name"), findings);
        state.add(&entity.collection, format!("{at}/collection"), findings);
        let counter = next_name(&entity.name);
        if !state.known.insert(counter.clone()) {
            duplicate(&counter, format!("{at}/name"), findings);
        }
        let mut fields = Names::default();
        fields.add(&entity.key.name, format!("{at}/key/name"), findings);
        for (number, field) in entity.fields.iter().enumerate() {
            fields.add(&field.name, format!("{at}/fields/{number}/name"), findings);
        }
        let prefix = &entity.key.prefix;
        if !can_be_key(prefix)
            || prefix.len() > 20
            || prefix.ends_with(|last: char| last.is_ascii_digit())
        {
            findings.push(Finding::new(
                Kind::BadName,
                format!("{at}/key/prefix"),
                format!("`{}` cannot be the prefix of a key", prefix.escape_debug()),
                "use 1 to 20 characters that can be seen; the last one is no digit",
            ));
        }
    }
    let mut operations = Names::default();
    for (index, operation) in specification.operations.iter().enumerate() {
        let at = format!("/operations/{index}");
        operations.add(&operation.name, format!("{at}/name"), findings);
        let mut locals = Names {
            known: state.known.clone(),
        };
        for (number, parameter) in operation.parameters.iter().enumerate() {
            locals.add(
                &parameter.name,
                format!("{at}/parameters/{number}/name"),
                findings,
            );
        }
        for (number, binding) in operation.bindings.iter().enumerate() {
            let kind = match binding {
                Binding::Find(_) => "find",
                Binding::Compute { .. } => "compute",
            };
            locals.add(
                binding.name(),
                format!("{at}/bindings/{number}/{kind}/name"),
                findings,
            );
        }
        for (number, effect) in operation.effects.iter().enumerate() {
            if let Effect::Insert(insert) = effect
                && let Some(name) = &insert.name
            {
                locals.add(name, format!("{at}/effects/{number}/insert/name"), findings);
            }
        }
        let mut fields = Names::default();
        for (number, field) in operation.result.fields.iter().enumerate() {
            fields.add(
                &field.name,
                format!("{at}/result/fields/{number}/name"),
                findings,
            );
        }
    }
    let mut invariants = BTreeSet::new();
    for (index, invariant) in specification.invariants.iter().enumerate() {
        if !invariants.insert(&invariant.name) {
            duplicate(
                &invariant.name,
                format!("/invariants/{index}/name"),
                findings,
            );
        }
    }
    types(specification, findings);
}

#[derive(Default)]
struct Names {
    known: BTreeSet<String>,
}

impl Names {
    fn add(&mut self, name: &str, place: String, findings: &mut Vec<Finding>) {
        if let Some(message) = problem(name) {
            findings.push(Finding::new(Kind::BadName, place, message, "rename it"));
        } else if !self.known.insert(name.to_owned()) {
            duplicate(name, place, findings);
        }
    }
}

fn duplicate(name: &str, place: String, findings: &mut Vec<Finding>) {
    findings.push(Finding::new(
        Kind::DuplicateName,
        place,
        format!("`{name}` is the name of something else"),
        "rename one of them",
    ));
}

/// The entities that types refer to.
fn types(specification: &Specification, findings: &mut Vec<Finding>) {
    let names: Vec<&str> = specification
        .entities
        .iter()
        .map(|entity| entity.name.as_str())
        .collect();
    let mut look = |kind: &Type, place: String, before: &[&str]| {
        let Some(entity) = kind.referenced() else {
            return;
        };
        if !names.contains(&entity) {
            findings.push(Finding::new(
                Kind::UnknownReference,
                place,
                format!("there is no entity `{entity}`"),
                suggestion(entity, names.iter().copied()),
            ));
        } else if !before.contains(&entity) {
            findings.push(Finding::new(
                Kind::UnknownReference,
                place,
                format!("`{entity}` comes later, so no generated state can refer to it"),
                "move its entity before this one, or make the field optional",
            ));
        }
    };
    for (index, value) in specification.values.iter().enumerate() {
        let before = if value.optional { &names[..] } else { &[] };
        look(&value.kind, format!("/values/{index}/type"), before);
    }
    for (index, entity) in specification.entities.iter().enumerate() {
        for (number, field) in entity.fields.iter().enumerate() {
            let free = field.optional || matches!(field.kind, Type::List(_));
            let before = if free { &names[..] } else { &names[..index] };
            look(
                &field.kind,
                format!("/entities/{index}/fields/{number}/type"),
                before,
            );
        }
    }
    for (index, operation) in specification.operations.iter().enumerate() {
        for (number, parameter) in operation.parameters.iter().enumerate() {
            look(
                &parameter.kind,
                format!("/operations/{index}/parameters/{number}/type"),
                &names,
            );
        }
        for (number, field) in operation.result.fields.iter().enumerate() {
            look(
                &field.kind,
                format!("/operations/{index}/result/fields/{number}/type"),
                &names,
            );
        }
    }
}
