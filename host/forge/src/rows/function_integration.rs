//! Stage 3, function integration: n tools become at most n. Tools of one relation become one tool, and tools of one kind
//! of subject become one with a parameter that says what is asked for.

use std::collections::BTreeSet;

use rlf_dialogue::split::Split;
use rlf_random::Key;
use serde_json::Value;

use super::document::{Document, Function, Parameter, ParameterKind, Record, Role, Table, Toolset};
use super::draw::{chance, pick, root};
use super::facts::with_article;
use super::options::{Complexity, RowOptions};
use super::tool_names::lookup_name;

/// Merges tools.
pub fn integrate(toolset: Toolset, options: &RowOptions) -> Toolset {
    let key = root(options.seed)
        .named("integrate")
        .named(&toolset.question.id);
    let share = match options.complexity {
        Complexity::None => 0.0,
        Complexity::Low => 0.3,
        Complexity::Published => 0.5,
    };
    let split = toolset.question.split;
    let mut merged: Vec<Document> = Vec::new();
    let mut uses = Vec::with_capacity(toolset.uses.len());
    for (number, document) in toolset.documents.into_iter().enumerate() {
        let draw = key.at(number as u64);
        let found = merged
            .iter()
            .position(|earlier| are_same(earlier, &document))
            .or_else(|| {
                let related = merged
                    .iter()
                    .position(|earlier| are_related(earlier, &document));
                related.filter(|_| chance(draw, share))
            });
        if let Some(index) = found {
            merge(&mut merged[index], document);
            uses.push(index);
        } else {
            uses.push(merged.len());
            merged.push(document);
        }
    }
    let mut taken: BTreeSet<String> = merged.iter().map(|one| one.name.clone()).collect();
    for (number, document) in merged.iter_mut().enumerate() {
        generalise(
            document,
            split,
            key.named("name").at(number as u64),
            &mut taken,
        );
    }
    Toolset {
        question: toolset.question,
        documents: merged,
        uses,
    }
}

/// True if two tools do the same, so that nobody could say which to use.
fn are_same(one: &Document, other: &Document) -> bool {
    match (&one.function, &other.function) {
        (Function::Lookup(one), Function::Lookup(other)) => {
            let known = |name: &str| one.attributes.iter().any(|known| known.name == name);
            one.kind == other.kind && other.attributes.iter().all(|new| known(&new.name))
        }
        (Function::Calculate, Function::Calculate) => true,
        _ => false,
    }
}

/// True if two tools look up things about the same kind of subject.
fn are_related(one: &Document, other: &Document) -> bool {
    matches!((&one.function, &other.function), (Function::Lookup(one), Function::Lookup(other)) if one.kind == other.kind)
}

fn merge(into: &mut Document, other: Document) {
    if let (Function::Lookup(into), Function::Lookup(other)) = (&mut into.function, other.function)
    {
        for attribute in other.attributes {
            if !into
                .attributes
                .iter()
                .any(|known| known.name == attribute.name)
            {
                into.attributes.push(attribute);
            }
        }
        add_records(into, other.records);
    }
}

/// Adds records. A record about something that is known already is left out.
pub(crate) fn add_records(table: &mut Table, records: Vec<Record>) {
    for record in records {
        let is_known = |known: &Record| {
            known.attribute == record.attribute
                && known.subject.to_lowercase() == record.subject.to_lowercase()
        };
        if !table.records.iter().any(is_known) {
            table.records.push(record);
        }
    }
}

/// Gives a tool that knows several things the name, the description and the parameter for it. If it has the parameter,
/// its values and the description are brought up to date.
pub(crate) fn generalise(
    document: &mut Document,
    split: Split,
    key: Key,
    taken: &mut BTreeSet<String>,
) {
    let Some(table) = document.table() else {
        return;
    };
    if table.attributes.len() < 2 {
        return;
    }
    let kind = table.kind.clone();
    let abouts: Vec<String> = table
        .attributes
        .iter()
        .map(|attribute| attribute.about.clone())
        .collect();
    let names = table
        .attributes
        .iter()
        .map(|attribute| attribute.name.clone())
        .collect();
    document.description = format!(
        "Finds one of several facts about {}: {}.",
        with_article(&kind),
        abouts.join("; ")
    );
    let mut parameters = document.parameters.iter_mut();
    if let Some(parameter) = parameters.find(|one| one.role == Role::Attribute) {
        parameter.kind = ParameterKind::Choice(names);
        return;
    }
    let stems = ["info", "facts", "profile", "data"].map(|word| format!("{kind}_{word}"));
    document.name = lookup_name(&stems, split, key, taken);
    taken.insert(document.name.clone());
    let parameters = ["attribute", "information_type", "fact", "query_type"];
    document.parameters.push(Parameter {
        name: pick(key.named("parameter"), &parameters)
            .copied()
            .unwrap_or("attribute")
            .to_owned(),
        description: format!("Which fact about the {} to find.", kind.replace('_', " ")),
        kind: ParameterKind::Choice(names),
        role: Role::Attribute,
        required: true,
        default: Value::Null,
    });
}
