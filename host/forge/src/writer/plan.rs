//! The first two answers: a sketch of the environment, and the plan of its entities and operations.
//!
//! Doc comments of the fields are read by the model: they are in the JSON schemas that the prompts show.

use std::collections::BTreeSet;

use rlf_specification::{Specification, name_problem};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ask::Unusable;

/// The subject of an environment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Sketch {
    /// Name of the environment: a capital letter, then letters and digits, at most 20 in all, such as LendingLibrary.
    #[schemars(regex(pattern = r"^[A-Z][A-Za-z0-9]{2,19}$"))]
    pub name: String,
    /// One or two sentences: what it is, for those who will act in it.
    #[schemars(length(min = 20, max = 400))]
    pub description: String,
    /// One of: commerce, finance, travel, office, lifestyle, academia, utilities.
    pub domain: String,
    /// The kinds of things that the environment keeps, such as books, members and loans.
    #[schemars(length(min = 2, max = 8))]
    pub things: Vec<Thing>,
    /// The tools that people use there, from finding things to changing them and undoing that.
    #[schemars(length(min = 4, max = 20))]
    pub tools: Vec<Tool>,
    /// Rules of the place that make a tool refuse, with numbers where there are some.
    #[schemars(length(min = 2, max = 12))]
    pub rules: Vec<String>,
}

/// A kind of thing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Thing {
    /// Its name in the singular.
    pub name: String,
    /// Everything that the environment knows of each.
    pub knows: String,
}

/// A tool in a sketch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Tool {
    /// Its name: lower-case letters, digits and `_`, beginning with a verb, such as lend_book.
    #[schemars(regex(pattern = r"^[a-z][a-z0-9_]{1,39}$"))]
    pub name: String,
    /// Its purpose, in a sentence.
    pub does: String,
    /// True if it changes anything.
    pub changes: bool,
}

/// The entities and operations, typed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The entities. One that refers to another comes after it.
    #[schemars(length(min = 1, max = 12))]
    pub entities: Vec<PlannedEntity>,
    /// Single values of the state, such as today's date. Nothing may depend on the real clock.
    #[serde(default)]
    pub values: Vec<PlannedField>,
    /// The operations, one for each tool.
    #[schemars(length(min = 4, max = 20))]
    pub operations: Vec<PlannedOperation>,
    /// Rules that hold in every state, such as: no book has more open loans than copies.
    #[schemars(length(min = 1, max = 12))]
    pub invariants: Vec<String>,
}

/// An entity of the plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlannedEntity {
    /// Its name in the singular: lower-case letters, digits and `_`.
    #[schemars(regex(pattern = r"^[a-z][a-z0-9_]{1,39}$"))]
    pub name: String,
    /// The name of all of them: the plural.
    #[schemars(regex(pattern = r"^[a-z][a-z0-9_]{1,39}$"))]
    pub collection: String,
    /// The name of its key field, such as book_id.
    #[schemars(regex(pattern = r"^[a-z][a-z0-9_]{1,39}$"))]
    pub key: String,
    /// Its meaning.
    pub description: String,
    /// Its fields beside the key.
    #[schemars(length(min = 1, max = 16))]
    pub fields: Vec<PlannedField>,
}

/// A field, parameter or result of the plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlannedField {
    /// Its name: lower-case letters, digits and `_`.
    #[schemars(regex(pattern = r"^[a-z][a-z0-9_]{0,39}$"))]
    pub name: String,
    /// text, integer, number, boolean, date (YYYY-MM-DD), one of A|B|C, key of ENTITY, or list of one of these.
    #[serde(rename = "type")]
    #[schemars(regex(
        pattern = r"^(list of )?(text|integer|number|boolean|date|one of .+|key of [a-z][a-z0-9_]*)$"
    ))]
    pub kind: String,
    /// Its meaning, without values that a state may have.
    pub description: String,
    /// True if it may be missing.
    #[serde(default)]
    pub optional: bool,
}

/// An operation of the plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PlannedOperation {
    /// Its name: lower-case letters, digits and `_`.
    #[schemars(regex(pattern = r"^[a-z][a-z0-9_]{1,39}$"))]
    pub name: String,
    /// Its purpose, for the model that will call it.
    pub description: String,
    /// True if it changes nothing.
    pub read_only: bool,
    /// Its parameters. A key must be one that the user knows or that another operation returns.
    #[serde(default)]
    pub parameters: Vec<PlannedField>,
    /// The cases in which it refuses, each with a message that says what to do instead.
    #[serde(default)]
    pub refuses: Vec<String>,
    /// Its changes of the state.
    #[serde(default)]
    pub effects: Vec<String>,
    /// The fields of its result.
    #[schemars(length(min = 1, max = 16))]
    pub returns: Vec<PlannedField>,
}

impl Plan {
    /// Refuses a plan that contradicts itself.
    pub(super) fn check(&self) -> Result<(), Unusable> {
        let names: BTreeSet<&str> = self
            .operations
            .iter()
            .map(|one| one.name.as_str())
            .collect();
        if names.len() < self.operations.len() {
            return Err(Unusable::new("two operations have the same name"));
        }
        let entities: BTreeSet<&str> = self.entities.iter().map(|one| one.name.as_str()).collect();
        if entities.len() < self.entities.len() {
            return Err(Unusable::new("two entities have the same name"));
        }
        let named = entities.iter().chain(&names);
        if let Some(problem) = named.copied().find_map(name_problem) {
            return Err(Unusable::new(problem));
        }
        for operation in &self.operations {
            if operation.read_only && !operation.effects.is_empty() {
                let name = &operation.name;
                return Err(Unusable::new(format!(
                    "{name} is read-only and has effects"
                )));
            }
        }
        let operations = self.operations.iter();
        let fields = operations.flat_map(|one| one.parameters.iter().chain(&one.returns));
        let all = self.entities.iter().flat_map(|one| &one.fields);
        for field in all.chain(&self.values).chain(fields) {
            let Some((_, entity)) = field.kind.split_once("key of ") else {
                continue;
            };
            if !entities.contains(entity) {
                let name = &field.name;
                return Err(Unusable::new(format!(
                    "{name} is the key of `{entity}`, which is no entity"
                )));
            }
        }
        Ok(())
    }

    /// Names of the operations.
    pub(super) fn operations(&self) -> impl Iterator<Item = &str> {
        self.operations.iter().map(|one| one.name.as_str())
    }
}

/// Names of the operations of a specification.
pub(super) fn specified(specification: &Specification) -> Vec<String> {
    let operations = specification.operations.iter();
    operations.map(|one| one.name.clone()).collect()
}
