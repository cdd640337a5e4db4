//! Structures of environments: what is left without names, words and numbers.
//!
//! The canonical form of a specification has one feature for each entity, field, relation, operation, invariant and
//! single value. Names, descriptions, messages, literals and the order of lists do not occur in it:
//!
//! - A field is its type, the number of values of an enumeration, and whether it is optional, unique and limited.
//! - An entity is the sorted fields, with references as the entities that they lead to. These are told apart by what
//!   they consist of and by what refers to them, repeated three times (colour refinement, as Weisfeiler and Leman did
//!   for graphs).
//! - An operation is its parameters, lookups, conditions, effects and results, with types. An expression is its tokens:
//!   operators, functions, macros, collections as entities, every other name as `n`, every literal as its type.
//!
//! Two environments have the same structure if their sorted features are equal. The distance is 1 - |A and B| / |A or B|
//! (Jaccard) of the features as multisets: 0 for the same structure, 1 if nothing is shared.

use std::collections::BTreeMap;

use rlf_specification::Specification;
use rlf_specification::model::{Binding, Effect, Field, Operation, Type};

/// Minimum distance from an environment to every earlier one.
pub const MIN_DISTANCE: f64 = 0.1;
/// Rounds of colour refinement.
const ROUNDS: usize = 3;
/// Words of expressions that are kept.
const KEPT: [&str; 29] = [
    "size",
    "contains",
    "startsWith",
    "endsWith",
    "lowerAscii",
    "upperAscii",
    "trim",
    "int",
    "double",
    "string",
    "math",
    "least",
    "greatest",
    "sum",
    "addDays",
    "daysBetween",
    "all",
    "exists",
    "exists_one",
    "filter",
    "map",
    "in",
    "true",
    "false",
    "null",
    "matches",
    "has",
    "min",
    "max",
];

/// The structure of an environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Structure {
    /// The features, each with how often it occurs.
    features: BTreeMap<String, usize>,
    /// A hash of the features.
    pub hash: String,
}

impl Structure {
    /// The structure of a specification.
    pub fn new(specification: &Specification) -> Self {
        let colours = Colours::new(specification);
        let mut features: BTreeMap<String, usize> = BTreeMap::new();
        let mut add = |feature: String| *features.entry(feature).or_default() += 1;
        for value in &specification.values {
            add(format!("value {}", colours.field(value)));
        }
        for entity in &specification.entities {
            let colour = colours.entity(&entity.name);
            add(format!("entity {colour}"));
            for field in &entity.fields {
                // Without the colour of its own entity: entities that differ in one field share the others.
                add(format!("field {}", colours.field(field)));
            }
        }
        for invariant in &specification.invariants {
            add(format!(
                "invariant {}",
                colours.expression(&invariant.require)
            ));
        }
        for operation in &specification.operations {
            let parts = colours.operation(operation);
            add(format!("operation {}", parts.join("; ")));
            for part in parts {
                add(part);
            }
        }
        let mut hasher = blake3::Hasher::new();
        for (feature, count) in &features {
            hasher.update(format!("{count} {feature}\n").as_bytes());
        }
        Self {
            features,
            hash: hasher.finalize().to_hex()[..16].to_owned(),
        }
    }

    /// The distance to another structure, from 0 to 1.
    pub fn distance(&self, other: &Self) -> f64 {
        let shared: usize = self
            .features
            .iter()
            .map(|(feature, count)| {
                other
                    .features
                    .get(feature)
                    .map_or(0, |others| *others.min(count))
            })
            .sum();
        let all =
            self.features.values().sum::<usize>() + other.features.values().sum::<usize>() - shared;
        1.0 - shared as f64 / all.max(1) as f64
    }
}

/// The position of the nearest of several structures, and its distance.
pub fn nearest<'a>(
    structure: &Structure,
    others: impl Iterator<Item = &'a Structure>,
) -> Option<(usize, f64)> {
    let distances = others.map(|other| structure.distance(other)).enumerate();
    distances.min_by(|one, other| one.1.total_cmp(&other.1))
}

/// The colours of entities in colour refinement: what is known of them without their names.
struct Colours {
    entities: BTreeMap<String, String>,
    collections: BTreeMap<String, String>,
}

impl Colours {
    fn new(specification: &Specification) -> Self {
        let mut colours = Self {
            entities: specification
                .entities
                .iter()
                .map(|entity| (entity.name.clone(), String::new()))
                .collect(),
            collections: BTreeMap::new(),
        };
        for _ in 0..ROUNDS {
            let mut next = BTreeMap::new();
            for entity in &specification.entities {
                let mut own: Vec<String> = entity
                    .fields
                    .iter()
                    .map(|field| colours.field(field))
                    .collect();
                let others = specification
                    .entities
                    .iter()
                    .flat_map(|other| other.fields.iter().map(move |field| (other, field)));
                for (other, field) in
                    others.filter(|(_, field)| field.kind.referenced() == Some(&entity.name))
                {
                    own.push(format!(
                        "from {} {}",
                        colours.entity(&other.name),
                        field.optional
                    ));
                }
                own.sort();
                let hash = blake3::hash(own.join(", ").as_bytes()).to_hex()[..8].to_owned();
                next.insert(entity.name.clone(), hash);
            }
            colours.entities = next;
        }
        for entity in &specification.entities {
            let colour = colours.entity(&entity.name).to_owned();
            colours
                .collections
                .insert(entity.collection.clone(), colour);
        }
        colours
    }

    fn entity(&self, name: &str) -> &str {
        self.entities.get(name).map_or("", String::as_str)
    }

    fn kind(&self, kind: &Type) -> String {
        match kind {
            Type::Text => "text".to_owned(),
            Type::Integer => "integer".to_owned(),
            Type::Number => "number".to_owned(),
            Type::Boolean => "boolean".to_owned(),
            Type::Date => "date".to_owned(),
            Type::Enumeration(values) => format!("one of {}", values.len()),
            Type::Reference(entity) => format!("key of {}", self.entity(entity)),
            Type::List(item) => format!("list of {}", self.kind(item)),
        }
    }

    fn field(&self, field: &Field) -> String {
        let mut shape = self.kind(&field.kind);
        for (holds, word) in [
            (field.optional, " optional"),
            (field.unique, " unique"),
            (field.minimum.is_some(), " from"),
            (field.maximum.is_some(), " to"),
        ] {
            if holds {
                shape += word;
            }
        }
        shape
    }

    fn operation(&self, operation: &Operation) -> Vec<String> {
        let mut parts = Vec::new();
        for parameter in &operation.parameters {
            let kind = self.kind(&parameter.kind);
            let limits = (parameter.minimum.is_some(), parameter.maximum.is_some());
            parts.push(format!(
                "parameter {kind} {} {limits:?}",
                parameter.required
            ));
        }
        for binding in &operation.bindings {
            parts.push(match binding {
                Binding::Find(lookup) => format!("find {}", self.entity(&lookup.entity)),
                Binding::Compute { value, .. } => format!("compute {}", self.expression(value)),
            });
        }
        for precondition in &operation.preconditions {
            parts.push(format!(
                "require {}",
                self.expression(&precondition.require)
            ));
        }
        for effect in &operation.effects {
            parts.push(self.effect(effect));
        }
        let result = &operation.result;
        if let Some(each) = &result.each {
            parts.push(format!("each {}", self.expression(&each.of)));
        }
        for field in &result.fields {
            parts.push(format!(
                "result {} {}",
                self.kind(&field.kind),
                field.optional
            ));
        }
        parts.sort();
        parts
    }

    fn effect(&self, effect: &Effect) -> String {
        let values = |values: &BTreeMap<String, String>| {
            let mut shapes: Vec<String> = values
                .values()
                .map(|value| self.expression(value))
                .collect();
            shapes.sort();
            shapes.join(", ")
        };
        match effect {
            Effect::Insert(insert) => format!(
                "insert {} {}",
                self.entity(&insert.entity),
                values(&insert.values)
            ),
            Effect::Set(update) => format!(
                "set {} {}",
                self.entity(&update.entity),
                values(&update.values)
            ),
            Effect::Delete(delete) => format!("delete {}", self.entity(&delete.entity)),
            Effect::Assign(assign) => format!("assign {}", self.expression(&assign.value)),
        }
    }

    /// The tokens of an expression without names and literals.
    fn expression(&self, source: &str) -> String {
        let mut shape = String::new();
        let mut characters = source.chars().peekable();
        while let Some(first) = characters.next() {
            if first.is_ascii_alphabetic() || first == '_' {
                let mut word = String::from(first);
                while let Some(more) =
                    characters.next_if(|one| one.is_ascii_alphanumeric() || *one == '_')
                {
                    word.push(more);
                }
                match self.collections.get(&word) {
                    Some(colour) => shape += colour,
                    None if KEPT.contains(&word.as_str()) => shape += &word,
                    None => shape.push('n'),
                }
            } else if first.is_ascii_digit() {
                while characters
                    .next_if(|one| one.is_ascii_digit() || *one == '.')
                    .is_some()
                {}
                shape.push('0');
            } else if first == '\'' || first == '"' {
                while characters.next().is_some_and(|one| one != first) {}
                shape.push('t');
            } else if !first.is_whitespace() {
                shape.push(first);
            }
        }
        shape
    }
}
