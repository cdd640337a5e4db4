//! Reads a file of facts: JSON lines with facts, and perhaps with the words for relations.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rlf_specification::date;
use serde::Deserialize;
use serde_json::Value;

use super::error::RowsError;
use super::facts::{Entity, Fact, Facts, Relation, Target, with_article};
use super::options::split_of_name;
use super::tool_names::identifier;
use crate::lines;

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
    #[error("no fact has the relation {0:?}; correct its name, or delete the line")]
    Unused(String),
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
    /// The line, from 1.
    line: usize,
    noun: Option<String>,
    ask: Vec<String>,
    tools: Vec<String>,
}

/// Reads a file. Each line is `{subject, subject_kind, relation, object, object_kind}`, or `{relation, noun, ask, tools}` with
/// the words for a relation. The split of an entity follows from its name.
pub(crate) fn read_facts(path: &Path) -> Result<Facts, RowsError> {
    let text = lines::text(path).map_err(|source| RowsError::read(path, source))?;
    let mut found = Found::default();
    for (number, line) in (1..).zip(text.lines()) {
        if !line.trim().is_empty() {
            found
                .add(number, line)
                .map_err(|error| RowsError::line(path, number, &error))?;
        }
    }
    if found.facts.is_empty() {
        return Err(RowsError::Empty {
            path: path.to_owned(),
            problem: "no facts in it; write one JSON object a line",
        });
    }
    if let Some((relation, words)) = found.unused() {
        let error = FactError::Unused(relation.clone());
        return Err(RowsError::line(path, words.line, &error));
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
    fn add(&mut self, number: usize, line: &str) -> Result<(), FactError> {
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
                line: number,
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

    /// The name of the relation between these kinds: `price`, `product_price`, `product_price_2`. The same name in the file
    /// is another relation between other kinds, or with another unit.
    fn relation(&mut self, spoken: String, kind: String, target: Target) -> String {
        let plain = identifier(&spoken);
        let with_kind = format!("{}_{plain}", identifier(&kind));
        let numbered = (2..).map(|number| format!("{with_kind}_{number}"));
        let fits = |name: &String| {
            self.relations.get(name).is_none_or(|(said, other)| {
                *said == spoken && other.kind == kind && other.target == target
            })
        };
        let mut names = [plain, with_kind.clone()].into_iter().chain(numbered);
        let name = names
            .find(fits)
            .expect("there are more numbers than relations");
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

    /// Words for a relation that no fact has.
    fn unused(&self) -> Option<(&String, &Words)> {
        let said: BTreeSet<&String> = self.relations.values().map(|(said, _)| said).collect();
        let mut words = self.words.iter();
        words.find(|(relation, _)| !said.contains(relation))
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

/// Gives a relation its words: those of the file, or words that follow from its name.
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn read(lines: &[&str]) -> Result<Facts, RowsError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("facts.jsonl");
        fs::write(&path, lines.join("\n")).unwrap();
        read_facts(&path)
    }

    #[test]
    fn relations_of_one_name_in_several_units_stay_apart() {
        let price = |subject: &str, object: u32, unit: &str| {
            format!(
                r#"{{"subject": "{subject}", "subject_kind": "product", "relation": "price", "object": {object}, "object_kind": "number", "unit": "{unit}"}}"#
            )
        };
        let lines = [
            price("Anvil", 310, "dollars"),
            price("Anvil", 290, "euros"),
            price("Anvil", 48_000, "yen"),
            price("Bolt", 510, "yen"),
            price("Bolt", 330, "dollars"),
        ];
        let facts = read(&lines.each_ref().map(String::as_str)).unwrap();
        let found: Vec<(&str, &str, Option<&str>)> = facts
            .facts()
            .iter()
            .map(|fact| {
                let relation = facts.relation(&fact.relation).unwrap();
                (&*fact.object, &*fact.relation, relation.target.measure())
            })
            .collect();
        assert_eq!(
            found,
            [
                ("310", "price", Some("dollars")),
                ("290", "product_price", Some("euros")),
                ("48000", "product_price_2", Some("yen")),
                ("510", "product_price_2", Some("yen")),
                ("330", "price", Some("dollars")),
            ]
        );
    }

    #[test]
    fn words_for_a_relation_that_no_fact_has_are_an_error_with_their_line() {
        let fact = r#"{"subject": "Faust", "subject_kind": "work", "relation": "author", "object": "Goethe", "object_kind": "person"}"#;
        let words = |relation: &str| {
            format!(r#"{{"relation": "{relation}", "noun": "the writer of {{}}"}}"#)
        };
        let facts = read(&[&words("author"), fact]).unwrap();
        let noun = facts.relations().next().map(|one| one.noun.as_str());
        assert_eq!(noun, Some("the writer of {}"));
        let error = read(&["", &words("auhtor"), fact]).unwrap_err().to_string();
        assert!(
            error.ends_with("facts.jsonl:2: no fact has the relation \"auhtor\"; correct its name, or delete the line"),
            "{error}"
        );
    }
}
