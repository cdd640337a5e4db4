//! Language models, for plugins to which the operator opens the gate `model`.
//!
//! A plugin asks for the gate in `plugin.toml` (`gates = ["model"]`); the operator decides which models it may ask, and
//! how many questions, tokens and seconds a call may spend. The host draws a seed for each question from the seed of the
//! call, so a model that supports seeds gives the same answer in every replay.
//!
//! ```
//! use rlf_plugin::model::{self, Question};
//! # use rlf_plugin::{model::Answer, testing};
//! # testing::answer_questions_with(|question| Ok(Answer::text(question.messages[0].text.to_uppercase())));
//!
//! let answer = model::ask_one(Question::new("Say yes.").max_tokens(20)).unwrap();
//! assert_eq!(answer.text, "SAY YES.");
//! ```
//!
//! [`Question::schema`] asks for JSON of a form. [`chat`] is for agents: it asks the policy in a trajectory that the plugin
//! leads.

pub use crate::bindings::model::rlf::plugin::model::{Answer, ChatMessage, Description, Question};

use serde_json::{Value, json};

use crate::{Error, Role};

/// The models that can be asked.
pub fn list() -> Vec<Description> {
    #[cfg(target_family = "wasm")]
    return crate::bindings::model::rlf::plugin::model::list_models();
    #[cfg(not(target_family = "wasm"))]
    crate::stand_in::models()
}

/// Asks the questions side by side; one result for each, in order.
pub fn ask(questions: &[Question]) -> Vec<Result<Answer, Error>> {
    #[cfg(target_family = "wasm")]
    return crate::bindings::model::rlf::plugin::model::ask(questions);
    #[cfg(not(target_family = "wasm"))]
    questions.iter().map(crate::stand_in::ask).collect()
}

/// Asks one question.
pub fn ask_one(question: Question) -> Result<Answer, Error> {
    ask(&[question])
        .pop()
        .unwrap_or_else(|| Err(Error::Internal("the host gave no answer".to_owned())))
}

/// Asks the policy for its turn in a trajectory that the plugin leads. `request` has the form of OpenAI's chat completions:
/// `messages`, and perhaps `tools` and `max_tokens`. Returns the assistant's message in OpenAI's form.
pub fn chat(request: &Value) -> Result<Value, Error> {
    let mut question = Question::new("");
    question.messages.clear();
    question.extra = vec![("chat".to_owned(), request.to_string())];
    let answer = ask_one(question)?;
    let message = answer.extra.iter().find(|(name, _)| name == "message");
    match message {
        Some((_, message)) => serde_json::from_str(message)
            .map_err(|error| Error::Internal(format!("the message is not JSON: {error}"))),
        None => Ok(json!({ "role": "assistant", "content": answer.text })),
    }
}

impl Question {
    /// A question to the operator's first model, with the operator's settings: one message of the user.
    pub fn new(text: impl Into<String>) -> Self {
        let question = Self {
            model: String::new(),
            messages: Vec::new(),
            max_tokens: 0,
            temperature: None,
            extra: Vec::new(),
        };
        question.message(Role::User, text)
    }

    /// Puts a system message before all others.
    #[must_use]
    pub fn system(mut self, text: impl Into<String>) -> Self {
        let text = text.into();
        let role = Role::System;
        self.messages.insert(0, ChatMessage { role, text });
        self
    }

    /// Adds a message.
    #[must_use]
    pub fn message(mut self, role: Role, text: impl Into<String>) -> Self {
        let text = text.into();
        self.messages.push(ChatMessage { role, text });
        self
    }

    /// Asks the model with this name. An empty name means the first one.
    #[must_use]
    pub fn model(mut self, name: impl Into<String>) -> Self {
        self.model = name.into();
        self
    }

    /// Sets the maximum length of the answer.
    #[must_use]
    pub fn max_tokens(mut self, tokens: u32) -> Self {
        self.max_tokens = tokens;
        self
    }

    /// Names the JSON Schema that the answer must fit. Its root has the type `object`. The text of the answer is then the
    /// JSON alone. If the model writes nothing that fits, the error is [`Error::Unavailable`]. Not every operator's model
    /// is told the schema, so the messages must say the form, too. In a native test, the stand-in's answer is not checked.
    #[must_use]
    pub fn schema(mut self, schema: &Value) -> Self {
        self.extra.push(("schema".to_owned(), schema.to_string()));
        self
    }

    /// Sets the temperature: 0 to 2.
    #[must_use]
    pub fn temperature(mut self, temperature: f64) -> Self {
        self.temperature = Some(temperature);
        self
    }
}

impl Answer {
    /// A whole answer, for tests.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            cut_short: false,
            prompt_tokens: 0,
            completion_tokens: 0,
            extra: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn a_native_test_answers_for_the_models() {
        assert!(matches!(
            ask_one(Question::new("Why?")),
            Err(Error::Denied(_))
        ));
        testing::answer_questions_with(|question| {
            let roles: Vec<Role> = question.messages.iter().map(|one| one.role).collect();
            assert_eq!(roles, [Role::System, Role::User]);
            Ok(Answer::text(format!("{}: because", question.model)))
        });
        let question = Question::new("Why?").system("Be short.").model("small");
        assert_eq!(ask_one(question).unwrap().text, "small: because");
        assert!(list().is_empty());
    }

    #[test]
    fn the_schema_of_an_answer_goes_out_as_json() {
        let schema = json!({ "type": "object", "required": ["score"] });
        let question = Question::new("How good?").schema(&schema);
        assert_eq!(question.extra, [("schema".to_owned(), schema.to_string())]);
    }

    #[test]
    fn an_agent_asks_in_the_form_of_chat_completions() {
        let request = json!({ "messages": [{ "role": "user", "content": "Why?" }] });
        let message = json!({ "role": "assistant", "content": null, "tool_calls": [] });
        let (sent, given) = (request.to_string(), message.to_string());
        testing::answer_questions_with(move |question| {
            assert!(question.messages.is_empty());
            assert_eq!(question.extra, [("chat".to_owned(), sent.clone())]);
            let extra = vec![("message".to_owned(), given.clone())];
            Ok(Answer {
                extra,
                ..Answer::text("")
            })
        });
        assert_eq!(chat(&request).unwrap(), message);
        testing::answer_questions_with(|_| Ok(Answer::text("Because.")));
        assert_eq!(chat(&request).unwrap()["content"], "Because.");
    }
}
