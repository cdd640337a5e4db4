//! Tasks and trajectories in the contract's types, as rewards read them.

use std::collections::BTreeMap;

use rlf_dialogue::message::{Message, Role};
use rlf_dialogue::task::Task;
use rlf_dialogue::tool::{CallOutcome, ToolCall, ToolDefinition};
use rlf_dialogue::trajectory::{Event, Finish, ModelTurn, Trajectory, Verdict};
use rlf_plugins::bindings::{reward, types};
use rlf_plugins::convert::{
    content_to_guest, definition_to_guest, ended_to_guest, observation_to_guest,
};
use serde_json::{Value, json};

/// The key in a trajectory's `extra` for the environment's rewards of turns without a tool call. The value is a list of
/// pairs of event and reward.
const STEP_REWARDS_OF_WORDS: &str = "step-rewards-of-words";

/// The key in a trajectory's `extra` for the reason why its environment gave no state or no verdict.
const UNJUDGED: &str = "unjudged";

/// Converts a task for rewards.
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

/// Tools by the names that the model sees.
type Shown<'a> = BTreeMap<&'a str, &'a ToolDefinition>;

/// A call by the authors' names of the tool and its parameters.
fn call_to_guest(call: &ToolCall, shown: &Shown<'_>) -> reward::ToolCall {
    let (name, arguments) = match shown.get(call.name.as_str()) {
        Some(tool) => (tool.own_name(), tool.own_arguments(&call.arguments)),
        None => (call.name.as_str(), call.arguments.clone()),
    };
    reward::ToolCall {
        call_id: call.call_id.clone(),
        name: name.to_owned(),
        arguments: arguments.to_string(),
    }
}

fn turn_to_guest(turn: &ModelTurn, shown: &Shown<'_>) -> reward::ModelTurn {
    reward::ModelTurn {
        text: turn.text.clone(),
        reasoning: turn.reasoning.clone(),
        visible: turn.visible.clone(),
        calls: (turn.calls.iter())
            .map(|call| call_to_guest(call, shown))
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

/// Converts a trajectory for rewards. Token ids, log-probabilities and the host's own details of a call (times, hashes,
/// error texts) are left out, because they are not graded. The reason why an environment gave no verdict is kept, for
/// messages.
pub(crate) fn trajectory_to_guest(trajectory: &Trajectory) -> reward::Trajectory {
    let tools = trajectory.tools.iter();
    let shown: Shown<'_> = tools.map(|tool| (tool.name.as_str(), tool)).collect();
    let definition = |tool: &ToolDefinition| {
        let mut own = tool.own_definition();
        own.extra.clone_from(&tool.extra);
        definition_to_guest(&own)
    };
    reward::Trajectory {
        id: trajectory.id.clone(),
        tools: trajectory.tools.iter().map(definition).collect(),
        events: trajectory
            .events
            .iter()
            .map(|event| match event {
                Event::Turn(turn) => reward::Event::Turn(turn_to_guest(turn, &shown)),
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

/// See [`STEP_REWARDS_OF_WORDS`]. The contract's records never change, so these rewards are in `extra` instead of in
/// the events.
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

#[cfg(test)]
mod tests {
    use rlf_dialogue::trajectory::EnvironmentFeedback;

    use super::*;

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
}
