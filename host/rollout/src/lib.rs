//! Generate, parse, invoke: many trajectories in flight over one policy and one set of plugins.
//!
//! This is the only crate where the policy and the plugins meet. A trajectory is one asynchronous
//! function ([`rollout`] spawns one per sample); what batches them is the generator: all turns
//! that are being generated at a moment share the forward pass, a trajectory whose tools run is
//! simply not in it, and there is no barrier per turn. Under a seed the trajectories are the same
//! bit for bit, in whatever order tools finish and however they are batched, because every draw is
//! keyed by its place (see [`generate::GenerateRequest::key`]) and the policy's arithmetic does
//! not depend on what runs beside it.

pub mod demonstrate;
pub mod engine;
mod episode;
pub mod evaluate;
pub mod generate;
pub mod rollout;
pub mod shown_tools;
pub mod statistics;
pub mod user;
pub mod world;

use std::sync::Arc;

use rlf_dialogue::dialogue::{Dialogue, DialogueError};
use rlf_dialogue::split::Split;
use rlf_plugins::environment::{Environments, OpenError};
use rlf_plugins::reward_stack::RewardStack;
use rlf_plugins::tool_manager::{ToolError, ToolManager};
use rlf_policy::Sampler;

use crate::generate::{GenerateError, Generator};
use crate::shown_tools::{ShownTools, ShownToolsError};
use crate::user::{TaskUserError, User};

/// What episodes take place in, whoever writes the model's turns. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Scene {
    /// Template, protocol and budgets.
    pub dialogue: Arc<Dialogue>,
    /// Invokes tool calls.
    pub tools: ToolManager,
    /// The worlds that tasks live in, where they live in one.
    pub environments: Environments,
    /// How tools are shown in place of how their authors describe them.
    pub shown: ShownTools,
    /// Plays the users of tasks that want a model to; none where no task does.
    pub user: Option<Arc<dyn User>>,
}

/// Everything that trajectories are made with.
pub struct Workshop {
    /// What they take place in.
    pub scene: Scene,
    /// Grades groups.
    pub rewards: Arc<RewardStack>,
    /// Produces the model's turns.
    pub generator: Arc<dyn Generator>,
}

/// How to sample, and the place that keys all randomness.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Draws tokens; keyed by the run's seed, and by a purpose that keeps training and evaluation
    /// apart.
    pub sampler: Sampler,
    /// The run's seed, for what tools see as randomness.
    pub seed: u64,
    /// Training step, 0 before the first.
    pub step: u64,
    /// Planned steps of the run; 0 outside training.
    pub steps: u64,
    /// Where the tasks are from.
    pub split: Split,
}

/// Why a rollout could not be completed. What a model or a tool does wrong is never one of these.
#[derive(Debug, thiserror::Error)]
pub enum RolloutError {
    /// The task does not fit the dialogue: template, context or roles.
    #[error(transparent)]
    Dialogue(#[from] DialogueError),
    /// The task names a tool that no plugin offers.
    #[error(transparent)]
    Tools(#[from] ToolError),
    /// The rewards are configured so that no trajectory can be graded.
    #[error("[rewards] {0}")]
    Rewards(String),
    /// The tools of a task cannot be shown as it wants them.
    #[error(transparent)]
    Shown(#[from] ShownToolsError),
    /// Nobody can play the user of a task.
    #[error(transparent)]
    User(#[from] TaskUserError),
    /// The task's world could not be opened, where that is needed.
    #[error("task {task}: {why}")]
    World {
        /// The task's id.
        task: String,
        /// What the environment says.
        why: String,
    },
    /// The task's environment is not there.
    #[error(transparent)]
    Environment(#[from] OpenError),
    /// A tool of the task's environment has the name of another tool of the task.
    #[error(
        "task {task}: environment `{environment}` and a plugin both offer a tool `{tool}`; rename one"
    )]
    TwoTools {
        /// The task's id.
        task: String,
        /// Its environment.
        environment: String,
        /// The name.
        tool: String,
    },
    /// The generator stopped.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// A demonstration does not do what it should.
    #[error("the demonstration of task {task} is wrong: {what}")]
    Demonstration {
        /// The task's id.
        task: String,
        /// What happened instead.
        what: String,
    },
    /// A trajectory's task ended abnormally: a bug.
    #[error("a rollout task failed: {0}; this is a bug, please report it")]
    Task(String),
}
