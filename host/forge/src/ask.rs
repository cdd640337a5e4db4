//! Questions to a language model whose answers must have a form: text that a check accepts, or JSON of a type.
//!
//! A model answers slowly, wrongly, at a price, and not the same twice. So each answer is kept on disk the moment it
//! arrives, under a hash of everything that it depends on. A question whose answer is on disk is not asked again, and
//! whatever stops a program, nothing that was paid for is lost. An answer that cannot be used goes back to the model
//! with the reason, a few times. Tokens are counted, and an [`Account`] says when to stop.
//!
//! Everything here takes `&self`: questions may be asked side by side.
//!
//! | looking for | module |
//! |---|---|
//! | asking: [`Asker::text`], [`Asker::json`] | this one |
//! | the model behind an endpoint, or one in a test | `model`: [`Model`] |
//! | limits of tokens and time, and estimates | `account`: [`Account`], [`Limits`], [`Total`] |
//! | answers on disk | `answers`: [`Answers`] |
//! | prompts as files that a user can change | [`prompts`] |
//! | the file or JSON inside an answer | [`extract`] |
//!
//! ```
//! use rlf_forge::ask::{Account, Answers, Asker, Limits, Model, Question, Silent, Unusable};
//! use rlf_endpoint::{ChatMessage, Completion, EndpointError};
//!
//! #[derive(Debug)]
//! struct Parrot;
//!
//! #[async_trait::async_trait]
//! impl Model for Parrot {
//!     fn identity(&self) -> String {
//!         "parrot".to_owned()
//!     }
//!     fn max_answer_tokens(&self) -> u64 {
//!         10
//!     }
//!     async fn answer(&self, messages: &[ChatMessage], _: u64) -> Result<Completion, EndpointError> {
//!         let text = messages[0].content.clone();
//!         Ok(Completion { text, ..Completion::default() })
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! let folder = tempfile::tempdir()?;
//! let asker = Asker {
//!     model: &Parrot,
//!     answers: Answers::new(folder.path()),
//!     account: Account::new(Limits::default()),
//!     attempts: 3,
//!     seed: 7,
//!     observer: &Silent,
//! };
//! let question = Question::new("count", vec![ChatMessage::user("4")]);
//! let four = asker.text(&question, |text| text.parse::<u32>().map_err(|_| Unusable::new("write a number alone")));
//! assert_eq!(four.await?, 4);
//! # anyhow::Ok(()) }).unwrap();
//! # anyhow::Ok(())
//! ```

mod account;
mod answers;
mod error;
pub mod extract;
mod model;
pub mod prompts;

pub use account::{Account, Limits, Total};
pub use answers::{Answer, Answers};
pub use error::{AskError, Unusable};
pub use model::Model;

use std::fmt;
use std::time::Instant;

use futures_util::future::BoxFuture;
use rlf_endpoint::{ChatMessage, Usage, tokens_of};
use rlf_random::Key;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// Maximum number of bytes of an unusable answer that are shown to the model again.
const MAX_SHOWN_AGAIN: usize = 40_000;

/// A question.
#[derive(Debug, Clone, PartialEq)]
pub struct Question {
    /// Name of the stage on disk and in reports, such as `sketch`: letters, digits, `-`.
    pub stage: String,
    /// Messages to the model.
    pub messages: Vec<ChatMessage>,
}

impl Question {
    /// A question of a stage.
    pub fn new(stage: impl Into<String>, messages: Vec<ChatMessage>) -> Self {
        let stage = stage.into();
        Self { stage, messages }
    }

    /// An estimate of the tokens of the question's messages.
    pub fn tokens(&self) -> u64 {
        self.messages
            .iter()
            .map(|message| tokens_of(&message.content))
            .sum()
    }

    /// The question of a stage that shows the model an answer to this one, and why it cannot be used.
    pub(crate) fn again(&self, stage: impl Into<String>, answer: &str, why: &Unusable) -> Self {
        let shown = answer
            .char_indices()
            .take_while(|(at, _)| *at < MAX_SHOWN_AGAIN)
            .map(|(_, one)| one)
            .collect::<String>();
        let mut messages = self.messages.clone();
        messages.push(ChatMessage::assistant(if shown.trim().is_empty() {
            "(an empty answer)".to_owned()
        } else {
            shown
        }));
        messages.push(ChatMessage::user(format!(
            "This answer cannot be used: {why}\n\nAnswer the question again, whole, in the form that it asks for."
        )));
        Self::new(stage, messages)
    }
}

/// Follows the questions and their answers.
pub trait AskObserver: Send + Sync {
    /// A question goes to the model.
    fn asks(&self, stage: &str, attempt: u32) {
        let _ = (stage, attempt);
    }

    /// An answer arrived. `kept` is true if it was on disk.
    fn answered(&self, stage: &str, answer: &Answer, kept: bool) {
        let _ = (stage, answer, kept);
    }

    /// The answer cannot be used.
    fn refused(&self, stage: &str, why: &Unusable) {
        let _ = (stage, why);
    }
}

/// An observer that does nothing.
#[derive(Debug, Clone, Copy)]
pub struct Silent;

impl AskObserver for Silent {}

/// Asks a model.
pub struct Asker<'a> {
    /// The model.
    pub model: &'a dyn Model,
    /// The model's answers on disk.
    pub answers: Answers,
    /// The tokens and time spent, and their limits.
    pub account: Account,
    /// Maximum number of answers to one question, at least 1. Answers read from disk count, so a resumed run ends as it
    /// would have without the interruption. With a greater number, a second run continues where the first gave up.
    pub attempts: u32,
    /// Part of the identity of each answer: another seed gives other answers.
    pub seed: u64,
    /// The observer of the questions and answers.
    pub observer: &'a dyn AskObserver,
}

impl fmt::Debug for Asker<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Asker")
            .field("model", &self.model.identity())
            .field("answers", &self.answers)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

impl Asker<'_> {
    /// Asks for text that `accept` can use. The error of `accept` tells the model why an answer cannot be used.
    pub fn text<'q, T: Send + 'q>(
        &'q self,
        question: &'q Question,
        accept: impl Fn(&str) -> Result<T, Unusable> + Send + Sync + 'q,
    ) -> BoxFuture<'q, Result<T, AskError>> {
        self.text_within(question, self.attempts, accept)
    }

    /// Like [`Self::text`], with another maximum number of answers.
    pub fn text_within<'q, T: Send + 'q>(
        &'q self,
        question: &'q Question,
        attempts: u32,
        accept: impl Fn(&str) -> Result<T, Unusable> + Send + Sync + 'q,
    ) -> BoxFuture<'q, Result<T, AskError>> {
        Box::pin(async move {
            let mut asked = question.clone();
            let mut attempt = 1;
            loop {
                let answer = self.answer(&asked, attempt).await?;
                let text = extract::spoken(&answer.text).trim();
                let usable = if text.is_empty() {
                    Err(Unusable::new(if answer.cut_short {
                        "it came to `max_tokens` before it said anything; think less"
                    } else {
                        "it is empty"
                    }))
                } else {
                    accept(text)
                };
                let why = match usable {
                    Ok(found) => return Ok(found),
                    Err(why) if answer.cut_short => why.after_cut(),
                    Err(why) => why,
                };
                self.observer.refused(&question.stage, &why);
                if attempt >= attempts.max(1) {
                    return Err(AskError::Unusable {
                        stage: question.stage.clone(),
                        attempts: attempt,
                        why,
                        file: self
                            .answers
                            .file(&question.stage, &self.identity(&asked, attempt)),
                    });
                }
                asked = question.again(&question.stage, text, &why);
                attempt += 1;
            }
        })
    }

    /// Asks for JSON of a type, checked against the type's schema and then by `accept`. Show the model [`schema_of`] the
    /// same type.
    pub fn json<'q, T, U>(
        &'q self,
        question: &'q Question,
        accept: impl Fn(T) -> Result<U, Unusable> + Send + Sync + 'q,
    ) -> BoxFuture<'q, Result<U, AskError>>
    where
        T: DeserializeOwned + JsonSchema,
        U: Send + 'q,
    {
        self.text(question, move |text| {
            let value = extract::json(text)?;
            matches(&schema_of::<T>(), &value)?;
            let found = serde_json::from_value(value);
            accept(found.map_err(|error| Unusable::new(error.to_string()))?)
        })
    }

    /// Gets the answer from disk, or else from the model.
    async fn answer(&self, question: &Question, attempt: u32) -> Result<Answer, AskError> {
        let stage = &question.stage;
        let identity = self.identity(question, attempt);
        if let Some(answer) = self.answers.get(stage, &identity)? {
            self.account.add(&answer.spent());
            self.observer.answered(stage, &answer, true);
            return Ok(answer);
        }
        let most = question.tokens() + self.model.max_answer_tokens();
        let reserved = self.account.admit(stage, most)?;
        self.observer.asks(stage, attempt);
        let begun = Instant::now();
        let seed = Key::from_value(self.seed)
            .named(stage)
            .at(u64::from(attempt))
            .value();
        let asked = self.model.answer(&question.messages, seed);
        let completion = tokio::time::timeout(self.account.time_left(), asked)
            .await
            .map_err(|_| self.account.out_of_time(stage))?
            .map_err(|error| AskError::Endpoint {
                stage: stage.clone(),
                error,
            })?;
        let counted = completion.usage.unwrap_or_else(|| Usage {
            prompt_tokens: question.tokens(),
            completion_tokens: tokens_of(&completion.text),
        });
        let answer = Answer {
            stage: stage.clone(),
            identity,
            model: self.model.identity(),
            attempt,
            seconds: begun.elapsed().as_secs_f64(),
            usage: counted,
            estimated: completion.usage.is_none(),
            cut_short: completion.cut_short,
            text: completion.text,
            messages: question.messages.clone(),
        };
        drop(reserved);
        self.account.add(&answer.spent());
        self.answers.put(&answer)?;
        self.observer.answered(stage, &answer, false);
        Ok(answer)
    }

    /// A hash of everything that an answer depends on.
    fn identity(&self, question: &Question, attempt: u32) -> String {
        let all = json!([
            self.model.identity(),
            self.seed,
            question.stage,
            attempt,
            question.messages,
        ]);
        blake3::hash(all.to_string().as_bytes())
            .to_hex()
            .to_string()
    }
}

/// The JSON schema of a type, to show to a model.
pub fn schema_of<T: JsonSchema>() -> Value {
    let mut schema = schemars::schema_for!(T).to_value();
    if let Some(schema) = schema.as_object_mut() {
        schema.remove("$schema");
    }
    schema
}

/// Checks a value against a schema. The reason names every place that does not fit.
fn matches(schema: &Value, value: &Value) -> Result<(), Unusable> {
    const MOST: usize = 8;
    let validator = jsonschema::validator_for(schema)
        .map_err(|error| Unusable::new(format!("its schema is not valid JSON Schema: {error}")))?;
    let mut errors = validator.iter_errors(value);
    let mut said: Vec<String> = errors
        .by_ref()
        .take(MOST)
        .map(|error| {
            let place = error.instance_path().to_string();
            let place = if place.is_empty() {
                "the whole"
            } else {
                &place
            };
            format!("{place}: {error}")
        })
        .collect();
    let more = errors.count();
    if more > 0 {
        said.push(format!("and {more} more"));
    }
    if said.is_empty() {
        Ok(())
    } else {
        Err(Unusable::new(format!(
            "it does not fit the schema: {}",
            said.join("; ")
        )))
    }
}
