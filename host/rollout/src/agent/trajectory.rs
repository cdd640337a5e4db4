//! The requests of one trajectory, its limits, and the trajectory that they make.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rlf_dialogue::dialogue::Dialogue;
use rlf_dialogue::task::Task;
use rlf_dialogue::tool::{CallOutcome, Fault, ToolCall, ToolDefinition};
use rlf_dialogue::trajectory::{Finish, Trajectory, Verdict};
use rlf_plugins::turn::TurnContext;
use rlf_policy::DrawKey;

use super::conversation::Conversation;
use super::{Agent, AgentEnd, AgentReport, Turn, TurnRefused, TurnRequest};
use crate::context::EpisodeContext;
use crate::error::RolloutError;
use crate::generate::{GenerateRequest, Generator};
use crate::settings::{RolloutSettings, TrajectoryIndex};
use crate::task_environment::{SetupError, TaskEnvironment, excluded_trajectory};

/// A trajectory that an agent leads. Any number of requests may run at once, each in a conversation of its own.
pub struct AgentTrajectory {
    id: String,
    task: Arc<Task>,
    dialogue: Arc<Dialogue>,
    generator: Arc<dyn Generator>,
    settings: RolloutSettings,
    index: TrajectoryIndex,
    environment: tokio::sync::Mutex<TaskEnvironment>,
    state: Mutex<State>,
    /// Held for reading by each request, so that the end waits for all of them.
    requests: tokio::sync::RwLock<()>,
}

#[derive(Default)]
struct State {
    /// The conversations without a request under way, by their number.
    conversations: BTreeMap<usize, Conversation>,
    /// Number of conversations that have begun.
    begun: usize,
    /// Number of turns that the policy has taken, those under way included.
    turns: u32,
    /// Number of tokens sampled, or that may be sampled by requests under way.
    sampled: u64,
    /// Outcomes of calls that were made through this trajectory, by the ids that the agent knows.
    outcomes: BTreeMap<String, CallOutcome>,
    /// Number of calls that no turn of the policy made.
    own_calls: usize,
    /// The limit that a request has met.
    limit: Option<Finish>,
    /// The reason why no more requests are answered.
    over: Option<String>,
    /// The infrastructure failure that excludes the trajectory.
    excluded: Option<String>,
    /// The error that ends the rollout.
    failed: Option<RolloutError>,
}

/// Plays one trajectory with an agent.
pub(crate) async fn play(
    agent: Arc<dyn Agent>,
    context: EpisodeContext,
    generator: Arc<dyn Generator>,
    settings: RolloutSettings,
    task: Arc<Task>,
    index: TrajectoryIndex,
) -> Result<Trajectory, RolloutError> {
    let id = settings.trajectory_id(&task, index);
    let opened = TaskEnvironment::open(&context, &task, settings.split, &id).await;
    let environment = match opened {
        Ok(environment) => environment,
        Err(SetupError::Excluded(why)) => return Ok(excluded_trajectory(id, &task, why)),
        Err(SetupError::Rollout(error)) => return Err(error),
    };
    if environment.has_user() {
        return Err(RolloutError::AgentAndUser {
            task: task.id.clone(),
        });
    }
    let trajectory = Arc::new(AgentTrajectory {
        id,
        task,
        dialogue: context.dialogue,
        generator,
        settings,
        index,
        environment: tokio::sync::Mutex::new(environment),
        state: Mutex::default(),
        requests: tokio::sync::RwLock::default(),
    });
    let end = agent.lead(Arc::clone(&trajectory)).await;
    trajectory.finish(end).await
}

impl AgentTrajectory {
    /// The trajectory's id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The task, with its reference, which the agent must not see.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// The messages with which a trajectory of our own loop would begin: those of the task and its environment.
    pub async fn prompt(&self) -> Vec<rlf_dialogue::message::Message> {
        self.environment.lock().await.prompt().to_vec()
    }

    /// The tools of the task, which [`AgentTrajectory::call`] calls.
    pub async fn tools(&self) -> Result<Vec<ToolDefinition>, RolloutError> {
        self.environment.lock().await.tools()
    }

    /// Has the policy take a turn. A request that was accepted is carried out even if the caller drops the future.
    pub async fn complete(self: &Arc<Self>, request: TurnRequest) -> Result<Turn, TurnRefused> {
        let this = Arc::clone(self);
        let turn = tokio::spawn(async move {
            let _under_way = this.requests.read().await;
            this.take_turn(request).await
        });
        turn.await
            .unwrap_or_else(|error| Err(TurnRefused::Unavailable(error.to_string())))
    }

    async fn take_turn(&self, request: TurnRequest) -> Result<Turn, TurnRefused> {
        let mut conversation = self.conversation(&request)?;
        let asked = request.max_tokens.unwrap_or(usize::MAX).max(1);
        let mut sampled_tokens = 0;
        let prompt_tokens = conversation.tokens();
        let refused = loop {
            let Some((sequence, append, room)) = conversation.next_input() else {
                let context = self.dialogue.config().context;
                self.state().limit = Some(Finish::Length);
                break Some(TurnRefused::TooLong {
                    tokens: conversation.tokens(),
                    context,
                });
            };
            let max_new_tokens = room.min(asked);
            let position = match self.begin_turn(max_new_tokens) {
                Ok(position) => position,
                Err(refused) => break (sampled_tokens == 0).then_some(refused),
            };
            let request = GenerateRequest {
                sequence,
                append,
                max_new_tokens,
                sampler: self.settings.sampler,
                key: DrawKey {
                    step: self.settings.step,
                    task: self.index.task,
                    sample: self.index.sample,
                    position,
                },
            };
            let generated = match self.generator.generate(request).await {
                Ok(generated) => generated,
                Err(error) => {
                    let refused = TurnRefused::Unavailable(error.to_string());
                    self.state().failed = Some(error.into());
                    break Some(refused);
                }
            };
            let count = generated.ids.len();
            self.end_turn(position, max_new_tokens, count);
            sampled_tokens += count;
            if conversation.push(generated) {
                break None;
            }
        };
        let result = if let Some(refused) = refused {
            Err(refused)
        } else {
            let (message, stopped) = conversation.answer();
            Ok(Turn {
                message,
                stopped,
                prompt_tokens,
                sampled_tokens,
            })
        };
        self.state()
            .conversations
            .insert(conversation.number(), conversation);
        result
    }

    /// The conversation that a request continues, or a new one.
    fn conversation(&self, request: &TurnRequest) -> Result<Conversation, TurnRefused> {
        let (messages, tools) = (&request.messages, &request.tools);
        let mut state = self.state();
        if let Some(why) = &state.over {
            return Err(TurnRefused::Over(why.clone()));
        }
        self.has_turns(&mut state)?;
        let continued = state
            .conversations
            .iter()
            .filter_map(|(number, one)| Some((one.continued_by(messages, tools)?, *number)))
            .max();
        let state = &mut *state;
        if let Some((_, number)) = continued
            && let Some(mut conversation) = state.conversations.remove(&number)
        {
            conversation.take(messages, &state.outcomes);
            return Ok(conversation);
        }
        let begun = Conversation::begin(
            &self.dialogue,
            &self.generator,
            state.begun,
            &self.id,
            &self.task.id,
            messages,
            tools,
        );
        match &begun {
            Ok(_) => state.begun += 1,
            Err(TurnRefused::TooLong { .. }) => state.limit = Some(Finish::Length),
            Err(_) => {}
        }
        begun
    }

    fn has_turns(&self, state: &mut State) -> Result<(), TurnRefused> {
        let most = self.dialogue.config().max_turns;
        if state.turns >= most {
            state.limit = Some(Finish::MaxTurns);
            return Err(TurnRefused::NoTurns(most));
        }
        Ok(())
    }

    /// Counts a turn that begins. Returns the position of its first draw.
    fn begin_turn(&self, max_new_tokens: usize) -> Result<u64, TurnRefused> {
        let mut state = self.state();
        self.has_turns(&mut state)?;
        state.turns += 1;
        let position = state.sampled;
        state.sampled += max_new_tokens as u64;
        Ok(position)
    }

    /// Gives the draws back that a turn did not need, unless another turn began in the meantime. So the draws of turns
    /// that follow each other are those of our own loop.
    fn end_turn(&self, position: u64, max_new_tokens: usize, sampled: usize) {
        let mut state = self.state();
        if state.sampled == position + max_new_tokens as u64 {
            state.sampled = position + sampled as u64;
        }
    }

    /// Calls a tool of the task. `id` is that of a call in a turn of the policy, if the policy made the call.
    pub async fn call(
        self: &Arc<Self>,
        id: Option<String>,
        name: String,
        arguments: serde_json::Value,
    ) -> Result<CallOutcome, TurnRefused> {
        let this = Arc::clone(self);
        let called = tokio::spawn(async move {
            let _under_way = this.requests.read().await;
            this.call_now(id, name, arguments).await
        });
        called
            .await
            .unwrap_or_else(|error| Err(TurnRefused::Unavailable(error.to_string())))
    }

    async fn call_now(
        &self,
        id: Option<String>,
        name: String,
        arguments: serde_json::Value,
    ) -> Result<CallOutcome, TurnRefused> {
        let (call_id, turn) = {
            let mut state = self.state();
            if let Some(why) = &state.over {
                return Err(TurnRefused::Over(why.clone()));
            }
            if let Some(id) = &id
                && state.outcomes.contains_key(id)
            {
                return Err(TurnRefused::Invalid(format!("call {id} was made before")));
            }
            let given = state.conversations.values().find_map(|conversation| {
                let mut calls = conversation.given_calls().iter();
                let given = calls.find(|given| Some(&given.given_id) == id.as_ref())?;
                Some((given.call.call_id.clone(), conversation.turns() - 1))
            });
            match (given, &id) {
                (Some(given), _) => given,
                (None, Some(id)) => {
                    return Err(TurnRefused::Invalid(format!(
                        "no turn of the policy waits for the result of call {id}; leave the id out for calls of your own"
                    )));
                }
                (None, None) => {
                    state.own_calls += 1;
                    let own = state.own_calls;
                    (format!("{}/agent/{own}", self.id), state.turns)
                }
            }
        };
        let context = TurnContext {
            trajectory_id: self.id.clone(),
            turn,
            seed: self.settings.seed,
        };
        let call = ToolCall {
            call_id,
            name,
            arguments,
        };
        let mut environment = self.environment.lock().await;
        let outcomes = environment.invoke(vec![call], &context).await;
        let lost = environment.lost();
        let is_terminated = environment.is_terminated();
        drop(environment);
        let mut state = self.state();
        let outcome = match outcomes {
            Ok(mut outcomes) => outcomes.pop(),
            Err(error) => {
                let refused = TurnRefused::Unavailable(error.to_string());
                state.failed = Some(error);
                return Err(refused);
            }
        };
        let Some(outcome) = outcome else {
            return Err(TurnRefused::Unavailable("the call has no outcome".into()));
        };
        if let Some(why) = lost {
            state.excluded = Some(format!("environment: {why}"));
        } else if matches!(outcome.fault, Fault::Infrastructure | Fault::Nobody) {
            let ended = outcome.ended.as_str();
            state.excluded = Some(format!("call to `{}` ended as {ended}", outcome.name));
        }
        if is_terminated {
            state.over = Some("the environment ended the episode".into());
        }
        if let Some(id) = id {
            state.outcomes.insert(id, outcome.clone());
        }
        Ok(outcome)
    }

    /// Ends the trajectory.
    async fn finish(&self, end: AgentEnd) -> Result<Trajectory, RolloutError> {
        self.state().over = Some("its agent has ended".into());
        // Requests under way end first. Later ones find that the trajectory is over.
        let _all = self.requests.write().await;
        let State {
            conversations,
            outcomes,
            limit,
            mut excluded,
            failed,
            ..
        } = std::mem::take(&mut *self.state());
        if let Some(error) = failed {
            return Err(error);
        }
        let report = match end {
            AgentEnd::Finished(report) => report,
            AgentEnd::Failed(why) => {
                if limit.is_none() {
                    excluded.get_or_insert(format!("agent: {why}"));
                }
                AgentReport::default()
            }
        };
        if let Some(reward) = report.reward
            && !(0.0..=1.0).contains(&reward)
        {
            excluded.get_or_insert(format!("agent: its reward {reward} is not from 0 to 1"));
        }
        let parts: Vec<Trajectory> = conversations
            .into_values()
            .filter(|conversation| conversation.turns() > 0)
            .map(|conversation| conversation.finish(&outcomes))
            .collect();
        let mut trajectory = joined(&self.id, &self.task, parts);
        if let Some(limit) = limit {
            trajectory.finish = limit;
        }
        if report.answer.is_some() {
            trajectory.answer = report.answer;
        }
        trajectory.excluded = excluded.or(trajectory.excluded);
        if trajectory.excluded.is_some() {
            trajectory.finish = Finish::Aborted;
        }
        let environment = self.environment.lock().await;
        let answer = trajectory.answer.clone();
        if let Some(ending) = environment.ending(answer.as_deref(), &self.task).await {
            trajectory.final_state = ending.state;
            trajectory.verdict = ending.verdict;
            trajectory.unjudged = ending.problem;
        } else if let Some(score) = report.reward {
            trajectory.verdict = Some(Verdict {
                success: score >= 1.0,
                score,
                reason: "the agent's own judgement".to_owned(),
            });
        }
        Ok(trajectory)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The conversations of a trajectory as one, in the order in which they began.
fn joined(id: &str, task: &Arc<Task>, parts: Vec<Trajectory>) -> Trajectory {
    let mut parts = parts.into_iter();
    let Some(first) = parts.next() else {
        let why = "the agent never asked for a turn".to_owned();
        return excluded_trajectory(id.to_owned(), task, why);
    };
    let mut whole = Trajectory {
        id: id.to_owned(),
        ..first
    };
    for part in parts {
        let is_new = |tool: &ToolDefinition| !whole.tools.iter().any(|one| one.name == tool.name);
        let new: Vec<ToolDefinition> = part.tools.into_iter().filter(is_new).collect();
        whole.tools.extend(new);
        whole.events.extend(part.events);
        whole.sequences.extend(part.sequences);
        whole.answer = part.answer.or(whole.answer);
        whole.finish = part.finish;
        whole.excluded = whole.excluded.or(part.excluded);
        whole.closed_turns += part.closed_turns;
    }
    whole
}
