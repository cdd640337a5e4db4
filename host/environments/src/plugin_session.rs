//! A session in an environment of a plugin.

use std::collections::BTreeSet;
use std::future::Future;
use std::sync::Arc;
use std::time::Instant;

use rlf_dialogue::episode::Reply;
use rlf_dialogue::message::{Content, Message};
use rlf_dialogue::tool::{CallOutcome, Ended, ToolCall, ToolDefinition};
use rlf_dialogue::trajectory::{EnvironmentFeedback, Verdict};
use rlf_plugins::bindings::{environment, types};
use rlf_plugins::counters::CallCounters;
use rlf_plugins::manifest::PluginKind;
use rlf_plugins::offered_tools::LoadedTool;
use rlf_plugins::outcome::CallEnd;
use rlf_plugins::seed;
use rlf_plugins::turn::TurnContext;
use serde_json::Value;

use crate::contract::{message_from_guest, verdict_from_guest};
use crate::error::{OfferError, SessionError};
use crate::offered::{accepted, check_step, loaded_again, offered};
use crate::pool::SessionPool;
use crate::request::Time;
use crate::slot::{Action, Opened, Slot};
use crate::snapshot::{SessionSnapshot, SnapshotError};

/// One trajectory's copy of a plugin's environment. Dropping it frees its instance.
#[derive(Debug)]
pub(crate) struct PluginSession {
    slot: Arc<Slot>,
    pool: Arc<SessionPool>,
    number: u64,
    counters: Arc<CallCounters>,
    messages: Vec<Message>,
    tools: Vec<LoadedTool>,
    tools_changed: bool,
    terminated: bool,
    /// Hash of the last state.
    state: String,
    /// The reason why the trajectory cannot continue.
    lost: Option<String>,
    /// Calls that were stopped, by name and arguments.
    stopped: BTreeSet<(String, String)>,
    seed: u64,
    acts: u64,
}

impl Drop for PluginSession {
    fn drop(&mut self) {
        self.pool.unregister(self.number);
    }
}

impl PluginSession {
    pub(crate) fn new(
        opened: Opened,
        pool: Arc<SessionPool>,
        counters: Arc<CallCounters>,
        seed: u64,
    ) -> Result<Self, OfferError> {
        let Opened { slot, start, state } = opened;
        if start.tools.is_empty() && slot.plugin.kind() == PluginKind::Interpreter {
            return Err(OfferError::NoServers);
        }
        let tools = offered(start.tools, &slot.plugin)?;
        let messages = start
            .messages
            .into_iter()
            .map(message_from_guest)
            .collect::<Result<_, _>>()
            .map_err(OfferError::Message)?;
        let number = pool.register(&slot);
        Ok(Self {
            slot,
            pool,
            number,
            counters,
            messages,
            tools,
            tools_changed: false,
            terminated: false,
            state,
            lost: None,
            stopped: BTreeSet::new(),
            seed,
            acts: 0,
        })
    }

    /// The environment's first messages.
    pub(crate) fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// The tools on offer now.
    pub(crate) fn tools(&self) -> impl Iterator<Item = &ToolDefinition> {
        self.tools.iter().map(|tool| &tool.definition)
    }

    /// True if the tools have changed since this was last asked.
    pub(crate) fn take_tools_changed(&mut self) -> bool {
        std::mem::take(&mut self.tools_changed)
    }

    /// True if the environment has ended the episode.
    pub(crate) fn is_terminated(&self) -> bool {
        self.terminated
    }

    /// The reason why the trajectory cannot continue, if there is one.
    pub(crate) fn lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    /// Calls one of its tools. It never returns an error: failures are part of the outcome.
    pub(crate) async fn call(&mut self, call: ToolCall, context: &TurnContext) -> CallOutcome {
        let started = Instant::now();
        let (end, step_reward) = self.run(&call, context).await;
        let wall = started.elapsed();
        self.counters.count(end.ended, end.fault, wall);
        CallOutcome {
            call_id: call.call_id,
            name: call.name,
            ended: end.ended,
            fault: end.fault,
            observation: end.observation,
            step_reward,
            state: self.lost.is_none().then(|| self.state.clone()),
            detail: end.detail,
            wall_us: u64::try_from(wall.as_micros()).unwrap_or(u64::MAX),
            component: self.slot.plugin.hash().to_owned(),
            nested: Vec::new(),
        }
    }

    async fn run(&mut self, call: &ToolCall, context: &TurnContext) -> (CallEnd, Option<f64>) {
        let nothing = |end| (end, None);
        let limits = &self.slot.plugin.grants().limits;
        let checked = accepted(call, &self.tools, self.terminated, limits.arguments_bytes);
        let (tool, arguments) = match checked {
            Ok(checked) => checked,
            Err(end) => return nothing(end),
        };
        let (name, most) = (tool.own_name.clone(), limits.result_bytes);
        // As the model wrote them, because an environment in Python may see the order of keys.
        let arguments_as_written = call.arguments.to_string();
        let act = |attempt| Action::Call {
            name: name.clone(),
            arguments: arguments_as_written.clone(),
            context: self.context(&call.call_id, attempt, context),
        };
        match self.act(act).await {
            Ok((Ok(step), state)) => self.take_step(step, state, most),
            Ok((Err(error), state)) => {
                self.state = state;
                // In Python, running out of memory is an exception.
                let is_stop = matches!(error, types::Error::Exhausted(_))
                    && self.slot.plugin.kind() == PluginKind::Interpreter;
                let is_meant = !is_stop && !matches!(error, types::Error::Internal(_));
                let end = CallEnd::from_result(Err(error), most);
                if is_stop {
                    self.note_stop(call, arguments, "its memory is used up");
                }
                nothing(if is_meant { end } else { without_effect(end) })
            }
            Err(SessionError::Stopped(stopped)) => {
                let end = CallEnd::from_stopped(&stopped);
                if end.ended == Ended::Trap {
                    self.slot.plugin.note_trap(&end);
                }
                self.note_stop(call, arguments, &stopped.to_string());
                nothing(without_effect(end))
            }
            Err(error) => {
                let why = error.to_string();
                self.lost = Some(why.clone());
                nothing(CallEnd::by_infrastructure(Ended::Unavailable, why))
            }
        }
    }

    /// Acts in the environment, and retries after an infrastructure failure, because a stopped action has no effect.
    async fn act(
        &self,
        act: impl Fn(u32) -> Action,
    ) -> Result<(Result<environment::Step, types::Error>, String), SessionError> {
        let plugin = &self.slot.plugin;
        let most = plugin.grants().limits.result_bytes;
        let is_kept = |step: &environment::Step| {
            check_step(step, plugin).is_ok()
                && took_effect(&CallEnd::from_result(Ok(step.observation.clone()), most))
        };
        let mut attempt = 0;
        loop {
            let acted = self.slot.act(act(attempt), is_kept).await;
            if !self.is_tried_again(&acted, attempt) {
                self.pool.note(&acted);
                return acted;
            }
            attempt += 1;
        }
    }

    /// Asks a question that changes nothing, and retries after an infrastructure failure. The error says why there is
    /// no answer.
    async fn ask<T, F>(&self, ask: impl Fn() -> F) -> Result<T, SessionError>
    where
        F: Future<Output = Result<T, SessionError>>,
    {
        let mut attempt = 0;
        loop {
            let answer = ask().await;
            if !self.is_tried_again(&answer, attempt) {
                self.pool.note(&answer);
                return answer;
            }
            attempt += 1;
        }
    }

    fn is_tried_again<T>(&self, answer: &Result<T, SessionError>, attempt: u32) -> bool {
        let Err(SessionError::Stopped(stopped)) = answer else {
            return false;
        };
        let again = attempt < self.slot.plugin.grants().retries
            && CallEnd::from_stopped(stopped).may_be_retried();
        if again {
            self.counters.count_retry();
        }
        again
    }

    /// Notes a stopped call. If the same call is stopped for the second time, the trajectory ends.
    fn note_stop(&mut self, call: &ToolCall, arguments: String, why: &str) {
        if !self.stopped.insert((call.name.clone(), arguments)) {
            let name = &call.name;
            self.lost = Some(format!(
                "the same call to `{name}` was stopped twice: {why}"
            ));
        }
    }

    fn take_step(
        &mut self,
        step: environment::Step,
        state: String,
        most: u64,
    ) -> (CallEnd, Option<f64>) {
        self.state = state;
        let tools = match check_step(&step, &self.slot.plugin) {
            Ok(tools) => tools,
            Err(why) => {
                let end = CallEnd::by_plugin(format!("broke the contract: {why}"));
                self.slot.plugin.note_trap(&end);
                return (end, None);
            }
        };
        let end = CallEnd::from_result(Ok(step.observation), most);
        if !took_effect(&end) {
            return (without_effect(end), None);
        }
        self.acts += 1;
        self.terminated |= step.terminated;
        if let Some(tools) = tools {
            self.tools = tools;
            self.tools_changed = true;
        }
        (end, step.reward)
    }

    /// Sends a message of the model that contains no tool call. The error says why the trajectory cannot continue.
    pub(crate) async fn say(
        &mut self,
        text: &str,
        context: &TurnContext,
    ) -> Result<(Reply, EnvironmentFeedback), SessionError> {
        let started = Instant::now();
        // The number of actions makes the id unique: a user can be spoken to and leave in the same turn.
        let call_id = format!(
            "{}/{}/say-{}",
            context.trajectory_id, context.turn, self.acts
        );
        let act = |attempt| Action::Say {
            text: text.to_owned(),
            context: self.context(&call_id, attempt, context),
        };
        let most = self.slot.plugin.grants().limits.result_bytes;
        let (end, step_reward) = match self.act(act).await {
            Ok((Ok(step), state)) => self.take_step(step, state, most),
            Ok((Err(error), _)) => (CallEnd::from_result(Err(error), most), None),
            Err(SessionError::Stopped(stopped)) => (CallEnd::from_stopped(&stopped), None),
            Err(error) => {
                let why = error.to_string();
                (CallEnd::by_infrastructure(Ended::Unavailable, why), None)
            }
        };
        self.counters.count(end.ended, end.fault, started.elapsed());
        let (Ended::Ok | Ended::Failed, Some(observation)) = (end.ended, end.observation) else {
            let why = end.detail.unwrap_or_else(|| end.ended.as_str().to_owned());
            let ended = end.ended;
            return Err(SessionError::NotHeard { ended, why });
        };
        let heard = EnvironmentFeedback {
            step_reward,
            state: Some(self.state.clone()),
        };
        let said = observation.content;
        let reply = if self.terminated {
            Reply::Ended
        } else if said.is_empty() {
            Reply::Silence
        } else {
            Reply::Said(said)
        };
        Ok((reply, heard))
    }

    /// The guest's context of one action. The seed is the same for the same actions in the same environment. No
    /// environment may depend on the ids.
    fn context(&self, call_id: &str, attempt: u32, turn: &TurnContext) -> types::CallContext {
        let number = self.acts.to_string();
        let time = Time::for_plugin(&self.slot.plugin);
        types::CallContext {
            call_id: call_id.to_owned(),
            attempt,
            trajectory_id: turn.trajectory_id.clone(),
            turn: turn.turn,
            seed: seed::derive(self.seed, "act", &[&number]),
            budget_ms: u32::try_from(time.wall.as_millis()).unwrap_or(u32::MAX),
            extra: Vec::new(),
        }
    }

    /// The state as canonical JSON, written by the environment.
    pub(crate) async fn state(&self) -> Result<String, SessionError> {
        self.ask(|| self.slot.state()).await
    }

    /// A snapshot of the whole session. It can be restored in this or another instance of the same component.
    pub(crate) async fn snapshot(&self) -> Result<SessionSnapshot, SessionError> {
        let data = self.ask(|| self.slot.snapshot()).await?;
        Ok(SessionSnapshot {
            component: self.slot.plugin.environment_identity(),
            tools: self.tools().cloned().collect(),
            acts: self.acts,
            data,
        })
    }

    /// Resets the session to a snapshot, tools included. A snapshot that cannot be restored changes nothing.
    pub(crate) async fn restore(
        &mut self,
        snapshot: &SessionSnapshot,
    ) -> Result<(), SnapshotError> {
        snapshot.check(&self.slot.plugin.environment_identity())?;
        let tools =
            loaded_again(&snapshot.tools, &self.slot.plugin).map_err(SnapshotError::Tools)?;
        let restored = self.slot.restore(snapshot.data.clone()).await;
        self.pool.note(&restored);
        match restored {
            Ok(state) => {
                self.state = state;
                self.tools_changed |= !tools.iter().map(|tool| &tool.definition).eq(self.tools());
                self.tools = tools;
                self.terminated = false;
                self.acts = snapshot.acts;
                self.stopped.clear();
                Ok(())
            }
            Err(error) => Err(SnapshotError::Refused(error.to_string())),
        }
    }

    /// The environment's verdict on its state.
    pub(crate) async fn verify(
        &self,
        answer: Option<&str>,
        reference: &Value,
    ) -> Result<Verdict, SessionError> {
        let verdict = self
            .ask(|| self.slot.verify(answer, reference.to_string()))
            .await?;
        verdict_from_guest(verdict).map_err(|error| SessionError::Contract(error.to_string()))
    }

    /// Frees the session's instance, as after a long wait. Returns whether it had one.
    pub(crate) async fn evict(&self) -> bool {
        self.slot.evict(None).await
    }
}

/// True if an action's result is accepted. If it is too large or violates the contract, the action has no effect.
fn took_effect(end: &CallEnd) -> bool {
    matches!(end.ended, Ended::Ok | Ended::Failed)
}

/// Tells the model, at the end of the observation of a stopped call, that the call had no effect.
fn without_effect(mut end: CallEnd) -> CallEnd {
    if let Some(observation) = &mut end.observation {
        for part in &mut observation.content {
            if let Content::Text(text) = part {
                text.push_str("; it has had no effect");
            }
        }
    }
    end
}
