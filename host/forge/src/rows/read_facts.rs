//! Reads a file of facts: JSON lines with facts, and perhaps with the words for relations.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rlf_specification::date;
use serde::Deserialize;
use serde_json::Value;

use super::error::RowsError;
use super::facts::{Entity, Fact, Facts, Relation, Target, with_article};
use super::options::split_of_name;
use super::tool_names::identifier;

/// A line: a fact, or a relation in words.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct FactLine {
    relation: String,
    subject: Option<String>,
    subject_kind: Option<String>,
    object: Option<Value>,
    object_kind: Option<String>,
    #[serde(default)]
    unit: String,
    noun: Option<String>,
    #[serde(default)]
    ask: Vec<String>,
    #[serde(default)]
    tools: Vec<String>,
    #[serde(default)]
    article: bool,
}

/// The reason why a line cannot be used.
#[derive(Debug, thiserror::Error)]
enum FactError {
    #[error(
        "{0}; a line is {{\"subject\": .., \"subject_kind\": .., \"relation\": .., \"object\": .., \"object_kind\": ..}}"
    )]
    Json(#[from] serde_json::Error),
    #[error("`relation` is empty")]
    NoRelation,
    #[error("{0:?} lacks {{}} for the subject")]
    Pattern(String),
    #[error("a fact needs `{0}`, a text that is not empty")]
    Missing(&'static str),
    #[error("a fact needs `object`, a text or a number")]
    NoObject,
    #[error("the object {object:?} is no {kind}")]
    Object { object: String, kind: &'static str },
    #[error(
        "{name:?} is {} here and {} before; give different things different names",
        with_article(here),
        with_article(before)
    )]
    TwoKinds {
        name: String,
        here: String,
        before: String,
    },
}

/// Words for a relation, of a line without a subject.
#[derive(Debug, Default)]
struct Words {
    noun: Option<String>,
    ask: Vec<String>,
    tools: Vec<String>,
}

/// Reads a file. Each line is `{subject, subject_kind, relation, object, object_kind}`, or `{relation, noun, ask, tools}` with
/// the words for a relation. The split of an entity follows from its name.
pub(crate) fn read_facts(path: &Path) -> Result<Facts, RowsError> {
    let text = fs::read_to_string(path).map_err(|source| RowsError::read(path, source))?;
    let mut found = Found::default();
    for (number, line) in (1..).zip(text.lines()) {
        if !line.trim().is_empty() {
            found
                .add(line)
                .map_err(|error| RowsError::line(path, number, &error))?;
        }
    }
    if found.facts.is_empty() {
        return Err(RowsError::Empty {
            path: path.to_owned(),
            problem: "no facts in it; write one JSON object a line",
        });
    }
    Ok(found.into_facts())
}

/// Everything that the lines so far say.
#[derive(Debug, Default)]
struct Found {
    words: BTreeMap<String, Words>,
    /// Relations by their names, each with its name in the file. Their words come at the end.
    relations: BTreeMap<String, (String, Relation)>,
    entities: BTreeMap<String, Entity>,
    facts: Vec<Fact>,
}

impl Found {
    fn add(&mut self, line: &str) -> Result<(), FactError> {
        let line: FactLine = serde_json::from_str(line)?;
        if line.relation.trim().is_empty() {
            return Err(FactError::NoRelation);
        }
        let mut patterns = line.noun.iter().chain(&line.ask);
        if let Some(pattern) = patterns.find(|pattern| !pattern.contains("{}")) {
            return Err(FactError::Pattern(pattern.clone()));
        }
        if line.subject.is_none() {
            let words = Words {
                noun: line.noun,
                ask: line.ask,
                tools: line.tools,
            };
            self.words.insert(line.relation, words);
            return Ok(());
        }
        let subject = needed(line.subject, "subject")?;
        let kind = needed(line.subject_kind, "subject_kind")?;
        let object = match line.object {
            Some(Value::String(text)) if !text.trim().is_empty() => text,
            Some(Value::Number(number)) => number.to_string(),
            _ => return Err(FactError::NoObject),
        };
        let object_kind = needed(line.object_kind, "object_kind")?;
        let target = target(&object_kind, &object, line.unit)?;
        self.add_entity(&subject, &kind, line.article)?;
        if let Target::Entity(kind) = &target {
            self.add_entity(&object, kind, false)?;
        }
        let relation = self.relation(line.relation, kind, target);
        self.facts.push(Fact {
            subject,
            relation,
            object,
        });
        Ok(())
    }

    /// The name of the relation between these kinds. The same name in the file is another relation between other kinds.
    fn relation(&mut self, spoken: String, kind: String, target: Target) -> String {
        let plain = identifier(&spoken);
        let name = match self.relations.get(&plain) {
            Some((_, other)) if other.kind != kind || other.target != target => {
                format!("{}_{plain}", identifier(&kind))
            }
            _ => plain,
        };
        let relation = || Relation {
            name: name.clone(),
            kind,
            target,
            noun: String::new(),
            ask: Vec::new(),
            tools: Vec::new(),
        };
        self.relations
            .entry(name.clone())
            .or_insert_with(|| (spoken, relation()));
        name
    }

    fn add_entity(&mut self, name: &str, kind: &str, article: bool) -> Result<(), FactError> {
        let entity = self
            .entities
            .entry(name.to_owned())
            .or_insert_with(|| Entity {
                name: name.to_owned(),
                kind: kind.to_owned(),
                article: false,
                split: split_of_name(name),
            });
        if entity.kind != kind {
            return Err(FactError::TwoKinds {
                name: name.to_owned(),
                here: kind.to_owned(),
                before: entity.kind.clone(),
            });
        }
        entity.article |= article;
        Ok(())
    }

    fn into_facts(self) -> Facts {
        let relations = self.relations.into_values().map(|(spoken, mut relation)| {
            say(&mut relation, &spoken, self.words.get(&spoken));
            relation
        });
        Facts::new(
            relations.collect(),
            self.entities.into_values().collect(),
            self.facts,
        )
    }
}

fn needed(value: Option<String>, name: &'static str) -> Result<String, FactError> {
    value
        .filter(|value| !value.trim().is_empty())
        .ok_or(FactError::Missing(name))
}

/// Gives a relation its words: those of the file, or some that follow from its name.
fn say(relation: &mut Relation, spoken: &str, words: Option<&Words>) {
    let plain = spoken.replace(['_', '-'], " ");
    let given = words.and_then(|words| words.noun.clone());
    relation.noun = given.unwrap_or_else(|| format!("the {plain} of {{}}"));
    relation.ask = words.map_or_else(Vec::new, |words| words.ask.clone());
    if relation.ask.is_empty() {
        relation.ask = vec![format!("What is {}?", relation.noun)];
    }
    relation.tools = words.map_or_else(Vec::new, |words| words.tools.clone());
    if relation.tools.is_empty() {
        relation.tools = vec![
            identifier(spoken),
            format!("{}_{}", identifier(&relation.kind), identifier(spoken)),
        ];
    }
}

/// The type of a fact's object. `kind` is a kind of entity, or `date`, `year` or `number`.
fn target(kind: &str, object: &str, unit: String) -> Result<Target, FactError> {
    let (target, fits, kind) = match kind {
        "date" => (
            Target::Date,
            date::parse(object).is_some(),
            "date (YYYY-MM-DD)",
        ),
        "year" => (
            Target::Year,
            object.len() == 4 && object.parse::<u16>().is_ok(),
            "year of four digits",
        ),
        "number" => (
            Target::Number(unit),
            object.parse::<i64>().is_ok(),
            "whole number without separators",
        ),
        kind => return Ok(Target::Entity(kind.to_owned())),
    };
    if fits {
        Ok(target)
    } else {
        let object = object.to_owned();
        Err(FactError::Object { object, kind })
    }
}
