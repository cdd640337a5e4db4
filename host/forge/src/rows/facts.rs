//! A graph of facts: entities, and relations between them or to dates, years and numbers.

use std::collections::{BTreeMap, BTreeSet};

use rlf_dialogue::split::Split;
use serde::{Deserialize, Serialize};

use crate::english;

/// The type of a relation's objects.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// An entity of this kind.
    Entity(String),
    /// A date, `YYYY-MM-DD`.
    Date,
    /// A year.
    Year,
    /// A number with this unit, which may be empty.
    Number(String),
}

impl Target {
    /// The measure of the values. Values with the same measure can be compared. None for entities.
    pub fn measure(&self) -> Option<&str> {
        match self {
            Self::Entity(_) => None,
            Self::Date => Some("date"),
            Self::Year => Some("year"),
            Self::Number(unit) => Some(unit),
        }
    }

    /// The target in a sentence about a result: `a person`, `a number of metres`.
    pub fn described(&self) -> String {
        match self {
            Self::Entity(kind) => format!("the name of {}", with_article(kind)),
            Self::Date => "a date in YYYY-MM-DD format".to_owned(),
            Self::Year => "a year".to_owned(),
            Self::Number(unit) if unit.is_empty() => "a number".to_owned(),
            Self::Number(unit) => format!("a number in {unit}"),
        }
    }
}

/// A kind of entity with `a` or `an`: `birth_city` is `a birth city`.
pub(crate) fn with_article(word: &str) -> String {
    english::with_article(&word.replace('_', " "))
}

/// A relation: its ends, and its words in sentences and names of tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Relation {
    /// Identifier, such as `birth_city`.
    pub name: String,
    /// Kind of the subjects.
    pub kind: String,
    /// The type of its objects.
    pub target: Target,
    /// A phrase for the object, with `{}` for the subject: `the city where {} was born`.
    pub noun: String,
    /// Questions for the object, with `{}` for the subject.
    pub ask: Vec<String>,
    /// Prefixes for the names of tools that look this relation up.
    pub tools: Vec<String>,
}

/// A thing that has a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entity {
    /// Its name, which no other entity has.
    pub name: String,
    /// Its kind.
    pub kind: String,
    /// True if sentences say "the" before the name.
    #[serde(default)]
    pub article: bool,
    /// Its split.
    pub split: Split,
}

/// One fact. Subject and object are names; the object of a fact about a value is the value's text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fact {
    /// Name of the subject.
    pub subject: String,
    /// Name of the relation.
    pub relation: String,
    /// Name of the object, or a value.
    pub object: String,
}

/// A graph of facts, with the indices that the stages need.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Facts {
    relations: BTreeMap<String, Relation>,
    entities: BTreeMap<String, Entity>,
    all: Vec<Fact>,
    about: BTreeMap<String, Vec<usize>>,
    leading_to: BTreeMap<String, Vec<usize>>,
    by_relation: BTreeMap<(Split, String), Vec<usize>>,
    by_split: BTreeMap<Split, Vec<usize>>,
}

impl Facts {
    /// A graph of these facts. Facts that cannot be used are left out: those whose relation or subject is not defined,
    /// those that cross splits, and all facts of a subject and relation that has several objects, because a question for
    /// it would have several answers.
    pub fn new(relations: Vec<Relation>, entities: Vec<Entity>, facts: Vec<Fact>) -> Self {
        let mut graph = Self {
            relations: relations
                .into_iter()
                .map(|one| (one.name.clone(), one))
                .collect(),
            entities: entities
                .into_iter()
                .map(|one| (one.name.clone(), one))
                .collect(),
            ..Self::default()
        };
        let mut seen = BTreeSet::new();
        let mut ambiguous = BTreeSet::new();
        for fact in &facts {
            let key = (fact.subject.clone(), fact.relation.clone());
            if !seen.insert(key.clone()) {
                ambiguous.insert(key);
            }
        }
        for fact in facts {
            let is_ambiguous = ambiguous.contains(&(fact.subject.clone(), fact.relation.clone()));
            if let Some(split) = graph.split_of(&fact).filter(|_| !is_ambiguous) {
                graph.add(fact, split);
            }
        }
        graph
    }

    fn split_of(&self, fact: &Fact) -> Option<Split> {
        let subject = self.entities.get(&fact.subject)?;
        let relation = self.relations.get(&fact.relation)?;
        if let Target::Entity(_) = relation.target {
            let object = self.entities.get(&fact.object)?;
            if object.split != subject.split {
                return None;
            }
        }
        Some(subject.split)
    }

    fn add(&mut self, fact: Fact, split: Split) {
        let index = self.all.len();
        let of_entity = self.relations[&fact.relation].target.measure().is_none();
        if of_entity {
            let list = self.leading_to.entry(fact.object.clone()).or_default();
            list.push(index);
        }
        let list = self.about.entry(fact.subject.clone()).or_default();
        list.push(index);
        let list = self
            .by_relation
            .entry((split, fact.relation.clone()))
            .or_default();
        list.push(index);
        self.by_split.entry(split).or_default().push(index);
        self.all.push(fact);
    }

    /// All facts, in order.
    pub fn facts(&self) -> &[Fact] {
        &self.all
    }

    /// All relations, by name.
    pub fn relations(&self) -> impl Iterator<Item = &Relation> {
        self.relations.values()
    }

    /// All entities, by name.
    pub fn entities(&self) -> impl Iterator<Item = &Entity> {
        self.entities.values()
    }

    /// A relation by its name.
    pub fn relation(&self, name: &str) -> Option<&Relation> {
        self.relations.get(name)
    }

    /// An entity by its name.
    pub fn entity(&self, name: &str) -> Option<&Entity> {
        self.entities.get(name)
    }

    /// Indices of the facts about a subject.
    pub(crate) fn about(&self, subject: &str) -> &[usize] {
        self.about.get(subject).map_or(&[], Vec::as_slice)
    }

    /// Indices of the facts whose object is this entity.
    pub(crate) fn leading_to(&self, object: &str) -> &[usize] {
        self.leading_to.get(object).map_or(&[], Vec::as_slice)
    }

    /// Indices of the facts of a relation in a split.
    pub(crate) fn of_relation(&self, split: Split, relation: &str) -> &[usize] {
        self.by_relation
            .get(&(split, relation.to_owned()))
            .map_or(&[], Vec::as_slice)
    }

    /// Indices of the facts of a split.
    pub(crate) fn of_split(&self, split: Split) -> &[usize] {
        self.by_split.get(&split).map_or(&[], Vec::as_slice)
    }

    /// The name of an entity in a sentence, with its article.
    pub(crate) fn in_sentence(&self, name: &str) -> String {
        match self.entities.get(name) {
            Some(entity) if entity.article => format!("the {name}"),
            _ => name.to_owned(),
        }
    }
}
