//! Puts a record together from what the stages made.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::environment::PlayError;
use super::make::{Candidate, Maker, PlannedCall, Trajectory, items};
use super::record::{GoldCall, Measures, SCHEMA, TaskRecord, Turn, Unseen};
use super::rejection::{Reason, Rejection};
use super::text::{Query, QueryTurn, spaced, spoken};
use crate::sampling::Draws;

/// Largest number of items that an answer tells.
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
    let mut session = playable.open(&trajectory.servers).map_err(diverged)?;
    let initial = session.state().map_err(diverged)?;
    let mut turns = Vec::with_capacity(query.turns.len());
    for (range, query) in trajectory.ranges().zip(query.turns) {
        let calls = &trajectory.calls[range];
        for call in calls {
            session
                .call(&call.tool, &call.arguments)
                .map_err(diverged)?;
        }
        turns.push(turn(
            maker,
            calls,
            query,
            session.state().map_err(diverged)?,
        ));
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
    Ok(TaskRecord {
        schema: SCHEMA,
        id: format!("forge-{}", candidate.number),
        candidate: candidate.number,
        split,
        unseen,
        domain,
        servers: trajectory.servers.clone(),
        strategy: maker.options.sampling.as_str().to_owned(),
        chain: candidate.chain.clone(),
        tools: offered(maker, candidate, trajectory, &called, unseen),
        initial,
        turns,
        measures: Measures {
            calls: trajectory.calls.len(),
            turns: trajectory.turns.len(),
            servers: trajectory.servers.len(),
            attempts: 0,
            passes: 0,
            difficulty: 0.0,
        },
    })
}

fn turn(
    maker: &Maker<'_>,
    calls: &[PlannedCall],
    query: QueryTurn,
    goal: Map<String, Value>,
) -> Turn {
    let gold = calls.iter().map(|call| GoldCall {
        tool: call.tool.clone(),
        arguments: call.arguments.clone(),
        result: call.result.clone(),
        requested: call.requested,
        origins: BTreeMap::new(),
    });
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
        calls: gold.collect(),
        answer: if told.is_empty() {
            "Done.".to_owned()
        } else {
            told.join("\n")
        },
        goal,
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
    trajectory: &Trajectory,
    called: &BTreeSet<&str>,
    unseen: Unseen,
) -> Vec<String> {
    let environments = trajectory
        .servers
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
