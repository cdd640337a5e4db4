//! `[user]` of a configuration: a language model plays the users of tasks that have one. It is behind an endpoint of its own,
//! or one of `[models]`.

mod config;

use std::sync::Arc;

use async_trait::async_trait;
use rlf_dialogue::task::Task;
use rlf_endpoint::{ChatMessage, Completion, Endpoint, Sampling};
use rlf_models::{Model, Models};
use rlf_plugins::convert::error_text;
use rlf_plugins::seed;
use rlf_rollout::user::{Persona, Speaker, User, UserError, UserTurn, Utterance, check};

use self::config::{no_model, wrong_endpoint};
use crate::error::ConfigurationError;

pub use self::config::UserConfig;

/// First message to a user who speaks first, because chat models answer only to a message.
const GREETING: &str = "Hello, what can I do for you?";

/// Replaces a message without words, because endpoints refuse an empty one.
const NO_WORDS: &str = "(no words)";

/// Opens the model that plays the users of `tasks`. If no task has a user, returns None and reads no key. Returns an
/// error if a task has a user and no model is configured.
pub(crate) fn open<'a>(
    config: Option<&UserConfig>,
    models: &Models,
    seed: u64,
    tasks: impl IntoIterator<Item = &'a Task>,
) -> Result<Option<Arc<dyn User>>, ConfigurationError> {
    let mut user: Option<Arc<dyn User>> = None;
    for task in tasks
        .into_iter()
        .filter(|t| rlf_rollout::user::is_played_by_model(t))
    {
        if let (None, Some(config)) = (&user, config) {
            user = Some(Arc::new(ModelUser::open(config, models, seed)?));
        }
        check(task, user.as_ref()).map_err(ConfigurationError::table("tasks"))?;
    }
    Ok(user)
}

/// The model that plays users, and the way to it.
#[derive(Debug)]
enum Player {
    /// Behind the users' own endpoint. Its answers have no budgets and are not recorded.
    Endpoint(Endpoint),
    /// The model of `[models]` with this name.
    Named(String, Arc<Model>),
}

impl Player {
    /// The name of the model, for results.
    fn name(&self) -> &str {
        match self {
            Self::Endpoint(endpoint) => endpoint.model(),
            Self::Named(name, _) => name,
        }
    }

    /// The model's reply to a user's messages, for a trajectory.
    async fn reply(
        &self,
        trajectory: &str,
        messages: &[ChatMessage],
        seed: u64,
    ) -> Result<Completion, UserError> {
        match self {
            Self::Endpoint(endpoint) => {
                let answer = endpoint.complete(messages, Some(seed)).await;
                answer.map_err(|error| UserError(error.to_string()))
            }
            Self::Named(_, model) => {
                let sampling = Sampling {
                    seed: Some(seed),
                    ..Sampling::default()
                };
                match model.ask_for(trajectory, messages, sampling).await {
                    Ok(answer) => answer.map_err(|error| UserError(error_text(&error))),
                    Err(stopped) => Err(UserError(stopped.reason)),
                }
            }
        }
    }

    /// The mend for a reply that was cut short before it said anything.
    fn how_to_say_more(&self) -> String {
        match self {
            Self::Endpoint(_) => {
                "raise user.max_tokens, or have it think less by user.extra".to_owned()
            }
            Self::Named(name, _) => {
                format!("raise `max_tokens` in [models.{name}], or have it think less")
            }
        }
    }
}

/// A model that plays users.
#[derive(Debug)]
struct ModelUser {
    player: Player,
    /// The instructions with the stop word filled in, but without a task's instruction.
    prompt: String,
    stop: String,
    max_turns: usize,
    seed: u64,
}

impl ModelUser {
    fn open(config: &UserConfig, models: &Models, seed: u64) -> Result<Self, ConfigurationError> {
        config.check()?;
        let player = if let Some(name) = config.named_model() {
            let model = models.get(name).ok_or_else(|| no_model(name, []))?;
            Player::Named(name.to_owned(), model)
        } else {
            let endpoint = Endpoint::open(config.endpoint.clone());
            Player::Endpoint(endpoint.map_err(|error| wrong_endpoint(&error))?)
        };
        Ok(Self {
            prompt: config.prompt()?.replace("{stop}", &config.stop),
            player,
            stop: config.stop.clone(),
            max_turns: config.max_turns as usize,
            seed,
        })
    }

    /// The messages to the endpoint: the conversation from the user's point of view.
    fn messages(&self, persona: &Persona, said: &[Utterance]) -> Vec<ChatMessage> {
        let prompt = self.prompt.replace("{instruction}", &persona.instruction);
        let mut messages = vec![ChatMessage::system(prompt)];
        if said
            .first()
            .is_none_or(|said| said.speaker == Speaker::User)
        {
            messages.push(ChatMessage::user(GREETING));
        }
        for Utterance { speaker, text } in said {
            let text = if text.trim().is_empty() {
                NO_WORDS
            } else {
                text
            };
            let message = match speaker {
                Speaker::Agent => ChatMessage::user(text),
                Speaker::User => ChatMessage::assistant(text),
            };
            // Many chat templates do not accept two messages of the same side in a row.
            match messages.last_mut().filter(|last| last.role == message.role) {
                Some(last) => last.content = format!("{}\n\n{}", last.content, message.content),
                None => messages.push(message),
            }
        }
        messages
    }

    fn turn(&self, answer: &Completion) -> Result<UserTurn, UserError> {
        let text = spoken(&answer.text).trim();
        if text.contains(&self.stop) {
            return Ok(UserTurn::Stops);
        }
        if text.is_empty() {
            return Err(UserError(if answer.cut_short {
                let mend = self.player.how_to_say_more();
                format!("it came to max_tokens before it said anything; {mend}")
            } else {
                "its answer has no text".to_owned()
            }));
        }
        Ok(UserTurn::Says(text.to_owned()))
    }
}

/// The reply without the model's reasoning, for endpoints that do not separate the two.
fn spoken(text: &str) -> &str {
    match text.rsplit_once("</think>") {
        Some((_, spoken)) => spoken,
        None if text.trim_start().starts_with("<think>") => "",
        None => text,
    }
}

#[async_trait]
impl User for ModelUser {
    fn model(&self) -> &str {
        self.player.name()
    }

    async fn reply(&self, persona: &Persona, said: &[Utterance]) -> Result<UserTurn, UserError> {
        let own = said
            .iter()
            .filter(|said| said.speaker == Speaker::User)
            .count();
        if own >= self.max_turns {
            return Ok(UserTurn::Stops);
        }
        let place = [persona.trajectory.as_str(), &said.len().to_string()];
        let seed = seed::derive(self.seed, "user", &place);
        let messages = self.messages(persona, said);
        let answer = self.player.reply(&persona.trajectory, &messages, seed);
        self.turn(&answer.await?)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rlf_endpoint::ChatRole;
    use rlf_models::{ModelConfig, ModelsError};
    use serde_json::{Map, Value, json};

    use super::*;

    fn config() -> UserConfig {
        rlf_config::parse("url = \"http://127.0.0.1:1/v1\"\nmodel = \"m\"\n", "t").unwrap()
    }

    fn user(config: &UserConfig) -> ModelUser {
        ModelUser::open(config, &Models::default(), 1).unwrap()
    }

    fn persona() -> Persona {
        Persona {
            instruction: "You want tea, and say {stop} a lot.".into(),
            trajectory: "train-1/0:t/0".into(),
        }
    }

    fn answer(text: &str, cut_short: bool) -> Completion {
        let text = text.to_owned();
        Completion {
            text,
            cut_short,
            ..Completion::default()
        }
    }

    #[test]
    fn a_model_is_sent_its_instruction_and_what_was_said_from_its_own_side() {
        let said = [
            Utterance::user("Tea."),
            Utterance::agent("Which?"),
            Utterance::agent(" "),
            Utterance::user("Green."),
            Utterance::agent("Milk?"),
        ];
        let messages = user(&config()).messages(&persona(), &said);
        let (system, others) = messages.split_first().unwrap();
        assert_eq!(system.role, ChatRole::System);
        assert!(
            system
                .content
                .contains("You want tea, and say {stop} a lot.")
        );
        assert!(system.content.contains("write ###STOP### and nothing"));
        assert!(!system.content.contains("{instruction}"));
        assert_eq!(
            others,
            [
                ChatMessage::user(GREETING),
                ChatMessage::assistant("Tea."),
                ChatMessage::user("Which?\n\n(no words)"),
                ChatMessage::assistant("Green."),
                ChatMessage::user("Milk?"),
            ]
        );
    }

    #[test]
    fn a_model_that_speaks_first_is_greeted_unless_the_agent_has_done_it() {
        let user = user(&config());
        let first = user.messages(&persona(), &[]);
        assert_eq!(first[1..], [ChatMessage::user(GREETING)]);
        let greeted = user.messages(&persona(), &[Utterance::agent("Good day.")]);
        assert_eq!(greeted[1..], [ChatMessage::user("Good day.")]);
    }

    #[test]
    fn thoughts_are_not_said_and_the_stop_word_ends_the_conversation() {
        let user = user(&config());
        let turn = |text: &str| user.turn(&answer(text, false));
        assert_eq!(turn(" Tea.\n"), Ok(UserTurn::Says("Tea.".into())));
        let thought = turn("<think>Is it ###STOP###?</think>\n\nNo.");
        assert_eq!(thought, Ok(UserTurn::Says("No.".into())));
        assert_eq!(turn("Thank you! ###STOP###"), Ok(UserTurn::Stops));
        assert!(turn("").is_err());
        let error = user.turn(&answer("<think>Hm", true)).unwrap_err();
        assert!(error.0.contains("raise user.max_tokens"), "{error}");
    }

    #[tokio::test]
    async fn a_user_leaves_after_the_most_turns_and_no_endpoint_is_asked() {
        let mut config = config();
        config.max_turns = 2;
        let said = [
            Utterance::user("a"),
            Utterance::agent("b"),
            Utterance::user("c"),
            Utterance::agent("d"),
        ];
        let turn = user(&config).reply(&persona(), &said).await;
        assert_eq!(turn, Ok(UserTurn::Stops));
        config.endpoint.retries = 0;
        let turn = user(&config).reply(&persona(), &said[..2]).await;
        assert!(turn.unwrap_err().0.contains("gave no answer"));
    }

    #[tokio::test]
    async fn a_model_of_the_configuration_plays_within_its_budgets() {
        let text = "[npc]\nendpoint = { url = \"http://127.0.0.1:1/v1\", model = \"m\", retries = 0 }\n\
                    trajectory = { questions = 1 }\n";
        let configs: BTreeMap<String, ModelConfig> = rlf_config::parse(text, "t").unwrap();
        let models = Models::open::<ModelsError>(&configs, None, |_, _| unreachable!());
        let config: UserConfig = rlf_config::parse("model = \"npc\"", "t").unwrap();
        let user = ModelUser::open(&config, &models.unwrap(), 1).unwrap();
        assert_eq!(user.model(), "npc");
        let reply = user.reply(&persona(), &[]).await.unwrap_err().0;
        assert!(
            reply.starts_with("model `npc`: the endpoint 127.0.0.1"),
            "{reply}"
        );
        let reply = user.reply(&persona(), &[]).await.unwrap_err().0;
        let spent = "the budget of a trajectory is spent (models.npc.trajectory): 1 questions";
        assert!(reply.contains(spent), "{reply}");
        let error = user.turn(&answer("<think>Hm", true)).unwrap_err();
        assert!(error.0.contains("in [models.npc]"), "{error}");
        let missing = ModelUser::open(&config, &Models::default(), 1).unwrap_err();
        assert!(
            missing.to_string().contains("no table [models.npc]"),
            "{missing}"
        );
    }

    #[test]
    fn a_wrong_setting_is_named_by_its_key() {
        let mut wrong = config();
        wrong.max_turns = 0;
        assert!(
            wrong
                .check()
                .unwrap_err()
                .to_string()
                .contains("user.max_turns = 0")
        );
        let mut wrong = config();
        wrong.stop = " ".into();
        assert!(wrong.check().unwrap_err().to_string().contains("user.stop"));
        let wrong = UserConfig::default().check().unwrap_err().to_string();
        assert!(wrong.starts_with("user.url: it is missing"), "{wrong}");
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "Play someone.").unwrap();
        let mut wrong = config();
        wrong.prompt = Some(file.path().to_owned());
        let wrong = ModelUser::open(&wrong, &Models::default(), 1);
        let wrong = wrong.unwrap_err().to_string();
        assert!(wrong.contains("has no {instruction}"), "{wrong}");
    }

    #[test]
    fn a_key_is_read_only_where_a_task_wants_a_user() {
        let mut keyed = config();
        keyed.endpoint.key_env = Some("RLF_USER_TEST_IS_NOT_SET".into());
        let mut task = Task {
            id: "t".into(),
            source: "test".into(),
            prompt: Vec::new(),
            tools: None,
            reference: Value::Null,
            environment: Some("shop".into()),
            setup: json!({"user": "solo"}),
            extra: Map::new(),
        };
        let models = Models::default();
        assert!(open(Some(&keyed), &models, 1, [&task]).unwrap().is_none());
        task.setup = json!({"user": "model", "instruction": "You want tea."});
        let error = open(Some(&keyed), &models, 1, [&task]).unwrap_err();
        assert!(error.to_string().contains("user.key_env"), "{error}");
        let opened = open(Some(&config()), &models, 1, [&task]).unwrap();
        assert_eq!(opened.unwrap().model(), "m");
        let error = open(None, &models, 1, [&task]).unwrap_err().to_string();
        assert!(error.contains("add a table [user]"), "{error}");
    }
}
