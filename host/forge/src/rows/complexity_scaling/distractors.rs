//! Tools that no step of a question uses.

use std::collections::BTreeSet;

use rlf_random::Key;

use crate::rows::decompose::without_subject;
use crate::rows::document::Document;
use crate::rows::document_generation::{lookup_document, other_records};
use crate::rows::draw::between;
use crate::rows::facts::{Facts, Relation};
use crate::rows::question::{Lookup, Question, Work};

/// Maximum number of records of a distractor.
const MAX_RECORDS: usize = 6;

/// Chooses relations that no tool of the question knows. Half of them are about kinds that the question is about.
pub(super) fn choose<'a>(
    question: &Question,
    facts: &'a Facts,
    used: &BTreeSet<String>,
    count: usize,
    key: Key,
) -> Vec<&'a Relation> {
    let kinds: BTreeSet<&str> = question
        .steps
        .iter()
        .filter_map(|step| match &step.work {
            Work::Lookup(lookup) => Some(lookup.kind.as_str()),
            Work::Calculate(_) => None,
        })
        .collect();
    let mut near = Vec::new();
    let mut far = Vec::new();
    for relation in facts
        .relations()
        .filter(|relation| !used.contains(&relation.name))
    {
        if kinds.contains(relation.kind.as_str()) {
            near.push(relation);
        } else {
            far.push(relation);
        }
    }
    key.named("near").shuffle(&mut near);
    key.named("far").shuffle(&mut far);
    let first = near
        .len()
        .min(count.div_ceil(2))
        .max(count.saturating_sub(far.len()));
    near.truncate(first);
    far.truncate(count.saturating_sub(near.len()));
    near.extend(far);
    near
}

/// A tool for a relation that the question does not need.
pub(super) fn document(
    question: &Question,
    relation: &Relation,
    facts: &Facts,
    key: Key,
    taken: &BTreeSet<String>,
) -> Document {
    let lookup = Lookup {
        relation: relation.name.clone(),
        kind: relation.kind.clone(),
        about: without_subject(&relation.noun, &relation.kind),
        target: relation.target.clone(),
        tools: relation.tools.clone(),
    };
    let count = between(key.named("count"), 2, MAX_RECORDS);
    let records = other_records(question, &relation.name, facts, count, key.named("records"));
    let mut document = lookup_document(&lookup, question.split, records, key, taken);
    document.distractor = true;
    document
}
