//! Between the contract's records and the host's types. Nothing a guest returns is believed: JSON
//! must be JSON, numbers finite, text safe.

use std::collections::BTreeMap;

use rlf_dialogue::message::{Blob, Content, Message, Role};
use rlf_dialogue::task::Task;
use rlf_dialogue::tool::{
    CallOutcome, Ended, Hints, Metric, OWN_NAME, Observation, ToolCall, ToolDefinition,
};
use rlf_dialogue::trajectory::{Event, Finish, ModelTurn, Trajectory, Verdict};
use serde_json::{Value, json};

use crate::bindings::{reward, types};
use crate::safe_text::{make_string_safe, make_value_safe};

/// What an environment gave for turns that called no tool, in a trajectory's `extra`: pairs of an event's index and a reward.
const STEP_REWARDS_OF_WORDS: &str = "step-rewards-of-words";

/// Why the environment of a trajectory did not tell its state or gave no judgement, in a trajectory's `extra`.
const UNJUDGED: &str = "unjudged";

/// What a guest returned that the contract does not allow.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ContractError {
    #[error("{place} is not one JSON value: {what}")]
    NotJson { place: String, what: String },
    #[error("{place} is {value}, not between 0 and 1")]
    NoShare { place: String, value: String },
    #[error("{place} is {value}, not a finite number")]
    NotFinite { place: String, value: String },
}

fn json(text: &str, place: &str) -> Result<Value, ContractError> {
    rlf_json::from_str(text).map_err(|error| ContractError::NotJson {
        place: place.into(),
        what: error.to_string(),
    })
}

/// Refuses NaN and infinities, naming where they stood.
pub(crate) fn finite(value: f64, place: impl FnOnce() -> String) -> Result<f64, ContractError> {
    if value.is_finite() {
        Ok(value)
    } else {
        Err(ContractError::NotFinite {
            place: place(),
            value: value.to_string(),
        })
    }
}

fn extra(pairs: types::Extra) -> Result<Vec<(String, Value)>, ContractError> {
    pairs
        .into_iter()
        .map(|(name, text)| {
            let value = make_value_safe(json(&text, &format!("extra value `{name}`"))?);
            Ok((make_string_safe(name), value))
        })
        .collect()
}

pub(crate) fn metrics(metrics: Vec<types::Metric>) -> Result<Vec<Metric>, ContractError> {
    metrics
        .into_iter()
        .map(|types::Metric { name, value }| {
            let value = finite(value, || format!("metric `{name}`"))?;
            Ok(Metric {
                name: make_string_safe(name),
                value,
            })
        })
        .collect()
}

fn content_from_guest(part: types::Content) -> Result<Content, ContractError> {
    let blob = |blob: types::Blob| Blob {
        media_type: make_string_safe(blob.media_type),
        data: blob.data,
    };
    Ok(match part {
        types::Content::Text(text) => Content::Text(make_string_safe(text)),
        types::Content::Structured(text) => Content::Structured(make_value_safe(json(
            &text,
            "a structured part of the result",
        )?)),
        types::Content::Image(image) => Content::Image(blob(image)),
        types::Content::Audio(audio) => Content::Audio(blob(audio)),
        types::Content::File(file) => Content::File(blob(file)),
    })
}

pub(crate) fn observation_from_guest(
    observation: types::Observation,
) -> Result<Observation, ContractError> {
    let types::Observation {
        content,
        failed,
        metrics: numbers,
        extra: pairs,
    } = observation;
    Ok(Observation {
        content: content
            .into_iter()
            .map(content_from_guest)
            .collect::<Result<_, _>>()?,
        failed,
        metrics: metrics(numbers)?,
        extra: extra(pairs)?,
    })
}

/// How many bytes a guest's observation holds, names included.
pub(crate) fn observation_bytes(observation: &types::Observation) -> usize {
    let content = observation.content.iter().map(|part| match part {
        types::Content::Text(text) | types::Content::Structured(text) => text.len(),
        types::Content::Image(blob) | types::Content::Audio(blob) | types::Content::File(blob) => {
            blob.media_type.len() + blob.data.len()
        }
    });
    let metrics = observation
        .metrics
        .iter()
        .map(|metric| metric.name.len() + size_of::<f64>());
    let extra = observation
        .extra
        .iter()
        .map(|(name, value)| name.len() + value.len());
    content.chain(metrics).chain(extra).sum()
}

/// A definition as the plugin gave it, schemas parsed but not checked.
pub(crate) fn definition_from_guest(
    definition: types::ToolDefinition,
) -> Result<ToolDefinition, ContractError> {
    let types::ToolDefinition {
        name,
        description,
        input_schema,
        output_schema,
        hints,
        extra: pairs,
    } = definition;
    Ok(ToolDefinition {
        input_schema: json(&input_schema, &format!("the input schema of `{name}`"))?,
        output_schema: output_schema
            .map(|schema| json(&schema, &format!("the output schema of `{name}`")))
            .transpose()?,
        description: make_string_safe(description),
        hints: Hints {
            read_only: hints.contains(types::Hints::READ_ONLY),
            idempotent: hints.contains(types::Hints::IDEMPOTENT),
            deterministic: hints.contains(types::Hints::DETERMINISTIC),
            open_world: hints.contains(types::Hints::OPEN_WORLD),
        },
        extra: extra(pairs)?,
        name,
    })
}

pub(crate) fn definition_to_guest(definition: &ToolDefinition) -> types::ToolDefinition {
    let hints = [
        (definition.hints.read_only, types::Hints::READ_ONLY),
        (definition.hints.idempotent, types::Hints::IDEMPOTENT),
        (definition.hints.deterministic, types::Hints::DETERMINISTIC),
        (definition.hints.open_world, types::Hints::OPEN_WORLD),
    ];
    types::ToolDefinition {
        name: definition.name.clone(),
        description: definition.description.clone(),
        input_schema: definition.input_schema.to_string(),
        output_schema: definition.output_schema.as_ref().map(Value::to_string),
        hints: hints
            .into_iter()
            .filter(|(set, _)| *set)
            .fold(types::Hints::empty(), |all, (_, hint)| all | hint),
        extra: extra_to_guest(&definition.extra),
    }
}

fn extra_to_guest(pairs: &[(String, Value)]) -> types::Extra {
    pairs
        .iter()
        .map(|(name, value)| (name.clone(), value.to_string()))
        .collect()
}

fn content_to_guest(part: &Content) -> types::Content {
    let blob = |blob: &Blob| types::Blob {
        media_type: blob.media_type.clone(),
        data: blob.data.clone(),
    };
    match part {
        Content::Text(text) => types::Content::Text(text.clone()),
        Content::Structured(value) => types::Content::Structured(value.to_string()),
        Content::Image(image) => types::Content::Image(blob(image)),
        Content::Audio(audio) => types::Content::Audio(blob(audio)),
        Content::File(file) => types::Content::File(blob(file)),
    }
}

pub(crate) fn message_from_guest(message: types::Message) -> Result<Message, ContractError> {
    Ok(Message {
        role: match message.role {
            types::Role::System => Role::System,
            types::Role::User => Role::User,
            types::Role::Assistant => Role::Assistant,
            types::Role::Tool => Role::Tool,
        },
        content: message
            .content
            .into_iter()
            .map(content_from_guest)
            .collect::<Result<_, _>>()?,
        reasoning_content: None,
        tool_calls: Vec::new(),
    })
}

/// A verdict whose score is a share.
pub(crate) fn verdict_from_guest(verdict: types::Verdict) -> Result<Verdict, ContractError> {
    let types::Verdict {
        success,
        score,
        reason,
    } = verdict;
    if !(0.0..=1.0).contains(&score) {
        return Err(ContractError::NoShare {
            place: "the verdict's score".into(),
            value: score.to_string(),
        });
    }
    Ok(Verdict {
        success,
        score,
        reason: make_string_safe(reason),
    })
}

fn message_to_guest(message: &Message) -> types::Message {
    types::Message {
        role: match message.role {
            Role::System => types::Role::System,
            Role::User => types::Role::User,
            Role::Assistant => types::Role::Assistant,
            Role::Tool => types::Role::Tool,
        },
        content: message.content.iter().map(content_to_guest).collect(),
    }
}

pub(crate) fn observation_to_guest(observation: &Observation) -> types::Observation {
    types::Observation {
        content: observation.content.iter().map(content_to_guest).collect(),
        failed: observation.failed,
        metrics: observation
            .metrics
            .iter()
            .map(|metric| types::Metric {
                name: metric.name.clone(),
                value: metric.value,
            })
            .collect(),
        extra: extra_to_guest(&observation.extra),
    }
}

pub(crate) fn ended_to_guest(ended: Ended) -> types::Ended {
    match ended {
        Ended::Ok => types::Ended::Ok,
        Ended::Failed => types::Ended::Failed,
        Ended::InvalidArguments => types::Ended::InvalidArguments,
        Ended::Timeout => types::Ended::Timeout,
        Ended::MemoryLimit => types::Ended::MemoryLimit,
        Ended::OutputLimit => types::Ended::OutputLimit,
        Ended::Trap => types::Ended::Trap,
        Ended::Exited => types::Ended::Exited,
        Ended::Denied => types::Ended::Denied,
        Ended::Unavailable => types::Ended::Unavailable,
        Ended::Cancelled => types::Ended::Cancelled,
    }
}

pub(crate) fn task_to_guest(task: &Task) -> reward::Task {
    reward::Task {
        id: task.id.clone(),
        source: task.source.clone(),
        prompt: task.prompt.iter().map(message_to_guest).collect(),
        reference: task.reference.to_string(),
        extra: task
            .extra
            .iter()
            .map(|(name, value)| (name.clone(), value.to_string()))
            .collect(),
    }
}

/// The author's names of those tools that the model sees under others.
fn own_names(tools: &[ToolDefinition]) -> BTreeMap<&str, &str> {
    tools
        .iter()
        .filter_map(|tool| {
            let (_, own) = tool.extra.iter().find(|(key, _)| key == OWN_NAME)?;
            Some((tool.name.as_str(), own.as_str()?))
        })
        .collect()
}

fn call_to_guest(call: &ToolCall, own_names: &BTreeMap<&str, &str>) -> reward::ToolCall {
    let name = call.name.as_str();
    reward::ToolCall {
        call_id: call.call_id.clone(),
        name: (*own_names.get(name).unwrap_or(&name)).to_owned(),
        arguments: call.arguments.to_string(),
    }
}

fn turn_to_guest(turn: &ModelTurn, own_names: &BTreeMap<&str, &str>) -> reward::ModelTurn {
    reward::ModelTurn {
        text: turn.text.clone(),
        reasoning: turn.reasoning.clone(),
        visible: turn.visible.clone(),
        calls: (turn.calls.iter())
            .map(|call| call_to_guest(call, own_names))
            .collect(),
        malformed: turn
            .malformed
            .iter()
            .map(|call| reward::MalformedCall {
                text: call.text.clone(),
                diagnostic: call.diagnostic.clone(),
            })
            .collect(),
        tokens: turn.tokens,
    }
}

fn outcome_to_guest(outcome: &CallOutcome) -> reward::CallResult {
    reward::CallResult {
        call_id: outcome.call_id.clone(),
        ended: ended_to_guest(outcome.ended),
        observation: outcome.observation.as_ref().map(observation_to_guest),
        step_reward: outcome.step_reward,
    }
}

fn verdict_to_guest(verdict: &Verdict) -> types::Verdict {
    types::Verdict {
        success: verdict.success,
        score: verdict.score,
        reason: verdict.reason.clone(),
    }
}

/// The trajectory as rewards read it. Token ids, log-probabilities and the host's own details of
/// a call (times, hashes, error texts) are not part of what is graded; why an environment judged nothing is there for messages.
pub(crate) fn trajectory_to_guest(trajectory: &Trajectory) -> reward::Trajectory {
    let own_names = own_names(&trajectory.tools);
    let definition = |tool: &ToolDefinition| {
        let mut definition = definition_to_guest(tool);
        if let Some(own) = own_names.get(tool.name.as_str()) {
            (*own).clone_into(&mut definition.name);
        }
        definition
    };
    reward::Trajectory {
        id: trajectory.id.clone(),
        tools: trajectory.tools.iter().map(definition).collect(),
        events: trajectory
            .events
            .iter()
            .map(|event| match event {
                Event::Turn(turn) => reward::Event::Turn(turn_to_guest(turn, &own_names)),
                Event::Outcome(outcome) => reward::Event::Outcome(outcome_to_guest(outcome)),
                Event::User(message) => reward::Event::User(message_to_guest(message)),
            })
            .collect(),
        answer: trajectory.answer.clone(),
        finish: match trajectory.finish {
            Finish::Answered => reward::Finish::Answered,
            Finish::Terminated => reward::Finish::Terminated,
            Finish::MaxTurns => reward::Finish::MaxTurns,
            Finish::Length => reward::Finish::Length,
            Finish::Aborted => reward::Finish::Aborted,
        },
        final_state: trajectory.final_state.as_ref().map(Value::to_string),
        verdict: trajectory.verdict.as_ref().map(verdict_to_guest),
        extra: rewards_of_words(trajectory)
            .into_iter()
            .chain(unjudged(trajectory))
            .collect(),
    }
}

fn unjudged(trajectory: &Trajectory) -> Option<(String, String)> {
    let why = trajectory.unjudged.as_ref()?;
    Some((UNJUDGED.to_owned(), json!(why).to_string()))
}

/// See [`STEP_REWARDS_OF_WORDS`]. A record of the contract never changes, so it goes beside the events.
fn rewards_of_words(trajectory: &Trajectory) -> Option<(String, String)> {
    let events = trajectory.events.iter().enumerate();
    let rewards: Vec<(usize, f64)> = events
        .filter_map(|(index, event)| match event {
            Event::Turn(turn) => Some((index, turn)),
            Event::Outcome(_) | Event::User(_) => None,
        })
        .flat_map(|(index, turn)| {
            let rewards = turn.feedback.iter().filter_map(|heard| heard.step_reward);
            rewards.map(move |reward| (index, reward))
        })
        .collect();
    let named = || (STEP_REWARDS_OF_WORDS.to_owned(), json!(rewards).to_string());
    (!rewards.is_empty()).then(named)
}

/// A guest's error in words, for logs.
pub(crate) fn error_text(error: &types::Error) -> String {
    let (kind, message) = match error {
        types::Error::InvalidArguments(message) => ("invalid-arguments", message.as_str()),
        types::Error::NotFound(message) => ("not-found", message.as_str()),
        types::Error::Denied(message) => ("denied", message.as_str()),
        types::Error::Exhausted(message) => ("exhausted", message.as_str()),
        types::Error::Unavailable(message) => ("unavailable", message.as_str()),
        types::Error::Cancelled => ("cancelled", ""),
        types::Error::Internal(message) => ("internal", message.as_str()),
    };
    let message: String = make_string_safe(message.chars().take(500).collect());
    if message.is_empty() {
        kind.into()
    } else {
        format!("{kind}: {message}")
    }
}

#[cfg(test)]
mod tests {
    use rlf_dialogue::trajectory::EnvironmentFeedback;

    use super::*;

    fn observation(content: types::Content) -> types::Observation {
        types::Observation {
            content: vec![content],
            failed: false,
            metrics: vec![],
            extra: vec![],
        }
    }

    #[test]
    fn what_an_environment_gave_for_words_goes_to_rewards_with_its_event() {
        let heard = |step_reward| EnvironmentFeedback {
            step_reward,
            state: Some("ab".into()),
        };
        let turn = |heard| {
            Event::Turn(ModelTurn {
                text: "hello".into(),
                reasoning: None,
                visible: "hello".into(),
                calls: vec![],
                malformed: vec![],
                tokens: 1,
                feedback: heard,
            })
        };
        let trajectory = |events, unjudged: Option<&str>| Trajectory {
            id: "t".into(),
            task: "t".into(),
            tools: vec![],
            events,
            sequences: vec![],
            answer: None,
            finish: Finish::Terminated,
            excluded: None,
            closed_turns: 0,
            final_state: None,
            verdict: None,
            unjudged: unjudged.map(str::to_owned),
        };
        let events = vec![
            turn(vec![heard(None)]),
            Event::User(Message::text(Role::User, "and?")),
            turn(vec![heard(Some(0.25)), heard(Some(1.0))]),
        ];
        let seen = trajectory_to_guest(&trajectory(events, Some("no \"count\"")));
        assert_eq!(
            seen.extra,
            [
                (
                    "step-rewards-of-words".to_owned(),
                    "[[2,0.25],[2,1.0]]".to_owned()
                ),
                ("unjudged".to_owned(), r#""no \"count\"""#.to_owned()),
            ]
        );
        let silent = trajectory(vec![turn(vec![heard(None)])], None);
        assert_eq!(trajectory_to_guest(&silent).extra, []);
    }

    #[test]
    fn structured_results_must_be_json() {
        let broken = observation(types::Content::Structured("{\"a\":".into()));
        let error = observation_from_guest(broken).unwrap_err().to_string();
        assert!(
            error.starts_with("a structured part of the result is not one JSON value"),
            "{error}"
        );
        let two = observation(types::Content::Structured("1 2".into()));
        assert!(observation_from_guest(two).is_err());
        let deep = observation(types::Content::Structured("[".repeat(10_000)));
        assert!(observation_from_guest(deep).is_err());
    }

    #[test]
    fn metrics_must_be_finite() {
        let mut bad = observation(types::Content::Text("ok".into()));
        bad.metrics = vec![types::Metric {
            name: "score".into(),
            value: f64::NAN,
        }];
        assert_eq!(
            observation_from_guest(bad).unwrap_err().to_string(),
            "metric `score` is NaN, not a finite number"
        );
    }

    #[test]
    fn text_is_made_safe_on_the_way_in() {
        let escape = observation(types::Content::Text("\u{1b}[31mred".into()));
        assert_eq!(
            observation_from_guest(escape).unwrap().content,
            [Content::Text("\u{241b}[31mred".into())]
        );
    }

    #[test]
    fn a_definition_survives_the_way_to_a_reward_and_back() {
        let definition = ToolDefinition {
            name: "search".into(),
            description: "Finds".into(),
            input_schema: serde_json::json!({"type": "object", "b": 1, "a": 2}),
            output_schema: Some(serde_json::json!({"type": "array"})),
            hints: Hints {
                read_only: true,
                deterministic: true,
                ..Hints::default()
            },
            extra: vec![("x".into(), serde_json::json!([1]))],
        };
        let back = definition_from_guest(definition_to_guest(&definition)).unwrap();
        assert_eq!(back, definition);
        assert_eq!(
            back.input_schema.to_string(),
            r#"{"type":"object","b":1,"a":2}"#
        );
    }
}
