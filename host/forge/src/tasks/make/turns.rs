//! The second stage: of what was executed, the calls that matter, in turns.
//!
//! A call matters if it changes something, if the user asks to know its result, or if a later one that matters needs its
//! result. Calls that look something up are made in the turn that needs them first, just before the call that does. The
//! calls are then executed again in their final order, because a lookup can give something else after a change.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::call::{ArgumentSource, PlannedCall, items, own_key};
use super::chains::Candidate;
use super::{Maker, Rejection};
use crate::sampling::Draws;
use crate::tasks::record::Start;
use crate::tasks::rejection::Reason;

/// Executed calls in turns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trajectory {
    /// The environments that the calls need, and how each begins.
    pub servers: BTreeMap<String, Start>,
    /// All calls, in order.
    pub calls: Vec<PlannedCall>,
    /// Number of calls of each turn.
    pub turns: Vec<usize>,
}

impl Trajectory {
    /// The calls of each turn, as ranges.
    pub fn ranges(&self) -> impl Iterator<Item = std::ops::Range<usize>> {
        let mut start = 0;
        self.turns.iter().map(move |&calls| {
            start += calls;
            start - calls..start
        })
    }

    /// Checks a trajectory that was read from a file: its turns have all calls, and arguments come from earlier ones.
    pub(in crate::tasks) fn check(&self) -> Result<(), &'static str> {
        let mut turns = self.turns.iter();
        let calls = turns.try_fold(0_usize, |sum, calls| sum.checked_add(*calls));
        if calls != Some(self.calls.len()) {
            return Err("its turns do not have its calls");
        }
        let is_earlier = |place: usize, source: &ArgumentSource| match source {
            ArgumentSource::User => true,
            ArgumentSource::Call { call, .. } => *call < place,
        };
        let mut calls = self.calls.iter().enumerate();
        if calls.all(|(place, call)| call.sources.values().all(|one| is_earlier(place, one))) {
            return Ok(());
        }
        Err("an argument comes from a later call")
    }
}

/// Chooses the calls that matter, splits them into turns, and executes them again.
pub(super) fn plan(
    maker: &Maker<'_>,
    candidate: &Candidate,
    steps: &[PlannedCall],
) -> Result<Trajectory, Rejection> {
    let mut draws = Draws::new(candidate.key(maker.options.seed, "turns"));
    let wanted = wanted(maker, steps, &mut draws);
    if wanted.is_empty() {
        let detail = format!(
            "{} of {} tools could be called",
            steps.len(),
            candidate.chain.len()
        );
        return Err(Rejection::new(Reason::NothingDone, detail));
    }
    let (order, turns) = arrange(maker, steps, &wanted, &mut draws);
    if order.is_empty() {
        let detail = "the first request needs more calls than a turn may have";
        return Err(Rejection::new(Reason::TooLong, detail));
    }
    if maker.options.linked_turns && turns.len() < 2 {
        let detail = "no second turn could use a result of the first";
        return Err(Rejection::new(Reason::Unlinked, detail));
    }
    let servers: BTreeSet<&str> = order
        .iter()
        .filter_map(|&step| steps[step].tool.split_once('-'))
        .map(|(server, _)| server)
        .collect();
    let servers = candidate
        .servers
        .iter()
        .filter(|(name, _)| servers.contains(name.as_str()))
        .map(|(name, start)| (name.clone(), start.clone()))
        .collect();
    again(maker, servers, steps, &order, &wanted, turns)
}

/// The steps that the user asks for: those that change something, and some whose result nothing needs.
fn wanted(maker: &Maker<'_>, steps: &[PlannedCall], draws: &mut Draws) -> Vec<usize> {
    let used: BTreeSet<usize> = steps.iter().flat_map(needs).collect();
    let read_only = |step: usize| maker.suite.is_read_only(&steps[step].tool);
    let mut wanted: Vec<usize> = Vec::new();
    for step in 0..steps.len() {
        if !read_only(step) || (!used.contains(&step) && draws.chance(maker.options.ask)) {
            wanted.push(step);
        }
    }
    if wanted.is_empty() && maker.options.ask > 0.0 {
        let last = (0..steps.len()).rev().find(|step| !used.contains(step));
        wanted.extend(last);
    }
    wanted
}

/// The calls whose results a call uses.
fn needs(call: &PlannedCall) -> impl Iterator<Item = usize> {
    call.sources.values().filter_map(|source| match source {
        ArgumentSource::Call { call, .. } => Some(*call),
        ArgumentSource::User => None,
    })
}

/// Puts the steps into their final order, and counts the calls of each turn. Steps for which the limits leave no room
/// are cut off at the end.
fn arrange(
    maker: &Maker<'_>,
    steps: &[PlannedCall],
    wanted: &[usize],
    draws: &mut Draws,
) -> (Vec<usize>, Vec<usize>) {
    let options = maker.options;
    let room = options.max_turn_calls.max(1);
    let mut order: Vec<usize> = Vec::new();
    let mut turns: Vec<usize> = Vec::new();
    let mut target = 1 + draws.index(room);
    for &step in wanted {
        let mut new = Vec::new();
        lookups(steps, step, &order, &mut new);
        // Something that was asked for before it and cut off cannot be looked up.
        let cut = new
            .iter()
            .any(|need| *need != step && !maker.suite.is_read_only(&steps[*need].tool));
        if cut || new.len() > room || order.len() + new.len() > options.max_calls {
            continue;
        }
        let joins = turns
            .last()
            .is_some_and(|&calls| calls + new.len() <= target.max(new.len()).min(room));
        if !joins && options.linked_turns && !is_linked(steps, &new, &order, &turns) {
            continue;
        }
        if joins {
            if let Some(calls) = turns.last_mut() {
                *calls += new.len();
            }
        } else {
            if turns.len() == options.max_turns.max(1) {
                break;
            }
            turns.push(new.len());
            target = 1 + draws.index(room);
        }
        order.extend(new);
    }
    (order, turns)
}

/// True if one of the new steps uses a result of the last turn, or if there is no last turn.
fn is_linked(steps: &[PlannedCall], new: &[usize], order: &[usize], turns: &[usize]) -> bool {
    let Some(calls) = turns.last() else {
        return true;
    };
    let last = &order[order.len() - calls..];
    new.iter()
        .flat_map(|step| needs(&steps[*step]))
        .any(|need| last.contains(&need))
}

/// Adds the steps that a step needs and that are not there, and then the step itself.
fn lookups(steps: &[PlannedCall], step: usize, there: &[usize], new: &mut Vec<usize>) {
    if there.contains(&step) || new.contains(&step) {
        return;
    }
    for need in needs(&steps[step]) {
        lookups(steps, need, there, new);
    }
    new.push(step);
}

/// Executes the steps in their final order.
fn again(
    maker: &Maker<'_>,
    servers: BTreeMap<String, Start>,
    steps: &[PlannedCall],
    order: &[usize],
    wanted: &[usize],
    turns: Vec<usize>,
) -> Result<Trajectory, Rejection> {
    let refused = |what: String| Rejection::new(Reason::OrderMatters, what);
    let mut session = maker
        .suite
        .playable()
        .open(&servers)
        .map_err(|error| Rejection::new(Reason::NoScenario, error.to_string()))?;
    let mut calls: Vec<PlannedCall> = Vec::with_capacity(order.len());
    for &step in order {
        let old = &steps[step];
        let mut arguments = old.arguments.clone();
        let mut sources = BTreeMap::new();
        for (parameter, source) in &old.sources {
            let moved = match source {
                ArgumentSource::User => ArgumentSource::User,
                ArgumentSource::Call { call, item, field } => {
                    let now = order.iter().position(|other| other == call);
                    let now = now.filter(|&now| now < calls.len());
                    let lost =
                        || refused(format!("{}: {parameter} comes from a later call", old.tool));
                    let now = now.ok_or_else(lost)?;
                    let (value, source) =
                        relocated(maker, &steps[*call], &calls[now], *item, field, now)
                            .ok_or_else(|| {
                                refused(format!(
                                    "{}: {} no longer gives {parameter}",
                                    old.tool, calls[now].tool
                                ))
                            })?;
                    arguments.insert(parameter.clone(), value);
                    source
                }
            };
            sources.insert(parameter.clone(), moved);
        }
        let result = session
            .call(&old.tool, &arguments)
            .map_err(|error| refused(format!("{}: {error}", old.tool)))?
            .result;
        calls.push(PlannedCall {
            tool: old.tool.clone(),
            arguments,
            result,
            sources,
            requested: wanted.contains(&step),
        });
    }
    Ok(Trajectory {
        servers,
        calls,
        turns,
    })
}

/// The value and source of an argument after its lookup was made again: of the item with the same key, wherever it is now.
fn relocated(
    maker: &Maker<'_>,
    before: &PlannedCall,
    now: &PlannedCall,
    item: usize,
    field: &str,
    call: usize,
) -> Option<(Value, ArgumentSource)> {
    let old = items(&before.result).get(item)?;
    // What a call made has another key if something else was made before it.
    let is_list = now.result.is_array();
    // Without a declared key, the first field has to do.
    let own = maker.suite.tool(&now.tool).and_then(own_key);
    let own = own
        .map(|own| own.field)
        .filter(|key| old.get(key).is_some());
    let first = || old.as_object()?.keys().next().map(String::as_str);
    let key = own.or_else(first)?;
    let found = items(&now.result)
        .iter()
        .position(|one| !is_list || one.get(key) == old.get(key))?;
    let value = items(&now.result)[found].get(field)?;
    if value.is_null() {
        return None;
    }
    let source = ArgumentSource::Call {
        call,
        item: found,
        field: field.to_owned(),
    };
    Some((value.clone(), source))
}
