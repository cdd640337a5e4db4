//! An agent as a plugin in the sandbox. Its only tool is called once for each trajectory. It asks the policy through the
//! gate `model`, and reaches the tools of the trajectory through the gate `tools`.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use rlf_dialogue::message::{Content, plain_text};
use rlf_dialogue::tool::{CallOutcome, Ended, Fault, Observation, ToolCall, ToolDefinition};
use rlf_endpoint::{Completion, Sampling, Usage};
use rlf_plugins::bindings::types::Error;
use rlf_plugins::gates::{
    ChatAnswer, GateAnswer, LanguageModel, ModelQuestion, NestedCalls, Nesting, ProgramRunner,
};
use rlf_plugins::manifest::{GateName, PluginKind};
use rlf_plugins::offered_tools::LoadedTool;
use rlf_plugins::registry::Registry;
use rlf_plugins::turn::TurnContext;
use rlf_rollout::agent::{
    Agent, AgentEnd, AgentReport, AgentTrajectory, PlacedCall, Stopped as TurnStopped, Turn,
    TurnRefused,
};
use rlf_sandbox::{BoxFuture, Caller, Stopped};
use rlf_tools::POLICY;
use rlf_tools::tool_manager::{CalledFrom, ToolManager};
use serde::Deserialize as _;
use serde_json::{Map, Value, json};
use tokio::sync::{Semaphore, oneshot};

use crate::agents::AgentsError;
use crate::body;
use crate::config::{AgentConfig, InvalidAgent};
use crate::form;
use crate::openai::{self, OpenAi};
use crate::parameters::Sampling as Allowed;
use crate::report::{FORM, Report};
use crate::task::described;

/// Maximum number of characters of a plugin's own words in the reason why it failed.
const MAX_WORDS: usize = 600;

/// Leads trajectories by the plugin of a configuration with `plugin`.
pub struct ComponentAgent {
    tools: ToolManager,
    /// The plugin's only tool.
    tool: LoadedTool,
    /// The temperature at which training samples.
    temperature: f32,
    /// Places for trajectories. A call that leads one holds an instance all the time, and rewards need instances, too.
    places: Semaphore,
}

impl ComponentAgent {
    /// Finds the plugin, and checks that it can lead trajectories. `temperature` is the one at which training samples.
    pub fn new(
        config: &AgentConfig,
        temperature: f32,
        registry: &Registry,
        tools: &ToolManager,
    ) -> Result<Self, AgentsError> {
        config.check()?;
        let wrong = |reason: String| {
            let key = "plugin";
            AgentsError::Config(InvalidAgent { key, reason })
        };
        let name = config.plugin.as_deref().unwrap_or_default();
        let Some(plugin) = registry.plugin(name) else {
            let why = registry.explain_missing(name, PluginKind::Tool);
            return Err(wrong(format!("there is no plugin `{name}`{why}")));
        };
        if plugin.kind() != PluginKind::Tool {
            return Err(wrong(format!(
                "`{name}` is {}; write the name of a tool plugin, whose only tool takes a task",
                plugin.kind().with_article()
            )));
        }
        let [tool] = plugin.tools() else {
            let tools = plugin.tools().iter();
            let tools: Vec<&str> = tools.map(|tool| tool.definition.name.as_str()).collect();
            return Err(wrong(format!(
                "`{name}` has {} tools ({}), and an agent has exactly one, which takes a task; put the others into a plugin of \
                 their own",
                tools.len(),
                tools.join(", ")
            )));
        };
        let grants = plugin.grants();
        let asks = grants.models.iter().any(|model| model == POLICY);
        if !asks || !grants.gates.contains(&GateName::Model) {
            return Err(wrong(format!(
                "`{name}` may not ask the policy; write `models = [\"{POLICY}\"]` in [plugins.{name}], write `gates = \
                 [\"model\"]` in its plugin.toml, and run `rlf-host plugin grant {name} --gate model --config FILE`"
            )));
        }
        Ok(Self {
            tools: tools.clone(),
            tool: tool.clone(),
            temperature,
            places: Semaphore::new(config.max_processes),
        })
    }
}

#[async_trait]
impl Agent for ComponentAgent {
    async fn lead(&self, trajectory: Arc<AgentTrajectory>) -> AgentEnd {
        let (task, tools) = match (described(&trajectory).await, trajectory.tools().await) {
            (Ok(task), Ok(tools)) => (task, tools),
            (Err(error), _) | (_, Err(error)) => return AgentEnd::Failed(error.to_string()),
        };
        let name = &self.tool.definition.name;
        if let Err(error) = self.tool.check(&task) {
            return AgentEnd::Misconfigured(format!(
                "the tool `{name}` of `agent.plugin` does not take a task: {error}; its arguments are `id`, `source`, `messages` \
                 and `tools`"
            ));
        }
        let call = ToolCall {
            call_id: format!("{}/agent", trajectory.id()),
            name: name.clone(),
            arguments: task,
        };
        let context = TurnContext {
            trajectory_id: trajectory.id().to_owned(),
            turn: 0,
            seed: trajectory.seed(),
        };
        let means: Arc<dyn NestedCalls> = Arc::new(TrajectoryCalls {
            policy: Arc::new(TrajectoryPolicy {
                trajectory: Arc::clone(&trajectory),
                temperature: self.temperature,
            }),
            trajectory,
            others: self.tools.clone(),
            tools: Mutex::new(tools),
            announced: Mutex::default(),
        });
        // The semaphore is never closed.
        let _place = self.places.acquire().await;
        end(self.tools.lead(call, &context, &means).await)
    }
}

/// The end of an agent whose call has ended like this.
fn end(outcome: CallOutcome) -> AgentEnd {
    let observation = outcome.observation.unwrap_or_default();
    if outcome.ended == Ended::Ok {
        return report(&observation.content);
    }
    let words = outcome
        .detail
        .unwrap_or_else(|| plain_text(&observation.content));
    let words: String = words.chars().take(MAX_WORDS).collect();
    let ended = outcome.ended.as_str();
    AgentEnd::Failed(format!("its call ended as `{ended}`: {words}"))
}

/// The report of an agent that showed this: an object, or else its answer as text.
fn report(content: &[Content]) -> AgentEnd {
    let object = content.iter().find_map(|part| match part {
        Content::Structured(value @ Value::Object(_)) => Some(value),
        _ => None,
    });
    let Some(object) = object else {
        let answer = plain_text(content);
        return AgentEnd::Finished(AgentReport {
            answer: (!answer.is_empty()).then_some(answer),
            reward: None,
        });
    };
    match Report::deserialize(object) {
        Ok(report) => AgentEnd::Finished(report.into()),
        Err(error) => AgentEnd::Failed(format!(
            "the object that it returned is no report ({error}); return {FORM}, or the answer as a text"
        )),
    }
}

/// All that the agent of one trajectory reaches through its gates.
struct TrajectoryCalls {
    trajectory: Arc<AgentTrajectory>,
    policy: Arc<TrajectoryPolicy>,
    /// Interpreters, and models other than the policy.
    others: ToolManager,
    /// The tools of the trajectory, as they were after its last call.
    tools: Mutex<Vec<ToolDefinition>>,
    announced: Mutex<Announced>,
}

/// Calls that are made next, by their ids in the sandbox.
#[derive(Default)]
struct Announced {
    calls: HashMap<String, Place>,
    /// Arrives when the call that was announced last in the environment's session has ended.
    last: Option<oneshot::Receiver<()>>,
}

/// The place of a call among the others.
struct Place {
    /// The place in the trajectory.
    placed: Result<PlacedCall, Refused>,
    /// Arrives when the call before it in the environment's session has ended. None for a call that does not act there.
    before: Option<oneshot::Receiver<()>>,
    /// Dropped when the call has ended.
    _ended: oneshot::Sender<()>,
}

/// The reason why a call is not made.
struct Refused {
    ended: Ended,
    fault: Fault,
    why: String,
}

impl Refused {
    fn by_agent(why: String) -> Self {
        Self {
            ended: Ended::InvalidArguments,
            fault: Fault::Model,
            why,
        }
    }

    fn outcome(self, call: ToolCall) -> CallOutcome {
        let Self { ended, fault, why } = self;
        let shown = Observation::text(format!("error: {why}"), true);
        CallOutcome {
            ended,
            fault,
            detail: Some(why),
            observation: (fault == Fault::Model).then_some(shown),
            ..CallOutcome::from_observation(call.call_id, call.name, Observation::default())
        }
    }
}

impl From<TurnRefused> for Refused {
    fn from(refused: TurnRefused) -> Self {
        let why = refused.to_string();
        match refused {
            TurnRefused::Unavailable(_) => Self {
                ended: Ended::Unavailable,
                fault: Fault::Infrastructure,
                why,
            },
            TurnRefused::Over(_) => Self {
                ended: Ended::Denied,
                fault: Fault::Model,
                why,
            },
            TurnRefused::Invalid(_) | TurnRefused::NoTurns(_) | TurnRefused::TooLong(_) => {
                Self::by_agent(why)
            }
        }
    }
}

impl TrajectoryCalls {
    fn place(&self, call: &ToolCall) -> Result<PlacedCall, Refused> {
        let ToolCall {
            name, arguments, ..
        } = call;
        let tools = lock(&self.tools);
        if !tools.iter().any(|tool| tool.name == *name) {
            let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
            return Err(Refused::by_agent(format!(
                "the task has no tool `{name}`; its tools are: {}",
                names.join(", ")
            )));
        }
        if !arguments.is_object() {
            let why = format!("the arguments of `{name}` are not an object");
            return Err(Refused::by_agent(why));
        }
        Ok(self
            .trajectory
            .place_call(name.clone(), arguments.clone())?)
    }

    /// Gives a call its place in the trajectory. If it acts in the environment's session, its place is behind the call
    /// that was announced before it.
    fn queue(&self, call: &ToolCall) -> Place {
        let placed = self.place(call);
        let (sender, ended) = oneshot::channel();
        let before = if self.trajectory.acts_in_session(&call.name) {
            lock(&self.announced).last.replace(ended)
        } else {
            None
        };
        Place {
            placed,
            before,
            _ended: sender,
        }
    }

    async fn make(&self, call: ToolCall, from: CalledFrom) -> CallOutcome {
        let waiting = lock(&self.announced).calls.remove(&call.call_id);
        let Place {
            placed,
            before,
            _ended,
        } = waiting.unwrap_or_else(|| self.queue(&call));
        let acts_in_session = self.trajectory.acts_in_session(&call.name);
        if let Some(before) = before {
            // A session takes one call after the other, in their order. The sender of the one before is only dropped.
            _ = before.await;
        }
        let called = match placed {
            Ok(placed) => self.trajectory.make_call(placed, from).await,
            Err(refused) => return refused.outcome(call),
        };
        if acts_in_session && let Ok(tools) = self.trajectory.tools().await {
            *lock(&self.tools) = tools;
        }
        match called {
            Ok(called) => called.outcome,
            Err(refused) => Refused::from(refused).outcome(call),
        }
    }
}

impl fmt::Debug for TrajectoryCalls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrajectoryCalls")
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

impl NestedCalls for TrajectoryCalls {
    fn definitions(&self, names: &[String]) -> Vec<ToolDefinition> {
        let tools = lock(&self.tools);
        let named = names.iter();
        let named = named.filter_map(|name| tools.iter().find(|tool| tool.name == *name));
        named.cloned().collect()
    }

    fn arguments_bytes(&self, name: &str) -> Option<u64> {
        let tools = lock(&self.tools);
        let tool = tools.iter().find(|tool| tool.name == name);
        let own = tool.map_or(name, ToolDefinition::own_name);
        // The limit of an environment's tool, or of one that the task lacks, is checked where the call is made.
        Some(NestedCalls::arguments_bytes(&self.others, own).unwrap_or(body::MAX_BYTES as u64))
    }

    fn announce(&self, call: &ToolCall) {
        let place = self.queue(call);
        let mut announced = lock(&self.announced);
        announced.calls.insert(call.call_id.clone(), place);
    }

    fn call<'a>(
        &'a self,
        call: ToolCall,
        from: &'a Arc<Nesting>,
        caller: Caller,
    ) -> BoxFuture<'a, CallOutcome> {
        let from = CalledFrom {
            nesting: Arc::clone(from),
            caller,
        };
        Box::pin(self.make(call, from))
    }

    fn interpreter(&self, plugins: &[String], language: &str) -> Option<Arc<dyn ProgramRunner>> {
        self.others.interpreter(plugins, language)
    }

    fn model(&self, name: &str) -> Option<Arc<dyn LanguageModel>> {
        if name == POLICY {
            return Some(Arc::clone(&self.policy) as Arc<dyn LanguageModel>);
        }
        self.others.model(name)
    }
}

/// The policy in one trajectory, as a model: each question is a turn.
struct TrajectoryPolicy {
    trajectory: Arc<AgentTrajectory>,
    /// The temperature at which training samples.
    temperature: f32,
}

impl fmt::Debug for TrajectoryPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrajectoryPolicy")
            .field("trajectory", &self.trajectory.id())
            .finish_non_exhaustive()
    }
}

impl TrajectoryPolicy {
    /// The policy's turn after a request in the form of chat completions.
    async fn turn(
        &self,
        mut request: Map<String, Value>,
        sampling: Sampling,
    ) -> GateAnswer<ChatAnswer> {
        if let Some(temperature) = sampling.temperature {
            request.insert("temperature".to_owned(), json!(temperature));
        }
        let asked = form::asked::<OpenAi>(&request, Allowed::Fixed(self.temperature));
        let mut turn = match asked {
            Ok(asked) => asked.turn,
            Err(refusal) => return Ok(Err(Error::InvalidArguments(refusal.message))),
        };
        if let Some(most) = sampling.max_tokens {
            let most = most as usize;
            turn.max_tokens = Some(turn.max_tokens.map_or(most, |asked| asked.min(most)));
        }
        match self.trajectory.complete(turn).await {
            Ok(turn) => Ok(Ok(answer(&turn))),
            Err(refused) => turn_refused(&refused).map(Err),
        }
    }
}

fn answer(turn: &Turn) -> ChatAnswer {
    ChatAnswer {
        message: openai::said(&turn.message),
        completion: Completion {
            text: turn.message.plain_text(),
            cut_short: turn.stopped == TurnStopped::Length,
            usage: Some(Usage {
                prompt_tokens: turn.prompt_tokens as u64,
                completion_tokens: turn.sampled_tokens as u64,
            }),
            ..Completion::default()
        },
    }
}

/// The error that an agent gets instead of a turn, or the end of its call. An agent that does not handle a limit of its
/// trajectory is not broken: `exhausted` does not count as a trap, as other errors may.
fn turn_refused(refused: &TurnRefused) -> Result<Error, Stopped> {
    let why = refused.to_string();
    match refused {
        TurnRefused::Invalid(_) => Ok(Error::InvalidArguments(why)),
        TurnRefused::NoTurns(_) | TurnRefused::TooLong(_) | TurnRefused::Over(_) => {
            Ok(Error::Exhausted(why))
        }
        TurnRefused::Unavailable(_) => Err(Stopped::unavailable(why)),
    }
}

/// Reads a request that is a JSON text.
fn request(text: &str) -> Result<Map<String, Value>, Error> {
    if text.len() > body::MAX_BYTES {
        return Err(Error::InvalidArguments(format!(
            "`chat` has {} bytes; at most {} are read",
            text.len(),
            body::MAX_BYTES
        )));
    }
    rlf_json::from_str(text)
        .map_err(|error| Error::InvalidArguments(format!("`chat` is no JSON object: {error}")))
}

impl LanguageModel for TrajectoryPolicy {
    fn max_tokens(&self) -> u32 {
        0
    }

    fn context_tokens(&self) -> u32 {
        self.trajectory.context_tokens()
    }

    fn ask<'a>(
        &'a self,
        question: ModelQuestion<'a>,
        _asker: &'a Nesting,
    ) -> BoxFuture<'a, GateAnswer<Completion>> {
        Box::pin(async move {
            if question.schema.is_some() {
                return Ok(Err(Error::InvalidArguments(
                    "the policy does not take `schema`, because its turns are trained as it samples them; check its answer"
                        .to_owned(),
                )));
            }
            let said = question.messages.iter();
            let said = said.map(|said| json!({ "role": said.role, "content": said.content }));
            let request = Map::from_iter([("messages".to_owned(), said.collect())]);
            let answered = self.turn(request, question.sampling).await?;
            Ok(answered.map(|answered| answered.completion))
        })
    }

    fn chat<'a>(
        &'a self,
        text: &'a str,
        sampling: Sampling,
        _asker: &'a Nesting,
    ) -> BoxFuture<'a, GateAnswer<ChatAnswer>> {
        Box::pin(async move {
            match request(text) {
                Ok(request) => self.turn(request, sampling).await,
                Err(error) => Ok(Err(error)),
            }
        })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(ended: Ended, content: Vec<Content>) -> CallOutcome {
        let observation = Observation {
            content,
            ..Observation::default()
        };
        CallOutcome {
            ended,
            ..CallOutcome::from_observation("t/agent".into(), "agent".into(), observation)
        }
    }

    #[test]
    fn what_the_tool_returns_is_the_report() {
        let finished = |answer: Option<&str>, reward| {
            AgentEnd::Finished(AgentReport {
                answer: answer.map(str::to_owned),
                reward,
            })
        };
        let text = |text: &str| Content::Text(text.to_owned());
        let ok = |content| end(outcome(Ended::Ok, content));
        assert_eq!(ok(vec![]), finished(None, None));
        assert_eq!(ok(vec![text("")]), finished(None, None));
        assert_eq!(ok(vec![text("4"), text("2")]), finished(Some("42"), None));
        let both = Content::Structured(json!({ "answer": "42", "reward": 0.5 }));
        assert_eq!(ok(vec![both]), finished(Some("42"), Some(0.5)));
        let empty = Content::Structured(json!({}));
        assert_eq!(ok(vec![empty]), finished(None, None));
        let wrong = Content::Structured(json!({ "answers": 42 }));
        let AgentEnd::Failed(why) = ok(vec![wrong]) else {
            panic!("a wrong report was accepted")
        };
        assert!(why.contains("`answers`"), "{why}");
    }

    #[test]
    fn a_call_that_did_not_end_well_fails_with_its_reason() {
        let shown = vec![Content::Text("no more ideas".into())];
        assert_eq!(
            end(outcome(Ended::Failed, shown.clone())),
            AgentEnd::Failed("its call ended as `failed`: no more ideas".into())
        );
        let broken = CallOutcome {
            detail: Some("x".repeat(2 * MAX_WORDS)),
            ..outcome(Ended::Trap, shown)
        };
        let AgentEnd::Failed(why) = end(broken) else {
            panic!("it finished")
        };
        assert!(why.len() < 2 * MAX_WORDS, "{why}");
        assert!(why.starts_with("its call ended as `trap`: xx"), "{why}");
    }

    #[test]
    fn a_refused_turn_ends_the_call_only_if_that_is_nobodys_doing() {
        let invalid = turn_refused(&TurnRefused::Invalid("no".into()));
        assert!(matches!(invalid, Ok(Error::InvalidArguments(_))));
        for limit in [
            TurnRefused::Over("it ended".into()),
            TurnRefused::NoTurns(3),
            TurnRefused::TooLong(9),
        ] {
            assert!(matches!(turn_refused(&limit), Ok(Error::Exhausted(_))));
        }
        assert!(turn_refused(&TurnRefused::Unavailable("x".into())).is_err());
    }
}
