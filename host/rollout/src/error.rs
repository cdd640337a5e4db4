//! Errors of a rollout.

use rlf_dialogue::dialogue::DialogueError;
use rlf_endpoint::EndpointError;
use rlf_environments::error::OpenError;
use rlf_tools::tool_manager::ToolError;

use crate::generate::GenerateError;
use crate::shown_tools::ShownToolsError;
use crate::user::TaskUserError;

/// The reason why a rollout could not be completed. A mistake of the model or of a tool is never one of these.
#[derive(Debug, thiserror::Error)]
pub enum RolloutError {
    /// The task does not fit the dialogue: template, context or roles.
    #[error(transparent)]
    Dialogue(#[from] DialogueError),
    /// The task names a tool that no plugin offers.
    #[error(transparent)]
    Tools(#[from] ToolError),
    /// The rewards are configured so that no trajectory can be graded.
    #[error("{0}")]
    Rewards(String),
    /// The tools of a task cannot be shown as it asks.
    #[error(transparent)]
    Shown(#[from] ShownToolsError),
    /// No player is available for the user of a task.
    #[error(transparent)]
    User(#[from] TaskUserError),
    /// The task's environment could not be opened during a rehearsal.
    #[error("task {task}: {why}")]
    Rehearsal {
        /// The task's id.
        task: String,
        /// The environment's message.
        why: String,
    },
    /// The task's environment does not exist.
    #[error(transparent)]
    Environment(#[from] OpenError),
    /// A tool of the task's environment has the name of another tool of the task.
    #[error(
        "task {task}: environment `{environment}` and a plugin both offer a tool `{tool}`; rename one"
    )]
    TwoTools {
        /// The task's id.
        task: String,
        /// The task's environment.
        environment: String,
        /// The tool's name.
        tool: String,
    },
    /// The task asks for tools that its environment does not offer.
    #[error("task {task}: {what}")]
    MissingTools {
        /// The task's id.
        task: String,
        /// The tools that it asks for, and those that there are.
        what: String,
    },
    /// The task's user is played by a model, and the trajectory would be led by an agent.
    #[error(
        "task {task}: a model plays its user, and [agent] leads the trajectory; leave out one of them"
    )]
    AgentAndUser {
        /// The task's id.
        task: String,
    },
    /// No agent can be started.
    #[error("[agent]: {0}")]
    Agent(String),
    /// The generator stopped.
    #[error(transparent)]
    Generate(#[from] GenerateError),
    /// The endpoint that takes the model's turns refuses every question.
    #[error("{source}; correct {}", to_correct(.source))]
    Endpoint {
        /// The refusal.
        source: EndpointError,
    },
    /// A demonstration did not succeed.
    #[error("the demonstration of task {task} is wrong: {what}")]
    Demonstration {
        /// The task's id.
        task: String,
        /// The result instead of success.
        what: String,
    },
    /// A trajectory's task ended abnormally: a bug.
    #[error("a rollout task failed: {0}; this is a bug, please report it")]
    Task(String),
}

/// The keys of the configuration that are wrong if an endpoint refuses every question.
fn to_correct(error: &EndpointError) -> &'static str {
    match error {
        EndpointError::Refused {
            status: 401 | 403, ..
        } => "the key (`endpoint.key_env`)",
        EndpointError::Refused { status: 404, .. } => {
            "the model's name or the address (`endpoint.model`, `endpoint.url`)"
        }
        _ => "the table `[endpoint]`",
    }
}
