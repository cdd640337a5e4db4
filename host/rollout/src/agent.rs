//! Trajectories that an agent leads: a program that has a loop of its own, and asks the policy for one turn at a time.
//!
//! The agent sends a conversation, and gets the policy's next turn. It decides itself what happens between two turns. So
//! the conversation of a request is compared with those of earlier requests:
//!
//! - If the request continues one of them, only the new messages are tokenised. They become an observation, as in a
//!   trajectory of our own loop. The sampled tokens of earlier turns stay as they were sampled.
//! - If its history differs (shortened, summarised, other tools), a new training sequence begins. There, the history is
//!   a prompt: each sampled token counts in the loss exactly once, where it was sampled.
//!
//! A malformed call never reaches the agent. As in our own loop, the policy is told how to mend it, and takes another
//! turn.
//!
//! - `chat`: conversations that belong to no trajectory, as a deployment has them
//! - `conversation`: one conversation with the agent, over an [`Episode`](rlf_dialogue::episode::Episode)
//! - `message`: messages as agents send them, and when two are the same
//! - `trajectory`: the requests of one trajectory, its limits, and the trajectory that they make

mod chat;
mod conversation;
mod message;
mod trajectory;

use std::sync::Arc;

use async_trait::async_trait;
use rlf_dialogue::message::Message;
use rlf_dialogue::tool::{CallOutcome, ToolDefinition};

pub use chat::PolicyChat;
pub use message::AgentMessage;
pub use trajectory::{AGENT_CALL, AgentPlayer, AgentTrajectory, PlacedCall};

/// Leads trajectories, each by a program of its own.
#[async_trait]
pub trait Agent: Send + Sync {
    /// Leads one trajectory to its end. The program asks for turns with [`AgentTrajectory::complete`].
    async fn lead(&self, trajectory: Arc<AgentTrajectory>) -> AgentEnd;
}

/// The way an agent ended.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentEnd {
    /// It finished its task.
    Finished(AgentReport),
    /// It failed; the text says why. Its trajectory is excluded, unless a limit of the trajectory had been reached.
    Failed(String),
    /// No agent can be started as configured; the text says why. The rollout ends.
    Misconfigured(String),
}

/// The result of an agent's work.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AgentReport {
    /// The answer. Without one, the last turn of the policy is searched for an answer, by the rule of the dialogue.
    pub answer: Option<String>,
    /// The agent's own judgement, from 0 to 1. It becomes the verdict of a trajectory without an environment.
    pub reward: Option<f64>,
}

/// A request for a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnRequest {
    /// The conversation so far. The last message is not the assistant's.
    pub messages: Vec<AgentMessage>,
    /// The tools on offer.
    pub tools: Vec<ToolDefinition>,
    /// Maximum number of tokens of the turn, if it is less than that of the dialogue.
    pub max_tokens: Option<usize>,
}

/// A turn of the policy.
#[derive(Debug, Clone, PartialEq)]
pub struct Turn {
    /// The turn as a message. The ids of its calls are unique within the trajectory.
    pub message: Message,
    /// The reason why the turn ended.
    pub stopped: Stopped,
    /// Number of tokens that the policy has read for it.
    pub prompt_tokens: usize,
    /// Number of tokens that were sampled, those of earlier turns of the same request included.
    pub sampled_tokens: usize,
}

/// The result of a call of one of the task's tools.
#[derive(Debug, Clone, PartialEq)]
pub struct Called {
    /// The end of the call, and what the policy is to read.
    pub outcome: CallOutcome,
    /// True if the environment ended the episode with this call.
    pub terminated: bool,
}

/// The reason why a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    /// The policy ended it.
    Ended,
    /// The policy ended it with calls.
    Calls,
    /// The turn or the context is full.
    Length,
}

/// The reason why a request gets no turn.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TurnRefused {
    /// The request cannot be rendered for the policy.
    #[error("{0}")]
    Invalid(String),
    /// The trajectory has used its turns.
    #[error("this trajectory has used its {0} turns (dialogue.max_turns)")]
    NoTurns(u32),
    /// The conversation does not fit the context.
    #[error("the conversation does not fit into the context of {0} tokens (dialogue.context)")]
    TooLong(u32),
    /// The trajectory is over.
    #[error("this trajectory is over: {0}")]
    Over(String),
    /// The policy cannot be asked.
    #[error("the policy does not answer: {0}")]
    Unavailable(String),
}
