//! Stage 2, document generation: one tool for each sub-question.

use std::collections::BTreeSet;

use rlf_dialogue::split::Split;
use rlf_random::Key;
use serde_json::Value;

use super::document::{
    Attribute, Document, Form, Function, Parameter, ParameterKind, Record, Role, Table, Toolset,
};
use super::draw::{between, pick, root};
use super::facts::{Facts, with_article};
use super::matching::contains;
use super::options::RowOptions;
use super::question::{Lookup, OPERATIONS, Question, Step, Work};
use super::tool_names::{calculator_name, lookup_name, parameter_name};

/// Maximum number of records that a tool has besides those of its steps.
const MAX_OTHER_RECORDS: usize = 5;

/// Makes a tool for each step.
pub fn document(question: Question, facts: &Facts, options: &RowOptions) -> Toolset {
    let key = root(options.seed).named("document").named(&question.id);
    let mut taken = BTreeSet::new();
    let mut documents = Vec::with_capacity(question.steps.len());
    for (number, step) in question.steps.iter().enumerate() {
        let key = key.at(number as u64);
        let document = match &step.work {
            Work::Lookup(lookup) => {
                let records = records(&question, step, lookup, facts, key.named("records"));
                lookup_document(lookup, question.split, records, key, &taken)
            }
            Work::Calculate(_) => calculator(question.split, key, &taken),
        };
        taken.insert(document.name.clone());
        documents.push(document);
    }
    let uses = (0..documents.len()).collect();
    Toolset {
        question,
        documents,
        uses,
    }
}

/// The record of the step, and records of other subjects. None of these has a value that could be taken for a
/// sub-answer.
fn records(
    question: &Question,
    step: &Step,
    lookup: &Lookup,
    facts: &Facts,
    key: Key,
) -> Vec<Record> {
    let source = step.sources.first();
    let subject = source.and_then(|source| question.value(source));
    let mut records = vec![Record {
        subject: subject.unwrap_or_default().to_owned(),
        attribute: lookup.relation.clone(),
        value: step.answer.clone(),
    }];
    let count = between(key.named("count"), 1, MAX_OTHER_RECORDS);
    records.extend(other_records(question, &lookup.relation, facts, count, key));
    records
}

/// Up to `count` records of a relation that are about other subjects than the question's, and have other values.
pub(crate) fn other_records(
    question: &Question,
    relation: &str,
    facts: &Facts,
    count: usize,
    key: Key,
) -> Vec<Record> {
    let all = facts.of_relation(question.split, relation);
    let mut subjects = BTreeSet::new();
    let mut records = Vec::new();
    // A few draws more than records, because some do not fit.
    for number in 0..3 * count as u64 {
        if records.len() == count {
            break;
        }
        let Some(index) = pick(key.at(number), all) else {
            break;
        };
        let fact = &facts.facts()[*index];
        if is_foreign(question, &fact.subject, &fact.object) && subjects.insert(&fact.subject) {
            records.push(Record {
                subject: fact.subject.clone(),
                attribute: relation.to_owned(),
                value: fact.object.clone(),
            });
        }
    }
    records
}

/// True if no step is about this subject, and no sub-answer could be found in this value.
fn is_foreign(question: &Question, subject: &str, value: &str) -> bool {
    let is_subject = |step: &Step| {
        let mut sources = step.sources.iter();
        sources.any(|source| question.value(source) == Some(subject))
    };
    let clashes = |step: &Step| contains(value, &step.answer) || contains(&step.answer, value);
    !contains(value, &question.answer)
        && !question
            .steps
            .iter()
            .any(|step| is_subject(step) || clashes(step))
}

/// The simplest tool for a look-up: one parameter, one attribute.
pub(crate) fn lookup_document(
    lookup: &Lookup,
    split: Split,
    records: Vec<Record>,
    key: Key,
    taken: &BTreeSet<String>,
) -> Document {
    let name = lookup_name(&lookup.tools, split, key.named("name"), taken);
    let gives = lookup.target.described();
    let patterns = [
        format!("Finds {}.", lookup.about),
        format!("Looks up {}.", lookup.about),
        format!("Returns {}.", lookup.about),
    ];
    let attribute = Attribute {
        name: lookup.relation.clone(),
        about: lookup.about.clone(),
        gives,
    };
    Document {
        name,
        description: pick(key.named("description"), &patterns)
            .cloned()
            .unwrap_or_default(),
        parameters: vec![subject_parameter(&lookup.kind, key.named("subject"))],
        function: Function::Lookup(Table {
            kind: lookup.kind.clone(),
            attributes: vec![attribute],
            records,
        }),
        form: Form::Plain,
        distractor: false,
    }
}

fn subject_parameter(kind: &str, key: Key) -> Parameter {
    let word = parameter_name(kind);
    let names = [word.clone(), format!("{word}_name"), "name".to_owned()];
    Parameter {
        name: pick(key, &names).cloned().unwrap_or(word),
        description: format!("Full name of {}.", with_article(kind)),
        kind: ParameterKind::Text,
        role: Role::Subject,
        required: true,
        default: Value::Null,
    }
}

fn calculator(split: Split, key: Key, taken: &BTreeSet<String>) -> Document {
    let values = ["values", "numbers", "operands"];
    Document {
        name: calculator_name(split, key.named("name"), taken),
        description: "Computes with two or more numbers.".to_owned(),
        parameters: vec![
            Parameter {
                name: pick(key.named("values"), &values)
                    .copied()
                    .unwrap_or("values")
                    .to_owned(),
                description: "The numbers to compute with.".to_owned(),
                kind: ParameterKind::Numbers,
                role: Role::Numbers,
                required: true,
                default: Value::Null,
            },
            Parameter {
                name: "operation".to_owned(),
                description: "The operation; the difference is never negative.".to_owned(),
                kind: ParameterKind::Choice(
                    OPERATIONS
                        .iter()
                        .map(|one| one.as_str().to_owned())
                        .collect(),
                ),
                role: Role::Operation,
                required: true,
                default: Value::Null,
            },
        ],
        function: Function::Calculate,
        form: Form::Plain,
        distractor: false,
    }
}
