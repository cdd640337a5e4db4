//! `POST /v1/rewards/{name}`: a reward plugin grades a group of trajectories, or of plain conversations.

use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use rlf_dialogue::config::AnswerRule;
use rlf_dialogue::conversation::{ConversationMessage, trajectory_from_messages};
use rlf_dialogue::message::Message;
use rlf_dialogue::split::Split;
use rlf_dialogue::task::Task;
use rlf_dialogue::trajectory::Trajectory;
use rlf_rewards::grading::Grading;
use rlf_rewards::reward::{GradeError, PluginScore, grade_group};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::answer::{Refusal, json};
use crate::body::Body;
use crate::request::{RequestLog, logged};
use crate::service::Service;
use crate::tools::not_served;

/// The id of a task that has none in its request.
const UNNAMED_TASK: &str = "task";

/// The task of the graded trajectories. Rewards read the reference; the rest may be left out.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GradedTask {
    #[serde(default)]
    pub(crate) id: String,
    /// Name of the data set.
    #[serde(default)]
    pub(crate) source: String,
    /// Messages, as the model saw them.
    #[serde(default)]
    #[schemars(with = "Vec<Value>")]
    pub(crate) prompt: Vec<Message>,
    /// The data set's answer, tests or end state.
    pub(crate) reference: Value,
    #[serde(default)]
    pub(crate) extra: Map<String, Value>,
}

/// The split that the task is from.
#[derive(Debug, Clone, Copy, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum GradedSplit {
    Train,
    Validation,
    #[default]
    Test,
}

/// `POST /v1/rewards/{name}`: either `trajectories` or `messages`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RewardRequest {
    pub(crate) task: GradedTask,
    /// Whole trajectories, in the format in which runs keep them.
    #[serde(default)]
    #[schemars(with = "Option<Vec<Value>>")]
    pub(crate) trajectories: Option<Vec<Trajectory>>,
    /// Conversations: `role`, `content`, `reasoning_content`, `tool_calls` (`name`, `arguments`, `call-id`), `tool_call_id`. An
    /// assistant's last message without calls is its answer, without its think blocks.
    #[serde(default)]
    #[schemars(with = "Option<Vec<Vec<Value>>>")]
    pub(crate) messages: Option<Vec<Vec<ConversationMessage>>>,
    #[serde(default)]
    pub(crate) split: GradedSplit,
    /// Step of the training run, for rewards with a schedule.
    #[serde(default)]
    pub(crate) step: u64,
    #[serde(default)]
    pub(crate) steps: u64,
    /// Default: serve.seed.
    #[serde(default)]
    pub(crate) seed: Option<u64>,
}

/// A reward's result for one trajectory: its terms, or the reason why there are none. A trajectory without terms must be
/// left out, not scored 0.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Scored {
    /// Name to value.
    pub(crate) terms: Option<Map<String, Value>>,
    /// Credit for single events: `[event, term, value]`.
    pub(crate) per_event: Vec<(usize, String, f64)>,
    /// Numbers for logs.
    pub(crate) metrics: Map<String, Value>,
    pub(crate) error: Option<String>,
}

/// Answer to `POST /v1/rewards/{name}`.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct RewardResponse {
    /// One score for each trajectory, in order.
    pub(crate) scores: Vec<Scored>,
}

pub(crate) async fn grade(
    State(service): State<Arc<Service>>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Refusal> {
    let Some(plugin) = service.exposure.rewards.get(&name) else {
        let served = service.exposure.rewards.keys().map(String::as_str);
        return Err(not_served(&service, "reward", &name, served));
    };
    let mut wait = service.wait();
    let body = Body::read(request, &service, &mut wait).await?;
    let (request, _room) = body.parse::<RewardRequest>()?;
    let task = Task {
        // The seed of the grading depends on it, and the same request gets the same answer.
        id: if request.task.id.is_empty() {
            UNNAMED_TASK.to_owned()
        } else {
            request.task.id
        },
        source: request.task.source,
        prompt: request.task.prompt,
        tools: None,
        reference: request.task.reference,
        environment: None,
        setup: Value::Null,
        extra: request.task.extra,
    };
    let group = match (request.trajectories, request.messages) {
        (Some(trajectories), None) => trajectories,
        (None, Some(conversations)) => {
            let conversations = conversations.into_iter().enumerate();
            conversations
                .map(|(at, messages)| {
                    let id = format!("{}#{at}", task.id);
                    trajectory_from_messages(id, &task.id, messages, AnswerRule::FinalTurn)
                })
                .collect()
        }
        _ => {
            let what = "send either `trajectories` or `messages`";
            return Err(Refusal::invalid("value_error", &[], what));
        }
    };
    let grading = Grading {
        split: match request.split {
            GradedSplit::Train => Split::Train,
            GradedSplit::Validation => Split::Validation,
            GradedSplit::Test => Split::Test,
        },
        step: request.step,
        steps: request.steps,
        seed: request.seed.unwrap_or(service.config.seed),
    };
    let place = service.call_place(&mut wait).await?;
    let began = Instant::now();
    let scores = grade_group(plugin, &service.tools, &task, &group, grading).await;
    drop(place);
    let failed = |score: &Result<_, GradeError>| matches!(score, Err(GradeError::Call(_)));
    let ended = if scores.iter().any(failed) {
        "failed"
    } else {
        "ok"
    };
    let scores = scores.into_iter().map(scored).collect();
    let log = RequestLog {
        what: name,
        ended: ended.into(),
        queued: wait.waited(),
        took: began.elapsed(),
    };
    Ok(logged(json(&RewardResponse { scores }), log))
}

fn scored(score: Result<PluginScore, GradeError>) -> Scored {
    let object = |pairs: Vec<(String, f64)>| {
        pairs
            .into_iter()
            .map(|(name, value)| (name, value.into()))
            .collect()
    };
    match score {
        Ok(score) => Scored {
            terms: Some(object(score.terms)),
            per_event: score.per_event,
            metrics: object(score.metrics),
            error: None,
        },
        Err(error) => Scored {
            error: Some(error.to_string()),
            ..Scored::default()
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn who_is_not_scored_has_no_terms() {
        let value =
            serde_json::to_value(scored(Err(GradeError::Trajectory("no gold".into())))).unwrap();
        assert_eq!(
            value,
            json!({"terms": null, "per_event": [], "metrics": {}, "error": "no gold"})
        );
    }
}
