//! Descriptions by fields: each fits one entity of all that there are.
//!
//! The solver compares a description with what lookups show, and a lookup can leave entities out: it lists the loans
//! that are overdue, and the text says "the loan with the latest due date". A reader of the text knows of no lookup. So
//! this check reads each description in the state before its turn, without calling a tool.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::graph::ValueType;
use crate::tasks::entities::{Entities, Shown, same};
use crate::tasks::make::{items, own_key};
use crate::tasks::record::{GoldCall, TaskRecord};
use crate::tasks::rejection::{Reason, Rejection};
use crate::tasks::request::{Description, Fact, Mention, order};
use crate::tasks::suite::Suite;
use crate::tasks::text::noun;

/// Checks that each description by fields alone fits exactly the entity that is meant. Descriptions by other entities
/// (the loan of a member) or by values of parameters are left to the solver.
pub(super) fn fit_one(suite: &Suite, task: &TaskRecord) -> Result<(), Rejection> {
    let mut before = &task.initial;
    let mut calls: Vec<&GoldCall> = Vec::new();
    for (number, turn) in task.turns.iter().enumerate() {
        calls.extend(turn.calls.iter());
        let reader = Reader {
            suite,
            turn: number + 1,
            states: [before, &turn.goal],
            calls: &calls,
        };
        let requested = turn.calls.iter().filter(|call| call.requested);
        for (request, call) in turn.requests.iter().zip(requested) {
            for (parameter, mention) in &request.arguments {
                let meant = call.arguments.get(parameter).and_then(Value::as_str);
                reader.mention(mention, &meant.into_iter().collect())?;
            }
        }
        before = &turn.goal;
    }
    Ok(())
}

/// Reads the descriptions of a turn.
struct Reader<'a> {
    suite: &'a Suite,
    /// The turn, from 1.
    turn: usize,
    /// The state before the turn, and the state after it, which has what the turn makes.
    states: [&'a Map<String, Value>; 2],
    /// The calls up to the end of the turn.
    calls: &'a [&'a GoldCall],
}

impl<'a> Reader<'a> {
    /// Checks the descriptions of a mention. `meant` has the keys that it can mean.
    fn mention(&self, mention: &Mention, meant: &BTreeSet<&str>) -> Result<(), Rejection> {
        let Mention::Described(description) = mention else {
            return Ok(());
        };
        let mut by_fields = !description.facts.is_empty() && !meant.is_empty();
        for fact in &description.facts {
            match fact {
                Fact::Of {
                    parameter,
                    entity,
                    mention,
                } => {
                    by_fields = false;
                    self.mention(mention, &self.asked_with(parameter, entity))?;
                }
                Fact::Among { .. } => by_fields = false,
                Fact::Is { .. } | Fact::Extreme { .. } | Fact::Only => {}
            }
        }
        if by_fields && !self.fits_one(description, meant) {
            let detail = format!(
                "turn {}: the description of the {} does not fit it alone, of all that the state has",
                self.turn,
                noun(&description.entity)
            );
            return Err(Rejection::new(Reason::Ambiguous, detail));
        }
        Ok(())
    }

    /// The keys of a kind that calls were given for a parameter.
    fn asked_with(&self, parameter: &str, kind: &str) -> BTreeSet<&'a str> {
        let mut keys = BTreeSet::new();
        for call in self.calls {
            let input = self.suite.input(&call.tool, parameter);
            let is_kind = input
                .is_some_and(|input| matches!(&input.kind, ValueType::Key(one) if one == kind));
            let key = call.arguments.get(parameter).and_then(Value::as_str);
            keys.extend(key.filter(|_| is_kind));
        }
        keys
    }

    /// The items of a kind that results showed, with their keys.
    fn shown(&self, kind: &str) -> Vec<Shown<'a>> {
        let mut shown = Vec::new();
        for call in self.calls {
            let own = self.suite.tool(&call.tool).and_then(own_key);
            let Some(own) = own.filter(|own| own.entity == kind) else {
                continue;
            };
            for item in items(&call.result) {
                if let Some(key) = item.get(own.field).and_then(Value::as_str) {
                    shown.push((key, item));
                }
            }
        }
        shown
    }

    /// True if a description fits one entity, and that is meant. True as well if the state does not show the entities.
    fn fits_one(&self, description: &Description, meant: &BTreeSet<&str>) -> bool {
        let through = description.through.as_ref();
        let kind = through.map_or(&description.entity, |through| &through.entity);
        let shown = self.shown(kind);
        for states in self.states {
            let Some(entities) = Entities::of(self.suite, states, kind) else {
                return true;
            };
            // The keys that are meant by entities: their own ones, or those of what they refer to.
            let references = through.map(|through| entities.values(&through.field, &shown));
            let target = |key: &'a str| match &references {
                None => Some(key),
                Some(references) => references.of(key).and_then(Value::as_str),
            };
            let is_meant = |target: Option<&str>| target.is_some_and(|key| meant.contains(key));
            if entities.rows.keys().any(|key| is_meant(target(key))) {
                let fit = fitting(&entities, &description.facts, &shown);
                let targets: BTreeSet<Option<&str>> = fit.into_iter().map(target).collect();
                return targets.len() == 1 && targets.into_iter().all(is_meant);
            }
        }
        false
    }
}

/// The keys of the entities that facts fit. An entity fits a fact about a value that is not known.
fn fitting<'s>(entities: &Entities<'s>, facts: &[Fact], shown: &[Shown<'s>]) -> Vec<&'s str> {
    let mut fit: Vec<&'s str> = entities.rows.keys().copied().collect();
    for fact in facts {
        if let Fact::Is { field, value } = fact {
            let values = entities.values(field, shown);
            fit.retain(|key| values.of(key).is_none_or(|other| same(other, value)));
        }
    }
    for fact in facts {
        if let Fact::Extreme { field, highest } = fact {
            let beaten = if *highest {
                Ordering::Less
            } else {
                Ordering::Greater
            };
            let values = entities.values(field, shown);
            let valued: Vec<(&'s str, Option<&Value>)> =
                fit.iter().map(|key| (*key, values.of(key))).collect();
            let is_utmost = |value: &Value| {
                let mut others = valued.iter().filter_map(|(_, other)| *other);
                !value.is_null() && others.all(|other| order(value, other) != Some(beaten))
            };
            fit.retain(|key| values.of(key).is_none_or(is_utmost));
        }
    }
    fit
}
