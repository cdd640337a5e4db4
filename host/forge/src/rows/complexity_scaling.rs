//! Stage 4, complexity scaling: generalised functions, more parameters, other types, nested objects, arrays, new names, and
//! distractors.

mod distractors;
mod extras;

use std::collections::BTreeSet;

use rlf_random::Key;
use serde_json::Value;

use super::decompose::without_subject;
use super::document::{
    Attribute, Document, Form, Function, Parameter, ParameterKind, Record, Role, Toolset,
};
use super::draw::{between, chance, pick, root, weighted};
use super::facts::{Facts, Relation, with_article};
use super::function_integration::{add_records, generalise};
use super::matching::contains;
use super::options::{Complexity, MAX_TOOLS, RowOptions};
use super::question::{Question, Work};
use super::tool_names::identifier;

/// Number of records from which on a tool gets no further records.
const MAX_RECORDS: usize = 12;

/// Makes the tools of a question as complex as asked for.
pub fn scale(toolset: Toolset, facts: &Facts, options: &RowOptions) -> Toolset {
    if options.complexity == Complexity::None {
        return toolset;
    }
    let key = root(options.seed)
        .named("scale")
        .named(&toolset.question.id);
    let Toolset {
        question,
        mut documents,
        uses,
    } = toolset;
    let mut taken: BTreeSet<String> = documents.iter().map(|one| one.name.clone()).collect();
    let scaling = Scaling {
        question: &question,
        facts,
        complexity: options.complexity,
    };
    for (number, document) in documents.iter_mut().enumerate() {
        scaling.scale(document, key.named("tool").at(number as u64), &mut taken);
    }
    let used: BTreeSet<String> = documents
        .iter()
        .filter_map(Document::table)
        .flat_map(|table| &table.attributes)
        .map(|attribute| attribute.name.clone())
        .collect();
    let count = scaling.distractor_count(documents.len(), key.named("count"));
    let relations = distractors::choose(&question, facts, &used, count, key.named("distractors"));
    for (number, relation) in relations.into_iter().enumerate() {
        let key = key.named("distractor").at(number as u64);
        let mut document = distractors::document(&question, relation, facts, key, &taken);
        taken.insert(document.name.clone());
        scaling.scale(&mut document, key, &mut taken);
        documents.push(document);
    }
    shuffled(question, documents, uses, key.named("order"))
}

/// Puts the tools into a random order, so that the order says nothing.
fn shuffled(question: Question, documents: Vec<Document>, uses: Vec<usize>, key: Key) -> Toolset {
    let mut order: Vec<usize> = (0..documents.len()).collect();
    key.shuffle(&mut order);
    let place = |old: usize| order.iter().position(|at| *at == old).unwrap_or(old);
    let uses = uses.into_iter().map(place).collect();
    let mut kept: Vec<Option<Document>> = documents.into_iter().map(Some).collect();
    let documents = order.iter().filter_map(|at| kept[*at].take()).collect();
    Toolset {
        question,
        documents,
        uses,
    }
}

struct Scaling<'a> {
    question: &'a Question,
    facts: &'a Facts,
    complexity: Complexity,
}

impl Scaling<'_> {
    fn is_published(&self) -> bool {
        self.complexity == Complexity::Published
    }

    /// Number of distractors for a question that has this many tools.
    fn distractor_count(&self, tools: usize, key: Key) -> usize {
        if !self.is_published() {
            return between(key, 1, 3);
        }
        // A row can have its own tools only.
        if chance(key.named("none"), 0.03) {
            return 0;
        }
        let few = tools <= 2;
        let wanted = if few {
            between(key, 4, 9)
        } else {
            between(key, 3, 7)
        };
        wanted.min(MAX_TOOLS.saturating_sub(tools))
    }

    fn scale(&self, document: &mut Document, key: Key, taken: &mut BTreeSet<String>) {
        let published = self.is_published();
        let generalised = if published { 0.45 } else { 0.2 };
        if chance(key.named("generalise"), generalised) {
            self.add_attributes(document, key.named("attributes"));
            taken.remove(&document.name);
            generalise(document, self.question.split, key.named("name"), taken);
            taken.insert(document.name.clone());
        }
        if published {
            reshape_subject(document, key.named("subject"));
            rename(document, key.named("rename"), taken);
        }
        let most = if published { 7 } else { 2 };
        let least = if published { 4 } else { 0 };
        let count = between(key.named("extras"), least, most);
        extras::add(document, count, key.named("extra"));
        document.form = match weighted(key.named("form"), &[4, 3, 3]) {
            0 => Form::Plain,
            1 => Form::Sentence,
            _ => Form::Object,
        };
        if published {
            document.description = described(document, key.named("description"));
        }
    }

    /// Adds further attributes to a tool, with the facts about its subjects. Leaves out values that could be taken for
    /// a sub-answer.
    fn add_attributes(&self, document: &mut Document, key: Key) {
        let Function::Lookup(table) = &mut document.function else {
            return;
        };
        let steps = &self.question.steps;
        let is_asked = |relation: &Relation| {
            steps.iter().any(|step| {
                matches!(&step.work, Work::Lookup(lookup) if lookup.relation == relation.name)
            })
        };
        let mut others: Vec<&Relation> = self
            .facts
            .relations()
            .filter(|relation| relation.kind == table.kind && !is_asked(relation))
            .filter(|relation| !table.attributes.iter().any(|one| one.name == relation.name))
            .collect();
        key.shuffle(&mut others);
        let subjects: BTreeSet<String> = table
            .records
            .iter()
            .map(|one| one.subject.clone())
            .collect();
        for relation in others.into_iter().take(between(key.named("count"), 1, 3)) {
            table.attributes.push(Attribute {
                name: relation.name.clone(),
                about: without_subject(&relation.noun, &relation.kind),
                gives: relation.target.described(),
            });
            let mut records = Vec::new();
            let room = MAX_RECORDS.saturating_sub(table.records.len());
            for subject in &subjects {
                if records.len() == room {
                    break;
                }
                let about = self.facts.about(subject).iter();
                let fact = about
                    .map(|index| &self.facts.facts()[*index])
                    .find(|fact| fact.relation == relation.name);
                let Some(fact) = fact.filter(|fact| self.is_harmless(&fact.object)) else {
                    continue;
                };
                records.push(Record {
                    subject: subject.clone(),
                    attribute: relation.name.clone(),
                    value: fact.object.clone(),
                });
            }
            add_records(table, records);
        }
    }

    fn is_harmless(&self, value: &str) -> bool {
        let answers = self.question.steps.iter().map(|step| &step.answer);
        !answers
            .chain([&self.question.answer])
            .any(|answer| contains(value, answer) || contains(answer, value))
    }
}

/// Puts the subject's name into an object or an array, or asks for its kind too.
fn reshape_subject(document: &mut Document, key: Key) {
    let Some(kind) = document.table().map(|table| table.kind.clone()) else {
        return;
    };
    let Some(place) = document
        .parameters
        .iter()
        .position(|one| one.role == Role::Subject && one.kind == ParameterKind::Text)
    else {
        return;
    };
    let words = kind.replace('_', " ");
    match weighted(key, &[55, 20, 12, 13]) {
        1 => {
            let subject = document.parameters.remove(place);
            let inner = Parameter {
                name: "name".to_owned(),
                description: format!(
                    "Full name of the {words}, as the question or an earlier result has it."
                ),
                ..subject
            };
            let fields = if chance(key.named("kind"), 0.5) {
                vec![inner, kind_parameter("type", &kind)]
            } else {
                vec![inner]
            };
            let names = ["query", "target", "subject", "entity"];
            document.parameters.insert(
                place,
                Parameter {
                    name: pick(key.named("object"), &names)
                        .copied()
                        .unwrap_or("query")
                        .to_owned(),
                    description: format!("Describes the {words} that the search is about."),
                    kind: ParameterKind::Object(fields),
                    role: Role::Subject,
                    required: true,
                    default: Value::Null,
                },
            );
        }
        2 => {
            let subject = &mut document.parameters[place];
            subject.name = format!("{}_names", identifier(&kind));
            subject.kind = ParameterKind::Texts;
            subject.description =
                format!("Full names of one or more things of the kind {words}; usually one name.");
        }
        3 => {
            let kind = kind_parameter("entity_type", &kind);
            document.parameters.insert(place + 1, kind);
        }
        _ => {
            let subject = &mut document.parameters[place];
            subject.description = format!(
                "The full name of {}, written as in the question or in an earlier result.",
                with_article(&kind)
            );
        }
    }
}

fn kind_parameter(name: &str, kind: &str) -> Parameter {
    Parameter {
        name: name.to_owned(),
        description: format!(
            "The kind of thing that is searched for; this tool knows the kind '{kind}'."
        ),
        kind: ParameterKind::Choice(vec![kind.to_owned()]),
        role: Role::Kind,
        required: true,
        default: Value::Null,
    }
}

/// Gives some tools the name of a later version.
fn rename(document: &mut Document, key: Key, taken: &mut BTreeSet<String>) {
    let name = &document.name;
    let renamed = match weighted(key, &[84, 6, 3, 3, 2, 2]) {
        1 => format!("{name}_v2"),
        2 => format!("advanced_{name}"),
        3 => format!("enhanced_{name}"),
        4 => format!("unified_{name}"),
        5 => format!("comprehensive_{name}"),
        _ => return,
    };
    if taken.insert(renamed.clone()) {
        taken.remove(&document.name);
        document.name = renamed;
    }
}

/// Makes a description as long as the published ones.
fn described(document: &Document, key: Key) -> String {
    let begins = [
        "An advanced tool designed to",
        "A tool designed to",
        "A comprehensive tool that can",
        "A specialised tool to",
        "An enhanced service that helps to",
    ];
    let begins = pick(key.named("begin"), &begins)
        .copied()
        .unwrap_or("A tool to");
    let Some(table) = document.table() else {
        return format!(
            "{begins} compute with two or more numbers, such as results of other tools. It supports sums, differences and products, checks every \
             operand, and returns the exact result without rounding."
        );
    };
    let abouts: Vec<&str> = table
        .attributes
        .iter()
        .map(|attribute| attribute.about.as_str())
        .collect();
    let gives = match table.attributes.as_slice() {
        [only] => only.gives.clone(),
        _ => "the requested fact".to_owned(),
    };
    let ends = [
        "Further parameters narrow the search or change the form of the result.",
        "Optional criteria allow a more precise search, and the result can be extended by context.",
        "It validates every argument and explains how a wrong one has to be corrected.",
        "It supports additional filters for source, language and form of the output.",
    ];
    let ends = pick(key.named("end"), &ends).copied().unwrap_or_default();
    format!(
        "{begins} identify and retrieve {}, given the full name of the {}. It returns {gives}. {ends}",
        abouts.join(", or "),
        table.kind.replace('_', " ")
    )
}
