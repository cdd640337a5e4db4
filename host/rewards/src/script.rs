//! Rewards in a source file: the interpreter's component has executed the file, and each grading is a request to a fresh
//! instance of it.

use std::any::Any;

use rlf_interpreters::requests::LoadedFile;
use rlf_plugins::bindings::{reward, types};
use rlf_plugins::convert::error_text;
use rlf_plugins::guest_json::{content_to_json, ended_name};
use rlf_plugins::plugin::{Exports, Plugin, ToolList};
use rlf_plugins::problem::{LoadRefusal, ProblemKind};
use rlf_sandbox::{BoxFuture, CallSpec, Stopped};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::grading::{GradingRequest, GradingResult};

/// The exports of a plugin whose rewards are in a source file.
pub(crate) struct ScriptRewards(pub(crate) LoadedFile);

/// The answer to `describe`.
#[derive(Deserialize)]
struct Described {
    tools: Vec<Tool>,
}

#[derive(Deserialize)]
struct Tool {
    name: String,
}

/// The answer to `grade`, for one trajectory.
#[derive(Deserialize)]
#[serde(untagged)]
enum Graded {
    Excluded {
        error: String,
    },
    Scored {
        terms: Vec<(String, f64)>,
        per_event: Vec<(u32, String, f64)>,
        metrics: Vec<(String, f64)>,
    },
}

impl Exports for ScriptRewards {
    fn as_any(&self) -> &dyn Any {
        &self.0
    }

    fn list<'a>(
        &'a self,
        plugin: &'a Plugin,
    ) -> BoxFuture<'a, Result<Option<ToolList>, LoadRefusal>> {
        Box::pin(async move {
            let refused = |what: String| {
                let mend = "mend the reward's function in the file";
                Err(LoadRefusal::new(ProblemKind::Component, what, mend))
            };
            let described: Described = match self.0.ask_about(plugin, "describe").await {
                Ok(Ok(described)) => described,
                Ok(Err(error)) => return refused(error_text(&error)),
                Err(stopped) => {
                    return refused(format!("it cannot be made ready to grade: {stopped}"));
                }
            };
            match described.tools.first() {
                Some(tool) => Err(LoadRefusal::new(
                    ProblemKind::Component,
                    format!("it has rewards, and the tool `{}`", tool.name),
                    "put tools and rewards into files of their own",
                )),
                None => Ok(None),
            }
        })
    }
}

/// Asks the rewards of a source file to grade a group.
pub(crate) async fn grade(
    file: &LoadedFile,
    plugin: &Plugin,
    request: &GradingRequest,
    spec: CallSpec,
) -> Result<GradingResult, Stopped> {
    let grading = request.grading(spec.seed);
    let arguments = json!([
        task(request.task()),
        request.group().iter().map(trajectory).collect::<Vec<_>>(),
        {
            "split": grading.split,
            "step": grading.step,
            "steps": grading.steps,
            "seed": grading.seed,
        },
    ]);
    let report = file
        .ask::<Vec<Graded>>(plugin, spec, "grade", arguments)
        .await;
    let answer = plugin.finish(report)?;
    Ok(answer.map(|graded| graded.into_iter().map(Graded::into_score).collect()))
}

impl Graded {
    fn into_score(self) -> Result<reward::Score, types::Error> {
        let (terms, per_event, metrics) = match self {
            Self::Excluded { error } => return Err(types::Error::Internal(error)),
            Self::Scored {
                terms,
                per_event,
                metrics,
            } => (terms, per_event, metrics),
        };
        let term = |(name, value)| reward::Term { name, value };
        let metric = |(name, value)| types::Metric { name, value };
        Ok(reward::Score {
            terms: terms.into_iter().map(term).collect(),
            per_event: (per_event.into_iter())
                .map(|(event, name, value)| (event, term((name, value))))
                .collect(),
            metrics: metrics.into_iter().map(metric).collect(),
        })
    }
}

fn task(task: &reward::Task) -> Value {
    json!({
        "id": task.id,
        "source": task.source,
        "prompt": task.prompt.iter().map(message).collect::<Vec<_>>(),
        "reference": task.reference,
        "extra": task.extra,
    })
}

fn trajectory(trajectory: &reward::Trajectory) -> Value {
    let tools = trajectory.tools.iter().map(|tool| &tool.name);
    let verdict = trajectory.verdict.as_ref().map(|verdict| {
        json!({ "success": verdict.success, "score": verdict.score, "reason": verdict.reason })
    });
    json!({
        "id": trajectory.id,
        "tools": tools.collect::<Vec<_>>(),
        "events": trajectory.events.iter().map(event).collect::<Vec<_>>(),
        "answer": trajectory.answer,
        "finish": match trajectory.finish {
            reward::Finish::Answered => "answered",
            reward::Finish::Terminated => "terminated",
            reward::Finish::MaxTurns => "max-turns",
            reward::Finish::Length => "length",
            reward::Finish::Aborted => "aborted",
        },
        "final_state": trajectory.final_state,
        "verdict": verdict,
        "extra": trajectory.extra,
    })
}

fn event(event: &reward::Event) -> Value {
    match event {
        reward::Event::Turn(turn) => json!({ "turn": {
            "text": turn.text,
            "reasoning": turn.reasoning,
            "visible": turn.visible,
            "calls": turn.calls.iter().map(|call| json!({
                "call_id": call.call_id,
                "name": call.name,
                "arguments": call.arguments,
            })).collect::<Vec<_>>(),
            "malformed": turn.malformed.iter().map(|call| json!({
                "text": call.text,
                "diagnostic": call.diagnostic,
            })).collect::<Vec<_>>(),
            "tokens": turn.tokens,
        }}),
        reward::Event::Outcome(outcome) => json!({ "outcome": {
            "call_id": outcome.call_id,
            "ended": ended_name(outcome.ended),
            "content": outcome.observation.as_ref().map(|observation| {
                observation.content.iter().map(content_to_json).collect::<Vec<_>>()
            }),
            "step_reward": outcome.step_reward,
        }}),
        reward::Event::User(said) => json!({ "user": message(said) }),
    }
}

fn message(message: &types::Message) -> Value {
    json!({
        "role": match message.role {
            types::Role::System => "system",
            types::Role::User => "user",
            types::Role::Assistant => "assistant",
            types::Role::Tool => "tool",
        },
        "content": message.content.iter().map(content_to_json).collect::<Vec<_>>(),
    })
}
