//! Decides how a request mentions each argument of a requested call, and what it leaves out (calibrated refinement).
//!
//! An argument that a lookup gave is an entity. It is described by what the lookup was asked and by fields of the item
//! that tell it from the other items. Refinement is a choice between descriptions of different effort: a name, a
//! property, the highest or lowest value, "the same", or nothing where the state gives the value.

use serde_json::Value;

use super::words::is_label;
use crate::graph::{Output, ValueType};
use crate::sampling::Draws;
use crate::tasks::make::{
    ArgumentSource, Candidate, Maker, PlannedCall, Trajectory, items, own_key,
};
use crate::tasks::record::Implicit;
use crate::tasks::rejection::{Reason, Rejection};
use crate::tasks::request::{Description, Fact, Mention, Request, Through, order};

/// Largest number of entities that a description goes through: the loan of the member of the team ..
const MAX_DEPTH: usize = 4;

/// The requests of a turn, and the kinds of refinement that were applied.
pub(super) type Told = (Vec<Request>, Vec<Implicit>);

/// The requests of each turn, with the refinements that were applied.
pub(super) fn requests(
    maker: &Maker<'_>,
    candidate: &Candidate,
    trajectory: &Trajectory,
) -> Result<Vec<Told>, Rejection> {
    let mut teller = Teller {
        maker,
        calls: &trajectory.calls,
        draws: Draws::new(candidate.key(maker.options.seed, "requests")),
        now: 0,
        told: Vec::new(),
        implicit: Vec::new(),
    };
    let mut turns = Vec::new();
    for range in trajectory.ranges() {
        let mut requests: Vec<Request> = Vec::new();
        for call in range {
            if trajectory.calls[call].requested {
                // Two requests in one sentence are enough.
                let joins = requests.last().is_some_and(|last| !last.joined) && teller.refines();
                let mut request = teller.request(call)?;
                if joins {
                    request.joined = true;
                    teller.implicit.push(Implicit::Combined);
                }
                requests.push(request);
            }
        }
        let mut implicit = std::mem::take(&mut teller.implicit);
        implicit.sort_unstable();
        implicit.dedup();
        turns.push((requests, implicit));
    }
    Ok(turns)
}

/// An entity that a request named.
struct Named {
    request: usize,
    parameter: String,
    entity: String,
    key: Value,
}

/// Writes the requests of one task.
struct Teller<'a> {
    maker: &'a Maker<'a>,
    calls: &'a [PlannedCall],
    draws: Draws,
    /// The requested call that is put into words.
    now: usize,
    /// The entities that requests named so far, in order.
    told: Vec<Named>,
    implicit: Vec<Implicit>,
}

impl Teller<'_> {
    fn refines(&mut self) -> bool {
        self.draws.chance(self.maker.options.refine)
    }

    /// The number of the request that is a call.
    fn number(&self, call: usize) -> usize {
        let before = self.calls[..call].iter();
        before.filter(|call| call.requested).count()
    }

    fn request(&mut self, call: usize) -> Result<Request, Rejection> {
        self.now = call;
        let planned = &self.calls[call];
        let mut request = Request {
            tool: planned.tool.clone(),
            arguments: std::collections::BTreeMap::new(),
            joined: false,
        };
        let mut named = Vec::new();
        for (parameter, value) in &planned.arguments {
            let mention = self.argument(call, parameter)?;
            if let Some(entity) = mention.entity() {
                named.push(Named {
                    request: self.number(call),
                    parameter: parameter.clone(),
                    entity: entity.to_owned(),
                    key: value.clone(),
                });
            }
            request.arguments.insert(parameter.clone(), mention);
        }
        self.given_by_state(call, &mut request);
        self.told.extend(named);
        Ok(request)
    }

    fn kind(&self, call: usize, parameter: &str) -> Option<&ValueType> {
        let input = self.maker.suite.input(&self.calls[call].tool, parameter)?;
        Some(&input.kind)
    }

    /// The mention of an argument of a call.
    fn argument(&mut self, call: usize, parameter: &str) -> Result<Mention, Rejection> {
        let planned = &self.calls[call];
        let value = &planned.arguments[parameter];
        let (source, item, field) = match planned.sources.get(parameter) {
            Some(ArgumentSource::Call { call, item, field }) => (*call, *item, field),
            _ => return Ok(Mention::Value(value.clone())),
        };
        let Some(ValueType::Key(entity)) = self.kind(call, parameter).cloned() else {
            return Ok(Mention::Value(value.clone()));
        };
        // "The same member" is the last one that was named, and only one member is named in this request.
        let alone = planned.arguments.keys().all(|other| {
            other == parameter
                || !matches!(self.kind(call, other), Some(ValueType::Key(one)) if *one == entity)
        });
        let last = self.told.iter().rev().find(|told| told.entity == entity);
        // A lookup that is made for this argument would be made for nothing.
        let known = self.calls[source..call]
            .iter()
            .any(|between| between.requested);
        let same = last.filter(|told| told.key == *value && alone && known);
        let same = same.map(|told| (told.request, told.parameter.clone()));
        if let Some((request, parameter)) = same
            && self.refines()
        {
            self.implicit.push(Implicit::Reference);
            return Ok(Mention::Same {
                request,
                parameter,
                entity,
            });
        }
        let made = &self.calls[source];
        if made.requested && !self.maker.suite.is_read_only(&made.tool) {
            self.implicit.push(Implicit::Reference);
            return self.produced(source, field, entity, value);
        }
        self.described(source, item, field, entity, 0)
            .map(Mention::Described)
    }

    /// The mention of something that an earlier request made. No request between may have made another of the kind.
    fn produced(
        &self,
        source: usize,
        field: &str,
        entity: String,
        value: &Value,
    ) -> Result<Mention, Rejection> {
        let later = self.calls[source + 1..self.now]
            .iter()
            .filter(|call| call.requested);
        let another = later
            .filter_map(|call| {
                let outputs = &self.maker.suite.tool(&call.tool)?.outputs;
                let made = !self.maker.suite.is_read_only(&call.tool);
                let output = outputs.iter().find(|output| {
                    made && matches!(&output.kind, ValueType::Key(one) if *one == entity)
                })?;
                call.result.get(&output.name)
            })
            .any(|key| key != value);
        let took = self.calls[source]
            .arguments
            .values()
            .any(|one| one == value);
        if another && !took {
            let detail = format!("several requests make one of {entity}");
            return Err(Rejection::new(Reason::Ambiguous, detail));
        }
        Ok(Mention::Produced {
            request: self.number(source),
            field: field.to_owned(),
            entity,
        })
    }

    /// The item that a lookup found, by facts.
    fn described(
        &mut self,
        source: usize,
        item: usize,
        field: &str,
        entity: String,
        depth: usize,
    ) -> Result<Description, Rejection> {
        let call = &self.calls[source];
        let found = items(&call.result);
        let Some(this) = found.get(item).filter(|_| depth < MAX_DEPTH) else {
            let detail = format!("{} gives {entity} in a way that cannot be told", call.tool);
            return Err(Rejection::new(Reason::Ambiguous, detail));
        };
        let mut facts = self.asked(source, this, depth)?;
        let is_fact = |one: &Value| {
            facts.iter().all(|fact| match fact {
                Fact::Is { field, value } => one.get(field).is_none_or(|other| other == value),
                _ => true,
            })
        };
        let others: Vec<&Value> = found
            .iter()
            .filter(|one| !std::ptr::eq(*one, this) && is_fact(one))
            .collect();
        let outputs = self
            .maker
            .suite
            .tool(&call.tool)
            .map_or(&[][..], |tool| &tool.outputs);
        self.told_apart(&mut facts, this, &others, outputs)
            .map_err(|detail| {
                Rejection::new(Reason::Ambiguous, format!("{}: {detail}", call.tool))
            })?;
        let own = self.maker.suite.tool(&call.tool).and_then(own_key);
        let through = own.filter(|own| *own != field).and_then(|own| {
            let output = outputs.iter().find(|output| output.name == *own)?;
            match &output.kind {
                ValueType::Key(owner) => Some(Through {
                    entity: owner.clone(),
                    field: field.to_owned(),
                }),
                _ => None,
            }
        });
        Ok(Description {
            entity,
            through,
            facts,
        })
    }

    /// The facts that a lookup was asked with.
    fn asked(&mut self, source: usize, this: &Value, depth: usize) -> Result<Vec<Fact>, Rejection> {
        let call = &self.calls[source];
        let mut facts = Vec::new();
        for (parameter, value) in &call.arguments {
            match (call.sources.get(parameter), self.kind(source, parameter)) {
                (
                    Some(ArgumentSource::Call { call, item, field }),
                    Some(ValueType::Key(entity)),
                ) => {
                    let (call, item, entity) = (*call, *item, entity.clone());
                    let made = &self.calls[call];
                    let mention = if made.requested && !self.maker.suite.is_read_only(&made.tool) {
                        self.produced(call, field, entity.clone(), value)?
                    } else {
                        let field = field.clone();
                        Mention::Described(self.described(
                            call,
                            item,
                            &field,
                            entity.clone(),
                            depth + 1,
                        )?)
                    };
                    facts.push(Fact::Of {
                        parameter: parameter.clone(),
                        entity,
                        mention: Box::new(mention),
                    });
                }
                (_, Some(ValueType::Text)) => {
                    // The whole of what was looked for a part of.
                    let part = value.as_str().unwrap_or_default().to_lowercase();
                    let whole = this.as_object().into_iter().flatten().find(|(_, value)| {
                        let text = value.as_str().unwrap_or_default().to_lowercase();
                        text.contains(&part)
                    });
                    facts.push(match whole {
                        Some((field, value)) => Fact::Is {
                            field: field.clone(),
                            value: value.clone(),
                        },
                        None => Fact::Among {
                            parameter: parameter.clone(),
                            value: value.clone(),
                        },
                    });
                }
                _ if this.get(parameter) == Some(value) => facts.push(Fact::Is {
                    field: parameter.clone(),
                    value: value.clone(),
                }),
                _ => facts.push(Fact::Among {
                    parameter: parameter.clone(),
                    value: value.clone(),
                }),
            }
        }
        Ok(facts)
    }

    /// Adds facts until they fit only this item.
    fn told_apart(
        &mut self,
        facts: &mut Vec<Fact>,
        this: &Value,
        others: &[&Value],
        outputs: &[Output],
    ) -> Result<(), String> {
        let is_named = |facts: &[Fact]| {
            facts
                .iter()
                .any(|fact| matches!(fact, Fact::Is { field, .. } if is_label(field)))
        };
        let fields: Vec<&Output> = outputs
            .iter()
            .filter(|output| {
                let value = &this[&output.name];
                let is_scalar = value.is_string() || value.is_number() || value.is_boolean();
                let is_told = facts
                    .iter()
                    .any(|fact| matches!(fact, Fact::Is { field, .. } if *field == output.name));
                is_scalar && !is_told && !matches!(output.kind, ValueType::Key(_))
            })
            .collect();
        let is = |output: &Output| Fact::Is {
            field: output.name.clone(),
            value: this[&output.name].clone(),
        };
        let differs =
            |output: &Output, other: &Value| other.get(&output.name) != this.get(&output.name);
        let alone = |output: &&&Output| others.iter().all(|other| differs(output, other));
        let named = is_named(facts);
        let label = fields
            .iter()
            .find(|output| is_label(&output.name) && alone(output));
        let plain: Vec<&&Output> = fields
            .iter()
            .filter(|output| !is_label(&output.name))
            .filter(alone)
            .collect();
        if others.is_empty() {
            // Nothing more is needed. A name is said all the same, unless the description is what has to be solved.
            if !named {
                match label {
                    Some(label) if facts.is_empty() || !self.refines() => facts.push(is(label)),
                    _ if facts.is_empty() => match plain.first() {
                        Some(output) => facts.push(is(output)),
                        None => facts.push(Fact::Only),
                    },
                    _ => self.implicit.push(Implicit::Description),
                }
            }
            return Ok(());
        }
        if self.refines() || (label.is_none() && plain.is_empty()) {
            let extremes = extremes(this, others, &fields);
            let (wants_extreme, place) = (
                self.draws.chance(0.5),
                self.draws.index(extremes.len().max(1)),
            );
            if let Some(extreme) = extremes.get(place)
                && (wants_extreme || plain.is_empty())
            {
                facts.push(extreme.clone());
                self.implicit.push(Implicit::Constraint);
                return Ok(());
            }
            if let Some(output) = self.draws.pick(&plain) {
                facts.push(is(output));
                self.implicit.push(if named {
                    Implicit::Constraint
                } else {
                    Implicit::Description
                });
                return Ok(());
            }
        }
        if let Some(output) = label.or(plain.first().copied()) {
            facts.push(is(output));
            return Ok(());
        }
        for (place, first) in fields.iter().enumerate() {
            for second in &fields[place + 1..] {
                if others
                    .iter()
                    .all(|other| differs(first, other) || differs(second, other))
                {
                    facts.extend([is(first), is(second)]);
                    self.implicit.push(Implicit::Constraint);
                    return Ok(());
                }
            }
        }
        Err(format!("{} items are alike", others.len() + 1))
    }

    /// Leaves values out that a field of an entity in the same request gives.
    fn given_by_state(&mut self, call: usize, request: &mut Request) {
        let planned = &self.calls[call];
        for (parameter, source) in &planned.sources {
            let ArgumentSource::Call {
                call: from,
                item,
                field,
            } = source
            else {
                continue;
            };
            if !matches!(request.arguments.get(parameter), Some(Mention::Value(_))) {
                continue;
            }
            let owner = planned.sources.iter().find(|(other, source)| {
                let same = matches!(source, ArgumentSource::Call { call, item: one, .. } if call == from && one == item);
                let fresh = matches!(request.arguments.get(*other), Some(Mention::Described(_)));
                same && fresh
            });
            let Some((owner, _)) = owner else {
                continue;
            };
            if self.refines() {
                let mention = Mention::FieldOf {
                    parameter: owner.clone(),
                    field: field.clone(),
                };
                request.arguments.insert(parameter.clone(), mention);
                self.implicit.push(Implicit::Omitted);
            }
        }
    }
}

/// Fields in which an item is the highest or the lowest of all.
fn extremes(this: &Value, others: &[&Value], fields: &[&Output]) -> Vec<Fact> {
    let mut found = Vec::new();
    for output in fields {
        let field = &output.name;
        let is_ordered = matches!(
            output.kind,
            ValueType::Integer | ValueType::Number | ValueType::Date
        );
        let known = others.iter().all(|other| !other[field].is_null());
        if !is_ordered || !known {
            continue;
        }
        for highest in [true, false] {
            let wanted = if highest {
                std::cmp::Ordering::Greater
            } else {
                std::cmp::Ordering::Less
            };
            if others
                .iter()
                .all(|other| order(&this[field], &other[field]) == Some(wanted))
            {
                found.push(Fact::Extreme {
                    field: field.clone(),
                    highest,
                });
            }
        }
    }
    found
}
