//! Operations: the actions of the model, with their conditions and effects.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Number, Value};

use super::{Type, is_false};

/// Something that the model can do. In this order: bindings, preconditions, effects, postconditions, result, invariants. An operation
/// that fails anywhere changes nothing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Operation {
    /// Its name: lower-case letters, digits and `_`.
    pub name: String,
    /// Its description, for the model.
    pub description: String,
    /// True if it changes nothing. Then it has no effects.
    #[serde(default, skip_serializing_if = "is_false")]
    pub read_only: bool,
    /// The arguments that the model passes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parameters: Vec<Parameter>,
    /// Values that later expressions use by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bindings: Vec<Binding>,
    /// Conditions that must hold, tested in this order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub preconditions: Vec<Precondition>,
    /// Changes of the state, one after the other: all or nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<Effect>,
    /// Conditions that hold after the effects in every state. They describe the operation's result a second time,
    /// independently of the effects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub postconditions: Vec<Postcondition>,
    /// The result that the model reads.
    pub result: Outcome,
}

/// A parameter of an operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parameter {
    /// Its name.
    pub name: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: Type,
    /// Its description, for the model.
    pub description: String,
    /// True if it must be given. One that need not be given has a default, or is null.
    #[serde(default = "yes", skip_serializing_if = "is_true")]
    pub required: bool,
    /// Its default value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// Minimum of an integer or number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum: Option<Number>,
    /// Maximum of an integer or number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum: Option<Number>,
    /// True if the user knows this key, such as a membership number. The user can always provide values that are not
    /// keys.
    #[serde(default, skip_serializing_if = "is_false")]
    pub from_user: bool,
}

impl Parameter {
    /// True if a value can be absent, so that expressions see null.
    pub fn can_be_null(&self) -> bool {
        !self.required && self.default.is_none()
    }
}

/// A named value: of an expression, or an entity found by its key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Binding {
    /// Finds an entity. If there is none, the operation fails.
    Find(Lookup),
    /// Computes a value.
    Compute {
        /// Its name in later expressions.
        name: String,
        /// The expression.
        value: String,
    },
}

impl Binding {
    /// The name in later expressions.
    pub fn name(&self) -> &str {
        match self {
            Self::Find(lookup) => &lookup.name,
            Self::Compute { name, .. } => name,
        }
    }
}

/// An entity found by its key.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lookup {
    /// Its name in later expressions, which see its fields as they were when it was found.
    pub name: String,
    /// The entity.
    pub entity: String,
    /// Expression of the key.
    pub key: String,
    /// Message if there is none. `{expression}` inserts a value.
    pub error: String,
}

/// A condition without which an operation fails.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Precondition {
    /// The condition.
    pub require: String,
    /// Message if it is false. `{expression}` inserts a value.
    pub error: String,
}

/// A condition that holds after an operation's effects. If it is false, the operation is undone: a fault of the
/// specification.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Postcondition {
    /// The condition. Bindings have the values from before the effects.
    pub require: String,
}

/// A change of the state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// Adds an entity.
    Insert(Insert),
    /// Changes fields of an entity.
    Set(Update),
    /// Removes an entity.
    Delete(Delete),
    /// Changes a single value of the state.
    Assign(Assign),
}

/// Adds an entity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Insert {
    /// The entity.
    pub entity: String,
    /// Expressions of its fields. Optional fields that are not named are null.
    pub values: BTreeMap<String, String>,
    /// Expression of its key. By default the prefix and the next number. Numbers of keys that exist are skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Name of the new key in later expressions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Condition of this effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// Repeats the effect for each item of a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub each: Option<Each>,
}

/// Changes fields of an entity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Update {
    /// The entity.
    pub entity: String,
    /// Expression of its key.
    pub key: String,
    /// Expressions of the fields that change. All are computed before any is written.
    pub values: BTreeMap<String, String>,
    /// Condition of this effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// Repeats the effect for each item of a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub each: Option<Each>,
}

/// Removes an entity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Delete {
    /// The entity.
    pub entity: String,
    /// Expression of its key.
    pub key: String,
    /// Condition of this effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// Repeats the effect for each item of a list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub each: Option<Each>,
}

/// Changes a single value of the state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assign {
    /// Its name.
    pub name: String,
    /// Expression of its new value.
    pub value: String,
    /// Condition of this effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
}

/// A name for each item of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Each {
    /// The name.
    pub name: String,
    /// Expression of the list.
    pub of: String,
}

/// The typed result of an operation: an object, or a list of objects.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outcome {
    /// If set, the result is a list with one object for each item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub each: Option<Each>,
    /// The fields of the object.
    pub fields: Vec<OutcomeField>,
}

/// A field of a result.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutcomeField {
    /// Its name.
    pub name: String,
    /// Its type. The type of a reference names the entity.
    #[serde(rename = "type")]
    pub kind: Type,
    /// Its description.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// True if it can be null.
    #[serde(default, skip_serializing_if = "is_false")]
    pub optional: bool,
    /// Expression of its value.
    pub value: String,
}

fn yes() -> bool {
    true
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_true(value: &bool) -> bool {
    *value
}
