//! Topology-aware sampling, as published with EnvFactory.
//!
//! A queue begins with any tool. For each tool from the queue: first its priors, which are tools that fill its inputs,
//! then itself, then its successors. Priors are looked for input by input. An input that is not required is skipped with
//! one probability, and one that has a source already with another. Otherwise the prior is any tool with an output for
//! it, and comes after priors of its own, down to a limit of depth. Successors are `k` of the `n` tools that depend on
//! the tool and were not taken, `k` uniform from 1 to `n`. If there are none, any tool of the same server goes into the
//! queue, even one that was taken. The chain ends when it is long enough.
//!
//! Two things differ from the published program. It checks the limit on servers when a tool goes into the queue, so
//! that two tools of new servers can together pass the limit: here it is checked again when a tool is taken. It does
//! not count tools whose priors it is looking for as taken, so that two tools which fill each other's inputs come
//! before each other: here such a tool is not a prior.

use std::collections::{BTreeSet, VecDeque};

use super::validity::is_filled;
use super::walker::Walker;
use crate::graph::InputId;

/// Samples the tools of a chain.
pub(super) fn walk(mut walker: Walker<'_>) -> Vec<usize> {
    let mut queue = VecDeque::from([walker.start()]);
    while !walker.is_complete() {
        let Some(next) = queue.pop_front() else {
            break;
        };
        let tool = match walker.chain.last() {
            Some(&last) if !walker.is_allowed(next) => walker.neighbour(last),
            _ => next,
        };
        take_priors(&mut walker, tool, 0);
        walker.chain.push(tool);
        let successors = walker.successors(tool);
        if successors.is_empty() {
            queue.push_back(walker.neighbour(tool));
        } else {
            let count = 1 + walker.draws.index(successors.len());
            queue.extend(walker.draws.several(successors, count));
        }
    }
    walker.chain
}

/// Takes tools that fill the inputs of a tool, each after tools that fill its own.
fn take_priors(walker: &mut Walker<'_>, tool: usize, depth: usize) {
    if depth >= walker.options.max_depth {
        return;
    }
    walker.waiting.push(tool);
    let graph = walker.graph;
    for (place, input) in graph.tools()[tool].inputs.iter().enumerate() {
        let id = InputId { tool, input: place };
        if !input.required && walker.draws.chance(walker.options.skip_optional) {
            continue;
        }
        if is_filled(graph, &walker.chain, id) && walker.draws.chance(walker.options.skip_filled) {
            continue;
        }
        let candidates: BTreeSet<usize> = graph.links_to(id).map(|link| link.from.tool).collect();
        let candidates: Vec<usize> = candidates
            .into_iter()
            .filter(|prior| !walker.waiting.contains(prior) && walker.is_allowed(*prior))
            .collect();
        let Some(prior) = walker.draws.pick(&candidates) else {
            continue;
        };
        if !walker.chain.contains(&prior) {
            take_priors(walker, prior, depth + 1);
            walker.chain.push(prior);
        }
    }
    walker.waiting.pop();
}
