//! A solver that acts: it is given what the text says, and finds out the rest by calling tools.
//!
//! It understands a query perfectly: it knows which operations are asked for and what is said about each argument. It
//! knows no key and no state. For each entity that is described, it plans over the tools that give keys of this kind: it
//! calls one after the other, in a random order, fills their inputs with what is said, and compares what they give with
//! the facts. Where several fit, it guesses, and each attempt guesses differently. So a description that does not tell
//! an entity from others fails in some attempts, and one that tools cannot follow fails in all.

use std::collections::BTreeMap;

use rlf_random::Key;
use serde_json::{Map, Value};

use super::fitting::{fitting, inputs, key_field};
use crate::graph::{ToolGraph, ValueType};
use crate::sampling::Draws;
use crate::tasks::environment::{PlayError, TaskSession};
use crate::tasks::make::{items, own_key};
use crate::tasks::record::{Arguments, TaskRecord};
use crate::tasks::request::{Description, Fact, Mention, Request};
use crate::tasks::suite::Suite;

/// Maximum number of calls of an attempt.
const MAX_CALLS: usize = 300;
/// Maximum number of entities that a description may go through.
const MAX_DEPTH: usize = 5;

/// The reason why an attempt failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Failure {
    /// The environment does not open.
    #[error("it does not open: {0}")]
    Open(String),
    /// No tool gives an entity that fits the description.
    #[error("turn {turn}: no result of a tool gives `{parameter}` of {tool}")]
    Unknown {
        /// The turn, from 1.
        turn: usize,
        /// The tool whose argument is not known.
        tool: String,
        /// The parameter.
        parameter: String,
    },
    /// The environment refused a requested call.
    #[error("turn {turn}: {tool} refused: {why}")]
    Refused {
        /// The turn, from 1.
        turn: usize,
        /// The tool.
        tool: String,
        /// The message of the tool.
        why: String,
    },
    /// A requested call that changes nothing was made with other arguments.
    #[error("turn {turn}: {tool} was asked about something else")]
    OtherCall {
        /// The turn, from 1.
        turn: usize,
        /// The tool.
        tool: String,
    },
    /// The state after a turn is not the goal.
    #[error("turn {turn}: the state is not the goal")]
    OtherState {
        /// The turn, from 1.
        turn: usize,
    },
}

/// Makes an attempt, counted from 0, at all turns of a task. It succeeds if the state after every turn is the goal, and
/// every call that the user asks for and that changes nothing was made with its arguments.
pub fn solves(
    suite: &Suite,
    graph: &ToolGraph,
    task: &TaskRecord,
    key: Key,
    attempt: u32,
) -> Result<(), Failure> {
    let open = |error: PlayError| Failure::Open(error.to_string());
    let session = suite.playable().open(&task.servers).map_err(open)?;
    let mut solver = Solver {
        suite,
        graph,
        session,
        draws: Draws::new(key.at(u64::from(attempt))),
        guesses: attempt as usize,
        offered: &task.tools,
        made: Vec::new(),
        seen: BTreeMap::new(),
        calls: 0,
    };
    for (number, turn) in task.turns.iter().enumerate() {
        let number = number + 1;
        let mut gold = turn.calls.iter().filter(|call| call.requested);
        for request in &turn.requests {
            let gold = gold.next();
            let arguments = solver.arguments(number, request)?;
            let answer = solver.session.call(&request.tool, &arguments);
            let answer = answer.map_err(|error| Failure::Refused {
                turn: number,
                tool: request.tool.clone(),
                why: error.to_string(),
            })?;
            let result = answer.result;
            let same =
                gold.is_some_and(|gold| gold.tool == request.tool && gold.arguments == arguments);
            if !same && suite.is_read_only(&request.tool) {
                return Err(Failure::OtherCall {
                    turn: number,
                    tool: request.tool.clone(),
                });
            }
            solver.learn(&request.tool, &result);
            solver.made.push((arguments, result));
        }
        let state = solver.session.state().map_err(open)?;
        if state != turn.goal {
            return Err(Failure::OtherState { turn: number });
        }
    }
    Ok(())
}

struct Solver<'a> {
    suite: &'a Suite,
    graph: &'a ToolGraph,
    session: Box<dyn TaskSession + 'a>,
    draws: Draws,
    /// The guesses to come: `guesses % n` is the next one among `n` values, and `guesses / n` has those after it.
    guesses: usize,
    /// The tools that it may call.
    offered: &'a [String],
    /// Arguments and results of the requests so far.
    made: Vec<(Arguments, Value)>,
    /// Fields of entities as they were seen last, by kind and key.
    seen: BTreeMap<(String, String), Map<String, Value>>,
    /// Number of lookups so far.
    calls: usize,
}

impl Solver<'_> {
    /// The arguments of a request of a turn.
    fn arguments(&mut self, turn: usize, request: &Request) -> Result<Arguments, Failure> {
        let unknown = |parameter: &String| Failure::Unknown {
            turn,
            tool: request.tool.clone(),
            parameter: parameter.clone(),
        };
        let mut found: BTreeMap<&str, Value> = BTreeMap::new();
        for (parameter, mention) in &request.arguments {
            if !matches!(mention, Mention::FieldOf { .. }) {
                let value = self.value(mention, 0).ok_or_else(|| unknown(parameter))?;
                found.insert(parameter, value);
            }
        }
        // Fields of entities that are known by now.
        for (parameter, mention) in &request.arguments {
            if let Mention::FieldOf {
                parameter: owner,
                field,
            } = mention
            {
                let key = found.get(owner.as_str()).and_then(Value::as_str);
                let entity = self.suite.input(&request.tool, owner);
                let value = match (key, entity.map(|input| &input.kind)) {
                    (Some(key), Some(ValueType::Key(entity))) => self.field(entity, key, field),
                    _ => None,
                };
                found.insert(parameter, value.ok_or_else(|| unknown(parameter))?);
            }
        }
        // In the order of the tool's parameters, as gold calls have them.
        let inputs = self
            .suite
            .tool(&request.tool)
            .map_or(&[][..], |tool| &tool.inputs);
        let named = inputs.iter().filter_map(|input| {
            let value = found.get(input.name.as_str())?;
            Some((input.name.clone(), value.clone()))
        });
        Ok(named.collect())
    }

    /// Finds the value that a mention means. None if it cannot be found out.
    fn value(&mut self, mention: &Mention, depth: usize) -> Option<Value> {
        match mention {
            Mention::Value(value) => Some(value.clone()),
            Mention::Described(description) => self.find(description, depth).map(Value::String),
            Mention::Same {
                request, parameter, ..
            } => self.made.get(*request)?.0.get(parameter).cloned(),
            Mention::Produced { request, field, .. } => {
                self.made.get(*request)?.1.get(field).cloned()
            }
            Mention::FieldOf { .. } => None,
        }
    }

    /// Calls a tool that changes nothing.
    fn look(&mut self, tool: &str, arguments: &Arguments) -> Option<Value> {
        self.calls += 1;
        if self.calls > MAX_CALLS {
            return None;
        }
        let result = self.session.call(tool, arguments).ok()?.result;
        self.learn(tool, &result);
        Some(result)
    }

    /// Remembers the fields of the entities in a result.
    fn learn(&mut self, tool: &str, result: &Value) {
        let Some(own) = self.suite.tool(tool).and_then(own_key) else {
            return;
        };
        for item in items(result) {
            if let (Some(key), Some(fields)) = (item[own.field].as_str(), item.as_object()) {
                let seen = self
                    .seen
                    .entry((own.entity.to_owned(), key.to_owned()))
                    .or_default();
                seen.extend(
                    fields
                        .iter()
                        .map(|(name, value)| (name.clone(), value.clone())),
                );
            }
        }
    }

    /// The tools that change nothing, in a random order.
    fn lookups(&mut self) -> Vec<usize> {
        let tools = self.graph.tools().iter().enumerate();
        let lookups = tools.filter(|(_, tool)| {
            let name = tool.full_name();
            self.suite.is_read_only(&name) && self.offered.contains(&name)
        });
        let lookups: Vec<usize> = lookups.map(|(place, _)| place).collect();
        let count = lookups.len();
        self.draws.several(lookups, count)
    }

    /// A field of an entity whose key is known: as it was seen, or as a tool shows it.
    fn field(&mut self, entity: &str, key: &str, field: &str) -> Option<Value> {
        let place = (entity.to_owned(), key.to_owned());
        let graph = self.graph;
        for tool in self.lookups() {
            if let Some(value) = self.seen.get(&place).and_then(|seen| seen.get(field)) {
                return Some(value.clone());
            }
            let tool = &graph.tools()[tool];
            let by_key: Vec<_> = tool.inputs.iter().filter(|input| input.required).collect();
            if let [input] = by_key[..]
                && matches!(&input.kind, ValueType::Key(one) if one == entity)
            {
                let arguments = Arguments::from_iter([(input.name.clone(), key.into())]);
                self.look(&tool.full_name(), &arguments);
            }
        }
        self.seen
            .get(&place)
            .and_then(|seen| seen.get(field))
            .cloned()
    }

    /// Finds the key of an entity that is described.
    fn find(&mut self, description: &Description, depth: usize) -> Option<String> {
        if depth > MAX_DEPTH {
            return None;
        }
        let mut others: BTreeMap<String, Value> = BTreeMap::new();
        for fact in &description.facts {
            if let Fact::Of {
                parameter, mention, ..
            } = fact
            {
                others.insert(parameter.clone(), self.value(mention, depth + 1)?);
            }
        }
        // The keys that fit as far as is known, if no tool shows enough to be sure.
        let mut possible: Vec<String> = Vec::new();
        let graph = self.graph;
        for place in self.lookups() {
            let tool = &graph.tools()[place];
            let Some(key) = key_field(tool, description) else {
                continue;
            };
            for arguments in inputs(tool, description, &others) {
                let Some(result) = self.look(&tool.full_name(), &arguments) else {
                    continue;
                };
                let fit = fitting(tool, description, &others, &arguments, &result);
                let keys: Vec<String> = fit
                    .items
                    .iter()
                    .filter_map(|item| item[key].as_str().map(str::to_owned))
                    .collect();
                if let ([only], true) = (&keys[..], fit.is_sure) {
                    return Some(only.clone());
                }
                let narrows = possible.is_empty() || keys.len() < possible.len();
                if !keys.is_empty() && narrows {
                    possible = keys;
                }
            }
        }
        // In an order that does not depend on the draws, so that no two attempts make the same guess at first.
        possible.sort();
        let count = possible.len().max(1);
        let chosen = self.guesses % count;
        self.guesses /= count;
        possible.into_iter().nth(chosen)
    }
}
