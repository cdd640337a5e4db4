//! Replays tasks in the real environment: the sandboxed component that trains and grades.

use rlf_dialogue::tool::Ended;
use rlf_environments::environments::{Environments, OpenError};
use rlf_environments::error::SessionError;
use serde_json::{Value, json};

use super::record::TaskRecord;
use crate::verify::play::call;

/// The real environment did something else than the task says.
#[derive(Debug, thiserror::Error)]
pub enum Divergence {
    /// The initial state does not load.
    #[error("it does not open: {0}")]
    Open(#[from] OpenError),
    /// The session cannot say its state.
    #[error("it has no state: {0}")]
    State(#[from] SessionError),
    /// Its state is no JSON.
    #[error("its state is no JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// A gold call was refused, or broke.
    #[error("turn {turn}: {tool} ended as {ended}: {shown}")]
    Ended {
        /// The turn, from 1.
        turn: usize,
        /// The tool.
        tool: String,
        /// The end of the call: `failed`, `timeout` ..
        ended: &'static str,
        /// The text that the model would read.
        shown: String,
    },
    /// A gold call has another result.
    #[error("turn {turn}: {tool} gives {shown}")]
    Result {
        /// The turn, from 1.
        turn: usize,
        /// The tool.
        tool: String,
        /// The text that the model would read.
        shown: String,
    },
    /// A mistake is not refused, or with another message.
    #[error("turn {turn}: {tool} answers a mistake with {shown}")]
    Mistake {
        /// The turn, from 1.
        turn: usize,
        /// The tool.
        tool: String,
        /// The text that the model would read.
        shown: String,
    },
    /// The state is another one. Turn 0 is the beginning.
    #[error("the state after turn {turn} is another one")]
    Other {
        /// The turn, from 1; 0 before the first.
        turn: usize,
    },
}

/// Makes the gold calls of a task in the environment `name`, and compares every result and state.
pub async fn replay(
    environments: &Environments,
    name: &str,
    task: &TaskRecord,
) -> Result<(), Divergence> {
    let setup = json!({ "servers": task.initial });
    let mut session = environments.open(name, &task.id, &setup, 0).await?;
    let mut number = 0;
    let is_at =
        async |session: &rlf_environments::session::EnvironmentSession, wanted: Value, turn| {
            let state: Value = rlf_json::from_str(&session.state().await?)?;
            if state == wanted {
                Ok(())
            } else {
                Err(Divergence::Other { turn })
            }
        };
    is_at(&session, Value::Object(task.initial.clone()), 0).await?;
    for (place, turn) in task.turns.iter().enumerate() {
        let place = place + 1;
        for gold in &turn.calls {
            if let Some(mistake) = &gold.mistake {
                let played = call(&mut session, number, &gold.tool, &mistake.arguments).await;
                number += 1;
                if played.ended != Ended::Failed || played.text != mistake.refusal {
                    return Err(Divergence::Mistake {
                        turn: place,
                        tool: gold.tool.clone(),
                        shown: played.text,
                    });
                }
            }
            let played = call(&mut session, number, &gold.tool, &gold.arguments).await;
            number += 1;
            let (tool, shown) = (gold.tool.clone(), played.text);
            if played.ended != Ended::Ok {
                return Err(Divergence::Ended {
                    turn: place,
                    tool,
                    ended: played.ended.as_str(),
                    shown,
                });
            }
            if played.result.as_ref() != Some(&gold.result) {
                return Err(Divergence::Result {
                    turn: place,
                    tool,
                    shown,
                });
            }
        }
        is_at(&session, Value::Object(turn.goal.clone()), place).await?;
    }
    Ok(())
}
