//! Replays tasks in the real environment: the sandboxed component that trains and grades.

use rlf_dialogue::tool::{Ended, ToolDefinition};
use rlf_environments::environments::Environments;
use rlf_environments::error::OpenError;
use rlf_environments::error::SessionError;
use rlf_environments::session::EnvironmentSession;
use serde_json::{Map, Value, json};

use super::environment::Answer;
use super::record::{GoldCall, TaskRecord, Turn};
use crate::verify::Unserved;
use crate::verify::play::{Played, call};
use crate::verify::served::served;

/// A difference between the real environment and what the task says.
#[derive(Debug, thiserror::Error)]
pub enum Divergence {
    /// The initial state does not load.
    #[error("it does not open: {0}")]
    Open(#[from] OpenError),
    /// The session cannot say its state.
    #[error("it has no state: {0}")]
    State(#[from] SessionError),
    /// The session's state is not JSON.
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
    /// A mistake is not refused, or is refused with another message.
    #[error("turn {turn}: {tool} answers a mistake with {shown}")]
    Mistake {
        /// The turn, from 1.
        turn: usize,
        /// The tool.
        tool: String,
        /// The text that the model would read.
        shown: String,
    },
    /// The machine did not serve every request.
    #[error(transparent)]
    Unserved(#[from] Unserved),
    /// The state differs from that of the task. Turn 0 is the beginning.
    #[error("the state after turn {turn} is another one")]
    Other {
        /// The turn, from 1; 0 before the first.
        turn: usize,
    },
}

impl Divergence {
    /// True if it says nothing about the task: the environment cannot be played at all, or the machine is too busy.
    pub fn is_general(&self) -> bool {
        matches!(
            self,
            Self::Unserved(_)
                | Self::Open(
                    OpenError::NoSuchEnvironment { .. }
                        | OpenError::Unavailable { .. }
                        | OpenError::Broke { .. }
                )
        )
    }
}

/// Makes the gold calls of a task in the environment `name`, and compares every result and state.
///
/// They are made twice: in one session, as an episode of several turns has it, and with each turn in a session of its
/// own, as rows have it. The sessions have different seeds, so that a result that depends on chance is found.
pub async fn replay(
    environments: &Environments,
    name: &str,
    task: &TaskRecord,
) -> Result<(), Divergence> {
    served(environments, in_sessions(environments, name, task)).await?
}

async fn in_sessions(
    environments: &Environments,
    name: &str,
    task: &TaskRecord,
) -> Result<(), Divergence> {
    let mut whole = Replay::open(environments, name, task, &task.initial, 0).await?;
    whole.is_at(&task.initial, 0).await?;
    let mut before = &task.initial;
    for (place, turn) in task.turns.iter().enumerate() {
        whole.turn(turn, place + 1).await?;
        let seed = 1 + place as u64;
        let mut alone = Replay::open(environments, name, task, before, seed).await?;
        alone.turn(turn, place + 1).await?;
        before = &turn.goal;
    }
    Ok(())
}

/// A session in which gold calls are made.
struct Replay {
    session: EnvironmentSession,
    /// Number of calls so far.
    calls: usize,
}

impl Replay {
    async fn open(
        environments: &Environments,
        name: &str,
        task: &TaskRecord,
        states: &Map<String, Value>,
        seed: u64,
    ) -> Result<Self, OpenError> {
        let setup = json!({ "servers": states });
        let session = environments.open(name, &task.id, &setup, seed).await?;
        Ok(Self { session, calls: 0 })
    }

    /// Makes the calls of a turn, and compares results and the state after it.
    async fn turn(&mut self, turn: &Turn, number: usize) -> Result<(), Divergence> {
        for gold in &turn.calls {
            self.mistake(gold, number).await?;
            let played = self.call(gold, &gold.arguments).await;
            let (tool, shown) = (gold.tool.clone(), played.text.clone());
            if played.ended != Ended::Ok {
                return Err(Divergence::Ended {
                    turn: number,
                    tool,
                    ended: played.ended.as_str(),
                    shown,
                });
            }
            let answer = answer(&self.session, &gold.tool, played);
            if answer.result != gold.result || gold.text.is_some() && answer.text != gold.text {
                return Err(Divergence::Result {
                    turn: number,
                    tool,
                    shown,
                });
            }
        }
        self.is_at(&turn.goal, number).await
    }

    /// Makes the mistake before a gold call, which must be refused with the same message.
    async fn mistake(&mut self, gold: &GoldCall, turn: usize) -> Result<(), Divergence> {
        let Some(mistake) = &gold.mistake else {
            return Ok(());
        };
        let played = self.call(gold, &mistake.arguments).await;
        if played.ended != Ended::Failed || played.text != mistake.refusal {
            return Err(Divergence::Mistake {
                turn,
                tool: gold.tool.clone(),
                shown: played.text,
            });
        }
        Ok(())
    }

    async fn call(&mut self, gold: &GoldCall, arguments: &Map<String, Value>) -> Played {
        let played = call(&mut self.session, self.calls, &gold.tool, arguments).await;
        self.calls += 1;
        played
    }

    async fn is_at(&self, wanted: &Map<String, Value>, turn: usize) -> Result<(), Divergence> {
        let state: Value = rlf_json::from_str(&self.session.state().await?)?;
        if state.as_object() == Some(wanted) {
            Ok(())
        } else {
            Err(Divergence::Other { turn })
        }
    }
}

/// The answer of a call that succeeded.
///
/// Python shows a list as its items, one after the other with commas: `{..},{..}`.
pub(super) fn answer(session: &EnvironmentSession, tool: &str, played: Played) -> Answer {
    let mut tools = session.tools();
    let gives_list = tools.any(|definition| definition.name == tool && gives_list(definition));
    let json = |text: &str| rlf_json::from_str::<Value>(text).ok();
    let result = if gives_list && !played.structured {
        json(&format!("[{}]", played.text))
    } else {
        played
            .result
            .or_else(|| json(&format!("[{}]", played.text)))
    };
    let result = result.unwrap_or_else(|| Value::String(played.text.clone()));
    let written = result.to_string();
    let is_json = written == played.text;
    Answer {
        text: (!is_json).then_some(played.text),
        result,
    }
}

/// True if a tool in Python returns a list. A result that is not an object is called `result` in its schema.
fn gives_list(definition: &ToolDefinition) -> bool {
    let schema = definition.output_schema.as_ref();
    schema.is_some_and(|schema| schema["properties"]["result"]["type"] == "array")
}
