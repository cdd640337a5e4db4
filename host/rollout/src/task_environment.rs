//! Everything that one trajectory acts in: the session of its environment, if it has one, the tools of plugins beside it,
//! and a simulated user, if the task asks for one.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use rlf_dialogue::dialogue::DialogueError;
use rlf_dialogue::episode::{Episode, Reply, Step};
use rlf_dialogue::message::{Message, Role};
use rlf_dialogue::split::Split;
use rlf_dialogue::task::Task;
use rlf_dialogue::tool::{CallOutcome, Ended, ToolCall, ToolDefinition};
use rlf_dialogue::trajectory::{Finish, Trajectory};
use rlf_environments::environments::Environments;
use rlf_environments::error::OpenError;
use rlf_environments::session::{EnvironmentSession, EpisodeEnd};
use rlf_plugins::turn::TurnContext;
use rlf_tools::tool_manager::CalledFrom;

use crate::context::EpisodeContext;
use crate::conversation::{Conversation, pass_to_environment};
use crate::error::RolloutError;
use crate::shown_tools::ToolView;
use crate::user::UserTurn;

/// Opens a task and renders its prompt as a rollout would, then stops. It reports every mistake that the task's row can
/// have. It does not ask a simulated user: the user's instruction replaces the user's first message.
pub fn rehearse<'a>(
    context: &'a EpisodeContext,
    task: &'a Task,
    split: Split,
) -> BoxFuture<'a, Result<(), RolloutError>> {
    Box::pin(async move {
        let id = format!("rehearsal/{}", task.id);
        let opened = TaskEnvironment::open(context, task, split, &id).await;
        let mut environment = opened.map_err(|error| match error {
            SetupError::Excluded(why) => RolloutError::Rehearsal {
                task: task.id.clone(),
                why,
            },
            SetupError::Rollout(error) => error,
        })?;
        if let Some(conversation) = &environment.conversation
            && conversation.waits_for_user()
        {
            let stand_in = Message::text(Role::User, conversation.instruction());
            environment.prompt.push(stand_in);
        }
        environment.begin(task, id).map(drop)
    })
}

/// The reason why a task could not be set up for a trajectory.
pub(crate) enum SetupError {
    /// An infrastructure failure, in words: the trajectory is excluded and the rollout continues.
    Excluded(String),
    /// The task or the configuration is wrong: the rollout ends.
    Rollout(RolloutError),
}

impl<E: Into<RolloutError>> From<E> for SetupError {
    fn from(error: E) -> Self {
        Self::Rollout(error.into())
    }
}

impl SetupError {
    /// The excluded trajectory of the task, unless the error ends the rollout.
    pub(crate) fn into_trajectory(
        self,
        id: String,
        task: &Arc<Task>,
    ) -> Result<Trajectory, RolloutError> {
        match self {
            Self::Excluded(why) => Ok(excluded_trajectory(id, task, why)),
            Self::Rollout(error) => Err(error),
        }
    }
}

/// The surroundings of one trajectory: environment session, tools, and what was said before the model's first turn.
pub(crate) struct TaskEnvironment {
    context: EpisodeContext,
    session: Option<EnvironmentSession>,
    /// Names of the tools that the task asks for; `None` means all of them.
    wanted: Option<Vec<String>>,
    plugin_tools: Vec<ToolDefinition>,
    view: ToolView,
    task: String,
    /// The messages before the model's first turn, in order.
    prompt: Vec<Message>,
    /// The conversation with a simulated user, if a model plays the user.
    conversation: Option<Conversation>,
}

impl TaskEnvironment {
    /// Opens the task's environment and begins the episode in it. If the prompt has no message of a user yet, the
    /// simulated user speaks first.
    pub(crate) async fn enter(
        context: &EpisodeContext,
        task: &Task,
        split: Split,
        trajectory: &str,
    ) -> Result<(Self, Episode), SetupError> {
        let mut environment = Self::open(context, task, split, trajectory).await?;
        let user_began = environment.let_user_begin().await?;
        let begun = environment.begin(task, trajectory.to_owned());
        let session = environment.session.as_ref();
        let is_on_server = session.is_some_and(EnvironmentSession::is_on_server);
        let episode = begun.map_err(|error| match (error, &task.environment) {
            // The policy must not be scored for a user who says too much.
            (RolloutError::Dialogue(error @ DialogueError::PromptTooLong { .. }), _)
                if user_began =>
            {
                SetupError::Excluded(format!(
                    "what the simulated user said first does not fit: {error}"
                ))
            }
            // A server may begin a task in another way than at the rehearsal.
            (error, Some(name)) if is_on_server => SetupError::Excluded(format!(
                "the server of environment `{name}` gave what the task cannot use: {error}"
            )),
            (error, _) => error.into(),
        })?;
        Ok((environment, episode))
    }

    /// Opens the task's environment. A simulated user has not spoken yet.
    async fn open(
        context: &EpisodeContext,
        task: &Task,
        split: Split,
        trajectory: &str,
    ) -> Result<Self, SetupError> {
        let conversation = Conversation::for_task(task, context.user.as_ref(), trajectory)?;
        let view = context.shown.for_task(split, task)?;
        let session = match &task.environment {
            None => None,
            Some(name) => {
                let seed = Environments::seed(task);
                let environments = &context.environments;
                match environments.open(name, trajectory, &task.setup, seed).await {
                    Ok(session) => Some(session),
                    Err(error @ OpenError::NoSuchEnvironment { .. }) => return Err(error.into()),
                    Err(error) => return Err(SetupError::Excluded(error.to_string())),
                }
            }
        };
        let mut environment = Self {
            context: context.clone(),
            session,
            wanted: task.tools.clone(),
            plugin_tools: Vec::new(),
            view,
            task: task.id.clone(),
            prompt: Vec::new(),
            conversation,
        };
        environment.prompt = environment.prompt_of(task);
        if let Some(conversation) = &mut environment.conversation {
            conversation.read(&environment.prompt, context.dialogue.protocol().spec());
        }
        Ok(environment)
    }

    /// The task's messages, then those of the environment. A system message comes first, whether the task or the
    /// environment wrote it; the task's replaces the environment's.
    fn prompt_of(&self, task: &Task) -> Vec<Message> {
        let mut prompt = task.prompt.clone();
        if let Some(session) = &self.session {
            let (system, others): (Vec<Message>, Vec<Message>) =
                (session.messages().iter().cloned())
                    .partition(|message| message.role == Role::System);
            if prompt.iter().all(|message| message.role != Role::System) {
                prompt.splice(0..0, system);
            }
            prompt.extend(others);
        }
        prompt
    }

    /// Appends the user's first message to the prompt, if it has no message of a user yet. Returns whether it did.
    async fn let_user_begin(&mut self) -> Result<bool, SetupError> {
        let Some(conversation) = &mut self.conversation else {
            return Ok(false);
        };
        if !conversation.waits_for_user() {
            return Ok(false);
        }
        let text = match conversation.user_turn().await {
            Ok(UserTurn::Says(text)) => text,
            Ok(UserTurn::Stops) => {
                let why = "the simulated user left before it began";
                return Err(SetupError::Excluded(why.to_owned()));
            }
            Err(error) => return Err(SetupError::Excluded(error.to_string())),
        };
        self.prompt.push(Message::text(Role::User, text));
        Ok(true)
    }

    /// The plugins' tools that the task names. A task without an environment that names none gets all of them.
    fn tools_of_plugins(&self, task: &Task) -> Result<Vec<ToolDefinition>, RolloutError> {
        let manager = &self.context.tools;
        let Some(session) = &self.session else {
            return Ok(manager.definitions(self.wanted.as_deref())?);
        };
        let Some(wanted) = &self.wanted else {
            return Ok(Vec::new());
        };
        // The environment may offer a name later that neither has now.
        let is_own = |name: &String| session.tools().any(|tool| tool.name == **name);
        let others: Vec<String> = wanted
            .iter()
            .filter(|name| !is_own(name) && manager.has(name))
            .cloned()
            .collect();
        let both = wanted.iter().find(|name| is_own(name) && manager.has(name));
        if let (Some(tool), Some(environment)) = (both, &task.environment) {
            return Err(RolloutError::TwoTools {
                task: task.id.clone(),
                environment: environment.clone(),
                tool: tool.clone(),
            });
        }
        Ok(manager.definitions(Some(&others))?)
    }

    /// Fails if the task asks for tools and none is on offer. A server must offer each of them, because it cannot add
    /// tools later.
    fn check_wanted(&self, offered: &[ToolDefinition]) -> Result<(), RolloutError> {
        let (Some(wanted), Some(session)) = (&self.wanted, &self.session) else {
            return Ok(());
        };
        let own: Vec<&str> = session.tools().map(|tool| &*tool.name).collect();
        let is_missing =
            |name: &&String| !own.contains(&name.as_str()) && !self.context.tools.has(name);
        let missing = if offered.is_empty() && !wanted.is_empty() {
            "none of these".to_owned()
        } else if let Some(name) = wanted.iter().find(is_missing)
            && session.is_on_server()
        {
            format!("no `{name}`")
        } else {
            return Ok(());
        };
        Err(RolloutError::MissingTools {
            task: self.task.clone(),
            what: format!(
                "its `tools` are {}, and there is {missing}; its environment has {}",
                wanted.join(", "),
                own.join(", ")
            ),
        })
    }

    /// The tools on offer now, as the model sees them.
    pub(crate) fn tools(&self) -> Result<Vec<ToolDefinition>, RolloutError> {
        let is_wanted = |tool: &&ToolDefinition| {
            let wanted = self.wanted.as_ref();
            wanted.is_none_or(|wanted| wanted.contains(&tool.name))
        };
        let own = self
            .session
            .iter()
            .flat_map(EnvironmentSession::tools)
            .filter(is_wanted);
        let all = own.chain(&self.plugin_tools).cloned().collect();
        Ok(self.view.apply(all, &self.task)?)
    }

    /// Begins the episode with the messages of the prompt and the tools on offer.
    fn begin(&mut self, task: &Task, id: String) -> Result<Episode, RolloutError> {
        self.plugin_tools = self.tools_of_plugins(task)?;
        let tools = self.tools()?;
        self.check_wanted(&tools)?;
        let task = Task {
            prompt: self.prompt.clone(),
            ..task.clone()
        };
        let mut episode = Episode::start(&self.context.dialogue, id, &task, tools)?;
        if self.session.is_some() {
            episode.enter_environment();
        }
        Ok(episode)
    }

    /// Carries out the model's turn: makes its calls, or passes on its text. The results go into the episode.
    pub(crate) async fn act(
        &mut self,
        step: Step,
        context: &TurnContext,
        episode: &mut Episode,
    ) -> Result<Vec<CallOutcome>, RolloutError> {
        match step {
            Step::Act(calls) | Step::Grade(calls) => {
                let outcomes = self.invoke(calls, context, None).await?;
                if let Some(session) = &mut self.session
                    && session.take_tools_changed()
                {
                    episode.change_tools(self.tools()?);
                }
                if let Some(why) = self.lost() {
                    episode.abort_with(outcomes.clone(), format!("environment: {why}"));
                } else if self.is_terminated() {
                    episode.push_last_outcomes(outcomes.clone());
                } else {
                    episode.push_outcomes(outcomes.clone());
                }
                Ok(outcomes)
            }
            Step::Say(text) => {
                self.say(&text, context, episode).await?;
                Ok(Vec::new())
            }
            Step::Continue | Step::Finished(_) => Ok(Vec::new()),
        }
    }

    /// Makes the calls of a turn: those of the environment's tools one after the other, all others at the same time. `from`
    /// is the call of a guest that makes them, if the trajectory is led in the sandbox.
    pub(crate) async fn invoke(
        &mut self,
        calls: Vec<ToolCall>,
        context: &TurnContext,
        from: Option<&CalledFrom>,
    ) -> Result<Vec<CallOutcome>, RolloutError> {
        let shown_tools = self.tools()?;
        let shown_as = |name: &str| shown_tools.iter().find(|tool| tool.name == name);
        let is_of_plugin = |name: &str| self.plugin_tools.iter().any(|tool| tool.name == name);
        let has_session = self.session.is_some();
        let (mut own, mut others) = (Vec::new(), Vec::new());
        let mut all: Vec<(usize, CallOutcome)> = Vec::with_capacity(calls.len());
        for (place, mut call) in calls.into_iter().enumerate() {
            let recorded = self.context.recorded.as_ref();
            let recorded = recorded.and_then(|outcomes| outcomes.get(&call)).cloned();
            let shown = call.name.clone();
            if let Some(tool) = shown_as(&shown) {
                call.arguments = tool.own_arguments(&call.arguments);
                tool.own_name().clone_into(&mut call.name);
            }
            if has_session && !is_of_plugin(&call.name) {
                own.push((place, shown, call));
            } else if let Some(outcome) = recorded {
                all.push((place, outcome));
            } else {
                others.push((place, shown, call));
            }
        }
        let session = self.session.as_mut();
        let in_order = async {
            let mut outcomes = Vec::with_capacity(own.len());
            if let Some(session) = session {
                for (place, shown, call) in own {
                    outcomes.push((place, shown, session.call(call, context).await));
                }
            }
            outcomes
        };
        let (places, calls): (Vec<_>, Vec<_>) = others
            .into_iter()
            .map(|(place, shown, call)| ((place, shown), call))
            .unzip();
        let at_once = self.context.tools.invoke_from(calls, context, from);
        let (own, others) = tokio::join!(in_order, at_once);
        let others = places
            .into_iter()
            .zip(others)
            .map(|((place, shown), outcome)| (place, shown, outcome));
        for (place, shown, mut outcome) in own.into_iter().chain(others) {
            if let (Ended::InvalidArguments, Some(tool), Some(message)) =
                (outcome.ended, shown_as(&shown), &mut outcome.observation)
            {
                tool.name_as_shown(message);
            }
            outcome.name = shown;
            all.push((place, outcome));
        }
        all.sort_unstable_by_key(|(place, _)| *place);
        Ok(all.into_iter().map(|(_, outcome)| outcome).collect())
    }

    /// Passes the model's text to the environment and, if the environment is silent, to the simulated user.
    async fn say(
        &mut self,
        text: &str,
        context: &TurnContext,
        episode: &mut Episode,
    ) -> Result<(), RolloutError> {
        let Some(session) = &mut self.session else {
            episode.push_reply(Reply::Silence);
            return Ok(());
        };
        let heard = match &mut self.conversation {
            None => pass_to_environment(session, text, context, episode).await,
            Some(conversation) => conversation.answer(session, text, context, episode).await,
        };
        match heard {
            Ok(reply) => {
                if session.take_tools_changed() {
                    episode.change_tools(self.tools()?);
                }
                episode.push_reply(reply);
            }
            Err(error) => episode.abort(error.to_string()),
        }
        Ok(())
    }

    /// A copy that calls the same tools of plugins, without the environment's session. Its calls run beside those of
    /// others.
    pub(crate) fn without_session(&self) -> Self {
        Self {
            context: self.context.clone(),
            session: None,
            wanted: self.wanted.clone(),
            plugin_tools: self.plugin_tools.clone(),
            view: self.view.clone(),
            task: self.task.clone(),
            prompt: Vec::new(),
            conversation: None,
        }
    }

    /// The messages before the model's first turn, in order.
    pub(crate) fn prompt(&self) -> &[Message] {
        &self.prompt
    }

    /// True if a model plays the task's user.
    pub(crate) fn has_user(&self) -> bool {
        self.conversation.is_some()
    }

    /// The reason why the environment's session is lost, if it is.
    pub(crate) fn lost(&self) -> Option<String> {
        let session = self.session.as_ref();
        session.and_then(|session| session.lost().map(str::to_owned))
    }

    /// True if the environment ended the episode.
    pub(crate) fn is_terminated(&self) -> bool {
        let session = self.session.as_ref();
        session.is_some_and(EnvironmentSession::is_terminated)
    }

    /// The environment's final state and its verdict, if there is an environment. Only here does the environment learn
    /// the task's reference.
    pub(crate) async fn ending(&self, answer: Option<&str>, task: &Task) -> Option<EpisodeEnd> {
        let session = self.session.as_ref()?;
        if session.lost().is_some() {
            return None;
        }
        Some(session.end(answer, &task.reference).await)
    }

    /// Adds the environment's final state and its verdict to the episode.
    pub(crate) async fn judge(&self, episode: &mut Episode, task: &Task) {
        if let Some(ending) = self.ending(episode.answer(), task).await {
            episode.judge(ending.state, ending.verdict, ending.problem);
        }
    }
}

/// The trajectory of a task that could not be set up: nothing happened in it, and it is excluded.
pub(crate) fn excluded_trajectory(id: String, task: &Arc<Task>, why: String) -> Trajectory {
    Trajectory {
        id,
        task: task.id.clone(),
        tools: Vec::new(),
        events: Vec::new(),
        sequences: Vec::new(),
        answer: None,
        finish: Finish::Aborted,
        excluded: Some(why),
        closed_turns: 0,
        final_state: None,
        verdict: None,
        unjudged: None,
    }
}
