//! Puts a record together from what the stages made.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::environment::{PlayError, TaskSession};
use super::inventory;
use super::make::{Candidate, Maker, PlannedCall, Trajectory, items};
use super::record::{Author, GoldCall, Measures, Mistake, SCHEMA, Start, TaskRecord, Turn, Unseen};
use super::rejection::{Reason, Rejection};
use super::text::{Query, QueryTurn, spaced, spoken};
use crate::graph::ValueType;
use crate::sampling::Draws;

/// Maximum number of items that an answer mentions.
const MAX_TOLD: usize = 5;

/// The record of a task whose checks are still to be made.
pub(super) fn assemble(
    maker: &Maker<'_>,
    candidate: &Candidate,
    trajectory: &Trajectory,
    query: Query,
) -> Result<TaskRecord, Rejection> {
    let diverged = |error: PlayError| Rejection::new(Reason::OrderMatters, error.to_string());
    let playable = maker.suite.playable();
    let servers = inventory::servers(maker, candidate, trajectory);
    let mut session = playable.open(&servers).map_err(diverged)?;
    let initial = session.state().map_err(diverged)?;
    let mut draws = Draws::new(candidate.key(maker.options.seed, "mistakes"));
    let mut turns = Vec::with_capacity(query.turns.len());
    for (range, query) in trajectory.ranges().zip(query.turns) {
        let mut gold = Vec::with_capacity(range.len());
        for call in &trajectory.calls[range] {
            let mistake = mistake(maker, &mut *session, call, &mut draws).map_err(diverged)?;
            let answer = session
                .call(&call.tool, &call.arguments)
                .map_err(diverged)?;
            gold.push(GoldCall {
                tool: call.tool.clone(),
                arguments: call.arguments.clone(),
                result: call.result.clone(),
                text: answer.text,
                requested: call.requested,
                origins: BTreeMap::new(),
                mistake,
            });
        }
        turns.push(turn(maker, gold, query, session.state().map_err(diverged)?));
    }
    let called: BTreeSet<&str> = trajectory
        .calls
        .iter()
        .map(|call| call.tool.as_str())
        .collect();
    let (split, unseen) = maker.splits.judge(called.iter().copied());
    let domain = trajectory
        .servers
        .keys()
        .find_map(|server| maker.suite.environment(server))
        .map_or_else(String::new, |environment| environment.domain.clone());
    let tools = offered(maker, candidate, &servers, &called, unseen);
    Ok(TaskRecord {
        schema: SCHEMA,
        id: format!("forge-{}", candidate.number),
        candidate: candidate.number,
        split,
        unseen,
        domain,
        servers,
        strategy: maker.options.sampling.as_str().to_owned(),
        chain: candidate.chain.clone(),
        shown: inventory::shown(maker, candidate, &tools),
        tools,
        initial,
        author: Author::Grammar,
        measures: Measures::new(&turns, trajectory.servers.len()),
        turns,
    })
}

fn turn(
    maker: &Maker<'_>,
    calls: Vec<GoldCall>,
    query: QueryTurn,
    goal: Map<String, Value>,
) -> Turn {
    let told: Vec<String> = calls
        .iter()
        .filter(|call| call.requested && maker.suite.is_read_only(&call.tool))
        .map(|call| told(&call.result))
        .collect();
    Turn {
        query: query.text,
        template: query.template,
        requests: query.requests,
        implicit: query.implicit,
        calls,
        answer: if told.is_empty() {
            "Done.".to_owned()
        } else {
            told.join("\n")
        },
        goal,
        context_only: false,
    }
}

/// Makes a mistake: a call with a key that does not exist in place of a right one. Returns it only if the environment
/// refuses it with a message. If the key exists after all, and the call is carried out, it is undone.
fn mistake(
    maker: &Maker<'_>,
    session: &mut dyn TaskSession,
    call: &PlannedCall,
    draws: &mut Draws,
) -> Result<Option<Mistake>, PlayError> {
    if !call.requested || !draws.chance(maker.options.mistakes) {
        return Ok(None);
    }
    let keys = call.arguments.iter().filter(|(parameter, value)| {
        let input = maker.suite.input(&call.tool, parameter);
        value.is_string() && input.is_some_and(|input| matches!(input.kind, ValueType::Key(_)))
    });
    let keys: Vec<(&String, &Value)> = keys.collect();
    let Some((parameter, Value::String(key))) = draws.pick(&keys) else {
        return Ok(None);
    };
    let letters = key.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let mut arguments = call.arguments.clone();
    let wrong = format!("{letters}{}", 20 + draws.index(60));
    arguments.insert(parameter.clone(), wrong.into());
    let before = session.state()?;
    match session.call(&call.tool, &arguments) {
        Err(PlayError::Refused(refusal)) => Ok(Some(Mistake { arguments, refusal })),
        _ => session.load(&before).map(|()| None),
    }
}

/// A result in a few words.
fn told(result: &Value) -> String {
    let all = items(result);
    let item = |item: &Value| {
        let fields = item.as_object().into_iter().flatten();
        let fields = fields
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| format!("{} {}", spaced(name), spoken(value)));
        fields.collect::<Vec<_>>().join(", ")
    };
    let mut lines: Vec<String> = all.iter().take(MAX_TOLD).map(item).collect();
    if all.len() > MAX_TOLD {
        lines.push(format!("and {} more", all.len() - MAX_TOLD));
    }
    lines.join("; ")
}

/// The tools that a model is offered: all of the environments, or the called ones and some others. Tasks of training
/// offer no tool that is held out.
fn offered(
    maker: &Maker<'_>,
    candidate: &Candidate,
    servers: &BTreeMap<String, Start>,
    called: &BTreeSet<&str>,
    unseen: Unseen,
) -> Vec<String> {
    let environments = servers
        .keys()
        .filter_map(|server| maker.suite.environment(server));
    let all: Vec<&str> = environments
        .flat_map(|environment| &environment.definitions)
        .map(|definition| definition.name.as_str())
        .filter(|tool| unseen != Unseen::Nothing || maker.splits.held_out_tool(tool).is_none())
        .collect();
    let mut shown: BTreeSet<&str> = all.iter().copied().collect();
    if let Some(most) = maker.options.max_tools_shown {
        let others: Vec<&str> = all
            .iter()
            .copied()
            .filter(|tool| !called.contains(tool))
            .collect();
        let mut draws = Draws::new(candidate.key(maker.options.seed, "tools"));
        let room = most.saturating_sub(called.len());
        shown = draws.several(others, room).into_iter().collect();
        shown.extend(called);
    }
    all.iter()
        .filter(|tool| shown.contains(*tool))
        .map(ToString::to_string)
        .collect()
}
