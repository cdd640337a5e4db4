//! Sources of inputs in a chain, and inputs that have none.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::graph::{FromUser, InputId, ToolGraph};

/// The origin of an input's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Source {
    /// The user provides it.
    User(FromUser),
    /// An earlier step of the chain gives it.
    Step {
        /// Place of the step in the chain.
        step: usize,
        /// Place of the output in the step's tool.
        output: usize,
    },
}

/// A required input without a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// Place of the step in the chain.
    pub step: usize,
    /// Name of the input: `Server-tool.input`.
    pub input: String,
    /// Names of the tools that could give it, of which none comes before.
    pub given_by: Vec<String>,
}

/// All sources of an input: the user, then the earlier steps of the chain.
pub fn sources(graph: &ToolGraph, prefix: &[usize], input: InputId) -> Vec<Source> {
    let from_user = graph.tools()[input.tool].inputs[input.input].from_user;
    let mut sources: Vec<Source> = from_user.map(Source::User).into_iter().collect();
    for (step, &tool) in prefix.iter().enumerate() {
        let links = graph.links_to(input).filter(|link| link.from.tool == tool);
        sources.extend(links.map(|link| Source::Step {
            step,
            output: link.from.output,
        }));
    }
    sources
}

/// True if an input has a source.
pub(super) fn is_filled(graph: &ToolGraph, prefix: &[usize], input: InputId) -> bool {
    graph.tools()[input.tool].inputs[input.input]
        .from_user
        .is_some()
        || graph
            .links_to(input)
            .any(|link| prefix.contains(&link.from.tool))
}

/// The required inputs of a chain that neither the user nor an earlier tool provides. The chain is valid if there are
/// none.
pub fn missing(graph: &ToolGraph, chain: &[usize]) -> Vec<Missing> {
    let mut missing = Vec::new();
    for (step, &tool) in chain.iter().enumerate() {
        let description = &graph.tools()[tool];
        for (place, input) in description.inputs.iter().enumerate() {
            let id = InputId { tool, input: place };
            if input.required && !is_filled(graph, &chain[..step], id) {
                let givers: BTreeSet<usize> =
                    graph.links_to(id).map(|link| link.from.tool).collect();
                missing.push(Missing {
                    step,
                    input: format!("{}.{}", description.full_name(), input.name),
                    given_by: givers
                        .into_iter()
                        .map(|tool| graph.tools()[tool].full_name())
                        .collect(),
                });
            }
        }
    }
    missing
}
