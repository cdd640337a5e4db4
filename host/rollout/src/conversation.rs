//! The conversation between the agent of one trajectory and its simulated user.

use std::sync::Arc;

use rlf_dialogue::episode::{Episode, Reply};
use rlf_dialogue::message::{Content, Message, plain_text};
use rlf_dialogue::protocol::ProtocolSpec;
use rlf_dialogue::task::Task;
use rlf_environments::error::SessionError;
use rlf_environments::session::EnvironmentSession;
use rlf_plugins::turn::TurnContext;

use crate::user::{
    Persona, STOP, Speaker, TaskUserError, User, UserError, UserTurn, Utterance, check,
    instruction_of, is_played_by_model,
};

/// The reason why an agent got no reply, which excludes the trajectory.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NoReply {
    #[error(transparent)]
    Environment(#[from] SessionError),
    #[error("the simulated user said nothing")]
    Nothing,
    #[error("the simulated user could not answer: {0}")]
    User(#[from] UserError),
}

/// The messages between the agent and its user so far, and the player of the user.
#[derive(Debug)]
pub(crate) struct Conversation {
    user: Arc<dyn User>,
    persona: Persona,
    said: Vec<Utterance>,
}

impl Conversation {
    /// The conversation of a trajectory of `task`; `None` if no model plays the task's user.
    pub(crate) fn for_task(
        task: &Task,
        user: Option<&Arc<dyn User>>,
        trajectory: &str,
    ) -> Result<Option<Self>, TaskUserError> {
        check(task, user)?;
        let Some(user) = user.filter(|_| is_played_by_model(task)) else {
            return Ok(None);
        };
        Ok(Some(Self {
            user: Arc::clone(user),
            persona: Persona {
                instruction: instruction_of(task)?.to_owned(),
                trajectory: trajectory.to_owned(),
            },
            said: Vec::new(),
        }))
    }

    /// Takes over the messages between the agent and its user from a prompt.
    pub(crate) fn read(&mut self, prompt: &[Message], protocol: &ProtocolSpec) {
        self.said.extend(Utterance::from_prompt(prompt, protocol));
    }

    /// True if the user speaks before the agent does.
    pub(crate) fn waits_for_user(&self) -> bool {
        self.said
            .last()
            .is_none_or(|said| said.speaker == Speaker::Agent)
    }

    pub(crate) fn instruction(&self) -> &str {
        &self.persona.instruction
    }

    /// Passes the agent's text to the environment. If the environment is silent, the user answers.
    pub(crate) async fn answer(
        &mut self,
        session: &mut EnvironmentSession,
        text: &str,
        context: &TurnContext,
        episode: &mut Episode,
    ) -> Result<Reply, NoReply> {
        // Only the user can leave: if the agent writes the stop text, it is changed.
        let reply = if text.trim() == STOP {
            pass_to_environment(session, &format!("{text}."), context, episode).await?
        } else {
            pass_to_environment(session, text, context, episode).await?
        };
        self.agent_says(text);
        match reply {
            Reply::Said(content) => {
                self.said.push(Utterance::user(plain_text(&content)));
                Ok(Reply::Said(content))
            }
            Reply::Ended => Ok(Reply::Ended),
            Reply::Silence => match self.user_turn().await? {
                UserTurn::Says(text) => Ok(Reply::Said(vec![Content::Text(text)])),
                UserTurn::Stops => {
                    pass_to_environment(session, STOP, context, episode).await?;
                    Ok(Reply::Ended)
                }
            },
        }
    }

    fn agent_says(&mut self, text: &str) {
        self.said.push(Utterance::agent(text));
    }

    /// Asks for the user's turn.
    pub(crate) async fn user_turn(&mut self) -> Result<UserTurn, NoReply> {
        let turn = if self.said.is_empty() {
            self.user.first(&self.persona).await
        } else {
            self.user.reply(&self.persona, &self.said).await
        };
        match turn? {
            UserTurn::Says(text) if text.trim().is_empty() => Err(NoReply::Nothing),
            UserTurn::Says(text) => {
                self.said.push(Utterance::user(text.as_str()));
                Ok(UserTurn::Says(text))
            }
            UserTurn::Stops => Ok(UserTurn::Stops),
        }
    }
}

/// Passes a text to the environment and notes in the episode how the environment took it.
pub(crate) async fn pass_to_environment(
    session: &mut EnvironmentSession,
    text: &str,
    context: &TurnContext,
    episode: &mut Episode,
) -> Result<Reply, NoReply> {
    let (reply, heard) = session.say(text, context).await?;
    episode.note_feedback(heard);
    Ok(reply)
}

#[cfg(test)]
mod tests {
    use rlf_dialogue::message::Role;
    use rlf_dialogue::protocol::Protocol;
    use rlf_dialogue::tool::ToolCall;
    use serde_json::json;

    use super::*;
    use crate::user::UserError;
    use crate::user::tests::{Script, says, script, task_with_user};

    fn conversation(script: &Arc<Script>) -> Conversation {
        let user: Arc<dyn User> = script.clone();
        let conversation = Conversation::for_task(&task_with_user(), Some(&user), "train-1/0:t/0");
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
                Utterance::user("Tea, please."),
                Utterance::agent("Which?"),
                Utterance::agent("We have two."),
                Utterance::agent("I looked."),
                Utterance::user("Green."),
                Utterance::agent("Milk?"),
            ]
        );
    }

    #[tokio::test]
    async fn a_user_speaks_first_where_nobody_has() {
        let script = script(vec![Ok(says("Tea, please."))]);
        let mut conversation = conversation(&script);
        let prompt = [Message::text(Role::System, "Sell tea.")];
        conversation.read(&prompt, Protocol::Hermes.spec());
        assert!(conversation.waits_for_user());
        let turn = conversation.user_turn().await;
        assert_eq!(turn.unwrap(), says("Tea, please."));
        assert_eq!(conversation.user_turn().await.unwrap(), UserTurn::Stops);
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
            let error = conversation.user_turn().await.unwrap_err();
            assert_eq!(error.to_string(), reason);
        }
    }
}
