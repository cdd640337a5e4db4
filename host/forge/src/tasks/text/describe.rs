//! Decides how a request mentions each argument of a requested call, and what it leaves out (calibrated refinement).
//!
//! An argument that a lookup gave is an entity. It is described by what the lookup was asked and by fields of the item
//! that tell it from the other items. Refinement is a choice between descriptions of different effort: a name, a
//! property, the highest or lowest value, "the same", or nothing where the state gives the value.

use serde_json::{Map, Value};

use super::facts::{Item, Refinement};
use crate::graph::ValueType;
use crate::sampling::Draws;
use crate::tasks::entities::{Entities, Shown};
use crate::tasks::environment::PlayError;
use crate::tasks::make::{
    ArgumentSource, Candidate, Maker, PlannedCall, Trajectory, items, own_key,
};
use crate::tasks::record::Implicit;
use crate::tasks::rejection::{Reason, Rejection};
use crate::tasks::request::{Description, Fact, Mention, Request, Through};

/// Maximum number of entities that a description goes through: the loan of the member of the team ..
const MAX_DEPTH: usize = 4;

/// The requests of a turn, and the kinds of refinement that were applied.
pub(super) type Told = (Vec<Request>, Vec<Implicit>);

/// The requests of each turn, with the refinements that were applied.
pub(super) fn requests(
    maker: &Maker<'_>,
    candidate: &Candidate,
    trajectory: &Trajectory,
) -> Result<Vec<Told>, Rejection> {
    let states = states(maker, trajectory)
        .map_err(|error| Rejection::new(Reason::OrderMatters, error.to_string()))?;
    let mut teller = Teller {
        maker,
        calls: &trajectory.calls,
        states: &states,
        turn: 0,
        refinement: Refinement::new(
            Draws::new(candidate.key(maker.options.seed, "requests")),
            maker.options.refine,
        ),
        now: 0,
        told: Vec::new(),
        heard: Vec::new(),
        implicit: Vec::new(),
    };
    let mut turns = Vec::new();
    for (turn, range) in trajectory.ranges().enumerate() {
        teller.turn = turn;
        let mut requests: Vec<Request> = Vec::new();
        for call in range {
            if trajectory.calls[call].requested {
                // Two requests in one sentence are enough.
                let joins =
                    requests.last().is_some_and(|last| !last.joined) && teller.refinement.applies();
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

/// The states before the first turn and after each turn.
fn states(
    maker: &Maker<'_>,
    trajectory: &Trajectory,
) -> Result<Vec<Map<String, Value>>, PlayError> {
    let mut session = maker.suite.playable().open(&trajectory.servers)?;
    let mut states = vec![session.state()?];
    for range in trajectory.ranges() {
        for call in &trajectory.calls[range] {
            session.call(&call.tool, &call.arguments)?;
        }
        states.push(session.state()?);
    }
    Ok(states)
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
    /// The states before the first turn and after each turn.
    states: &'a [Map<String, Value>],
    /// The turn that is put into words, from 0.
    turn: usize,
    refinement: Refinement,
    /// The requested call that is put into words.
    now: usize,
    /// The entities that requests named so far, in order.
    told: Vec<Named>,
    /// Kind and key of every entity that was mentioned or made so far, in order: also those by which others are described.
    heard: Vec<(String, Value)>,
    /// The refinements of the turn so far.
    implicit: Vec<Implicit>,
}

impl Teller<'_> {
    /// The number of the request for a call.
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
        let before = self.heard.len();
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
        self.be_clear(call, &mut request, before)?;
        self.given_by_state(call, &mut request);
        let keys = named.iter();
        self.heard
            .extend(keys.map(|named| (named.entity.clone(), named.key.clone())));
        self.told.extend(named);
        self.hear_made(call);
        Ok(request)
    }

    /// Describes what the request calls "the same member" if its other words name another member. They are those heard
    /// since `before`.
    fn be_clear(
        &mut self,
        call: usize,
        request: &mut Request,
        before: usize,
    ) -> Result<(), Rejection> {
        let planned = &self.calls[call];
        for (parameter, value) in &planned.arguments {
            let Some(Mention::Same { entity, .. }) = request.arguments.get(parameter) else {
                continue;
            };
            let mut heard = self.heard[before..].iter();
            let is_unclear = heard.any(|(one, key)| one == entity && key != value);
            if let (true, Some(ArgumentSource::Call { call, item, field })) =
                (is_unclear, planned.sources.get(parameter))
            {
                let entity = entity.clone();
                let described = self.described(*call, *item, field, entity, 0)?;
                let mention = Mention::Described(described);
                request.arguments.insert(parameter.clone(), mention);
            }
        }
        Ok(())
    }

    /// Notes the entities that a call makes.
    fn hear_made(&mut self, call: usize) {
        let call = &self.calls[call];
        let tool = self.maker.suite.tool(&call.tool);
        let outputs = tool.filter(|_| !self.maker.suite.is_read_only(&call.tool));
        for output in outputs.map_or(&[][..], |tool| &tool.outputs) {
            if let (ValueType::Key(entity), Some(key)) =
                (&output.kind, call.result.get(&output.name))
            {
                self.heard.push((entity.clone(), key.clone()));
            }
        }
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
        // An entity that described another one may have been mentioned since then.
        let mut heard = self.heard.iter().rev();
        let heard = heard.find(|(one, _)| *one == entity);
        let is_last = heard.is_none_or(|(_, key)| key == value);
        let same = last.filter(|told| told.key == *value && alone && known && is_last);
        let same = same.map(|told| (told.request, told.parameter.clone()));
        if let Some((request, parameter)) = same
            && self.refinement.applies()
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
        let tool = self.maker.suite.tool(&call.tool);
        let outputs = tool.map_or(&[][..], |tool| &tool.outputs);
        let unseen = self.unseen(source, this, &facts);
        let told = Item::new(this, found, &unseen, outputs, &facts)
            .tell_apart(&mut facts, &mut self.refinement)
            .map_err(|alike| {
                Rejection::new(Reason::Ambiguous, format!("{}: {alike}", call.tool))
            })?;
        self.implicit.extend(told);
        let own = tool.and_then(own_key).filter(|own| own.field != field);
        if let Some(own) = own {
            let key = this[own.field].clone();
            self.heard.push((own.entity.to_owned(), key));
        }
        let through = own.map(|own| Through {
            entity: own.entity.to_owned(),
            field: field.to_owned(),
        });
        Ok(Description {
            entity,
            through,
            facts,
        })
    }

    /// Items for the entities that a lookup left out, if all facts so far are about fields of the entity. A reader of
    /// the text knows of no lookup, so the facts have to tell the entity from these too.
    fn unseen(&self, source: usize, this: &Value, facts: &[Fact]) -> Vec<Value> {
        let call = &self.calls[source];
        let own = self.maker.suite.tool(&call.tool).and_then(own_key);
        let Some(own) = own.filter(|_| facts.iter().all(|fact| matches!(fact, Fact::Is { .. })))
        else {
            return Vec::new();
        };
        let Some(key) = this.get(own.field).and_then(Value::as_str) else {
            return Vec::new();
        };
        let items = items(&call.result).iter();
        let shown: Vec<Shown<'_>> = items
            .filter_map(|item| Some((item.get(own.field)?.as_str()?, item)))
            .collect();
        // The state before the turn does not have what the turn makes.
        let mut states = self.states.iter().skip(self.turn).take(2);
        let all = states.find_map(|states| {
            let all = Entities::of(self.maker.suite, states, own.entity)?;
            all.rows.contains_key(key).then_some(all)
        });
        all.map_or_else(Vec::new, |all| all.unseen(&shown, this))
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
                    self.heard.push((entity.clone(), value.clone()));
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
            if self.refinement.applies() {
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
