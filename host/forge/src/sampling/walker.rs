//! The parts that the strategies share: the tools taken so far, the limit on servers, and draws.

use std::collections::BTreeSet;

use rlf_random::Key;

use super::SamplingOptions;
use crate::graph::ToolGraph;

/// Draws of one key, one after the other.
pub(crate) struct Draws {
    key: Key,
    next: u64,
}

impl Draws {
    pub(crate) fn new(key: Key) -> Self {
        Self { key, next: 0 }
    }

    /// An index below a length, which must not be 0.
    pub(crate) fn index(&mut self, length: usize) -> usize {
        self.next += 1;
        self.key.below(self.next, length as u64) as usize
    }

    pub(crate) fn chance(&mut self, probability: f64) -> bool {
        self.next += 1;
        self.key.uniform(self.next) < probability
    }

    pub(crate) fn pick<T: Copy>(&mut self, choices: &[T]) -> Option<T> {
        (!choices.is_empty()).then(|| choices[self.index(choices.len())])
    }

    /// Draws `count` of the choices, in a random order.
    pub(crate) fn several<T>(&mut self, mut choices: Vec<T>, count: usize) -> Vec<T> {
        self.next += 1;
        self.key.at(self.next).shuffle(&mut choices);
        choices.truncate(count);
        choices
    }
}

/// A chain that is being sampled.
pub(super) struct Walker<'a> {
    pub(super) graph: &'a ToolGraph,
    pub(super) options: &'a SamplingOptions,
    pub(super) draws: Draws,
    /// The tools taken.
    pub(super) chain: Vec<usize>,
    /// Tools that will be taken after those that fill their inputs.
    pub(super) waiting: Vec<usize>,
    servers: Vec<(&'a str, Vec<usize>)>,
}

impl<'a> Walker<'a> {
    pub(super) fn new(graph: &'a ToolGraph, options: &'a SamplingOptions, draws: Draws) -> Self {
        Self {
            graph,
            options,
            draws,
            chain: Vec::new(),
            waiting: Vec::new(),
            servers: graph.servers(),
        }
    }

    /// Draws any tool.
    pub(super) fn start(&mut self) -> usize {
        self.draws.index(self.graph.tools().len())
    }

    /// True if the chain is as long as it should be.
    pub(super) fn is_complete(&self) -> bool {
        self.chain.len() >= self.options.tools
    }

    /// True if a tool can be taken without too many servers.
    pub(super) fn is_allowed(&self, tool: usize) -> bool {
        let server = |tool: usize| self.graph.tools()[tool].server.as_str();
        let mut servers: BTreeSet<&str> = self
            .chain
            .iter()
            .chain(&self.waiting)
            .map(|&tool| server(tool))
            .collect();
        servers.insert(server(tool));
        servers.len() <= self.options.max_servers
    }

    /// The tools that depend on this one, were not taken, and can be.
    pub(super) fn successors(&self, tool: usize) -> Vec<usize> {
        let all = self.graph.dependents(tool).iter().copied();
        all.filter(|next| !self.chain.contains(next) && self.is_allowed(*next))
            .collect()
    }

    /// Draws any tool of the same server, this one included.
    pub(super) fn neighbour(&mut self, tool: usize) -> usize {
        let server = &self.graph.tools()[tool].server;
        let tools = self
            .servers
            .iter()
            .find(|(name, _)| name == server)
            .map(|(_, tools)| tools);
        tools
            .and_then(|tools| self.draws.pick(tools))
            .unwrap_or(tool)
    }
}
