//! A model that answers by a script.

use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use rlf_endpoint::{ChatMessage, Completion, EndpointError, Usage};
use rlf_forge::ask::{Account, Answers, Asker, Limits, Model, Silent};

/// The reaction of a model to one question.
#[derive(Debug, Clone)]
pub(crate) enum Act {
    Says(String),
    Fails,
    Stalls,
}

pub(crate) fn says(text: impl Into<String>) -> Act {
    Act::Says(text.into())
}

/// Plays its acts one after the other, and keeps the questions.
pub(crate) struct Scripted {
    pub(crate) name: &'static str,
    acts: Mutex<std::vec::IntoIter<Act>>,
    asked: Mutex<Vec<Vec<ChatMessage>>>,
}

impl Scripted {
    pub(crate) fn new(acts: Vec<Act>) -> Self {
        Self {
            name: "scripted",
            acts: Mutex::new(acts.into_iter()),
            asked: Mutex::default(),
        }
    }

    pub(crate) fn asked(&self) -> Vec<Vec<ChatMessage>> {
        self.asked.lock().unwrap().clone()
    }

    /// The last message of a question.
    pub(crate) fn last(&self, question: usize) -> String {
        self.asked()[question].last().unwrap().content.clone()
    }
}

#[async_trait]
impl Model for Scripted {
    fn identity(&self) -> String {
        self.name.to_owned()
    }

    fn max_answer_tokens(&self) -> u64 {
        1_000
    }

    async fn answer(&self, messages: &[ChatMessage], _: u64) -> Result<Completion, EndpointError> {
        self.asked.lock().unwrap().push(messages.to_vec());
        let act = self.acts.lock().unwrap().next();
        match act.expect("the script has an act for each question") {
            Act::Says(text) => Ok(Completion {
                text,
                usage: Some(Usage {
                    prompt_tokens: 100,
                    completion_tokens: 10,
                }),
                ..Completion::default()
            }),
            Act::Fails => Err(EndpointError::Refused {
                host: "h".to_owned(),
                status: 402,
                text: "no money".to_owned(),
            }),
            Act::Stalls => std::future::pending().await,
        }
    }
}

pub(crate) fn asker<'a>(model: &'a Scripted, folder: &Path) -> Asker<'a> {
    Asker {
        model,
        answers: Answers::new(folder),
        account: Account::new(Limits::default()),
        attempts: 3,
        seed: 0,
        observer: &Silent,
    }
}

/// Limits with a short time, which begins with the first question.
pub(crate) fn hurried() -> Limits {
    Limits {
        time: Duration::from_secs(1),
        ..Limits::default()
    }
}
