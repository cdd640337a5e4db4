//! The requests of one trajectory, its limits, and the trajectory that they make.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use rlf_dialogue::dialogue::Dialogue;
use rlf_dialogue::message::Message;
use rlf_dialogue::task::Task;
use rlf_dialogue::tool::{CallOutcome, Fault, ToolCall, ToolDefinition};
use rlf_dialogue::trajectory::{Event, Finish, Trajectory, Verdict};
use rlf_plugins::turn::TurnContext;
use rlf_policy::DrawKey;
use rlf_tools::tool_manager::CalledFrom;
use serde_json::Value;
use tokio::task::{JoinError, spawn_blocking};

use super::conversation::{Conversation, Draws, GivenCall, TurnError};
use super::message::is_same_json;
use super::{Agent, AgentEnd, AgentReport, Called, Turn, TurnRefused, TurnRequest};
use crate::context::EpisodeContext;
use crate::error::RolloutError;
use crate::generate::{GenerateError, Generator};
use crate::player::Player;
use crate::settings::{RolloutSettings, TrajectoryIndex};
use crate::task_environment::{TaskEnvironment, excluded_trajectory};

/// Comes between the id of a trajectory and a number in the ids of calls that no turn of the policy made.
pub const AGENT_CALL: &str = "/agent/";

/// A trajectory that an agent leads. Any number of requests may run at once, each in a conversation of its own.
pub struct AgentTrajectory {
    id: String,
    task: Arc<Task>,
    dialogue: Arc<Dialogue>,
    generator: Arc<dyn Generator>,
    settings: RolloutSettings,
    index: TrajectoryIndex,
    environment: tokio::sync::Mutex<TaskEnvironment>,
    /// A copy without the environment's session, for calls that do not act in it.
    beside: TaskEnvironment,
    /// The tools of plugins, by the names that the policy sees.
    plugin_tools: BTreeSet<String>,
    state: Mutex<State>,
    /// Held for reading by each request, so that the end waits for all of them.
    requests: tokio::sync::RwLock<()>,
    /// Number of conversations that have begun. Held while one begins.
    begun: tokio::sync::Mutex<usize>,
}

#[derive(Default)]
struct State {
    /// The conversations without a request under way, by their number.
    conversations: BTreeMap<usize, Conversation>,
    /// Number of turns that the policy has taken, those under way included.
    turns: u32,
    /// Position of the next draw. Turns under way reserve as many draws as they may need.
    next_draw: u64,
    /// The calls of the policy that were made through this trajectory, by the ids that the agent knows. None while a call
    /// runs.
    made: BTreeMap<String, Option<CallOutcome>>,
    /// The outcomes of calls that no turn of the policy made.
    own_calls: Vec<CallOutcome>,
    /// Number of calls that no turn of the policy made, those under way included.
    own_calls_begun: usize,
    /// The limit that was met, or the end of the environment's episode. An agent that fails afterwards is graded.
    ended_by: Option<Finish>,
    /// The reason why no more requests are answered.
    over: Option<String>,
    /// The infrastructure failure that excludes the trajectory.
    excluded: Option<String>,
    /// The error that ends the rollout.
    failed: Option<RolloutError>,
}

/// A call that has its place in a trajectory, and is not made yet.
#[derive(Debug)]
pub struct PlacedCall {
    /// The id by which the agent knows it, if a turn of the policy made it.
    id: Option<String>,
    /// The call with its id in the trajectory.
    call: ToolCall,
    /// Index of its turn.
    turn: u32,
}

/// Plays trajectories that an agent leads, with turns from a generator.
pub struct AgentPlayer {
    agent: Arc<dyn Agent>,
    generator: Arc<dyn Generator>,
}

impl AgentPlayer {
    /// Plays with this agent, which gets its turns from this generator.
    pub fn new(agent: Arc<dyn Agent>, generator: Arc<dyn Generator>) -> Self {
        Self { agent, generator }
    }
}

#[async_trait]
impl Player for AgentPlayer {
    async fn play(
        &self,
        context: &EpisodeContext,
        settings: RolloutSettings,
        task: Arc<Task>,
        index: TrajectoryIndex,
    ) -> Result<Trajectory, RolloutError> {
        let id = settings.trajectory_id(&task, index);
        let entered = TaskEnvironment::enter(context, &task, settings.split, &id).await;
        let environment = match entered {
            // The agent begins conversations of its own.
            Ok((environment, _)) => environment,
            Err(error) => return error.into_trajectory(id, &task),
        };
        if environment.has_user() {
            return Err(RolloutError::AgentAndUser {
                task: task.id.clone(),
            });
        }
        let beside = environment.without_session();
        let plugin_tools = beside.tools()?.into_iter().map(|tool| tool.name);
        let trajectory = Arc::new(AgentTrajectory {
            plugin_tools: plugin_tools.collect(),
            beside,
            id,
            task,
            dialogue: context.dialogue.clone(),
            generator: self.generator.clone(),
            settings,
            index,
            environment: tokio::sync::Mutex::new(environment),
            state: Mutex::default(),
            requests: tokio::sync::RwLock::default(),
            begun: tokio::sync::Mutex::default(),
        });
        let end = self.agent.lead(Arc::clone(&trajectory)).await;
        trajectory.finish(end).await
    }
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

    /// The seed from which the seeds of its calls follow.
    pub fn seed(&self) -> u64 {
        self.settings.seed
    }

    /// Number of tokens that a conversation may have.
    pub fn context_tokens(&self) -> u32 {
        self.dialogue.config().context
    }

    /// The messages with which a trajectory of our own loop would begin: those of the task and its environment.
    pub async fn prompt(&self) -> Vec<Message> {
        self.environment.lock().await.prompt().to_vec()
    }

    /// The tools of the task, which [`AgentTrajectory::call`] calls.
    pub async fn tools(&self) -> Result<Vec<ToolDefinition>, RolloutError> {
        self.environment.lock().await.tools()
    }

    /// True if this is the name of a plugin's tool, as the policy sees it.
    pub fn is_tool_of_plugin(&self, name: &str) -> bool {
        self.plugin_tools.contains(name)
    }

    /// True if a call of this tool acts in the session of the task's environment. Such calls are made one after the
    /// other, and all others beside them.
    pub fn acts_in_session(&self, name: &str) -> bool {
        self.task.environment.is_some() && !self.is_tool_of_plugin(name)
    }

    /// Refuses all further requests.
    pub fn close(&self, why: &str) {
        self.state().over.get_or_insert_with(|| why.to_owned());
    }

    /// Has the policy take a turn. A request that was accepted is carried out even if the caller drops the future.
    pub async fn complete(self: &Arc<Self>, request: TurnRequest) -> Result<Turn, TurnRefused> {
        let this = Arc::clone(self);
        let turn = tokio::spawn(async move {
            let _under_way = this.requests.read().await;
            this.take_turn(request).await
        });
        turn.await.unwrap_or_else(|error| Err(self.broken(&error)))
    }

    /// Excludes the trajectory, because a request ended with a bug of the host.
    fn broken(&self, error: &JoinError) -> TurnRefused {
        let why = format!("a request failed: {error}; this is a bug, please report it");
        self.state().excluded.get_or_insert_with(|| why.clone());
        TurnRefused::Unavailable(why)
    }

    async fn take_turn(self: &Arc<Self>, request: TurnRequest) -> Result<Turn, TurnRefused> {
        let max_tokens = request.max_tokens;
        let mut conversation = self.begin_request(request).await?;
        let turn = conversation.take_turn(self.settings.sampler, max_tokens, &**self);
        let turn = turn.await;
        let mut state = self.state();
        state
            .conversations
            .insert(conversation.number(), conversation);
        match turn {
            Ok(turn) => {
                // An agent that shortened its conversation goes on.
                state.ended_by.take_if(|ended| *ended == Finish::Length);
                Ok(turn)
            }
            Err(TurnError::Refused(refused)) => {
                if matches!(refused, TurnRefused::TooLong(_)) {
                    state.ended_by.get_or_insert(Finish::Length);
                }
                Err(refused)
            }
            Err(TurnError::Generate(error @ GenerateError::Unavailable(_))) => {
                let why = error.to_string();
                state.excluded.get_or_insert_with(|| why.clone());
                state.over.get_or_insert_with(|| why.clone());
                Err(TurnRefused::Unavailable(why))
            }
            Err(TurnError::Generate(error)) => {
                let refused = TurnRefused::Unavailable(error.to_string());
                state.failed = Some(error.into());
                Err(refused)
            }
        }
    }

    /// Takes the conversation that a request continues, or begins a new one.
    async fn begin_request(
        self: &Arc<Self>,
        request: TurnRequest,
    ) -> Result<Conversation, TurnRefused> {
        match self.continued(&request)? {
            Some((mut conversation, made)) => {
                let taking = spawn_blocking(move || {
                    conversation.take(&request.messages, &made);
                    conversation
                });
                taking.await.map_err(|error| self.broken(&error))
            }
            None => self.begin_conversation(request).await,
        }
    }

    /// The conversation that a request continues, if there is one, with the outcomes of the calls that were made.
    fn continued(
        &self,
        request: &TurnRequest,
    ) -> Result<Option<(Conversation, OutcomesById)>, TurnRefused> {
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
        let continued = continued.and_then(|(_, number)| state.conversations.remove(&number));
        let made = state.made.iter();
        let made = made.filter_map(|(id, outcome)| Some((id.clone(), outcome.clone()?)));
        Ok(continued.map(|conversation| (conversation, made.collect())))
    }

    /// Begins a conversation. Conversations begin one after the other, so that a refused one has no number.
    async fn begin_conversation(
        self: &Arc<Self>,
        request: TurnRequest,
    ) -> Result<Conversation, TurnRefused> {
        let mut begun = self.begun.lock().await;
        let (this, number) = (Arc::clone(self), *begun);
        let beginning = spawn_blocking(move || {
            let generator = Arc::clone(&this.generator);
            let (dialogue, id, task) = (&this.dialogue, &this.id, &this.task.id);
            Conversation::begin(dialogue, generator, number, id, task, &request)
        });
        let conversation = beginning.await.map_err(|error| self.broken(&error))?;
        match &conversation {
            Ok(_) => *begun += 1,
            Err(TurnRefused::TooLong(_)) => {
                self.state().ended_by.get_or_insert(Finish::Length);
            }
            Err(_) => {}
        }
        conversation
    }

    fn has_turns(&self, state: &mut State) -> Result<(), TurnRefused> {
        let most = self.dialogue.config().max_turns;
        if state.turns >= most {
            state.ended_by = Some(Finish::MaxTurns);
            return Err(TurnRefused::NoTurns(most));
        }
        Ok(())
    }

    /// Calls a tool of the task. `id` is that of a call in a turn of the policy, if the policy made the call; name and
    /// arguments are then those of that call.
    pub async fn call(
        self: &Arc<Self>,
        id: Option<String>,
        name: String,
        arguments: Value,
    ) -> Result<Called, TurnRefused> {
        let this = Arc::clone(self);
        let called = tokio::spawn(async move {
            let _under_way = this.requests.read().await;
            let placed = this.begin_call(id, name, arguments)?;
            this.make_now(placed, None).await
        });
        called
            .await
            .unwrap_or_else(|error| Err(self.broken(&error)))
    }

    /// Gives a call its place, if the agent does not say which call of the policy it is. It is the first one of the newest
    /// turns that waits for its result, was not made, and has this name and these arguments. If there is none, the call is
    /// the agent's own.
    pub fn place_call(&self, name: String, arguments: Value) -> Result<PlacedCall, TurnRefused> {
        let mut state = self.state();
        if let Some(why) = &state.over {
            return Err(TurnRefused::Over(why.clone()));
        }
        let mut newest: Vec<&Conversation> = state.conversations.values().collect();
        newest.sort_by_key(|conversation| std::cmp::Reverse(conversation.last_turn()));
        let given = newest.into_iter().flat_map(|conversation| {
            let turns = conversation.turns();
            let calls = conversation.given_calls().iter();
            calls.map(move |given| (given, turns - 1))
        });
        let waiting = first_waiting(given, &state.made, &name, &arguments);
        let waiting = waiting.map(|(given, turn)| (given.clone(), turn));
        let Some((given, turn)) = waiting else {
            return Ok(self.place_own_call(&mut state, name, arguments));
        };
        state.made.insert(given.given_id.clone(), None);
        Ok(PlacedCall {
            id: Some(given.given_id),
            call: given.call,
            turn,
        })
    }

    /// Makes a call that has its place, for the guest that leads the trajectory.
    pub async fn make_call(
        self: &Arc<Self>,
        placed: PlacedCall,
        from: CalledFrom,
    ) -> Result<Called, TurnRefused> {
        let this = Arc::clone(self);
        let called = tokio::spawn(async move {
            let _under_way = this.requests.read().await;
            let over = this.state().over.clone();
            match over {
                Some(why) => Err(TurnRefused::Over(why)),
                None => this.make_now(placed, Some(&from)).await,
            }
        });
        called
            .await
            .unwrap_or_else(|error| Err(self.broken(&error)))
    }

    async fn make_now(
        &self,
        placed: PlacedCall,
        from: Option<&CalledFrom>,
    ) -> Result<Called, TurnRefused> {
        let PlacedCall { id, call, turn } = placed;
        let context = TurnContext {
            trajectory_id: self.id.clone(),
            turn,
            seed: self.settings.seed,
        };
        let (outcomes, lost, terminated) = if self.acts_in_session(&call.name) {
            let mut environment = self.environment.lock().await;
            let outcomes = environment.invoke(vec![call], &context, from).await;
            (outcomes, environment.lost(), environment.is_terminated())
        } else {
            let mut beside = self.beside.without_session();
            let outcomes = beside.invoke(vec![call], &context, from).await;
            (outcomes, None, false)
        };
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
        if terminated {
            state.ended_by = Some(Finish::Terminated);
            state.over = Some("the environment ended the episode".into());
        }
        match id {
            Some(id) => _ = state.made.insert(id, Some(outcome.clone())),
            None => state.own_calls.push(outcome.clone()),
        }
        Ok(Called {
            outcome,
            terminated,
        })
    }

    /// Gives a call its place: that of the policy's call with this id, or that of a call of the agent's own.
    fn begin_call(
        &self,
        id: Option<String>,
        name: String,
        arguments: Value,
    ) -> Result<PlacedCall, TurnRefused> {
        let mut state = self.state();
        if let Some(why) = &state.over {
            return Err(TurnRefused::Over(why.clone()));
        }
        let Some(id) = id else {
            return Ok(self.place_own_call(&mut state, name, arguments));
        };
        let invalid = |why: &str| Err(TurnRefused::Invalid(format!("call {id}: {why}")));
        if state.made.contains_key(&id) {
            return invalid("it was made before");
        }
        let given = state.conversations.values().find_map(|conversation| {
            let mut calls = conversation.given_calls().iter();
            let given = calls.find(|given| given.given_id == id)?;
            Some((given.call.clone(), conversation.turns() - 1))
        });
        let Some((call, turn)) = given else {
            return invalid(
                "no turn of the policy waits for its result; leave the id out for calls of your own",
            );
        };
        if call.name != name || !is_same_json(&call.arguments, &arguments) {
            return invalid(
                "the policy made it with another name or other arguments; leave the id out for calls of your own",
            );
        }
        state.made.insert(id.clone(), None);
        Ok(PlacedCall {
            id: Some(id),
            call,
            turn,
        })
    }

    /// The place of a call that no turn of the policy made.
    fn place_own_call(&self, state: &mut State, name: String, arguments: Value) -> PlacedCall {
        state.own_calls_begun += 1;
        let call = ToolCall {
            call_id: format!("{}{AGENT_CALL}{}", self.id, state.own_calls_begun),
            name,
            arguments,
        };
        PlacedCall {
            id: None,
            call,
            turn: state.turns,
        }
    }

    /// Ends the trajectory.
    async fn finish(&self, end: AgentEnd) -> Result<Trajectory, RolloutError> {
        self.close("its agent has ended");
        // Requests under way end first. Later ones find that the trajectory is over.
        let _all = self.requests.write().await;
        let over = State {
            over: Some("its agent has ended".to_owned()),
            ..State::default()
        };
        let State {
            conversations,
            made,
            mut own_calls,
            ended_by,
            mut excluded,
            failed,
            ..
        } = std::mem::replace(&mut *self.state(), over);
        if let Some(error) = failed {
            return Err(error);
        }
        let report = match end {
            AgentEnd::Finished(report) => report,
            AgentEnd::Failed(why) => {
                if ended_by.is_none() {
                    excluded.get_or_insert(format!("agent: {why}"));
                }
                AgentReport::default()
            }
            AgentEnd::Misconfigured(why) => return Err(RolloutError::Agent(why)),
        };
        if let Some(reward) = report.reward
            && !in_scale(reward)
        {
            excluded.get_or_insert(format!("agent: its reward {reward} is not from 0 to 1"));
        }
        let made = made.into_iter();
        let made = made
            .filter_map(|(id, outcome)| Some((id, outcome?)))
            .collect();
        let parts = conversations
            .into_values()
            .filter(|conversation| conversation.turns() > 0)
            .map(|conversation| (conversation.last_turn(), conversation.finish(&made)));
        let mut trajectory = joined(&self.id, &self.task, parts.collect());
        // Calls that were made side by side have ended in any order.
        own_calls.sort_by_key(|outcome| {
            let (_, number) = outcome.call_id.rsplit_once('/')?;
            number.parse::<usize>().ok()
        });
        (trajectory.events).extend(own_calls.into_iter().map(Event::Outcome));
        if let Some(ended_by) = ended_by {
            trajectory.finish = ended_by;
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
        } else if let Some(score) = report.reward.filter(|reward| in_scale(*reward)) {
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

/// The outcomes of calls, by the ids that the agent knows.
type OutcomesById = BTreeMap<String, CallOutcome>;

/// The first of these calls, each with its turn, that was not made and has this name and these arguments.
fn first_waiting<'a>(
    given: impl IntoIterator<Item = (&'a GivenCall, u32)>,
    made: &BTreeMap<String, Option<CallOutcome>>,
    name: &str,
    arguments: &Value,
) -> Option<(&'a GivenCall, u32)> {
    given.into_iter().find(|(given, _)| {
        let call = &given.call;
        call.name == name
            && !made.contains_key(&given.given_id)
            && is_same_json(&call.arguments, arguments)
    })
}

/// True for a score that a verdict may have.
fn in_scale(score: f64) -> bool {
    (0.0..=1.0).contains(&score)
}

/// The conversations of a trajectory as one, in the order in which they began. Each comes with the number of its last turn.
/// The conversation with the very last turn has the answer.
fn joined(id: &str, task: &Arc<Task>, parts: Vec<(u32, Trajectory)>) -> Trajectory {
    let mut parts = parts.into_iter();
    let Some((mut last, first)) = parts.next() else {
        let why = "the agent never asked for a turn".to_owned();
        return excluded_trajectory(id.to_owned(), task, why);
    };
    let mut whole = Trajectory {
        id: id.to_owned(),
        ..first
    };
    for (turn, part) in parts {
        let is_new = |tool: &ToolDefinition| !whole.tools.iter().any(|one| one.name == tool.name);
        let new: Vec<ToolDefinition> = part.tools.into_iter().filter(is_new).collect();
        whole.tools.extend(new);
        whole.events.extend(part.events);
        whole.sequences.extend(part.sequences);
        if turn > last {
            (last, whole.answer, whole.finish) = (turn, part.answer, part.finish);
        }
        whole.excluded = whole.excluded.or(part.excluded);
        whole.closed_turns += part.closed_turns;
    }
    whole
}

impl Draws for AgentTrajectory {
    fn begin(&self, max_new_tokens: usize) -> Result<(u32, DrawKey), TurnRefused> {
        let mut state = self.state();
        self.has_turns(&mut state)?;
        state.turns += 1;
        let key = DrawKey {
            step: self.settings.step,
            task: self.index.task,
            sample: self.index.sample,
            position: state.next_draw,
        };
        state.next_draw += max_new_tokens as u64;
        Ok((state.turns, key))
    }

    /// Gives the draws back that a turn did not need, unless another turn began in the meantime. So the draws of turns
    /// that follow each other are those of our own loop.
    fn end(&self, key: DrawKey, max_new_tokens: usize, sampled: usize) {
        let mut state = self.state();
        if state.next_draw == key.position + max_new_tokens as u64 {
            state.next_draw = key.position + sampled as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_call_is_tied_to_the_first_equal_call_that_was_not_made() {
        let given = |id: &str, name: &str, arguments: Value| GivenCall {
            given_id: id.to_owned(),
            call: ToolCall {
                call_id: format!("t/{id}"),
                name: name.to_owned(),
                arguments,
            },
        };
        let calls = [
            (given("a", "look", json!({ "at": 1, "of": "x" })), 4),
            (given("b", "look", json!({ "at": 1, "of": "x" })), 4),
            (given("c", "look", json!({ "at": 2 })), 2),
        ];
        let mut made = BTreeMap::new();
        let mut tied = |name: &str, arguments: &Value| {
            let given = calls.iter().map(|(given, turn)| (given, *turn));
            let (given, turn) = first_waiting(given, &made, name, arguments)?;
            made.insert(given.given_id.clone(), None);
            Some((given.given_id.as_str(), turn))
        };
        // Languages without integers, and other orders of keys.
        let same = json!({ "of": "x", "at": 1.0 });
        assert_eq!(tied("look", &same), Some(("a", 4)));
        assert_eq!(tied("look", &same), Some(("b", 4)));
        assert_eq!(tied("look", &same), None);
        assert_eq!(tied("find", &json!({ "at": 2 })), None);
        assert_eq!(tied("look", &json!({ "at": 2, "of": null })), None);
        assert_eq!(tied("look", &json!({ "at": 2 })), Some(("c", 2)));
    }
}
