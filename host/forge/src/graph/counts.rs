//! Counts of nodes and edges.

use serde::Serialize;

use super::{FromUser, Reason, ToolGraph};

/// Counts of a graph's nodes and edges. Every input has one edge to its tool, and every output one from its tool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Servers.
    pub servers: usize,
    /// Tools.
    pub tools: usize,
    /// Inputs.
    pub inputs: usize,
    /// Outputs.
    pub outputs: usize,
    /// Inputs that the user provides because the description says so.
    pub from_user_declared: usize,
    /// Inputs that the user provides by the rule.
    pub from_user_by_rule: usize,
    /// Edges from outputs to inputs by declared keys.
    pub by_key: usize,
    /// Edges from outputs to inputs by the same values.
    pub by_type: usize,
    /// Edges from outputs to inputs by similarity.
    pub by_similarity: usize,
    /// Edges from tools to tools that depend on them.
    pub depends: usize,
    /// Inputs that nothing can fill.
    pub unfillable: usize,
}

impl Counts {
    /// All edges: of inputs, of outputs, from outputs to inputs, and between tools.
    pub fn edges(&self) -> usize {
        self.inputs + self.outputs + self.links() + self.depends
    }

    /// Edges from outputs to inputs.
    pub fn links(&self) -> usize {
        self.by_key + self.by_type + self.by_similarity
    }
}

impl ToolGraph {
    /// Counts the nodes and edges.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts {
            servers: self.servers().len(),
            tools: self.tools().len(),
            depends: (0..self.tools().len())
                .map(|tool| self.dependents(tool).len())
                .sum(),
            unfillable: self.unfillable().len(),
            ..Counts::default()
        };
        for tool in self.tools() {
            counts.inputs += tool.inputs.len();
            counts.outputs += tool.outputs.len();
            for input in &tool.inputs {
                match input.from_user {
                    Some(FromUser::Declared) => counts.from_user_declared += 1,
                    Some(FromUser::ByRule) => counts.from_user_by_rule += 1,
                    None => {}
                }
            }
        }
        for link in self.links() {
            match link.reason {
                Reason::Key { .. } => counts.by_key += 1,
                Reason::Type => counts.by_type += 1,
                Reason::Similarity { .. } => counts.by_similarity += 1,
            }
        }
        counts
    }
}
