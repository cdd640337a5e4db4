//! Simulated users: someone with a goal of their own, whom the model has to talk to.
//!
//! A task wants one with `"user": "model"` in its setup; its `instruction` there is the user's secret. Whoever plays the
//! user knows little, and the types see to it: a [`Persona`] has the instruction, and a [`Said`] is what the two said to
//! each other. No call, no observation, no system message and no reference is in either. How a model that plays users is
//! reached is not known here.

use std::sync::Arc;

use async_trait::async_trait;
use rlf_dialogue::message::{Message, Role};
use rlf_dialogue::parser;
use rlf_dialogue::protocol::{ProtocolSpec, THINK_CLOSE, THINK_OPEN};
use rlf_dialogue::task::Task;
use serde::{Deserialize, Serialize};

/// What an environment is told when its user has left, and nothing beside it.
pub const STOP: &str = "###STOP###";

/// What a user knows of themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Persona {
    /// Who they are and what they want, as the task has it.
    pub instruction: String,
    /// The trajectory's id: decides what is random in them, and is not for them to read.
    pub trajectory: String,
}

/// Who said something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// The model that is trained or measured.
    Agent,
    /// The user.
    User,
}

/// Something said between the agent and its user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    /// Who said it.
    pub by: Speaker,
    /// The words, and nothing else of the turn.
    pub text: String,
}

impl Said {
    /// Words of the agent.
    pub fn agent(text: impl Into<String>) -> Self {
        let (by, text) = (Speaker::Agent, text.into());
        Self { by, text }
    }

    /// Words of the user.
    pub fn user(text: impl Into<String>) -> Self {
        let (by, text) = (Speaker::User, text.into());
        Self { by, text }
    }

    /// What a prompt says between the two. Where it shows calls, what they gave or thoughts, these are left out.
    pub(crate) fn in_prompt(prompt: &[Message], protocol: &ProtocolSpec) -> Vec<Self> {
        let said = |message: &Message| {
            let text = message.plain_text();
            match message.role {
                Role::User => Some(Self::user(text)),
                Role::Assistant => Some(spoken(&text, protocol))
                    .filter(|text| !text.is_empty())
                    .map(Self::agent),
                Role::System | Role::Tool => None,
            }
        };
        prompt.iter().filter_map(said).collect()
    }
}

/// What is said in a turn of the agent's that a prompt has as it was written: thoughts and calls are not.
fn spoken(text: &str, protocol: &ProtocolSpec) -> String {
    // Where a template opens the thoughts, only their end was written.
    let in_think = match (text.find(THINK_CLOSE), text.find(THINK_OPEN)) {
        (Some(close), Some(open)) => close < open,
        (close, None) => close.is_some(),
        (None, Some(_)) => false,
    };
    let no_tools: &[&str] = &[];
    parser::parse(text, in_think, protocol, no_tools).visible()
}

/// What a user does when it is their turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserTurn {
    /// Says something.
    Says(String),
    /// Leaves: the conversation is over.
    Stops,
}

/// Why a user does nothing: whoever plays them could not be reached, or made no sense. It excludes the trajectory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UserError(pub String);

/// Plays users.
#[async_trait]
pub trait User: Send + Sync + std::fmt::Debug {
    /// The model that plays them, for results.
    fn model(&self) -> &str;

    /// What the user says before anyone else has.
    async fn first(&self, persona: &Persona) -> Result<UserTurn, UserError> {
        self.reply(persona, &[]).await
    }

    /// What the user says to the last of `said`, which is in order and the agent's.
    async fn reply(&self, persona: &Persona, said: &[Said]) -> Result<UserTurn, UserError>;
}

/// A task whose user cannot be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskUserError {
    /// Nobody is there to play them.
    #[error(
        "task {task} wants a model to play its user (setup.user = \"model\"), and none is configured; add a table [user] \
         with `url` and `model`, or write \"user\": \"solo\" where its environment knows that"
    )]
    Nobody {
        /// The task's id.
        task: String,
    },
    /// They do not know what they want.
    #[error(
        "task {task} wants a model to play its user, and setup.instruction, which tells the model whom to play, is not a text"
    )]
    NoInstruction {
        /// The task's id.
        task: String,
    },
}

/// Whether a model plays the user of `task`.
pub fn is_wanted(task: &Task) -> bool {
    task.environment.is_some()
        && task.setup.get("user").and_then(serde_json::Value::as_str) == Some("model")
}

/// Refuses a task whose user cannot be played by `user`.
pub fn check(task: &Task, user: Option<&Arc<dyn User>>) -> Result<(), TaskUserError> {
    Conversation::of(task, user, "").map(drop)
}

/// What the agent of one trajectory and its user say to each other.
#[derive(Debug)]
pub(crate) struct Conversation {
    user: Arc<dyn User>,
    persona: Persona,
    said: Vec<Said>,
}

impl Conversation {
    /// None where no model plays the user of `task`.
    pub(crate) fn of(
        task: &Task,
        user: Option<&Arc<dyn User>>,
        trajectory: &str,
    ) -> Result<Option<Self>, TaskUserError> {
        if !is_wanted(task) {
            return Ok(None);
        }
        let id = || task.id.clone();
        let user = user.ok_or_else(|| TaskUserError::Nobody { task: id() })?;
        let instruction = task.setup.get("instruction").and_then(|text| text.as_str());
        let instruction = instruction
            .filter(|text| !text.trim().is_empty())
            .ok_or_else(|| TaskUserError::NoInstruction { task: id() })?;
        Ok(Some(Self {
            user: Arc::clone(user),
            persona: Persona {
                instruction: instruction.to_owned(),
                trajectory: trajectory.to_owned(),
            },
            said: Vec::new(),
        }))
    }

    /// Takes over what a prompt says between the two.
    pub(crate) fn read(&mut self, prompt: &[Message], protocol: &ProtocolSpec) {
        self.said.extend(Said::in_prompt(prompt, protocol));
    }

    /// Whether the user is to say something before the agent does.
    pub(crate) fn waits_for_user(&self) -> bool {
        self.said
            .last()
            .is_none_or(|said| said.by == Speaker::Agent)
    }

    pub(crate) fn instruction(&self) -> &str {
        &self.persona.instruction
    }

    /// The agent has said `text`.
    pub(crate) fn agent_says(&mut self, text: &str) {
        self.said.push(Said::agent(text));
    }

    /// Someone else has answered in the user's place.
    pub(crate) fn user_says(&mut self, text: String) {
        self.said.push(Said::user(text));
    }

    /// The user's turn. An error says why there is none.
    pub(crate) async fn user_turn(&mut self) -> Result<UserTurn, String> {
        let turn = if self.said.is_empty() {
            self.user.first(&self.persona).await
        } else {
            self.user.reply(&self.persona, &self.said).await
        };
        match turn {
            Ok(UserTurn::Says(text)) if text.trim().is_empty() => {
                Err("the simulated user said nothing".to_owned())
            }
            Ok(UserTurn::Says(text)) => {
                self.said.push(Said::user(text.as_str()));
                Ok(UserTurn::Says(text))
            }
            Ok(UserTurn::Stops) => Ok(UserTurn::Stops),
            Err(error) => Err(format!("the simulated user could not answer: {error}")),
        }
    }
}

/// Who played the users of some tasks: numbers under one mode are not to be compared with those under another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "mode", rename_all = "lowercase")]
pub enum UsersMode {
    /// Nobody but the environments themselves.
    Solo,
    /// A model, in all of them.
    Model {
        /// Its name.
        model: String,
    },
    /// A model, in some of them.
    Mixed {
        /// Its name.
        model: String,
    },
}

impl UsersMode {
    /// How the users of `tasks` are played; none where no task lives in an environment.
    pub fn of<'a>(
        tasks: impl IntoIterator<Item = &'a Task>,
        user: Option<&dyn User>,
    ) -> Option<Self> {
        let (mut worlds, mut wanted) = (0, 0);
        for task in tasks {
            worlds += usize::from(task.environment.is_some());
            wanted += usize::from(is_wanted(task));
        }
        let model = || user.map_or_else(String::new, |user| user.model().to_owned());
        match (worlds, wanted) {
            (0, _) => None,
            (_, 0) => Some(Self::Solo),
            _ if worlds == wanted => Some(Self::Model { model: model() }),
            _ => Some(Self::Mixed { model: model() }),
        }
    }
}

impl std::fmt::Display for UsersMode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Solo => f.write_str("solo"),
            Self::Model { model } => write!(f, "model {model}"),
            Self::Mixed { model } => write!(f, "model {model} for some tasks, solo for others"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use rlf_dialogue::protocol::Protocol;
    use rlf_dialogue::tool::ToolCall;
    use serde_json::{Value, json};

    use super::*;

    /// Says one line after the other, then leaves, and keeps what they were told.
    #[derive(Debug, Default)]
    struct Script {
        lines: Mutex<Vec<Result<UserTurn, UserError>>>,
        told: Mutex<Vec<(Persona, Vec<Said>)>>,
    }

    #[async_trait]
    impl User for Script {
        fn model(&self) -> &'static str {
            "script"
        }

        async fn reply(&self, persona: &Persona, said: &[Said]) -> Result<UserTurn, UserError> {
            let told = (persona.clone(), said.to_vec());
            self.told.lock().unwrap().push(told);
            let next = self.lines.lock().unwrap().pop();
            next.unwrap_or(Ok(UserTurn::Stops))
        }
    }

    fn script(mut lines: Vec<Result<UserTurn, UserError>>) -> Arc<Script> {
        lines.reverse();
        Arc::new(Script {
            lines: Mutex::new(lines),
            told: Mutex::default(),
        })
    }

    fn says(text: &str) -> UserTurn {
        UserTurn::Says(text.to_owned())
    }

    fn task(environment: Option<&str>, setup: Value) -> Task {
        Task {
            id: "t".into(),
            source: "test".into(),
            prompt: Vec::new(),
            tools: None,
            reference: json!("SECRET reference"),
            environment: environment.map(str::to_owned),
            setup,
            extra: serde_json::Map::new(),
        }
    }

    fn wanting() -> Task {
        let setup =
            json!({"user": "model", "instruction": "You want tea.", "more": "SECRET setup"});
        task(Some("shop"), setup)
    }

    fn conversation(script: &Arc<Script>) -> Conversation {
        let user: Arc<dyn User> = script.clone();
        let conversation = Conversation::of(&wanting(), Some(&user), "train-1/0:t/0");
        conversation.unwrap().expect("one is wanted")
    }

    #[tokio::test]
    async fn a_user_knows_the_instruction_and_what_was_said_and_nothing_else() {
        let script = script(vec![Ok(says("Green.")), Ok(says("No, thanks."))]);
        let mut conversation = conversation(&script);
        let call = ToolCall {
            call_id: "c".into(),
            name: "SECRET call".into(),
            arguments: json!({"SECRET": 1}),
        };
        let prompt = [
            Message::text(Role::System, "SECRET policy"),
            Message::text(Role::User, "Tea, please."),
            Message {
                reasoning_content: Some("SECRET thought".into()),
                tool_calls: vec![call.clone()],
                ..Message::text(Role::Assistant, "Which?")
            },
            Message {
                tool_calls: vec![call],
                ..Message::text(Role::Assistant, " ")
            },
            Message::text(Role::Tool, "SECRET observation"),
            Message::text(Role::Assistant, "<think>SECRET</think>\n\nWe have two."),
            Message::text(Role::Assistant, "SECRET</think>I looked."),
            Message::text(
                Role::Assistant,
                "<tool_call>\n{\"name\": \"SECRET\", \"arguments\": {}}\n</tool_call>",
            ),
        ];
        conversation.read(&prompt, Protocol::Hermes.spec());
        assert!(conversation.waits_for_user());
        conversation.user_turn().await.unwrap();
        assert!(!conversation.waits_for_user());
        conversation.agent_says("Milk?");
        conversation.user_turn().await.unwrap();
        let told = script.told.lock().unwrap();
        assert!(!format!("{told:?}").contains("SECRET"), "{told:?}");
        let (persona, said) = &told[1];
        assert_eq!(persona.instruction, "You want tea.");
        assert_eq!(
            *said,
            [
                Said::user("Tea, please."),
                Said::agent("Which?"),
                Said::agent("We have two."),
                Said::agent("I looked."),
                Said::user("Green."),
                Said::agent("Milk?"),
            ]
        );
    }

    #[test]
    fn calls_in_a_prompt_are_those_of_the_runs_protocol() {
        let bare = "{\"name\": \"SECRET\", \"parameters\": {}}";
        let prompt = [
            Message::text(Role::User, "Tea, please."),
            Message::text(Role::Assistant, bare),
        ];
        let heard = |protocol: Protocol| Said::in_prompt(&prompt, protocol.spec());
        assert_eq!(heard(Protocol::Llama31), [Said::user("Tea, please.")]);
        assert_eq!(heard(Protocol::Hermes)[1], Said::agent(bare));
    }

    #[tokio::test]
    async fn a_user_speaks_first_where_nobody_has() {
        let script = script(vec![Ok(says("Tea, please."))]);
        let mut conversation = conversation(&script);
        let prompt = [Message::text(Role::System, "Sell tea.")];
        conversation.read(&prompt, Protocol::Hermes.spec());
        assert!(conversation.waits_for_user());
        let turn = conversation.user_turn().await;
        assert_eq!(turn, Ok(says("Tea, please.")));
        assert_eq!(conversation.user_turn().await, Ok(UserTurn::Stops));
        assert!(script.told.lock().unwrap()[0].1.is_empty());
    }

    #[tokio::test]
    async fn a_user_who_fails_or_says_nothing_is_an_error_that_says_so() {
        let broken = Err(UserError("nobody there".into()));
        let mut conversation = conversation(&script(vec![broken, Ok(says(" \n"))]));
        for reason in [
            "the simulated user could not answer: nobody there",
            "the simulated user said nothing",
        ] {
            assert_eq!(conversation.user_turn().await, Err(reason.to_owned()));
        }
    }

    #[test]
    fn a_task_whose_user_cannot_be_is_refused_with_what_to_do() {
        let user: Arc<dyn User> = script(Vec::new());
        let error = check(&wanting(), None).unwrap_err().to_string();
        assert!(error.contains("add a table [user]"), "{error}");
        assert!(error.contains("\"user\": \"solo\""), "{error}");
        for instruction in [Value::Null, json!(3), json!(" ")] {
            let setup = json!({"user": "model", "instruction": instruction});
            let error = check(&task(Some("shop"), setup), Some(&user)).unwrap_err();
            assert!(
                matches!(error, TaskUserError::NoInstruction { .. }),
                "{error}"
            );
        }
        for other in [
            task(None, json!({"user": "model"})),
            task(Some("shop"), json!({"user": "solo"})),
            task(Some("shop"), Value::Null),
        ] {
            assert_eq!(check(&other, None), Ok(()));
        }
    }

    #[test]
    fn the_mode_of_users_says_who_played_them() {
        let user: Arc<dyn User> = script(Vec::new());
        let (none, solo) = (task(None, Value::Null), task(Some("shop"), Value::Null));
        let mode = |tasks: &[&Task]| UsersMode::of(tasks.iter().copied(), Some(&*user));
        assert_eq!(mode(&[&none]), None);
        assert_eq!(mode(&[&none, &solo]), Some(UsersMode::Solo));
        let model = String::from("script");
        let all = UsersMode::Model {
            model: model.clone(),
        };
        assert_eq!(mode(&[&none, &wanting()]), Some(all.clone()));
        assert_eq!(mode(&[&solo, &wanting()]), Some(UsersMode::Mixed { model }));
        assert_eq!(all.to_string(), "model script");
        assert_eq!(
            serde_json::to_value(all).unwrap(),
            json!({"mode": "model", "model": "script"})
        );
    }
}
