//! The meaning of a user's words: the operation that is asked for, and the mention of each argument.
//!
//! The text of a query is written from requests, and says nothing more and nothing less. A reader who understands the
//! text knows the requests; the solver is given them, and must find everything else out in the environment.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One operation that the user asks for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The tool: `Server-name`.
    pub tool: String,
    /// The mention of each argument. Arguments that are left out are not here.
    pub arguments: BTreeMap<String, Mention>,
    /// True if it is joined with the request before it in one sentence.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub joined: bool,
}

/// The words about an argument, by their meaning.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mention {
    /// The value itself.
    Value(Value),
    /// An entity, by facts about it.
    Described(Description),
    /// The same as an argument of an earlier request.
    Same {
        /// The request, counted from 0 over all turns.
        request: usize,
        /// The parameter of that request.
        parameter: String,
        /// The kind of entity: `Server.entity`.
        entity: String,
    },
    /// The thing that an earlier request made.
    Produced {
        /// The request, counted from 0 over all turns.
        request: usize,
        /// The field of its result.
        field: String,
        /// The kind of entity: `Server.entity`.
        entity: String,
    },
    /// The value that a field has for the entity of another argument of the same request.
    FieldOf {
        /// The other argument.
        parameter: String,
        /// The field, as results of tools call it.
        field: String,
    },
}

/// An entity, described by facts that together fit no other one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// The kind of entity: `Server.entity`.
    pub entity: String,
    /// If set, the facts are about another entity that refers to it: the member of a loan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<Through>,
    /// The facts that are said about it.
    pub facts: Vec<Fact>,
}

/// An entity that refers to the one that is meant.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Through {
    /// The kind of this entity: `Server.entity`.
    pub entity: String,
    /// The field that refers, as results of tools call it.
    pub field: String,
}

/// Something that is said about an entity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fact {
    /// A field has a value.
    Is {
        /// The field, as results of tools call it.
        field: String,
        /// The value of the field.
        value: Value,
    },
    /// The entity belongs to another one: a loan of a member.
    Of {
        /// The parameter by which tools look for it.
        parameter: String,
        /// The other kind of entity: `Server.entity`.
        entity: String,
        /// The other entity.
        mention: Box<Mention>,
    },
    /// The entity is among those that a tool gives for this value of a parameter: those of a day.
    Among {
        /// The parameter.
        parameter: String,
        /// The value of the parameter.
        value: Value,
    },
    /// The entity has the highest or the lowest value of a field among those that fit.
    Extreme {
        /// The field, as results of tools call it.
        field: String,
        /// True if it is the highest.
        highest: bool,
    },
    /// There is no other one that fits.
    Only,
}

impl Mention {
    /// The values that the words must contain.
    pub fn values(&self) -> Vec<&Value> {
        match self {
            Self::Value(value) => vec![value],
            Self::Described(description) => {
                description.facts.iter().flat_map(Fact::values).collect()
            }
            Self::Same { .. } | Self::Produced { .. } | Self::FieldOf { .. } => Vec::new(),
        }
    }

    /// The kind of entity, if it is one.
    pub fn entity(&self) -> Option<&str> {
        match self {
            Self::Described(Description { entity, .. })
            | Self::Same { entity, .. }
            | Self::Produced { entity, .. } => Some(entity),
            Self::Value(_) | Self::FieldOf { .. } => None,
        }
    }
}

impl Fact {
    fn values(&self) -> Vec<&Value> {
        match self {
            Self::Is { value, .. } | Self::Among { value, .. } => vec![value],
            Self::Of { mention, .. } => mention.values(),
            Self::Extreme { .. } | Self::Only => Vec::new(),
        }
    }
}

/// The order of two numbers, or of two texts.
pub(super) fn order(one: &Value, other: &Value) -> Option<Ordering> {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one.as_f64()?.partial_cmp(&other.as_f64()?),
        (Value::String(one), Value::String(other)) => Some(one.cmp(other)),
        _ => None,
    }
}
