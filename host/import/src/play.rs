//! Plays a demonstration through [`Episode`], so that its tokens, the white space between turns and the loss mask are the
//! same as in a rollout of the same conversation.

use std::sync::Arc;

use rlf_dialogue::episode::Reply;
use rlf_dialogue::{
    CallOutcome, Dialogue, DialogueError, Episode, Finish, Message, NextInput, Observation, Role,
    Step, Task, ToolCall, Trajectory,
};
use serde_json::{Map, Value};

use crate::demonstration::Demonstration;

/// The reason why a demonstration cannot be played in a dialogue.
#[derive(Debug, thiserror::Error)]
pub enum PlayError {
    /// The dialogue cannot start with its prompt.
    #[error("demonstration {id}: {source}")]
    Prompt {
        /// The demonstration.
        id: String,
        /// The dialogue's error.
        source: DialogueError,
    },
    /// One of its messages cannot be played.
    #[error("demonstration {id}: messages[{message}]: {what}")]
    Message {
        /// The demonstration.
        id: String,
        /// Index of the message.
        message: usize,
        /// The problem, and how to fix it.
        what: String,
    },
}

/// Plays a demonstration. Each of the model's turns after the prompt becomes the ids that the chat template writes for
/// it. Results and users' messages become observations. The trajectory ends as `answered` if its last turn answers by
/// the dialogue's rule, and as `terminated` otherwise.
pub fn play(
    dialogue: &Arc<Dialogue>,
    demonstration: &Demonstration,
) -> Result<Trajectory, PlayError> {
    let fail = |message: usize, what: String| PlayError::Message {
        id: demonstration.id.clone(),
        message,
        what,
    };
    demonstration
        .check()
        .map_err(|error| fail(demonstration.given, error.to_string()))?;
    let messages = &demonstration.messages;
    let task = task_of(demonstration);
    let id = format!("demonstration/{}", demonstration.id);
    let mut episode =
        Episode::start(dialogue, id, &task, demonstration.tools.clone()).map_err(|source| {
            PlayError::Prompt {
                id: demonstration.id.clone(),
                source,
            }
        })?;
    // In an environment the host adds no reminder after a turn: the next message of the demonstration follows.
    episode.enter_environment();
    let mut at = demonstration.given;
    loop {
        if episode.next_input() == NextInput::Finished {
            return Err(fail(at, "the conversation had ended before".into()));
        }
        let text = episode
            .write_turn(&messages[at])
            .map_err(|error| fail(at, error.to_string()))?;
        let step = if demonstration.left_out.contains(&at) {
            episode.push_left_out(&text)
        } else {
            episode.push_demonstrated(&text)
        };
        at += 1;
        let step = match step {
            Step::Act(calls) if at < messages.len() => {
                let results = messages.get(at..at + calls.len()).unwrap_or_default();
                at += calls.len();
                episode.push_outcomes(calls.iter().zip(results).map(outcome).collect())
            }
            Step::Say(_) if at < messages.len() => {
                let said = messages[at].content.clone();
                at += 1;
                episode.push_reply(Reply::Said(said))
            }
            Step::Say(_) => episode.push_reply(Reply::Ended),
            step => step,
        };
        // Results without a turn after them need not be read.
        let over = messages[at..]
            .iter()
            .all(|message| message.role == Role::Tool);
        match step {
            Step::Finished(Finish::Answered | Finish::Terminated | Finish::MaxTurns) if over => {
                break;
            }
            Step::Act(_) | Step::Grade(_) | Step::Continue if over => {
                episode.terminate();
                break;
            }
            Step::Continue => {}
            Step::Finished(finish) => {
                return Err(fail(at - 1, too_long(dialogue, &episode, finish)));
            }
            Step::Act(_) | Step::Grade(_) | Step::Say(_) => {
                return Err(fail(at - 1, too_long(dialogue, &episode, Finish::MaxTurns)));
            }
        }
    }
    Ok(episode.finish())
}

fn too_long(dialogue: &Dialogue, episode: &Episode, finish: Finish) -> String {
    let config = dialogue.config();
    match finish {
        Finish::MaxTurns => format!(
            "the conversation goes on after {} turns; raise dialogue.max_turns ({})",
            episode.turn(),
            config.max_turns
        ),
        Finish::Length => format!(
            "the conversation is longer than the context; raise dialogue.context ({}), or lower \
             dialogue.max_observation_tokens ({})",
            config.context, config.max_observation_tokens
        ),
        other => format!("the conversation cannot go on here ({other:?})"),
    }
}

fn task_of(demonstration: &Demonstration) -> Task {
    Task {
        id: demonstration.id.clone(),
        source: demonstration.source.clone(),
        prompt: demonstration.messages[..demonstration.given].to_vec(),
        tools: None,
        reference: Value::Null,
        environment: None,
        setup: Value::Null,
        extra: Map::new(),
    }
}

/// The outcome of a call from its result. Data sets do not say which results are failures.
fn outcome((call, result): (&ToolCall, &Message)) -> CallOutcome {
    let observation = Observation {
        content: result.content.clone(),
        ..Observation::default()
    };
    CallOutcome::from_observation(call.call_id.clone(), call.name.clone(), observation)
}
