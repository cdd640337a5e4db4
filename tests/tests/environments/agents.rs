//! Agents that lead trajectories in environments: the last turn over several conversations, and calls at the same time.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rlf_dialogue::tool::{Ended, Fault, Observation, ToolCall};
use rlf_dialogue::trajectory::{Event, Finish, Verdict};
use rlf_dialogue::{Message, Role, Task};
use rlf_environments::environments::{EnvironmentConfig, Environments};
use rlf_environments::error::{OpenError, SessionError};
use rlf_environments::server::{EnvironmentServer, ServerSession, ServerStart, ServerStep};
use rlf_plugins::bindings::types;
use rlf_plugins::offered_tools::{Checking, check_tools};
use rlf_plugins::outcome::CallEnd;
use rlf_rollout::agent::{
    Agent, AgentEnd, AgentMessage, AgentReport, AgentTrajectory, TurnRequest,
};
use rlf_sandbox::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::Notify;

use crate::test_host::host;
use crate::trajectory::{calls, outcomes, play_led, task};

/// Begins a conversation with these words, and returns the calls of the policy's turn.
async fn begin(trajectory: &Arc<AgentTrajectory>, words: &str) -> Vec<ToolCall> {
    let request = TurnRequest {
        messages: vec![AgentMessage::new(Message::text(Role::User, words))],
        tools: trajectory.tools().await.expect("there are tools"),
        max_tokens: None,
    };
    let turn = trajectory.complete(request).await;
    turn.expect("there are turns").message.tool_calls
}

/// Takes one turn in each of two conversations, and makes all calls that it is given.
struct TwoConversations;

#[async_trait]
impl Agent for TwoConversations {
    async fn lead(&self, trajectory: Arc<AgentTrajectory>) -> AgentEnd {
        for words in ["Count.", "Count on."] {
            for call in begin(&trajectory, words).await {
                let id = Some(call.call_id);
                let made = trajectory.call(id, call.name, call.arguments).await;
                made.expect("is carried out");
            }
        }
        AgentEnd::Finished(AgentReport::default())
    }
}

#[tokio::test]
async fn the_last_turn_of_a_trajectory_is_the_last_of_all_its_conversations() {
    let host = host();
    let add = |by: u32| calls(&[("add", json!({ "by": by }))]);
    for (last_turn_calls, made) in [("skip", 1), ("grade", 2)] {
        let dialogue = format!("max_turns = 2\nlast_turn_calls = \"{last_turn_calls}\"");
        let agent = Some(Arc::new(TwoConversations) as Arc<dyn Agent>);
        let task = task(json!({}), None, json!({}));
        let scripts: [&[String]; 1] = [&[add(1), add(2)]];
        let (trajectories, scores, _) = play_led(&host, &dialogue, task, &scripts, agent).await;
        let trajectory = &trajectories[0];
        assert_eq!(outcomes(trajectory).len(), made, "{last_turn_calls}");
        assert_eq!(trajectory.finish, Finish::MaxTurns);
        assert_eq!(trajectory.excluded, None);
        let success = scores[0].as_ref().expect("graded").success;
        assert_eq!(success, made == 2, "the count is 1 or 3");
    }
}

/// An environment with one tool, whose call ends when the test lets it.
#[derive(Debug)]
struct Gated {
    name: String,
    gate: Arc<Gate>,
}

#[derive(Debug, Default)]
struct Gate {
    /// The call has begun.
    begun: Notify,
    /// The call may end.
    open: Notify,
}

impl EnvironmentServer for Gated {
    fn name(&self) -> &str {
        &self.name
    }

    fn hash(&self) -> &str {
        &self.name
    }

    fn arguments_bytes(&self) -> u64 {
        1 << 10
    }

    fn open<'a>(
        &'a self,
        _setup: &'a Value,
        _seed: u64,
    ) -> BoxFuture<'a, Result<ServerStart, OpenError>> {
        let tool = types::ToolDefinition {
            name: "pass".to_owned(),
            description: "Waits for the gate.".to_owned(),
            input_schema: json!({ "type": "object" }).to_string(),
            output_schema: None,
            hints: types::Hints::OPEN_WORLD,
            extra: Vec::new(),
        };
        let tools = check_tools(vec![tool], &BTreeMap::new(), Checking::Host);
        let start = ServerStart {
            session: Box::new(GatedSession(Arc::clone(&self.gate))),
            messages: Vec::new(),
            tools: tools.expect("they are in order"),
        };
        Box::pin(async move { Ok(start) })
    }
}

#[derive(Debug)]
struct GatedSession(Arc<Gate>);

impl ServerSession for GatedSession {
    fn call<'a>(&'a mut self, _tool: &'a str, _arguments: &'a Value) -> BoxFuture<'a, ServerStep> {
        Box::pin(async move {
            self.0.begun.notify_one();
            self.0.open.notified().await;
            ServerStep {
                end: CallEnd {
                    ended: Ended::Ok,
                    fault: Fault::None,
                    observation: Some(Observation::text("passed", false)),
                    detail: None,
                },
                reward: None,
                terminated: false,
                lost: None,
            }
        })
    }

    fn state(&self) -> BoxFuture<'_, Result<Value, SessionError>> {
        Box::pin(async { Ok(json!({})) })
    }

    fn verify(&self) -> Result<Verdict, SessionError> {
        Ok(Verdict {
            success: true,
            score: 1.0,
            reason: String::new(),
        })
    }
}

/// Makes both calls of a turn at once. The call in the session may end when the other one has ended.
struct AtOnce(Arc<Gate>);

#[async_trait]
impl Agent for AtOnce {
    async fn lead(&self, trajectory: Arc<AgentTrajectory>) -> AgentEnd {
        let mut made = begin(&trajectory, "Do both.").await.into_iter();
        let (Some(pass), Some(calculate)) = (made.next(), made.next()) else {
            return AgentEnd::Failed("there are not two calls".to_owned());
        };
        let passing = trajectory.call(Some(pass.call_id), pass.name, pass.arguments);
        let calculating = async {
            self.0.begun.notified().await;
            let id = Some(calculate.call_id);
            let done = trajectory.call(id, calculate.name, calculate.arguments);
            let done = done.await;
            self.0.open.notify_one();
            done
        };
        let both = async { tokio::join!(passing, calculating) };
        match tokio::time::timeout(Duration::from_mins(1), both).await {
            Ok((Ok(_), Ok(_))) => AgentEnd::Finished(AgentReport::default()),
            other => AgentEnd::Failed(format!("{other:?}")),
        }
    }
}

#[tokio::test]
async fn a_tool_of_a_plugin_does_not_wait_for_a_call_in_the_session() {
    let mut host = host();
    let gate = Arc::new(Gate::default());
    let server: Arc<dyn EnvironmentServer> = Arc::new(Gated {
        name: "gated".to_owned(),
        gate: Arc::clone(&gate),
    });
    let config = EnvironmentConfig {
        idle: Duration::from_mins(10),
    };
    host.environments =
        Environments::with_servers(&host.registry, &host.sandbox, &config, vec![server]);
    let task = Task {
        environment: Some("gated".to_owned()),
        ..task(json!({}), Some(&["pass", "calculate"]), json!({}))
    };
    let both = calls(&[
        ("pass", json!({})),
        ("calculate", json!({"expression": "1+2"})),
    ]);
    let agent = Some(Arc::new(AtOnce(gate)) as Arc<dyn Agent>);
    let (trajectories, ..) = play_led(&host, "", task, &[&[both]], agent).await;
    assert_eq!(trajectories[0].excluded, None);
    let events = trajectories[0].events.iter();
    let outcomes = events.filter_map(|event| match event {
        Event::Outcome(outcome) => Some(outcome),
        _ => None,
    });
    let outcomes: Vec<_> = outcomes.collect();
    let [pass, calculate] = outcomes[..] else {
        panic!("{outcomes:?}")
    };
    // They are in the order of the calls, although the second ended first.
    assert_eq!((&*pass.name, &*calculate.name), ("pass", "calculate"));
    assert_eq!((pass.ended, calculate.ended), (Ended::Ok, Ended::Ok));
    // The first call took at least as long as the second, which began and ended meanwhile.
    assert!(pass.wall_us >= calculate.wall_us, "{outcomes:?}");
}
