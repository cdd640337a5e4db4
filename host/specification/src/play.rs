//! Random walks over a program from every scenario, and the faults that they find.

use std::collections::{BTreeMap, BTreeSet};

use rlf_random::Key;
use serde_json::Value as Json;

use crate::error::StateError;
use crate::model::{Binding, Entity, Operation, OutcomeField, Type};
use crate::program::{Program, Refusal};
use crate::state::State;
use crate::walk::arguments;

/// A fault of a specification that shows when it is played.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A scenario does not load.
    #[error("scenario `{scenario}` with seed {seed} does not load: {error}")]
    DoesNotLoad {
        /// The scenario.
        scenario: &'static str,
        /// The seed of the state.
        seed: u64,
        /// The reason.
        error: StateError,
    },
    /// An operation broke a rule or a postcondition, or one of its expressions had no value.
    #[error("`{operation}` with {arguments}: {message}")]
    Undone {
        /// The operation.
        operation: String,
        /// The arguments as JSON.
        arguments: String,
        /// The message that a model would read.
        message: String,
    },
    /// A result has another value of a field than the state.
    #[error(
        "`{operation}` with {arguments}: `{field}` is {result} in the result and {state} in the state"
    )]
    ResultDiffers {
        /// The operation.
        operation: String,
        /// The arguments as JSON.
        arguments: String,
        /// The field of the result.
        field: String,
        /// The field's value in the result.
        result: String,
        /// The field's value in the state.
        state: String,
    },
    /// No call of an operation succeeded.
    #[error("`{operation}` never succeeds")]
    NeverSucceeds {
        /// The operation.
        operation: String,
    },
    /// No call of an operation was refused, although it has conditions or lookups.
    #[error("`{operation}` is never refused")]
    NeverRefused {
        /// The operation.
        operation: String,
    },
}

impl Fault {
    /// The scenario or operation, and the kind of fault. Faults for which both are equal have the same cause.
    pub fn cause(&self) -> (&str, &'static str) {
        match self {
            Self::DoesNotLoad { scenario, .. } => (scenario, "does not load"),
            Self::Undone { operation, .. } => (operation, "undone"),
            Self::ResultDiffers { operation, .. } => (operation, "result differs"),
            Self::NeverSucceeds { operation } => (operation, "never succeeds"),
            Self::NeverRefused { operation } => (operation, "never refused"),
        }
    }
}

/// Rounds of [`verify`].
pub const ROUNDS: u64 = 16;
/// Calls of each walk of [`verify`].
pub const CALLS: u64 = 100;

/// Plays [`ROUNDS`] rounds with [`CALLS`] calls from every scenario. Returns the first fault of each cause. Returns None
/// if `goes_on`, which is asked before each round, said no.
pub fn verify(program: &Program, key: Key, goes_on: impl Fn() -> bool) -> Option<Vec<Fault>> {
    let mut play = Play::new(program, key);
    for round in 0..ROUNDS {
        if !goes_on() {
            return None;
        }
        play.round(round, CALLS);
    }
    Some(play.into_faults())
}

/// Walks over one program. Each round opens every scenario once, and makes random calls from its state.
#[derive(Debug)]
pub struct Play<'a> {
    program: &'a Program,
    key: Key,
    succeeded: BTreeSet<usize>,
    refused: BTreeSet<usize>,
    /// The first fault of each cause.
    faults: BTreeMap<(String, &'static str), Fault>,
}

impl<'a> Play<'a> {
    /// Begins without a call. The same key gives the same walks.
    pub fn new(program: &'a Program, key: Key) -> Self {
        Self {
            program,
            key,
            succeeded: BTreeSet::new(),
            refused: BTreeSet::new(),
            faults: BTreeMap::new(),
        }
    }

    /// Plays round number `round`: `calls` calls from every scenario.
    pub fn round(&mut self, round: u64, calls: u64) {
        let specification = self.program.specification();
        if specification.operations.is_empty() {
            return;
        }
        for (number, scenario) in specification.scenarios.iter().enumerate() {
            let size = scenario.size;
            let walk = round as usize * specification.scenarios.len() + number;
            let favourite = walk % specification.operations.len();
            let key = self.key.named(size.name()).at(round);
            let seed = key.value();
            match self.program.open(size, seed) {
                Ok(state) => self.walk(state, favourite, calls, key),
                Err(error) => self.add(Fault::DoesNotLoad {
                    scenario: size.name(),
                    seed,
                    error,
                }),
            }
        }
    }

    /// True if every operation has succeeded, and has been refused if something can refuse it.
    pub fn has_seen_everything(&self) -> bool {
        let operations = &self.program.specification().operations;
        let mut operations = operations.iter().enumerate();
        operations.all(|(index, operation)| self.has_seen(index, operation))
    }

    /// The faults that the calls so far have shown. An operation that never succeeds is not among them, because a later
    /// call may succeed.
    pub fn faults(&self) -> impl Iterator<Item = &Fault> {
        self.faults.values()
    }

    /// All faults of the rounds that were played.
    pub fn into_faults(mut self) -> Vec<Fault> {
        let operations = &self.program.specification().operations;
        for (index, operation) in operations.iter().enumerate() {
            let name = || operation.name.clone();
            if !self.succeeded.contains(&index) {
                self.add(Fault::NeverSucceeds { operation: name() });
            } else if is_refusable(operation) && !self.refused.contains(&index) {
                self.add(Fault::NeverRefused { operation: name() });
            }
        }
        self.faults.into_values().collect()
    }

    /// Makes a walk of this many calls. Half of them are to one operation, so that some walks reach its limits.
    fn walk(&mut self, mut state: State, favourite: usize, calls: u64, key: Key) {
        for call in 0..calls {
            let key = key.at(call);
            let index = match key.below(3, 2) {
                0 => favourite,
                _ => self.next(key),
            };
            let operation = &self.program.specification().operations[index];
            let arguments = arguments(self.program, &state, operation, key.named("arguments"));
            match self.program.call(&mut state, &operation.name, &arguments) {
                Ok(result) => {
                    self.succeeded.insert(index);
                    if let Some((field, result, state)) =
                        self.difference(operation, &result, &state)
                    {
                        self.add(Fault::ResultDiffers {
                            operation: operation.name.clone(),
                            arguments: Json::Object(arguments).to_string(),
                            field,
                            result,
                            state,
                        });
                    }
                }
                Err(Refusal::Refused(_)) => {
                    self.refused.insert(index);
                }
                Err(Refusal::Arguments(_)) => {}
                Err(refusal) => self.add(Fault::Undone {
                    operation: operation.name.clone(),
                    arguments: Json::Object(arguments).to_string(),
                    message: refusal.to_string(),
                }),
            }
        }
    }

    fn add(&mut self, fault: Fault) {
        let (place, kind) = fault.cause();
        self.faults.entry((place.to_owned(), kind)).or_insert(fault);
    }

    fn has_seen(&self, index: usize, operation: &Operation) -> bool {
        self.succeeded.contains(&index)
            && (self.refused.contains(&index) || !is_refusable(operation))
    }

    /// Chooses any operation, or half of the time one that has not yet both succeeded and been refused.
    fn next(&self, key: Key) -> usize {
        let operations = &self.program.specification().operations;
        let open: Vec<usize> = (0..operations.len())
            .filter(|index| !self.has_seen(*index, &operations[*index]))
            .collect();
        if open.is_empty() || key.below(0, 2) == 0 {
            key.below(1, operations.len() as u64) as usize
        } else {
            open[key.below(2, open.len() as u64) as usize]
        }
    }

    /// The first field of a result that has another value than the state, if the result has the entity's key too.
    fn difference(
        &self,
        operation: &Operation,
        result: &Json,
        state: &State,
    ) -> Option<(String, String, String)> {
        let objects = match result {
            Json::Array(items) => &items[..],
            object => std::slice::from_ref(object),
        };
        let fields = &operation.result.fields;
        let entities = &self.program.specification().entities;
        let key_of = |entity: &Entity| {
            let kind = Type::Reference(entity.name.clone());
            let is_key =
                |field: &&OutcomeField| field.name == entity.key.name && field.kind == kind;
            fields.iter().find(is_key)
        };
        let has = |entity: &Entity, name: &str| entity.fields.iter().any(|one| one.name == name);
        for (table, entity) in entities.iter().enumerate() {
            let Some(key_field) = key_of(entity) else {
                continue;
            };
            for field in fields {
                let Some(position) = shown_field(entity, field) else {
                    continue;
                };
                let owners = entities.iter().filter(|one| key_of(one).is_some());
                if owners.filter(|one| has(one, &field.name)).count() > 1 {
                    continue;
                }
                for object in objects {
                    // What was deleted is no longer there to be compared with.
                    let record = object[&key_field.name]
                        .as_str()
                        .and_then(|key| state.tables[table].get(key));
                    let Some(record) = record else { continue };
                    let (found, expected) = (&object[&field.name], record[position + 1].to_json());
                    if *found != expected {
                        return Some((field.name.clone(), found.to_string(), expected.to_string()));
                    }
                }
            }
        }
        None
    }
}

/// The position of the entity's field that a field of a result shows: `due`, `loan_due`, or a title as `book_name`.
fn shown_field(entity: &Entity, field: &OutcomeField) -> Option<usize> {
    let own = field
        .name
        .strip_prefix(&entity.name)
        .and_then(|rest| rest.strip_prefix('_'));
    let names = match own {
        Some("name") => vec![&*field.name, "name", "full_name", "title"],
        Some(own) => vec![&*field.name, own],
        None => vec![&*field.name],
    };
    let position = |name: &str| {
        let mut declared = entity.fields.iter();
        declared.position(|one| one.name == name && one.kind == field.kind)
    };
    names.into_iter().find_map(position)
}

/// True if something can refuse an operation. One without a lookup and without a condition is always carried out.
fn is_refusable(operation: &Operation) -> bool {
    let mut bindings = operation.bindings.iter();
    !operation.preconditions.is_empty()
        || bindings.any(|binding| matches!(binding, Binding::Find(_)))
}
