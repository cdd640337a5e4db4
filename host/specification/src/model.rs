//! The parts of a specification, as a file has them.
//!
//! Lists keep their order, which is the order in which a model sees tools, parameters and results.

mod operation;
mod scenario;

pub use operation::{
    Assign, Binding, Delete, Each, Effect, Insert, Lookup, Operation, Outcome, OutcomeField,
    Parameter, Postcondition, Precondition, Update,
};
pub use scenario::{Count, Generator, Scenario, Size};

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Number;

/// An environment as data.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Specification {
    /// Name of the environment: a capital letter, then letters and digits. Tools are called `Name-operation`.
    pub name: String,
    /// Description of the environment.
    pub description: String,
    /// A system message for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Lists of words for generated states.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub vocabularies: BTreeMap<String, Vec<String>>,
    /// Single values of the state, such as today's date.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<Field>,
    /// The kinds of things in the state. A kind that refers to another comes after it.
    pub entities: Vec<Entity>,
    /// The operations that the model can call.
    pub operations: Vec<Operation>,
    /// Rules that hold in every state.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub invariants: Vec<Invariant>,
    /// The states in which episodes begin, one for each size.
    pub scenarios: Vec<Scenario>,
}

/// A kind of thing: a book, a member, a loan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entity {
    /// Name in the singular: `book`.
    pub name: String,
    /// Name in the plural, in the state and in expressions: `books`.
    pub collection: String,
    /// Its description.
    pub description: String,
    /// Its key.
    pub key: Key,
    /// Its other fields.
    #[serde(default)]
    pub fields: Vec<Field>,
}

/// The key of an entity, a text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Key {
    /// Name of the field: `book_id`.
    pub name: String,
    /// Its description.
    #[serde(default)]
    pub description: String,
    /// The beginning of generated keys. With `B`, keys are `B1`, `B2` and so on.
    pub prefix: String,
    /// True if the number of the first generated key is drawn from 100 to 899, for each initial state. A policy cannot guess
    /// such keys. False: 1.
    #[serde(default, skip_serializing_if = "is_false")]
    pub random_start: bool,
}

/// A field of an entity, or a single value of the state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: Type,
    /// Its description.
    #[serde(default)]
    pub description: String,
    /// True if it can be null.
    #[serde(default, skip_serializing_if = "is_false")]
    pub optional: bool,
    /// True if no two entities have the same value.
    #[serde(default, skip_serializing_if = "is_false")]
    pub unique: bool,
    /// Minimum of an integer or number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum: Option<Number>,
    /// Maximum of an integer or number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum: Option<Number>,
    /// The way in which generated states fill it. By default: any key of a reference, any value of an enumeration or
    /// boolean, and any number within the limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generate: Option<Generator>,
}

/// The type of a field, parameter or result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Type {
    /// Text.
    Text,
    /// A whole number of at most 64 bits.
    Integer,
    /// A double.
    Number,
    /// True or false.
    Boolean,
    /// A day, written as `YYYY-MM-DD`.
    Date,
    /// One of these texts.
    Enumeration(Vec<String>),
    /// The key of an entity of this name.
    Reference(String),
    /// A list of values of one type.
    List(Box<Type>),
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => f.write_str("text"),
            Self::Integer => f.write_str("integer"),
            Self::Number => f.write_str("number"),
            Self::Boolean => f.write_str("boolean"),
            Self::Date => f.write_str("date"),
            Self::Enumeration(values) => write!(f, "one of {}", values.join(", ")),
            Self::Reference(entity) => write!(f, "reference to {entity}"),
            Self::List(item) => write!(f, "list of {item}"),
        }
    }
}

impl Type {
    /// The entity whose keys the values are, or the items of a list are.
    pub fn referenced(&self) -> Option<&str> {
        match self {
            Self::Reference(entity) => Some(entity),
            Self::List(item) => item.referenced(),
            _ => None,
        }
    }
}

/// A rule that holds in every state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Invariant {
    /// Its name in findings and messages.
    pub name: String,
    /// Its description.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// An expression that is true in every state.
    pub require: String,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
pub(crate) fn is_false(value: &bool) -> bool {
    !*value
}
