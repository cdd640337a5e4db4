//! A specification that has been checked and compiled, ready to run.

mod compile;

use std::collections::BTreeSet;

use crate::expression::{Expr, Machine, Schema, Template};
use crate::expression::{Fault, MAX_STEPS, ValueType, weigh};
use crate::model::{Operation, Specification};
use crate::state::State;
use crate::value::Value;

pub(crate) use compile::Compiler;

/// A specification without errors, compiled.
#[derive(Debug, Clone)]
pub struct Program {
    pub(crate) specification: Specification,
    pub(crate) schema: Schema,
    pub(crate) operations: Vec<CompiledOperation>,
    pub(crate) rules: Vec<Rule>,
    /// For each entity: true if it gets generated keys.
    pub(crate) counted: Vec<bool>,
    pub(crate) generators: Vec<CompiledGenerator>,
}

/// The expression of a generator. The same source has another code in another field, which sees other locals.
#[derive(Debug, Clone)]
pub(crate) struct CompiledGenerator {
    pub(crate) entity: usize,
    /// Position in the entity's fields, from 0 for the first one after the key.
    pub(crate) field: usize,
    pub(crate) source: String,
    pub(crate) expr: Expr,
}

/// An invariant.
#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub(crate) name: String,
    pub(crate) holds: Expr,
}

/// An operation, its locals on a stack: parameters, bindings, names of inserted keys.
#[derive(Debug, Clone)]
pub(crate) struct CompiledOperation {
    pub(crate) parameters: Vec<ValueType>,
    pub(crate) bindings: Vec<CompiledBinding>,
    pub(crate) preconditions: Vec<(Expr, Template)>,
    pub(crate) effects: Vec<CompiledEffect>,
    pub(crate) postconditions: Vec<Expr>,
    pub(crate) each: Option<Expr>,
    pub(crate) fields: Vec<Expr>,
}

#[derive(Debug, Clone)]
pub(crate) enum CompiledBinding {
    Find {
        entity: usize,
        key: Expr,
        error: Template,
    },
    Compute(Expr),
}

#[derive(Debug, Clone)]
pub(crate) struct CompiledEffect {
    pub(crate) each: Option<Expr>,
    pub(crate) when: Option<Expr>,
    pub(crate) change: Change,
}

#[derive(Debug, Clone)]
pub(crate) enum Change {
    Insert {
        entity: usize,
        key: Option<Expr>,
        /// Each field after the key.
        values: Vec<Expr>,
        /// True if the new key is a local from now on.
        named: bool,
    },
    Set {
        entity: usize,
        key: Expr,
        /// Positions of fields, and their new values.
        values: Vec<(usize, Expr)>,
    },
    Delete {
        entity: usize,
        key: Expr,
    },
    Assign {
        value: usize,
        to: Expr,
    },
}

/// The rule that a state breaks whose lists and texts are too large to be checked in [`MAX_STEPS`].
const TOO_LARGE: &str = "`size of the state`";

impl Program {
    /// The specification.
    pub fn specification(&self) -> &Specification {
        &self.specification
    }

    /// An operation by name.
    pub fn operation(&self, name: &str) -> Option<&Operation> {
        let mut operations = self.specification.operations.iter();
        operations.find(|operation| operation.name == name)
    }

    /// The first rule that a state breaks: its size, a limit, a reference without a target, a value that is not unique,
    /// or an invariant.
    pub fn broken_rule(&self, state: &State) -> Option<String> {
        // Everything that goes through a whole state needs no more steps than this.
        let mut size = MAX_STEPS;
        let mut values = state.values.iter();
        if values.any(|value| weigh(value, &mut size).is_err()) {
            return Some(TOO_LARGE.to_owned());
        }
        let limits = self.specification.values.iter().zip(&state.values);
        for (field, value) in limits {
            if !within(value, field.minimum.as_ref(), field.maximum.as_ref()) {
                return Some(format!("`limits of {}`", field.name));
            }
        }
        for ((name, kind), value) in self.schema.values.iter().zip(&state.values) {
            if !refers(kind, value, state) {
                return Some(format!("`target of {name}`"));
            }
        }
        for (index, entity) in self.specification.entities.iter().enumerate() {
            for (position, field) in entity.fields.iter().enumerate() {
                let rule = |what: &str| Some(format!("`{what} of {}.{}`", entity.name, field.name));
                let kind = &self.schema.entities[index].fields[position + 1].1;
                // As JSON, because values with doubles have no order.
                let mut seen = BTreeSet::new();
                for record in state.tables[index].values() {
                    let value = &record[position + 1];
                    if weigh(value, &mut size).is_err() {
                        return Some(TOO_LARGE.to_owned());
                    }
                    if !within(value, field.minimum.as_ref(), field.maximum.as_ref()) {
                        return rule("limits");
                    }
                    if !refers(kind, value, state) {
                        return rule("target");
                    }
                    let is_compared = field.unique && *value != Value::Null;
                    if is_compared && !seen.insert(value.to_json().to_string()) {
                        return rule("unique value");
                    }
                }
            }
        }
        let mut steps = MAX_STEPS;
        let mut locals = Vec::new();
        for rule in &self.rules {
            let mut machine = Machine {
                schema: &self.schema,
                state,
                locals: &mut locals,
                steps: &mut steps,
            };
            if machine.truth(&rule.holds) != Ok(true) {
                return Some(format!("`{}`", rule.name));
            }
        }
        None
    }
}

/// True if a number is within declared limits. Any other value is within them too.
pub(crate) fn within(
    value: &Value,
    minimum: Option<&serde_json::Number>,
    maximum: Option<&serde_json::Number>,
) -> bool {
    let limit = |limit: Option<&serde_json::Number>, other: f64| {
        limit.and_then(serde_json::Number::as_f64).unwrap_or(other)
    };
    let whole = |limit: Option<&serde_json::Number>| limit.and_then(serde_json::Number::as_i64);
    match value {
        Value::Integer(number) => {
            whole(minimum).is_none_or(|least| *number >= least)
                && whole(maximum).is_none_or(|most| *number <= most)
        }
        Value::Number(number) => {
            *number >= limit(minimum, f64::NEG_INFINITY) && *number <= limit(maximum, f64::INFINITY)
        }
        _ => true,
    }
}

/// True if the entities that a value refers to exist.
fn refers(kind: &ValueType, value: &Value, state: &State) -> bool {
    match (kind, value) {
        (ValueType::Key(entity), Value::Text(key)) => state.tables[*entity].contains_key(key),
        (ValueType::List(item), Value::List(items)) => {
            items.iter().all(|one| refers(item, one, state))
        }
        (ValueType::Optional(inner), value) => refers(inner, value, state),
        _ => true,
    }
}

/// The reason why an operation was not carried out. The state is as before.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no such operation.
    #[error("there is no operation `{0}`")]
    NoOperation(String),
    /// The arguments do not fit the parameters.
    #[error("{0}")]
    Arguments(String),
    /// A lookup or precondition failed, with its message. Or a new key is empty or cannot be seen.
    #[error("{0}")]
    Refused(String),
    /// An expression had no value, or a rule would have been broken: the specification's fault.
    #[error("{UNDONE}{0}")]
    Undone(String),
}

/// The message of an operation whose postcondition does not hold.
pub(crate) fn broken_promise(require: &str) -> String {
    format!("it does not keep its promise `{require}`")
}

/// The beginning of the message of an operation that was undone by a fault of the specification.
pub const UNDONE: &str = "This cannot be done: ";

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Self::Undone(fault.to_string())
    }
}
