//! Simulated users: a model plays a person with a goal of their own, and the policy has to talk to them.
//!
//! A task asks for one with `"user": "model"` in its setup. The `instruction` there is the user's secret. The types limit
//! what the player of the user knows: a [`Persona`] has the instruction, and an [`Utterance`] is one message between the
//! two. Neither contains a call, an observation, a system message or a reference. This module does not know how the model
//! that plays the users is reached.

use std::sync::Arc;

use async_trait::async_trait;
use rlf_dialogue::message::{Message, Role};
use rlf_dialogue::parser;
use rlf_dialogue::protocol::{ProtocolSpec, THINK_CLOSE, THINK_OPEN};
use rlf_dialogue::task::Task;
use serde::{Deserialize, Serialize};

/// The text that tells an environment that its user has left. It is sent alone.
pub const STOP: &str = "###STOP###";

/// Everything that users know about themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Persona {
    /// The person and their goal, in the words of the task.
    pub instruction: String,
    /// The trajectory's id. It keys the user's randomness and is not shown to the user.
    pub trajectory: String,
}

/// The two sides of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// The model that is trained or evaluated.
    Agent,
    /// The user.
    User,
}

/// One message between the agent and its user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Utterance {
    /// The side that said it.
    pub speaker: Speaker,
    /// The words, and nothing else of the turn.
    pub text: String,
}

impl Utterance {
    /// A message of the agent.
    pub fn agent(text: impl Into<String>) -> Self {
        let (speaker, text) = (Speaker::Agent, text.into());
        Self { speaker, text }
    }

    /// A message of the user.
    pub fn user(text: impl Into<String>) -> Self {
        let (speaker, text) = (Speaker::User, text.into());
        Self { speaker, text }
    }

    /// The messages between the agent and its user in a prompt. Calls, observations and reasoning are left out.
    pub(crate) fn from_prompt(prompt: &[Message], protocol: &ProtocolSpec) -> Vec<Self> {
        let said = |message: &Message| {
            let text = message.plain_text();
            match message.role {
                Role::User => Some(Self::user(text)),
                Role::Assistant => Some(visible_text(&text, protocol))
                    .filter(|text| !text.is_empty())
                    .map(Self::agent),
                Role::System | Role::Tool => None,
            }
        };
        prompt.iter().filter_map(said).collect()
    }
}

/// The text of an agent's turn without its reasoning and its calls.
fn visible_text(text: &str, protocol: &ProtocolSpec) -> String {
    // A template may open the reasoning itself; then the turn contains only its end.
    let in_think = match (text.find(THINK_CLOSE), text.find(THINK_OPEN)) {
        (Some(close), Some(open)) => close < open,
        (close, None) => close.is_some(),
        (None, Some(_)) => false,
    };
    let no_tools: &[&str] = &[];
    parser::parse(text, in_think, protocol, no_tools).visible()
}

/// A user's turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserTurn {
    /// The user says something.
    Says(String),
    /// The user leaves: the conversation is over.
    Stops,
}

/// The reason why a user has no turn: the model that plays the user could not be reached, or its answer was unusable. It
/// excludes the trajectory.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UserError(pub String);

/// Plays users.
#[async_trait]
pub trait User: Send + Sync + std::fmt::Debug {
    /// The name of the model that plays them, for results.
    fn model(&self) -> &str;

    /// The user's first message, before anyone else has spoken.
    async fn first(&self, persona: &Persona) -> Result<UserTurn, UserError> {
        self.reply(persona, &[]).await
    }

    /// The user's reply to `said`, which is in order and ends with a message of the agent.
    async fn reply(&self, persona: &Persona, said: &[Utterance]) -> Result<UserTurn, UserError>;
}

/// The reason why the user of a task cannot be played.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskUserError {
    /// No model is configured.
    #[error(
        "task {task} wants a model to play its user (setup.user = \"model\"), and none is configured; add a table [user] \
         with `url` and `model`, or write \"user\": \"solo\" where its environment knows that"
    )]
    Nobody {
        /// The task's id.
        task: String,
    },
    /// The task does not say what the user wants.
    #[error(
        "task {task} wants a model to play its user, and setup.instruction, which tells the model whom to play, is not a text"
    )]
    NoInstruction {
        /// The task's id.
        task: String,
    },
}

/// True if a model plays the user of `task`.
pub fn is_played_by_model(task: &Task) -> bool {
    task.environment.is_some()
        && task.setup.get("user").and_then(serde_json::Value::as_str) == Some("model")
}

/// Refuses a task whose user `user` cannot play.
pub fn check(task: &Task, user: Option<&Arc<dyn User>>) -> Result<(), TaskUserError> {
    if !is_played_by_model(task) {
        return Ok(());
    }
    if user.is_none() {
        return Err(TaskUserError::Nobody {
            task: task.id.clone(),
        });
    }
    instruction_of(task).map(drop)
}

/// The task's instruction for its user.
pub(crate) fn instruction_of(task: &Task) -> Result<&str, TaskUserError> {
    let instruction = task.setup.get("instruction").and_then(|text| text.as_str());
    instruction
        .filter(|text| !text.trim().is_empty())
        .ok_or_else(|| TaskUserError::NoInstruction {
            task: task.id.clone(),
        })
}

/// The players of the users of a set of tasks. Results under different modes cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "mode", rename_all = "lowercase")]
pub enum UsersMode {
    /// The environments play them.
    Solo,
    /// A model plays them in all tasks.
    Model {
        /// The model's name.
        model: String,
    },
    /// A model plays them in some tasks.
    Mixed {
        /// The model's name.
        model: String,
    },
}

impl UsersMode {
    /// The mode of `tasks`; `None` if no task has an environment.
    pub fn for_tasks<'a>(
        tasks: impl IntoIterator<Item = &'a Task>,
        user: Option<&dyn User>,
    ) -> Option<Self> {
        let (mut environments, mut wanted) = (0, 0);
        for task in tasks {
            environments += usize::from(task.environment.is_some());
            wanted += usize::from(is_played_by_model(task));
        }
        let model = || user.map_or_else(String::new, |user| user.model().to_owned());
        match (environments, wanted) {
            (0, _) => None,
            (_, 0) => Some(Self::Solo),
            _ if environments == wanted => Some(Self::Model { model: model() }),
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
pub(crate) mod tests {
    use std::sync::Mutex;

    use rlf_dialogue::protocol::Protocol;
    use serde_json::{Value, json};

    use super::*;

    /// Says one line after the other, then leaves. It keeps everything it was asked with.
    #[derive(Debug, Default)]
    pub(crate) struct Script {
        lines: Mutex<Vec<Result<UserTurn, UserError>>>,
        pub(crate) told: Mutex<Vec<(Persona, Vec<Utterance>)>>,
    }

    #[async_trait]
    impl User for Script {
        fn model(&self) -> &'static str {
            "script"
        }

        async fn reply(
            &self,
            persona: &Persona,
            said: &[Utterance],
        ) -> Result<UserTurn, UserError> {
            let told = (persona.clone(), said.to_vec());
            self.told.lock().unwrap().push(told);
            let next = self.lines.lock().unwrap().pop();
            next.unwrap_or(Ok(UserTurn::Stops))
        }
    }

    pub(crate) fn script(mut lines: Vec<Result<UserTurn, UserError>>) -> Arc<Script> {
        lines.reverse();
        Arc::new(Script {
            lines: Mutex::new(lines),
            told: Mutex::default(),
        })
    }

    pub(crate) fn says(text: &str) -> UserTurn {
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

    pub(crate) fn task_with_user() -> Task {
        let setup =
            json!({"user": "model", "instruction": "You want tea.", "more": "SECRET setup"});
        task(Some("shop"), setup)
    }

    #[test]
    fn calls_in_a_prompt_are_those_of_the_runs_protocol() {
        let bare = "{\"name\": \"SECRET\", \"parameters\": {}}";
        let prompt = [
            Message::text(Role::User, "Tea, please."),
            Message::text(Role::Assistant, bare),
        ];
        let heard = |protocol: Protocol| Utterance::from_prompt(&prompt, protocol.spec());
        assert_eq!(heard(Protocol::Llama31), [Utterance::user("Tea, please.")]);
        assert_eq!(heard(Protocol::Hermes)[1], Utterance::agent(bare));
    }

    #[test]
    fn a_task_whose_user_cannot_be_is_refused_with_what_to_do() {
        let user: Arc<dyn User> = script(Vec::new());
        let error = check(&task_with_user(), None).unwrap_err().to_string();
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
        let mode = |tasks: &[&Task]| UsersMode::for_tasks(tasks.iter().copied(), Some(&*user));
        assert_eq!(mode(&[&none]), None);
        assert_eq!(mode(&[&none, &solo]), Some(UsersMode::Solo));
        let model = String::from("script");
        let all = UsersMode::Model {
            model: model.clone(),
        };
        assert_eq!(mode(&[&none, &task_with_user()]), Some(all.clone()));
        assert_eq!(
            mode(&[&solo, &task_with_user()]),
            Some(UsersMode::Mixed { model })
        );
        assert_eq!(all.to_string(), "model script");
        assert_eq!(
            serde_json::to_value(all).unwrap(),
            json!({"mode": "model", "model": "script"})
        );
    }
}
