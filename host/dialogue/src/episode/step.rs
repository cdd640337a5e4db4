//! The requests of an [`Episode`](super::Episode) to its caller: input for the generator, the next step, and an
//! environment's reply.

use crate::message::Content;
use crate::tool::ToolCall;
use crate::trajectory::Finish;

/// The ids that the generator must read before it samples the next turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextInput {
    /// The sequence continues.
    Continue {
        /// Ids to append to those read and sampled so far.
        append: Vec<u32>,
        /// Number of tokens that the turn may have, at least 1.
        max_new_tokens: usize,
    },
    /// A sequence begins. A second call in a row also returns this, with all ids of the sequence, so that a generator
    /// that lost its state can start over.
    Restart {
        /// All ids of the sequence.
        ids: Vec<u32>,
        /// Number of tokens that the turn may have, at least 1.
        max_new_tokens: usize,
    },
    /// Nothing is to be sampled now: invoke the calls, or take the trajectory.
    Finished,
}

/// The caller's next step.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Invoke these calls, then [`Episode::push_outcomes`](super::Episode::push_outcomes).
    Act(Vec<ToolCall>),
    /// Like [`Step::Act`], in the last turn under `last_turn_calls = "grade"`: the outcomes are for the rewards only, and
    /// nothing is appended.
    Grade(Vec<ToolCall>),
    /// The model wrote this without calling a tool: pass it to its environment, then
    /// [`Episode::push_reply`](super::Episode::push_reply). Only after
    /// [`Episode::enter_environment`](super::Episode::enter_environment).
    Say(String),
    /// Continue with [`Episode::next_input`](super::Episode::next_input).
    Continue,
    /// Take the trajectory with [`Episode::finish`](super::Episode::finish).
    Finished(Finish),
}

/// An environment's reply to a turn of the model without calls.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// This content answers, and the model's turn is next.
    Said(Vec<Content>),
    /// The episode is over.
    Ended,
    /// No answer. The turn's outcome is decided as without an environment.
    Silence,
}
