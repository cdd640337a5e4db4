//! What a trajectory acts in: the session of its environment, if it has one, beside the tools of plugins.

use std::sync::Arc;

use rlf_dialogue::dialogue::DialogueError;
use rlf_dialogue::episode::{Episode, Reply, Step};
use rlf_dialogue::message::{Content, Message, Role, plain_text};
use rlf_dialogue::split::Split;
use rlf_dialogue::task::Task;
use rlf_dialogue::tool::{CallOutcome, ToolCall, ToolDefinition};
use rlf_dialogue::trajectory::{Finish, Trajectory};
use rlf_plugins::environment::{Environments, OpenError, Session};
use rlf_plugins::tool_manager::TurnContext;

use crate::shown_tools::{Showing, own_name};
use crate::user::{Conversation, STOP, UserTurn};
use crate::{RolloutError, Scene};

/// Opens a task and renders its prompt as a rollout will, and goes no further: what is wrong with it is known then. A
/// simulated user is not asked; their instruction stands for what they would say first.
pub async fn rehearse(scene: &Scene, task: &Task, split: Split) -> Result<(), RolloutError> {
    let id = format!("rehearsal/{}", task.id);
    let world = World::open_unasked(scene, task, split, &id).await?;
    let mut world = world.map_err(|why| RolloutError::World {
        task: task.id.clone(),
        why,
    })?;
    if let (Some(wanted), Some(session)) = (&task.tools, &world.session)
        && !wanted.is_empty()
        && world.tools()?.is_empty()
    {
        let own: Vec<&str> = session.tools().map(|tool| &*tool.name).collect();
        return Err(RolloutError::World {
            task: task.id.clone(),
            why: format!(
                "its `tools` are {}, and there is none of these; its environment has {}",
                wanted.join(", "),
                own.join(", ")
            ),
        });
    }
    if let Some(conversation) = &world.conversation
        && conversation.waits_for_user()
    {
        let stand_in = Message::text(Role::User, conversation.instruction());
        world.prompt.push(stand_in);
    }
    world.begin(task, id).map(drop)
}

/// See the module's documentation.
pub(crate) struct World<'a> {
    scene: &'a Scene,
    session: Option<Session>,
    /// Names of the task's own choice; all that there are where it has none.
    wanted: Option<Vec<String>>,
    plugins: Vec<ToolDefinition>,
    showing: Showing,
    task: String,
    /// What was said before the model's first turn, in order.
    prompt: Vec<Message>,
    /// Where a model plays the user.
    conversation: Option<Conversation>,
}

impl<'a> World<'a> {
    /// Opens what a task lives in; a simulated user speaks first, where nobody else has. The inner error excludes the
    /// trajectory.
    pub(crate) async fn open(
        scene: &'a Scene,
        task: &Task,
        split: Split,
        trajectory: &str,
    ) -> Result<Result<Self, String>, RolloutError> {
        let mut world = match Self::open_unasked(scene, task, split, trajectory).await? {
            Ok(world) => world,
            Err(why) => return Ok(Err(why)),
        };
        let begun = world.let_user_begin(task, trajectory).await?;
        Ok(begun.map(|()| world))
    }

    /// As [`World::open`], without a word of the user's.
    async fn open_unasked(
        scene: &'a Scene,
        task: &Task,
        split: Split,
        trajectory: &str,
    ) -> Result<Result<Self, String>, RolloutError> {
        let conversation = Conversation::of(task, scene.user.as_ref(), trajectory)?;
        let showing = scene.shown.of(split, task)?;
        let session = match &task.environment {
            None => None,
            Some(name) => {
                let seed = Environments::seed(task);
                let environments = &scene.environments;
                match environments.open(name, trajectory, &task.setup, seed).await {
                    Ok(session) => Some(session),
                    Err(error @ OpenError::NoSuchEnvironment { .. }) => return Err(error.into()),
                    Err(error) => return Ok(Err(error.to_string())),
                }
            }
        };
        let mut world = World {
            scene,
            session,
            wanted: task.tools.clone(),
            plugins: Vec::new(),
            showing,
            task: task.id.clone(),
            prompt: Vec::new(),
            conversation,
        };
        world.plugins = world.tools_of_plugins(task)?;
        world.prompt = world.prompt_of(task);
        if let Some(conversation) = &mut world.conversation {
            conversation.read(&world.prompt, scene.dialogue.protocol().spec());
        }
        Ok(Ok(world))
    }

    /// What the task says first, and then what the environment does. A system message stands first, whoever it is of.
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

    /// What the user says first becomes the end of the prompt.
    async fn let_user_begin(
        &mut self,
        task: &Task,
        trajectory: &str,
    ) -> Result<Result<(), String>, RolloutError> {
        let Some(conversation) = &mut self.conversation else {
            return Ok(Ok(()));
        };
        if !conversation.waits_for_user() {
            return Ok(Ok(()));
        }
        let text = match conversation.user_turn().await {
            Ok(UserTurn::Says(text)) => text,
            Ok(UserTurn::Stops) => {
                return Ok(Err("the simulated user left before it began".to_owned()));
            }
            Err(why) => return Ok(Err(why)),
        };
        self.prompt.push(Message::text(Role::User, text));
        // The model is not to answer for how much its user says.
        match self.begin(task, trajectory.to_owned()) {
            Err(RolloutError::Dialogue(error @ DialogueError::PromptTooLong { .. })) => Ok(Err(
                format!("what the simulated user said first does not fit: {error}"),
            )),
            Err(error) => Err(error),
            Ok(_) => Ok(Ok(())),
        }
    }

    /// The tools of plugins that the task names; all of them where it names none and has no environment.
    fn tools_of_plugins(&self, task: &Task) -> Result<Vec<ToolDefinition>, RolloutError> {
        let manager = &self.scene.tools;
        let Some(session) = &self.session else {
            return Ok(manager.definitions(self.wanted.as_deref())?);
        };
        let Some(wanted) = &self.wanted else {
            return Ok(Vec::new());
        };
        // A name that neither has now may be the environment's later on.
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

    /// The tools on offer now, as the model sees them.
    pub(crate) fn tools(&self) -> Result<Vec<ToolDefinition>, RolloutError> {
        let is_wanted = |tool: &&ToolDefinition| {
            let wanted = self.wanted.as_ref();
            wanted.is_none_or(|wanted| wanted.contains(&tool.name))
        };
        let own = self
            .session
            .iter()
            .flat_map(Session::tools)
            .filter(is_wanted);
        let all = own.chain(&self.plugins).cloned().collect();
        Ok(self.showing.apply(all, &self.task)?)
    }

    /// Begins the episode with what was said before it.
    pub(crate) fn begin(&self, task: &Task, id: String) -> Result<Episode, RolloutError> {
        let task = Task {
            prompt: self.prompt.clone(),
            ..task.clone()
        };
        let mut episode = Episode::start(&self.scene.dialogue, id, &task, self.tools()?)?;
        if self.session.is_some() {
            episode.enter_environment();
        }
        Ok(episode)
    }

    /// Makes the calls of a turn, or says what the model said, and tells the episode what came of it.
    pub(crate) async fn take(
        &mut self,
        step: Step,
        context: &TurnContext,
        episode: &mut Episode,
    ) -> Result<Vec<CallOutcome>, RolloutError> {
        match step {
            Step::Act(calls) | Step::Grade(calls) => {
                let outcomes = self.invoke(calls, context).await?;
                if let Some(session) = &mut self.session
                    && session.take_tools_changed()
                {
                    episode.change_tools(self.tools()?);
                }
                if let Some(why) = self.session.as_ref().and_then(Session::lost) {
                    episode.abort_with(outcomes.clone(), format!("environment: {why}"));
                } else if self.session.as_ref().is_some_and(Session::is_terminated) {
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

    /// The calls of the environment's tools one after the other, the others beside them.
    async fn invoke(
        &mut self,
        calls: Vec<ToolCall>,
        context: &TurnContext,
    ) -> Result<Vec<CallOutcome>, RolloutError> {
        let shown_tools = self.tools()?;
        let own_name = |shown: &str| own_name(&shown_tools, shown).to_owned();
        let is_of_plugin = |name: &str| self.plugins.iter().any(|tool| tool.name == name);
        let in_world = self.session.is_some();
        let count = calls.len();
        let (mut own, mut others) = (Vec::new(), Vec::new());
        for (place, mut call) in calls.into_iter().enumerate() {
            let shown = call.name.clone();
            call.name = own_name(&shown);
            let list = if in_world && !is_of_plugin(&call.name) {
                &mut own
            } else {
                &mut others
            };
            list.push((place, shown, call));
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
        let at_once = self.scene.tools.invoke(calls, context);
        let (own, others) = tokio::join!(in_order, at_once);
        let others = places
            .into_iter()
            .zip(others)
            .map(|((place, shown), outcome)| (place, shown, outcome));
        let mut all: Vec<(usize, CallOutcome)> = Vec::with_capacity(count);
        for (place, shown, mut outcome) in own.into_iter().chain(others) {
            outcome.name = shown;
            all.push((place, outcome));
        }
        all.sort_unstable_by_key(|(place, _)| *place);
        Ok(all.into_iter().map(|(_, outcome)| outcome).collect())
    }

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
            None => tell(session, text, context, episode).await,
            Some(conversation) => converse(session, conversation, text, context, episode).await,
        };
        match heard {
            Ok(reply) => {
                if session.take_tools_changed() {
                    episode.change_tools(self.tools()?);
                }
                episode.push_reply(reply);
            }
            Err(why) => episode.abort(why),
        }
        Ok(())
    }

    /// What the environment has come to, and how it judges that. Its reference reaches it here for the first time.
    pub(crate) async fn judge(&self, episode: &mut Episode, task: &Task) {
        let Some(session) = &self.session else {
            return;
        };
        if session.lost().is_some() {
            return;
        }
        let ending = session.end(episode.answer(), &task.reference).await;
        episode.judge(ending.state, ending.verdict, ending.problem);
    }
}

/// The environment hears what the agent said, and where it is silent, its user answers. An error excludes the trajectory.
async fn converse(
    session: &mut Session,
    conversation: &mut Conversation,
    text: &str,
    context: &TurnContext,
    episode: &mut Episode,
) -> Result<Reply, String> {
    // Only the user can leave: of the agent, the word is a word.
    let reply = if text.trim() == STOP {
        tell(session, &format!("{text}."), context, episode).await?
    } else {
        tell(session, text, context, episode).await?
    };
    conversation.agent_says(text);
    match reply {
        Reply::Said(content) => {
            conversation.user_says(plain_text(&content));
            Ok(Reply::Said(content))
        }
        Reply::Ended => Ok(Reply::Ended),
        Reply::Silence => match conversation.user_turn().await? {
            UserTurn::Says(text) => Ok(Reply::Said(vec![Content::Text(text)])),
            UserTurn::Stops => {
                tell(session, STOP, context, episode).await?;
                Ok(Reply::Ended)
            }
        },
    }
}

/// Tells the environment what was said, and the episode what the environment made of it.
async fn tell(
    session: &mut Session,
    text: &str,
    context: &TurnContext,
    episode: &mut Episode,
) -> Result<Reply, String> {
    let (reply, heard) = session.say(text, context).await?;
    episode.note_heard(heard);
    Ok(reply)
}

/// A trajectory whose world could not be opened: nothing happened in it, and nobody is to be scored for that.
pub(crate) fn unopened(id: String, task: &Arc<Task>, why: String) -> Trajectory {
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
