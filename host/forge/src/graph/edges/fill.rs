//! The tools that can be called, and the inputs that nothing can fill.

use serde::Serialize;

use super::{InputId, ToolGraph};
use crate::graph::Input;

/// An input that neither the user nor a tool that can be called provides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unfillable {
    /// The input.
    #[serde(flatten)]
    pub input: InputId,
    /// Its name: `Server-tool.input`.
    pub name: String,
    /// True if it is required, so that its tool can never be called.
    pub required: bool,
    /// The reason why nothing fills it.
    pub why: Why,
}

/// The reason why nothing fills an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Why {
    /// No output has an edge to it.
    NoOutput,
    /// Only tools that can never be called have outputs with edges to it.
    OnlyFromTheUncallable,
}

impl Why {
    /// The reason in words.
    pub fn text(self) -> &'static str {
        match self {
            Self::NoOutput => "no other tool gives it, and the user does not know it",
            Self::OnlyFromTheUncallable => {
                "only tools that can never be called give it, and the user does not know it"
            }
        }
    }
}

/// True if an output of a tool that can be called so far fills this input.
fn is_filled(graph: &ToolGraph, id: InputId, input: &Input, ranks: &[Option<usize>]) -> bool {
    input.from_user.is_some()
        || graph
            .links_to(id)
            .any(|link| ranks[link.from.tool].is_some())
}

/// The rank of every tool: the first round in which all required inputs have a source from rounds before.
pub(super) fn ranks(graph: &ToolGraph) -> Vec<Option<usize>> {
    let mut ranks = vec![None; graph.tools().len()];
    for round in 0..ranks.len() {
        let callable: Vec<usize> = (0..ranks.len())
            .filter(|&tool| ranks[tool].is_none())
            .filter(|&tool| {
                let mut inputs = graph.tools()[tool].inputs.iter().enumerate();
                inputs.all(|(place, input)| {
                    !input.required
                        || is_filled(graph, InputId { tool, input: place }, input, &ranks)
                })
            })
            .collect();
        if callable.is_empty() {
            break;
        }
        for tool in callable {
            ranks[tool] = Some(round);
        }
    }
    ranks
}

/// The inputs that nothing can fill, in the order of the tools.
pub(super) fn unfillable(graph: &ToolGraph) -> Vec<Unfillable> {
    let ranks: Vec<Option<usize>> = (0..graph.tools().len())
        .map(|tool| graph.rank(tool))
        .collect();
    let mut found = Vec::new();
    for (tool, description) in graph.tools().iter().enumerate() {
        for (place, input) in description.inputs.iter().enumerate() {
            let id = InputId { tool, input: place };
            if is_filled(graph, id, input, &ranks) {
                continue;
            }
            found.push(Unfillable {
                input: id,
                name: format!("{}.{}", description.full_name(), input.name),
                required: input.required,
                why: match graph.links_to(id).next() {
                    None => Why::NoOutput,
                    Some(_) => Why::OnlyFromTheUncallable,
                },
            });
        }
    }
    found
}
