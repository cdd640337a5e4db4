//! Options of making tasks.

use serde::{Deserialize, Serialize};

use crate::sampling::Strategy;

/// Options of making tasks. The same options and environments give the same bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(clippy::struct_excessive_bools)] // Each is an option that users name.
pub struct TaskOptions {
    /// Number of tasks to make.
    pub count: usize,
    /// Seed of all draws.
    pub seed: u64,
    /// Strategy by which chains of tools are sampled.
    pub sampling: Strategy,
    /// Number of tools at which a sampled chain ends.
    pub chain: usize,
    /// Maximum number of environments of a task.
    pub max_servers: usize,
    /// Maximum number of gold calls of a task.
    pub max_calls: usize,
    /// Maximum number of turns of a task.
    pub max_turns: usize,
    /// Maximum number of gold calls of a turn.
    pub max_turn_calls: usize,
    /// Maximum number of tools that a model is offered, unless the gold calls need more. None: all of the environments.
    pub max_tools_shown: Option<usize>,
    /// Tools that tasks offer besides those of their environments, and the names that they show.
    #[serde(default, skip_serializing_if = "InventoryOptions::is_plain")]
    pub inventory: InventoryOptions,
    /// Makes each turn after the first use a result of the turn before it, as in FunReason-MT's data. Tasks have at least
    /// two turns.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub linked_turns: bool,
    /// Names of the scenarios that tasks begin in. Empty: all that the environments have.
    pub scenarios: Vec<String>,
    /// Probability with which each refinement is tried where it is possible. 0 makes plain requests.
    pub refine: f64,
    /// Probability that the user asks to know a result that nothing else needs. With 0, every task changes something.
    pub ask: f64,
    /// Probability that a demonstration has a refused call before a requested one, and recovers from it.
    pub mistakes: f64,
    /// Leaves out greetings and closing words.
    pub terse: bool,
    /// Keeps tasks of one call whose arguments are all in the text.
    pub keep_trivial: bool,
    /// Leaves the checks out and keeps what they would reject, to measure what they are worth. Duplicates still go.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unchecked: bool,
    /// Attempts of the solver at each task.
    pub attempts: u32,
    /// Minimum number of attempts that must succeed. By default all of them: where some fail, the text leaves something
    /// to luck.
    pub min_passes: u32,
    /// Share of the environments that are held out for validation, and again for the test split.
    pub held_out_environments: f64,
    /// Share of the tools that is held out, out of those that change something in the other environments. Half is for
    /// each of the two splits.
    pub held_out_tools: f64,
}

/// Inventories that differ from task to task, as in AutoTool's setting.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct InventoryOptions {
    /// Maximum number of environments that a task offers and does not need. Their number is drawn for each task.
    pub other_environments: usize,
    /// Shows tools without the names of their environments, where no two tools of the task would have the same name.
    pub bare_names: bool,
    /// Probability that a tool is shown under an invented name.
    pub rename_tools: f64,
    /// Probability that a parameter is shown under an invented name, if its description says what its name says.
    pub rename_parameters: f64,
    /// Gives the parameters of each task's tools an order of their own.
    pub permute_parameters: bool,
}

impl InventoryOptions {
    /// True if tasks offer exactly the tools of their environments, unchanged.
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for TaskOptions {
    fn default() -> Self {
        Self {
            count: 2_575,
            seed: 0,
            sampling: Strategy::Topology,
            chain: 10,
            max_servers: 2,
            max_calls: 12,
            max_turns: 4,
            max_turn_calls: 5,
            max_tools_shown: None,
            inventory: InventoryOptions::default(),
            linked_turns: false,
            scenarios: Vec::new(),
            refine: 0.5,
            ask: 0.25,
            mistakes: 0.0,
            terse: false,
            keep_trivial: false,
            unchecked: false,
            attempts: 4,
            min_passes: 4,
            held_out_environments: 0.15,
            held_out_tools: 0.1,
        }
    }
}

impl TaskOptions {
    /// Maximum number of tasks with the same template of words: 1 % of all, but at least one.
    pub fn template_limit(&self) -> usize {
        (self.count / 100).max(1)
    }
}
