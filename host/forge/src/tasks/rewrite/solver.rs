//! A model that solves a task from its words alone: it calls tools in the environment until it answers.

use rlf_endpoint::ChatMessage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::RewriteError;
use crate::ask::prompts::Prompts;
use crate::ask::{AskError, Asker, Question, schema_of};
use crate::tasks::environment::{PlayError, TaskSession};
use crate::tasks::record::{Arguments, TaskRecord, Turn};
use crate::tasks::suite::Suite;

/// Maximum number of answers of the model in a turn. EnvFactory has the same limit.
const MAX_STEPS: usize = 15;
/// Maximum number of calls of one answer.
const MAX_CALLS: usize = 20;
/// Maximum number of bytes of a result that the model is shown.
const MAX_RESULT: usize = 4_000;

/// The reason why an attempt of the model failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unsolved {
    /// The environment broke or does not open.
    #[error("the environment: {0}")]
    Environment(String),
    /// No answer of the model could be used.
    #[error("turn {turn}: it gave no call and no answer")]
    Unusable {
        /// The turn, from 1.
        turn: usize,
    },
    /// The model called tools without an end.
    #[error("turn {turn}: it did not come to an end in {MAX_STEPS} steps")]
    Endless {
        /// The turn, from 1.
        turn: usize,
    },
    /// A request that changes nothing was not carried out.
    #[error("turn {turn}: it did not call {tool} for what is meant")]
    NotAsked {
        /// The turn, from 1.
        turn: usize,
        /// The tool.
        tool: String,
    },
    /// The state after a turn is not the goal.
    #[error("turn {turn}: it made the calls {calls}")]
    OtherState {
        /// The turn, from 1.
        turn: usize,
        /// The calls that changed something, in short.
        calls: String,
    },
}

/// One answer of the model.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Step {
    /// Calls to make now. Empty if nothing is left to do.
    #[serde(default)]
    calls: Vec<StepCall>,
    /// The words to the user, after the last call.
    #[serde(default)]
    answer: String,
}

/// A call of a tool.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StepCall {
    /// Name of the tool.
    tool: String,
    /// Its arguments.
    arguments: Arguments,
}

/// Makes one attempt. None if the state after every turn is the goal, and everything that the user asks to know was asked.
pub(super) async fn attempt(
    suite: &Suite,
    prompts: &Prompts,
    asker: &Asker<'_>,
    task: &TaskRecord,
    attempt: u32,
) -> Result<Option<Unsolved>, RewriteError> {
    let mut session = match suite.playable().open(&task.servers) {
        Ok(session) => session,
        Err(error) => return Ok(Some(Unsolved::Environment(error.to_string()))),
    };
    let schema = format!("{:#}", schema_of::<Step>());
    let tools = definitions(suite, task);
    let values = [("tools", tools.as_str()), ("schema", &schema)];
    let mut messages = vec![ChatMessage::system(prompts.render("solve", &values)?)];
    for (number, turn) in task.turns.iter().enumerate() {
        messages.push(ChatMessage::user(&turn.query));
        let mut made = Vec::new();
        let mut ended = false;
        for step in 0..MAX_STEPS {
            let stage = format!("solve-{}-{attempt}-{number}-{step}", task.id);
            let question = Question::new(stage, messages.clone());
            let answered: Result<Step, AskError> = asker.json(&question, Ok).await;
            let step = match answered {
                Ok(step) => step,
                Err(AskError::Unusable { .. }) => {
                    return Ok(Some(Unsolved::Unusable { turn: number + 1 }));
                }
                Err(error) => return Err(error.into()),
            };
            messages.push(ChatMessage::assistant(json!(step).to_string()));
            if step.calls.is_empty() {
                ended = true;
                break;
            }
            let results = calls(&mut *session, task, step.calls, &mut made);
            messages.push(ChatMessage::user(format!("Results:\n{results}")));
        }
        if !ended {
            return Ok(Some(Unsolved::Endless { turn: number + 1 }));
        }
        if let Some(failure) = judged(suite, &*session, number, turn, &made) {
            return Ok(Some(failure));
        }
    }
    Ok(None)
}

/// A call that succeeded.
struct Made {
    tool: String,
    arguments: Arguments,
    result: Value,
}

/// Makes calls, and returns their results as lines.
fn calls(
    session: &mut dyn TaskSession,
    task: &TaskRecord,
    calls: Vec<StepCall>,
    made: &mut Vec<Made>,
) -> String {
    let mut lines = Vec::new();
    for StepCall { tool, arguments } in calls.into_iter().take(MAX_CALLS) {
        let result = if task.tools.contains(&tool) {
            session.call(&tool, &arguments)
        } else {
            Err(PlayError::Missing(format!("tool {tool}")))
        };
        let shown = match &result {
            Ok(answer) => answer.shown(),
            Err(error) => format!("error: {error}"),
        };
        let end = shown.floor_char_boundary(MAX_RESULT);
        lines.push(format!("{tool}: {}", &shown[..end]));
        if let Ok(answer) = result {
            made.push(Made {
                tool,
                arguments,
                result: answer.result,
            });
        }
    }
    lines.join("\n")
}

/// Compares what was done with what the turn asks for.
fn judged(
    suite: &Suite,
    session: &dyn TaskSession,
    number: usize,
    turn: &Turn,
    made: &[Made],
) -> Option<Unsolved> {
    let number = number + 1;
    let state = match session.state() {
        Ok(state) => state,
        Err(error) => return Some(Unsolved::Environment(error.to_string())),
    };
    if state != turn.goal {
        let changes = made.iter().filter(|call| !suite.is_read_only(&call.tool));
        let calls: Vec<String> = changes
            .map(|call| format!("{} {}", call.tool, Value::Object(call.arguments.clone())))
            .collect();
        let calls = if calls.is_empty() {
            "none that changes anything".to_owned()
        } else {
            calls.join(", ")
        };
        return Some(Unsolved::OtherState {
            turn: number,
            calls,
        });
    }
    let mut asked = turn.calls.iter();
    let missing = asked.find(|gold| {
        let is_same = |call: &Made| {
            call.tool == gold.tool
                && (call.arguments == gold.arguments || call.result == gold.result)
        };
        gold.requested && suite.is_read_only(&gold.tool) && !made.iter().any(is_same)
    });
    missing.map(|gold| Unsolved::NotAsked {
        turn: number,
        tool: gold.tool.clone(),
    })
}

/// The tools that a task offers, one a line.
fn definitions(suite: &Suite, task: &TaskRecord) -> String {
    let tools = task.tools.iter().filter_map(|tool| suite.definition(tool));
    let lines = tools.map(|tool| {
        json!({"name": tool.name, "description": tool.description, "parameters": tool.input_schema})
            .to_string()
    });
    lines.collect::<Vec<_>>().join("\n")
}
