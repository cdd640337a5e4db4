//! The record of a task: everything that is known about it, from the sampled chain to its measures.

use std::collections::BTreeMap;

use rlf_dialogue::split::Split;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::request::Request;
use super::shown::ShownTools;

/// Version of the form of records. It changes when an older program could not read a newer file.
pub const SCHEMA: u32 = 1;

/// The arguments of a call, by parameter.
pub type Arguments = Map<String, Value>;

/// One task, as a line of `tasks.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TaskRecord {
    /// Version of this form: [`SCHEMA`].
    pub schema: u32,
    /// Unique within its folder: `forge-` and the number of the candidate.
    pub id: String,
    /// Number of the candidate that became this task.
    pub candidate: u64,
    /// The part of the data that it belongs to.
    pub split: Split,
    /// The part of it that is unseen in training.
    pub unseen: Unseen,
    /// Domain of its first environment, such as `commerce`.
    pub domain: String,
    /// Its environments, and how each begins.
    pub servers: BTreeMap<String, Start>,
    /// The strategy by which its chain was sampled: `topology` or `random-walk`.
    pub strategy: String,
    /// The sampled chain of tools, before execution and pruning.
    pub chain: Vec<String>,
    /// The tools that a model is offered, in this order.
    pub tools: Vec<String>,
    /// Other names under which rows show tools and parameters. Everything in the record has the author's names.
    #[serde(default, skip_serializing_if = "ShownTools::is_plain")]
    pub shown: ShownTools,
    /// The state of each environment at the beginning.
    pub initial: Map<String, Value>,
    /// The author of the words of its turns.
    #[serde(default, skip_serializing_if = "Author::is_grammar")]
    pub author: Author,
    /// The turns: the words of the user, and the calls that solve them.
    pub turns: Vec<Turn>,
    /// Its size and difficulty.
    pub measures: Measures,
}

/// The part of a task that is unseen in training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unseen {
    /// Nothing: tasks of training.
    Nothing,
    /// A tool that no task of training calls or offers.
    Tool,
    /// All environments of the task.
    Environment,
}

impl Unseen {
    /// The name in files and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Tool => "tool",
            Self::Environment => "environment",
        }
    }
}

/// The author of the words of a task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Author {
    /// The grammar; no model was asked.
    #[default]
    Grammar,
    /// A model, from the words of the grammar and what they mean.
    Model,
    /// The grammar, because no text of the model passed the checks.
    Refused,
    /// The grammar, because the model gave no answer.
    Unanswered,
}

impl Author {
    /// The name in files and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Grammar => "grammar",
            Self::Model => "model",
            Self::Refused => "refused",
            Self::Unanswered => "unanswered",
        }
    }

    /// True if it is the grammar, and no model was asked.
    #[allow(clippy::trivially_copy_pass_by_ref)] // Serde passes references.
    fn is_grammar(&self) -> bool {
        *self == Self::Grammar
    }
}

/// The scenario that an environment begins in, and the seed that it is generated from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// Name of the scenario: `simple`, `medium`, `complex` or `boundary`.
    pub scenario: String,
    /// Seed of the initial state.
    pub seed: u64,
}

/// One turn of a task: what the user says, and what solves it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Turn {
    /// The words of the user.
    pub query: String,
    /// The words with `<>` in place of every value.
    pub template: String,
    /// The requests in the words, as a reader understands them.
    pub requests: Vec<Request>,
    /// The kinds of refinement that were applied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub implicit: Vec<Implicit>,
    /// The calls that solve it, in order.
    pub calls: Vec<GoldCall>,
    /// The words with which a model ends the turn.
    pub answer: String,
    /// The state of each environment after the calls.
    pub goal: Map<String, Value>,
    /// True if the turn alone is not worth practising: it changes nothing and asks nothing, or one call with words of
    /// the turn solves it. It is context for the other turns, and gets no row for RL.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub context_only: bool,
}

/// A call that belongs to the solution.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GoldCall {
    /// The tool: `Server-name`.
    pub tool: String,
    /// Its arguments.
    pub arguments: Arguments,
    /// Its result.
    pub result: Value,
    /// The text that the model reads. None if it is the result as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// True if the user asks for this call. The others look up what it needs.
    pub requested: bool,
    /// The origin of each argument: from where a model can know it.
    pub origins: BTreeMap<String, Origin>,
    /// A refused call that is made before it in demonstrations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mistake: Option<Mistake>,
}

impl GoldCall {
    /// The text that the model reads after the call.
    pub fn shown(&self) -> String {
        self.text.clone().unwrap_or_else(|| self.result.to_string())
    }
}

/// A call of the same tool that the environment refuses. Demonstrations have it in their history and do not teach it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mistake {
    /// Its arguments.
    pub arguments: Arguments,
    /// The message of the tool.
    pub refusal: String,
}

/// The origin of an argument of a gold call: from where a model can know it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "from")]
pub enum Origin {
    /// The words of the user in this turn or an earlier one.
    Text {
        /// The turn, from 0.
        turn: usize,
    },
    /// The result of an earlier gold call.
    Result {
        /// The turn of the call, from 0.
        turn: usize,
        /// The call in that turn, from 0.
        call: usize,
        /// JSON pointer of the value in the result.
        pointer: String,
    },
    /// The default of the parameter.
    Default,
}

/// A way in which a request says less than it could, so that the model has to find out the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Implicit {
    /// A parameter is left out, because the state gives it: "pay the whole fine".
    Omitted,
    /// Something is meant that an earlier request named: "the same member".
    Reference,
    /// An entity is described instead of named: "the book with 3 copies", "Ada's loan".
    Description,
    /// Several actions are asked for in one sentence.
    Combined,
    /// Several entities fit, and a constraint says which one is meant: "the one with the lowest price".
    Constraint,
}

impl Implicit {
    /// All kinds.
    pub const ALL: [Self; 5] = [
        Self::Omitted,
        Self::Reference,
        Self::Description,
        Self::Combined,
        Self::Constraint,
    ];

    /// The name in files and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Omitted => "omitted",
            Self::Reference => "reference",
            Self::Description => "description",
            Self::Combined => "combined",
            Self::Constraint => "constraint",
        }
    }
}

/// Size and difficulty of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Measures {
    /// Number of gold calls in all turns.
    pub calls: usize,
    /// Number of turns.
    pub turns: usize,
    /// Number of environments.
    pub servers: usize,
    /// Attempts of the solver.
    pub attempts: u32,
    /// Attempts that reached the goal.
    pub passes: u32,
    /// Share of the attempts that failed, from 0 (easy) to 1.
    pub difficulty: f64,
}

impl Measures {
    /// The size of a task that the solver has not tried.
    pub(super) fn new(turns: &[Turn], servers: usize) -> Self {
        Self {
            calls: turns.iter().map(|turn| turn.calls.len()).sum(),
            turns: turns.len(),
            servers,
            attempts: 0,
            passes: 0,
            difficulty: 0.0,
        }
    }

    /// The same size, with the outcome of the solver's attempts.
    pub(super) fn tried(self, attempts: u32, passes: u32) -> Self {
        Self {
            attempts,
            passes,
            difficulty: f64::from(attempts - passes) / f64::from(attempts.max(1)),
            ..self
        }
    }
}
