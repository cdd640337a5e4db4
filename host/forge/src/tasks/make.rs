//! From a number to a trajectory: environments and a chain of tools are sampled, then executed.

mod call;
mod chains;
mod execute;
mod turns;
mod values;

pub use call::{ArgumentSource, PlannedCall, items, own_key};
pub use chains::Candidate;
pub use turns::Trajectory;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::options::TaskOptions;
use super::rejection::Rejection;
use super::split::Splits;
use super::suite::Suite;
use crate::graph::{GraphError, ToolGraph};

/// Maximum number of tool graphs that are kept.
const MAX_GRAPHS: usize = 1_024;

/// Graphs by names of environments, and whether the tools that are held out of training are left out.
type Graphs = HashMap<(Vec<String>, bool), Arc<ToolGraph>>;

/// Everything that candidates are made from.
pub struct Maker<'a> {
    /// The environments.
    pub suite: &'a Suite,
    /// The options of making.
    pub options: &'a TaskOptions,
    /// The environments and tools that are held out.
    pub splits: Splits,
    graphs: Mutex<Graphs>,
}

impl<'a> Maker<'a> {
    /// Makes tasks in the environments of a suite.
    pub fn new(suite: &'a Suite, options: &'a TaskOptions) -> Self {
        Self {
            suite,
            options,
            splits: Splits::new(suite, options),
            graphs: Mutex::default(),
        }
    }

    /// The tool graph of these environments.
    pub fn graph<'n>(
        &self,
        servers: impl IntoIterator<Item = &'n String>,
    ) -> Result<Arc<ToolGraph>, GraphError> {
        self.graph_of(servers, false)
    }

    /// The tool graph of these environments, with or without the tools that are held out of training.
    fn graph_of<'n>(
        &self,
        servers: impl IntoIterator<Item = &'n String>,
        of_training: bool,
    ) -> Result<Arc<ToolGraph>, GraphError> {
        let names: Vec<String> = servers.into_iter().cloned().collect();
        let names = (names, of_training);
        let mut graphs = self.graphs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(graph) = graphs.get(&names) {
            return Ok(Arc::clone(graph));
        }
        let all = self.suite.environments().iter().enumerate();
        let places: Vec<usize> = all
            .filter(|(_, environment)| names.0.contains(&environment.name))
            .map(|(place, _)| place)
            .collect();
        let graph = self.suite.graph(&places, |tool| {
            !of_training || self.splits.held_out_tool(tool).is_none()
        })?;
        let graph = Arc::new(graph);
        if graphs.len() >= MAX_GRAPHS {
            graphs.clear();
        }
        graphs.insert(names, Arc::clone(&graph));
        Ok(graph)
    }

    /// Samples the environments and the chain of a candidate.
    pub fn candidate(&self, number: u64) -> Result<Result<Candidate, Rejection>, GraphError> {
        chains::candidate(self, number)
    }

    /// Executes a candidate's chain, and splits the calls that matter into turns.
    pub fn trajectory(
        &self,
        candidate: &Candidate,
    ) -> Result<Result<Trajectory, Rejection>, GraphError> {
        let graph = self.graph(candidate.servers.keys())?;
        let executed = match execute::execute(self, &graph, candidate) {
            Ok(executed) => executed,
            Err(rejection) => return Ok(Err(rejection)),
        };
        Ok(turns::plan(self, candidate, &executed))
    }
}
