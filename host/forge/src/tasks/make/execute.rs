//! Executes a chain step by step: each argument comes from an earlier result, from the state, or from the user.

use std::collections::BTreeMap;

use serde_json::Value;

use super::chains::Candidate;
use super::turns::{ArgumentSource, PlannedCall};
use super::values::Values;
use super::{Maker, Rejection};
use crate::graph::{Input, InputId, Reason as LinkReason, Tool, ToolGraph, ValueType};
use crate::sampling::Draws;
use crate::tasks::environment::{PlayError, TaskSession};
use crate::tasks::record::{Arguments, Start};
use crate::tasks::rejection::Reason;

/// Largest number of calls of one step of a chain until one succeeds.
const MAX_TRIES: usize = 16;
/// Probability that an optional input is filled.
const FILL_OPTIONAL: f64 = 0.3;
/// Probability that a number is taken from an earlier result, if one could be meant.
const TAKE_FROM_RESULT: f64 = 0.4;

/// The items of a result: those of a list, or the object itself.
pub fn items(result: &Value) -> &[Value] {
    match result {
        Value::Array(items) => items,
        one => std::slice::from_ref(one),
    }
}

/// Executes a candidate's chain. Steps that nothing lets succeed are left out.
pub(super) fn execute(
    maker: &Maker<'_>,
    graph: &ToolGraph,
    candidate: &Candidate,
) -> Result<Vec<PlannedCall>, Rejection> {
    let load = |error: PlayError| Rejection::new(Reason::NoScenario, error.to_string());
    let playable = maker.suite.playable();
    let session = playable.open(&candidate.servers).map_err(load)?;
    let key = candidate.key(maker.options.seed, "execution");
    let other = |(name, start): (&String, &Start)| {
        let start = Start {
            scenario: start.scenario.clone(),
            seed: key.named("elsewhere").named(name).value() >> 12,
        };
        (name.clone(), start)
    };
    let elsewhere = candidate.servers.iter().map(other).collect();
    let elsewhere = playable.open(&elsewhere).map_err(load)?;
    let here = session.state().map_err(load)?;
    let mut executor = Executor {
        maker,
        graph,
        values: Values::new(&here, &elsewhere.state().map_err(load)?),
        session,
        draws: Draws::new(key.named("arguments")),
        steps: Vec::new(),
    };
    for tool in &candidate.chain {
        if let Some(place) = graph.find(tool) {
            executor.step(place);
        }
    }
    Ok(executor.steps)
}

struct Executor<'a> {
    maker: &'a Maker<'a>,
    graph: &'a ToolGraph,
    values: Values,
    session: Box<dyn TaskSession>,
    draws: Draws,
    steps: Vec<PlannedCall>,
}

/// Arguments with their sources.
type Filled = (Arguments, BTreeMap<String, ArgumentSource>);

impl Executor<'_> {
    /// Calls a tool until it succeeds, with other arguments each time.
    fn step(&mut self, place: usize) {
        let tool = &self.graph.tools()[place];
        let name = tool.full_name();
        let read_only = self.maker.suite.is_read_only(&name);
        for _ in 0..MAX_TRIES {
            let Some((arguments, sources)) = self.fill(place, tool, &name, read_only) else {
                return;
            };
            let repeats = |step: &PlannedCall| step.tool == name && step.arguments == arguments;
            if self.steps.iter().any(repeats) {
                continue;
            }
            // A result without items says nothing that a user could want.
            if let Ok(result) = self.session.call(&name, &arguments)
                && !items(&result).is_empty()
            {
                self.steps.push(PlannedCall {
                    tool: name,
                    arguments,
                    result,
                    sources,
                    requested: false,
                });
                return;
            }
        }
    }

    fn fill(&mut self, place: usize, tool: &Tool, name: &str, read_only: bool) -> Option<Filled> {
        let mut arguments = Arguments::new();
        let mut sources: BTreeMap<String, ArgumentSource> = BTreeMap::new();
        for (number, input) in tool.inputs.iter().enumerate() {
            if !input.required && !self.draws.chance(FILL_OPTIONAL) {
                continue;
            }
            let id = InputId {
                tool: place,
                input: number,
            };
            let taken = match input.kind {
                ValueType::Key(_) => self.key(id, &arguments),
                ValueType::Integer | ValueType::Number if !read_only => {
                    self.amount(input, &sources)
                }
                _ => None,
            };
            let from_user = input.from_user.is_some() && !matches!(input.kind, ValueType::Key(_));
            let filled = match taken {
                Some((value, source)) => Some((value, source)),
                None if from_user => {
                    let schema = self.maker.suite.parameter(name, &input.name);
                    self.values
                        .propose(tool, input, schema, read_only, &mut self.draws)
                        .map(|value| (value, ArgumentSource::User))
                }
                None => None,
            };
            match filled {
                Some((value, source)) => {
                    arguments.insert(input.name.clone(), value);
                    sources.insert(input.name.clone(), source);
                }
                None if input.required => return None,
                None => {}
            }
        }
        Some((arguments, sources))
    }

    /// A key from an earlier result, other than those among the arguments.
    fn key(&mut self, id: InputId, arguments: &Arguments) -> Option<(Value, ArgumentSource)> {
        let mut found: Vec<(Value, ArgumentSource)> = Vec::new();
        let links = self.graph.links_to(id);
        let links: Vec<_> = links
            .filter(|link| matches!(link.reason, LinkReason::Key { .. }))
            .map(|link| {
                let tool = &self.graph.tools()[link.from.tool];
                (
                    tool.full_name(),
                    tool.outputs[link.from.output].name.clone(),
                )
            })
            .collect();
        for (number, step) in self.steps.iter().enumerate() {
            for (_, field) in links.iter().filter(|(tool, _)| *tool == step.tool) {
                for (item, values) in items(&step.result).iter().enumerate() {
                    let value = &values[field];
                    let is_new = arguments.values().all(|other| other != value);
                    if value.is_string() && is_new {
                        let source = ArgumentSource::Call {
                            call: number,
                            item,
                            field: field.clone(),
                        };
                        found.push((value.clone(), source));
                    }
                }
            }
        }
        let chosen = self.draws.index(found.len().max(1));
        (!found.is_empty()).then(|| found.swap_remove(chosen))
    }

    /// A number of the entity that another argument names: what it owes, how much is left.
    fn amount(
        &mut self,
        input: &Input,
        sources: &BTreeMap<String, ArgumentSource>,
    ) -> Option<(Value, ArgumentSource)> {
        let mut found = Vec::new();
        for source in sources.values() {
            let ArgumentSource::Call { call, item, field } = source else {
                continue;
            };
            let step = &self.steps[*call];
            let tool = self.graph.find(&step.tool)?;
            let fields = items(&step.result).get(*item).and_then(Value::as_object);
            for (name, value) in fields.into_iter().flatten() {
                let output = self.graph.tools()[tool]
                    .outputs
                    .iter()
                    .find(|output| output.name == *name);
                let fits = output.is_some_and(|output| output.kind.fits(&input.kind));
                let positive = value.as_f64().is_some_and(|value| value > 0.0);
                if fits && positive && name != field {
                    let source = ArgumentSource::Call {
                        call: *call,
                        item: *item,
                        field: name.clone(),
                    };
                    found.push((value.clone(), source));
                }
            }
        }
        if found.is_empty() || !self.draws.chance(TAKE_FROM_RESULT) {
            return None;
        }
        let chosen = self.draws.index(found.len());
        Some(found.swap_remove(chosen))
    }
}
