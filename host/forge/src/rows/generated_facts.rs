//! Generates a graph of facts from a seed: believable names, dates and numbers.

use std::collections::{BTreeMap, BTreeSet};

use rlf_dialogue::split::Split;
use rlf_random::Key;
use rlf_specification::date;

use super::draw::{between, chance, pick, root};
use super::facts::{Entity, Fact, Facts, Relation, Target};
use super::library::{Kind, Shape, kinds, words};
use super::options::split_of_tenth;

/// Share of relations that an entity has.
const KNOWN: f64 = 0.9;
/// First and last day of generated dates, counted from 1970-01-01: from 1871 to 2019.
const DAYS: (i64, i64) = (-36_159, 18_261);

/// Generates a graph with up to `size` entities of each kind. Another `size` gives a different graph.
pub fn generate_facts(seed: u64, size: usize) -> Facts {
    let key = root(seed).named("facts");
    let mut entities: Vec<Entity> = Vec::new();
    let mut taken = BTreeSet::new();
    for kind in kinds() {
        let names = names(kind, size, key.named(&kind.name), &mut taken);
        entities.extend(names.into_iter().enumerate().map(|(index, name)| Entity {
            name,
            kind: kind.name.clone(),
            article: kind.article,
            split: split_of_tenth(index as u64 % 10),
        }));
    }
    let relations: Vec<Relation> = kinds()
        .iter()
        .flat_map(|kind| kind.relations.iter().map(|shape| relation(kind, shape)))
        .collect();
    let mut groups: BTreeMap<(&str, Split), Vec<&Entity>> = BTreeMap::new();
    for entity in &entities {
        let group = groups.entry((&entity.kind, entity.split)).or_default();
        group.push(entity);
    }
    let mut facts = Vec::new();
    for entity in &entities {
        let Some(kind) = kinds().iter().find(|kind| kind.name == entity.kind) else {
            continue;
        };
        for shape in &kind.relations {
            let key = key.named(&entity.name).named(&shape.name);
            if !chance(key.named("known"), KNOWN) {
                continue;
            }
            let others = groups.get(&(shape.to.as_str(), entity.split));
            let others = others.map_or(&[][..], Vec::as_slice);
            if let Some(object) = object(shape, entity, others, key) {
                facts.push(Fact {
                    subject: entity.name.clone(),
                    relation: shape.name.clone(),
                    object,
                });
            }
        }
    }
    Facts::new(relations, entities, facts)
}

fn relation(kind: &Kind, shape: &Shape) -> Relation {
    Relation {
        name: shape.name.clone(),
        kind: kind.name.clone(),
        target: match shape.to.as_str() {
            "date" => Target::Date,
            "year" => Target::Year,
            "number" => Target::Number(shape.unit.clone()),
            kind => Target::Entity(kind.to_owned()),
        },
        noun: shape.noun.clone(),
        ask: shape.ask.clone(),
        tools: shape.tools.clone(),
    }
}

/// The object of a fact. `others` are the entities of its kind and split. None if there is none but the subject.
fn object(shape: &Shape, subject: &Entity, others: &[&Entity], key: Key) -> Option<String> {
    let (least, most) = shape.range.unwrap_or((1_000, 99_000));
    match shape.to.as_str() {
        "date" => {
            let days = (DAYS.1 - DAYS.0) as u64;
            date::format(DAYS.0 + key.below(1, days) as i64)
        }
        "year" => Some((least + key.below(1, most - least + 1)).to_string()),
        "number" => {
            // Each order of magnitude is as likely, as with sizes of real things.
            let (least, most) = (least as f64, most as f64);
            let drawn = least * (most / least).powf(key.uniform(1));
            Some((drawn.round() as u64).to_string())
        }
        _ => {
            let drawn = pick(key.named("object"), others)?;
            if drawn.name != subject.name {
                return Some(drawn.name.clone());
            }
            let other = others.iter().find(|other| other.name != subject.name);
            other.map(|other| other.name.clone())
        }
    }
}

/// At most `size` different names of a kind. Fewer if its words do not suffice.
fn names(kind: &Kind, size: usize, key: Key, taken: &mut BTreeSet<String>) -> Vec<String> {
    let mut names = Vec::new();
    // Four draws for each name are enough, unless nearly all names of the kind are taken.
    for number in 0..4 * size as u64 {
        if names.len() == size {
            break;
        }
        let name = name(kind, key.at(number));
        if taken.insert(name.to_lowercase()) {
            names.push(name);
        }
    }
    names
}

fn name(kind: &Kind, key: Key) -> String {
    let mut name = String::new();
    let pattern = pick(key.named("pattern"), &kind.names).map_or("", String::as_str);
    let mut rest = pattern;
    while let Some((before, after)) = rest.split_once('{') {
        let (list, after) = after.split_once('}').unwrap_or((after, ""));
        name.push_str(before);
        let words = words(list);
        if !words.is_empty() {
            name.push_str(&words[between(key.named(list), 0, words.len() - 1)]);
        }
        rest = after;
    }
    name.push_str(rest);
    name
}
