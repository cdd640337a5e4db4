//! The graph and its edges.

mod fill;

pub use fill::{Unfillable, Why};

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::fmt;

use serde::Serialize;

use super::similarity::{Similarity, Wording};
use super::{Tool, ValueType};

/// An output of a tool, by its places in the graph and in the tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct OutputId {
    /// Place of the tool.
    pub tool: usize,
    /// Place of the output.
    pub output: usize,
}

/// An input of a tool, by its places in the graph and in the tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct InputId {
    /// Place of the tool.
    pub tool: usize,
    /// Place of the input.
    pub input: usize,
}

/// The reason why an output can fill an input. If several hold, the first one counts.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "by", rename_all = "kebab-case")]
pub enum Reason {
    /// Both are declared keys of the same entity. This is certain.
    Key {
        /// The entity: `LendingLibrary.book`.
        entity: String,
    },
    /// Both are enumerations of the same two or more values: the type alone says what they mean.
    Type,
    /// The types of output and input fit, and their names and descriptions are similar.
    Similarity {
        /// The score, not below the threshold.
        score: f64,
    },
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key { entity } => write!(f, "key of {entity}"),
            Self::Type => f.write_str("same values"),
            Self::Similarity { score } => write!(f, "similarity {score:.2}"),
        }
    }
}

/// An edge from an output to an input of another tool.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Link {
    /// The output.
    pub from: OutputId,
    /// The input that it can fill.
    pub to: InputId,
    /// The reason why it can.
    pub reason: Reason,
}

/// Error of building a graph.
#[derive(Debug, thiserror::Error)]
pub enum GraphError {
    /// Two tools have the same name.
    #[error("two tools are called {0}; give their servers different names")]
    SameName(String),
    /// The measure of similarity failed.
    #[error("the parameters could not be compared")]
    Similarity(#[source] Box<dyn Error + Send + Sync>),
}

/// Tools and the edges between them. Places of tools are those in the list that it was built from.
#[derive(Debug, Clone, Serialize)]
pub struct ToolGraph {
    tools: Vec<Tool>,
    links: Vec<Link>,
    unfillable: Vec<Unfillable>,
    /// Name and threshold of the measure of similarity.
    similarity: (String, f64),
    /// Everything else that the scores depend on.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    similarity_details: BTreeMap<String, String>,
    /// Places of the links to each input of each tool.
    #[serde(skip)]
    sources: Vec<Vec<Vec<usize>>>,
    #[serde(skip)]
    dependents: Vec<Vec<usize>>,
    #[serde(skip)]
    ranks: Vec<Option<usize>>,
}

impl ToolGraph {
    /// Builds the graph.
    pub fn new(tools: Vec<Tool>, similarity: &dyn Similarity) -> Result<Self, GraphError> {
        let mut names = BTreeSet::new();
        for tool in &tools {
            if !names.insert(tool.full_name()) {
                return Err(GraphError::SameName(tool.full_name()));
            }
        }
        let links = links(&tools, similarity).map_err(GraphError::Similarity)?;
        let mut sources: Vec<Vec<Vec<usize>>> = tools
            .iter()
            .map(|tool| vec![Vec::new(); tool.inputs.len()])
            .collect();
        let mut dependents = vec![BTreeSet::new(); tools.len()];
        for (place, link) in links.iter().enumerate() {
            sources[link.to.tool][link.to.input].push(place);
            dependents[link.from.tool].insert(link.to.tool);
        }
        let mut graph = Self {
            ranks: Vec::new(),
            unfillable: Vec::new(),
            similarity: (similarity.name().to_owned(), similarity.threshold()),
            similarity_details: similarity.details(),
            dependents: dependents
                .into_iter()
                .map(|tools| tools.into_iter().collect())
                .collect(),
            tools,
            links,
            sources,
        };
        graph.ranks = fill::ranks(&graph);
        graph.unfillable = fill::unfillable(&graph);
        Ok(graph)
    }

    /// The tools.
    pub fn tools(&self) -> &[Tool] {
        &self.tools
    }

    /// The place of a tool by its full name.
    pub fn find(&self, full_name: &str) -> Option<usize> {
        self.tools
            .iter()
            .position(|tool| tool.full_name() == full_name)
    }

    /// The servers in the order of their first tools, each with the places of its tools.
    pub fn servers(&self) -> Vec<(&str, Vec<usize>)> {
        let mut servers: Vec<(&str, Vec<usize>)> = Vec::new();
        let mut places = BTreeMap::new();
        for (tool, Tool { server, .. }) in self.tools.iter().enumerate() {
            let place = *places.entry(server.as_str()).or_insert(servers.len());
            if place == servers.len() {
                servers.push((server, Vec::new()));
            }
            servers[place].1.push(tool);
        }
        servers
    }

    /// All edges from outputs to inputs, in the order of the outputs.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// The edges to an input.
    pub fn links_to(&self, input: InputId) -> impl Iterator<Item = &Link> {
        self.sources[input.tool][input.input]
            .iter()
            .map(|&link| &self.links[link])
    }

    /// The tools with an input that an output of this tool can fill, in their order.
    pub fn dependents(&self, tool: usize) -> &[usize] {
        &self.dependents[tool]
    }

    /// Number of calls of other tools that must come before this one, one after the other: 0 if the user provides all
    /// required inputs. None if it can never be called.
    pub fn rank(&self, tool: usize) -> Option<usize> {
        self.ranks[tool]
    }

    /// The inputs that nothing can fill.
    pub fn unfillable(&self) -> &[Unfillable] {
        &self.unfillable
    }

    /// Name and threshold of the measure of similarity.
    pub fn similarity(&self) -> (&str, f64) {
        (&self.similarity.0, self.similarity.1)
    }

    /// Everything else that the scores depend on, by name: of embeddings, the model and a hash of the vectors.
    pub fn similarity_details(&self) -> &BTreeMap<String, String> {
        &self.similarity_details
    }
}

/// Compares every output with every input of another tool.
fn links(
    tools: &[Tool],
    similarity: &dyn Similarity,
) -> Result<Vec<Link>, Box<dyn Error + Send + Sync>> {
    let mut wordings = Vec::new();
    let mut outputs = Vec::new();
    let mut inputs = Vec::new();
    for (
        tool,
        Tool {
            inputs: takes,
            outputs: gives,
            ..
        },
    ) in tools.iter().enumerate()
    {
        for (input, parameter) in takes.iter().enumerate() {
            inputs.push((InputId { tool, input }, &parameter.kind, wordings.len()));
            wordings.push(wording(
                &parameter.name,
                &parameter.kind,
                &parameter.description,
            ));
        }
        for (output, parameter) in gives.iter().enumerate() {
            outputs.push((OutputId { tool, output }, &parameter.kind, wordings.len()));
            wordings.push(wording(
                &parameter.name,
                &parameter.kind,
                &parameter.description,
            ));
        }
    }
    let score = similarity.prepare(&wordings)?;
    let threshold = similarity.threshold();
    let mut links = Vec::new();
    for &(from, gives, output) in &outputs {
        for &(to, takes, input) in &inputs {
            if from.tool == to.tool || !gives.fits(takes) {
                continue;
            }
            let reason = certain(gives, takes).or_else(|| {
                let score = score(output, input);
                (score >= threshold).then_some(Reason::Similarity { score })
            });
            links.extend(reason.map(|reason| Link { from, to, reason }));
        }
    }
    Ok(links)
}

/// The reason that types alone give.
fn certain(output: &ValueType, input: &ValueType) -> Option<Reason> {
    match (output.item(), input.item()) {
        (ValueType::Key(entity), ValueType::Key(_)) => Some(Reason::Key {
            entity: entity.clone(),
        }),
        (ValueType::Enumeration(ours), ValueType::Enumeration(theirs)) => {
            let (ours, theirs): (BTreeSet<&String>, BTreeSet<&String>) =
                (ours.iter().collect(), theirs.iter().collect());
            (ours.len() > 1 && ours == theirs).then_some(Reason::Type)
        }
        _ => None,
    }
}

fn wording<'a>(name: &'a str, kind: &ValueType, description: &'a str) -> Wording<'a> {
    Wording {
        name,
        kind: kind.to_string(),
        description,
    }
}
