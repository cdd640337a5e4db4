//! Reads a file of facts: JSON lines with facts, and perhaps with the words for relations.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rlf_random::{Key, Purpose};
use rlf_specification::date;
use serde::Deserialize;
use serde_json::Value;

use super::error::RowsError;
use super::facts::{Entity, Fact, Facts, Relation, Target};
use super::options::Split;
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
    let mut words: BTreeMap<String, Words> = BTreeMap::new();
    let mut relations: BTreeMap<String, Relation> = BTreeMap::new();
    let mut entities: BTreeMap<String, Entity> = BTreeMap::new();
    let mut facts = Vec::new();
    let lines = (1..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty());
    for (number, line) in lines {
        let wrong = |problem: String| RowsError::line(path, number, &problem);
        let line: FactLine = serde_json::from_str(line).map_err(|error| {
            wrong(format!(
                "{error}; a line is {{\"subject\": .., \"subject_kind\": .., \"relation\": .., \"object\": .., \"object_kind\": ..}}"
            ))
        })?;
        if line.relation.trim().is_empty() {
            return Err(wrong("`relation` is empty".to_owned()));
        }
        for pattern in line.noun.iter().chain(&line.ask) {
            if !pattern.contains("{}") {
                return Err(wrong(format!("{pattern:?} lacks {{}} for the subject")));
            }
        }
        if line.subject.is_none() {
            let Words { noun, ask, tools } = words.entry(line.relation).or_default();
            *noun = line.noun;
            *ask = line.ask;
            *tools = line.tools;
            continue;
        }
        let needed = |value: Option<String>, name: &str| {
            let value = value.filter(|value| !value.trim().is_empty());
            value.ok_or_else(|| wrong(format!("a fact needs `{name}`, a text that is not empty")))
        };
        let subject = needed(line.subject, "subject")?;
        let kind = needed(line.subject_kind, "subject_kind")?;
        let object = match line.object {
            Some(Value::String(text)) if !text.trim().is_empty() => text,
            Some(Value::Number(number)) => number.to_string(),
            _ => {
                return Err(wrong(
                    "a fact needs `object`, a text or a number".to_owned(),
                ));
            }
        };
        let target = target(
            &needed(line.object_kind, "object_kind")?,
            &object,
            line.unit,
        )
        .map_err(wrong)?;
        // The same name of a relation between other kinds is another relation.
        let name = relation_name(&relations, &line.relation, &kind, &target);
        relations.entry(name.clone()).or_insert_with(|| Relation {
            name: name.clone(),
            kind: kind.clone(),
            target: target.clone(),
            noun: String::new(),
            ask: Vec::new(),
            tools: vec![line.relation.clone()],
        });
        add_entity(&mut entities, &subject, &kind, line.article).map_err(wrong)?;
        if let Target::Entity(kind) = &target {
            add_entity(&mut entities, &object, kind, false).map_err(wrong)?;
        }
        facts.push(Fact {
            subject,
            relation: name,
            object,
        });
    }
    if facts.is_empty() {
        return Err(RowsError::Empty {
            path: path.to_owned(),
            problem: "no facts in it; write one JSON object a line",
        });
    }
    for relation in relations.values_mut() {
        let spoken = relation.tools.pop().unwrap_or_default();
        say(relation, &spoken, words.get(&spoken));
    }
    Ok(Facts::new(
        relations.into_values().collect(),
        entities.into_values().collect(),
        facts,
    ))
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

fn relation_name(
    relations: &BTreeMap<String, Relation>,
    spoken: &str,
    kind: &str,
    target: &Target,
) -> String {
    let plain = identifier(spoken);
    match relations.get(&plain) {
        Some(other) if other.kind != kind || other.target != *target => {
            format!("{}_{plain}", identifier(kind))
        }
        _ => plain,
    }
}

fn target(kind: &str, object: &str, unit: String) -> Result<Target, String> {
    let is = |fits: bool, what: &str| {
        if fits {
            Ok(())
        } else {
            Err(format!("the object {object:?} is no {what}"))
        }
    };
    match kind {
        "date" => is(date::parse(object).is_some(), "date (YYYY-MM-DD)").map(|()| Target::Date),
        "year" => {
            let fits = object.len() == 4 && object.parse::<u16>().is_ok();
            is(fits, "year of four digits").map(|()| Target::Year)
        }
        "number" => is(
            object.parse::<i64>().is_ok(),
            "whole number without separators",
        )
        .map(|()| Target::Number(unit)),
        kind => Ok(Target::Entity(kind.to_owned())),
    }
}

fn add_entity(
    entities: &mut BTreeMap<String, Entity>,
    name: &str,
    kind: &str,
    article: bool,
) -> Result<(), String> {
    let entity = entities.entry(name.to_owned()).or_insert_with(|| Entity {
        name: name.to_owned(),
        kind: kind.to_owned(),
        article: false,
        split: Split::of_tenth(Key::new(0, Purpose::Order).named(name).below(0, 10)),
    });
    if entity.kind != kind {
        return Err(format!(
            "{name:?} is {} here and {} before; give different things different names",
            super::facts::with_article(kind),
            super::facts::with_article(&entity.kind)
        ));
    }
    entity.article |= article;
    Ok(())
}
