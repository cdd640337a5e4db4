//! The promises of the reward, one trajectory at a time.

mod episodes;
mod gold_calls;
mod properties;
mod published;
mod strict;

use rlf_plugin::serde_json::{Value, json};
use rlf_plugin::{
    CallResult, Ended, Event, Finish, ModelTurn, Observation, Score, ToolCall, Trajectory, testing,
};

use crate::Plugin;

/// A turn that makes these calls, (tool, observation) each, and how they ended.
fn act(trajectory: Trajectory, calls: &[(&str, &str)]) -> Trajectory {
    let results = |(name, observation): &(&str, &str)| {
        let observation = Observation::text(*observation);
        (call(name, json!({})), Some((Ended::Ok, observation)))
    };
    turn_with(trajectory, calls.iter().map(results).collect())
}

/// A turn that makes these calls; those without a result were not run.
fn turn_with(
    mut trajectory: Trajectory,
    calls: Vec<(ToolCall, Option<(Ended, Observation)>)>,
) -> Trajectory {
    let number = trajectory.turns().count();
    let calls: Vec<_> = calls
        .into_iter()
        .enumerate()
        .map(|(at, (call, result))| {
            let call_id = format!("test/{number}/{at}");
            (ToolCall { call_id, ..call }, result)
        })
        .collect();
    trajectory.events.push(Event::Turn(ModelTurn {
        calls: calls.iter().map(|(call, _)| call.clone()).collect(),
        ..spoken("")
    }));
    for (call, result) in calls {
        if let Some((ended, observation)) = result {
            trajectory.events.push(Event::Outcome(CallResult {
                call_id: call.call_id,
                ended,
                observation: Some(observation),
                step_reward: None,
            }));
        }
    }
    trajectory
}

fn call(name: &str, arguments: Value) -> ToolCall {
    ToolCall {
        call_id: String::new(),
        name: name.to_owned(),
        arguments: arguments.to_string(),
    }
}

fn spoken(text: &str) -> ModelTurn {
    ModelTurn {
        text: text.to_owned(),
        reasoning: None,
        visible: text.to_owned(),
        calls: Vec::new(),
        malformed: Vec::new(),
        tokens: 1,
    }
}

/// A last turn of text only, which the host takes for the answer.
fn say(mut trajectory: Trajectory, text: &str) -> Trajectory {
    trajectory.events.push(Event::Turn(spoken(text)));
    trajectory.answer = Some(text.to_owned());
    trajectory.finish = Finish::Answered;
    trajectory
}

fn grade(config: Value, reference: Value, trajectory: Trajectory) -> Score {
    testing::init_reward::<Plugin>(config).unwrap();
    testing::grade::<Plugin>(&testing::task(reference), trajectory).unwrap()
}

fn credits(score: &Score, name: &str) -> Vec<(u32, f64)> {
    let named = score.per_event.iter().filter(|(_, term)| term.name == name);
    named.map(|(event, term)| (*event, term.value)).collect()
}
