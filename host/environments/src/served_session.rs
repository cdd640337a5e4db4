//! A session on a server outside of the sandbox.

use std::sync::Arc;
use std::time::Instant;

use rlf_dialogue::message::Message;
use rlf_dialogue::tool::{CallOutcome, Ended, ToolCall, ToolDefinition};
use rlf_dialogue::trajectory::Verdict;
use rlf_plugins::arguments::canonical_json;
use rlf_plugins::counters::CallCounters;
use rlf_plugins::offered_tools::LoadedTool;
use rlf_plugins::outcome::CallEnd;

use crate::error::SessionError;
use crate::offered::accepted;
use crate::server::{EnvironmentServer, ServerSession, ServerStart, ServerStep};

/// One trajectory's session on a server. Dropping it closes it.
#[derive(Debug)]
pub(crate) struct ServedSession {
    server: Arc<dyn EnvironmentServer>,
    session: Box<dyn ServerSession>,
    counters: Arc<CallCounters>,
    messages: Vec<Message>,
    tools: Vec<LoadedTool>,
    terminated: bool,
    lost: Option<String>,
}

impl ServedSession {
    pub(crate) fn new(
        server: Arc<dyn EnvironmentServer>,
        start: ServerStart,
        counters: Arc<CallCounters>,
    ) -> Self {
        Self {
            server,
            session: start.session,
            counters,
            messages: start.messages,
            tools: start.tools,
            terminated: false,
            lost: None,
        }
    }

    pub(crate) fn messages(&self) -> &[Message] {
        &self.messages
    }

    pub(crate) fn tools(&self) -> impl Iterator<Item = &ToolDefinition> {
        self.tools.iter().map(|tool| &tool.definition)
    }

    pub(crate) fn is_terminated(&self) -> bool {
        self.terminated
    }

    pub(crate) fn lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    pub(crate) async fn call(&mut self, call: ToolCall) -> CallOutcome {
        let started = Instant::now();
        let (end, step_reward) = self.run(&call).await;
        let wall = started.elapsed();
        self.counters.count(end.ended, end.fault, wall);
        CallOutcome {
            call_id: call.call_id,
            name: call.name,
            ended: end.ended,
            fault: end.fault,
            observation: end.observation,
            step_reward,
            state: None,
            detail: end.detail,
            wall_us: u64::try_from(wall.as_micros()).unwrap_or(u64::MAX),
            component: self.server.hash().to_owned(),
            nested: Vec::new(),
        }
    }

    async fn run(&mut self, call: &ToolCall) -> (CallEnd, Option<f64>) {
        if let Some(why) = &self.lost {
            let end = CallEnd::by_infrastructure(Ended::Unavailable, why.clone());
            return (end, None);
        }
        let most = self.server.arguments_bytes();
        let tool = match accepted(call, &self.tools, self.terminated, most) {
            Ok((tool, _)) => tool,
            Err(end) => return (end, None),
        };
        let ServerStep {
            end,
            reward,
            terminated,
            lost,
        } = self.session.call(&tool.own_name, &call.arguments).await;
        self.terminated |= terminated;
        self.lost = lost;
        (end, reward)
    }

    pub(crate) async fn state(&self) -> Result<String, SessionError> {
        Ok(canonical_json(&self.session.state().await?))
    }

    pub(crate) fn verify(&self) -> Result<Verdict, SessionError> {
        self.session.verify()
    }
}
