//! Executes a chain step by step: each argument comes from an earlier result, from the state, or from the user.

use std::collections::BTreeMap;

use serde_json::Value;

use super::call::{ArgumentSource, PlannedCall, items, own_key};
use super::chains::Candidate;
use super::values::Values;
use super::{Maker, Rejection};
use crate::graph::{Input, InputId, Reason as LinkReason, Tool, ToolGraph, ValueType};
use crate::sampling::Draws;
use crate::tasks::environment::{Answer, PlayError, TaskSession};
use crate::tasks::record::{Arguments, Start};
use crate::tasks::rejection::Reason;

/// Maximum number of calls of one step of a chain until one succeeds.
const MAX_TRIES: usize = 16;
/// Probability that an optional input is filled: of a tool that changes something, and of one that only looks.
const FILL_OPTIONAL: [f64; 2] = [0.3, 0.1];
/// If an entity and a reference to it were both found, the probability that its key is taken from the reference.
const TAKE_REFERENCE: f64 = 0.15;
/// Probability that a number is taken from an earlier result, if one could be meant.
const TAKE_FROM_RESULT: f64 = 0.4;

/// Fields and parameters that say an amount of money, and those that say a number of pieces.
const AMOUNTS: [(&[&str], &[&str]); 2] = [
    (
        &[
            "balance", "left", "open", "fine", "owed", "amount", "total", "cost", "price", "fare",
            "fee",
        ],
        &["amount", "payment", "money", "cents", "extra"],
    ),
    (
        &["quantity", "stock", "free", "pieces", "copies"],
        &["pieces", "count", "copies"],
    ),
];

/// True if a user could mean a field where a parameter wants a number: "pay the whole fine".
fn is_amount_of(field: &str, parameter: &str) -> bool {
    AMOUNTS
        .iter()
        .any(|(fields, parameters)| fields.contains(&field) && parameters.contains(&parameter))
}

/// Executes a candidate's chain. Steps that fail in every attempt are left out.
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
        let key = key.named("elsewhere").named(name);
        (name.clone(), playable.elsewhere(name, start, key))
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
    session: Box<dyn TaskSession + 'a>,
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
            let Some((arguments, sources)) = self.fill(place, tool, read_only) else {
                return;
            };
            let repeats = |step: &PlannedCall| self.repeats(step, &name, &arguments, read_only);
            if self.steps.iter().any(repeats) {
                continue;
            }
            // A result without items says nothing that a user could want.
            if let Ok(Answer { result, .. }) = self.session.call(&name, &arguments)
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

    fn fill(&mut self, place: usize, tool: &Tool, read_only: bool) -> Option<Filled> {
        let mut arguments = Arguments::new();
        let mut sources: BTreeMap<String, ArgumentSource> = BTreeMap::new();
        for (number, input) in tool.inputs.iter().enumerate() {
            if !input.required && !self.draws.chance(FILL_OPTIONAL[usize::from(read_only)]) {
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
                None if from_user => self
                    .values
                    .propose(self.maker.suite, tool, input, &mut self.draws)
                    .map(|value| (value, ArgumentSource::User)),
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

    /// True if a call repeats an earlier one. Changing the same thing of the same entity twice counts too, because
    /// nobody asks for that.
    fn repeats(
        &self,
        step: &PlannedCall,
        name: &str,
        arguments: &Arguments,
        read_only: bool,
    ) -> bool {
        if step.tool != name || read_only || step.arguments == *arguments {
            return step.tool == name && step.arguments == *arguments;
        }
        let mut keys = arguments
            .iter()
            .filter(|(parameter, _)| self.is_key(name, parameter))
            .peekable();
        keys.peek().is_some()
            && keys.all(|(parameter, key)| step.arguments.get(parameter) == Some(key))
    }

    fn is_key(&self, tool: &str, parameter: &str) -> bool {
        let input = self.maker.suite.input(tool, parameter);
        input.is_some_and(|input| matches!(input.kind, ValueType::Key(_)))
    }

    /// A key from an earlier result, other than those among the arguments.
    fn key(&mut self, id: InputId, arguments: &Arguments) -> Option<(Value, ArgumentSource)> {
        let graph = self.graph;
        let links: Vec<_> = graph
            .links_to(id)
            .filter(|link| matches!(link.reason, LinkReason::Key { .. }))
            .map(|link| {
                let tool = &graph.tools()[link.from.tool];
                let field = &tool.outputs[link.from.output].name;
                let is_own = own_key(tool).is_some_and(|own| own.field == field);
                (tool.full_name(), field, is_own)
            })
            .collect();
        // Keys of the found items themselves, and keys of what they refer to.
        let mut found: [Vec<(Value, ArgumentSource)>; 2] = Default::default();
        for (number, step) in self.steps.iter().enumerate() {
            for (_, field, is_own) in links.iter().filter(|(tool, ..)| *tool == step.tool) {
                for (item, values) in items(&step.result).iter().enumerate() {
                    let value = &values[field.as_str()];
                    // What a call was given is known from elsewhere.
                    let given = step.arguments.values().any(|other| other == value);
                    let taken = arguments.values().any(|other| other == value);
                    if value.is_string() && !given && !taken {
                        let source = ArgumentSource::Call {
                            call: number,
                            item,
                            field: (*field).clone(),
                        };
                        found[usize::from(!is_own)].push((value.clone(), source));
                    }
                }
            }
        }
        let [own, referred] = &mut found;
        let refers = own.is_empty() || self.draws.chance(TAKE_REFERENCE);
        let pool = if refers && !referred.is_empty() {
            referred
        } else {
            own
        };
        let chosen = self.draws.index(pool.len().max(1));
        (!pool.is_empty()).then(|| pool.swap_remove(chosen))
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
                let fits = output.is_some_and(|output| {
                    output.kind.fits(&input.kind) && is_amount_of(&output.name, &input.name)
                });
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
