//! Sampling of chains: sequences of tools that a task makes the model call.
//!
//! [`Strategy::Topology`] is EnvFactory's topology-aware sampling: it puts tools that fill a tool's inputs before it.
//! [`Strategy::RandomWalk`] is the comparison: it follows edges between tools and fills nothing. A chain is valid if
//! every required input of every tool comes from the user or from a tool before it ([`missing`]).
//!
//! Chain `index` of a seed is the same whatever was sampled before it.
//!
//! | looking for | module |
//! |---|---|
//! | topology-aware sampling, and where it departs from the published one | `topology` |
//! | random walks | `random_walk` |
//! | what both share: the tools taken so far, and draws | `walker` |
//! | sources of inputs, and which are missing | `validity` |
//!
//! ```
//! use rlf_forge::graph::{Lexical, ToolGraph, specified_tools};
//! use rlf_forge::sampling::{SamplingOptions, Strategy, sample};
//! use rlf_specification::{Format, read};
//!
//! let text = include_str!("../../../plugins/specified/examples/LendingLibrary.toml");
//! let tools = specified_tools(&read(text, Format::Toml).unwrap());
//! let graph = ToolGraph::new(tools, &Lexical::default())?;
//! let chain = sample(&graph, Strategy::Topology, &SamplingOptions::default(), 7, 0).unwrap();
//! assert!(chain.is_valid() && chain.tools.len() >= 10);
//! assert!(chain.turns.iter().all(|turn| turn.len() <= 5));
//! # Ok::<(), rlf_forge::graph::GraphError>(())
//! ```

mod random_walk;
mod topology;
mod validity;
mod walker;

pub use validity::{Missing, Source, missing, sources};

use std::ops::Range;

use rlf_random::{Key, Purpose};
use serde::{Deserialize, Serialize};

use crate::graph::ToolGraph;
pub(crate) use walker::Draws;
use walker::Walker;

/// A way to sample chains.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// Takes the tools that fill a tool's inputs, then the tool itself, then tools that depend on it.
    Topology,
    /// Goes from each tool to one that depends on it.
    RandomWalk,
}

impl Strategy {
    /// The name in files and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Topology => "topology",
            Self::RandomWalk => "random-walk",
        }
    }
}

/// The parameters of sampling. The defaults are EnvFactory's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SamplingOptions {
    /// Number of tools at which a chain ends. Topology-aware chains can have a few more, because a tool comes with those
    /// that fill its inputs. EnvFactory uses 10, and 15 for its longer tasks.
    pub tools: usize,
    /// Maximum number of servers in a chain, at least 1.
    pub max_servers: usize,
    /// Maximum depth of the search for tools that fill inputs: a tool's input, the inputs of the tool that fills it,
    /// and so on.
    pub max_depth: usize,
    /// Probability that no tool is looked for to fill an input that is not required.
    pub skip_optional: f64,
    /// Probability that no tool is looked for to fill an input that has a source already.
    pub skip_filled: f64,
    /// Maximum number of tools in a turn, at least 1.
    pub max_turn: usize,
}

impl Default for SamplingOptions {
    fn default() -> Self {
        Self {
            tools: 10,
            max_servers: 3,
            max_depth: 5,
            skip_optional: 0.6,
            skip_filled: 0.9,
            max_turn: 5,
        }
    }
}

/// A chain of tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Chain {
    /// Places of its tools in the graph. A tool can come more than once.
    pub tools: Vec<usize>,
    /// Its turns, as ranges of `tools`. Each turn is one request of the user.
    pub turns: Vec<Range<usize>>,
    /// Required inputs without a source.
    pub missing: Vec<Missing>,
}

impl Chain {
    /// True if every required input has a source.
    pub fn is_valid(&self) -> bool {
        self.missing.is_empty()
    }
}

/// Samples the chain of a number. None if the graph has no tools.
pub fn sample(
    graph: &ToolGraph,
    strategy: Strategy,
    options: &SamplingOptions,
    seed: u64,
    index: u64,
) -> Option<Chain> {
    if graph.tools().is_empty() {
        return None;
    }
    let name = match strategy {
        Strategy::Topology => "topology-aware chains",
        Strategy::RandomWalk => "random walks",
    };
    let key = Key::new(seed, Purpose::Order).named(name).at(index);
    let walker = Walker::new(graph, options, Draws::new(key.named("tools")));
    let tools = match strategy {
        Strategy::Topology => topology::walk(walker),
        Strategy::RandomWalk => random_walk::walk(walker),
    };
    Some(Chain {
        turns: turns(
            tools.len(),
            options.max_turn,
            Draws::new(key.named("turns")),
        ),
        missing: missing(graph, &tools),
        tools,
    })
}

/// Splits a chain into turns, each of a uniform length from 1 to the largest; the last is what is left.
fn turns(length: usize, max_turn: usize, mut draws: Draws) -> Vec<Range<usize>> {
    let mut turns = Vec::new();
    let mut start = 0;
    while start < length {
        let end = length.min(start + 1 + draws.index(max_turn.max(1)));
        turns.push(start..end);
        start = end;
    }
    turns
}
