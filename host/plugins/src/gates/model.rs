//! `rlf:plugin/model`: a plugin asks language models, such as a reward that judges.
//!
//! The models that the operator named answer, each with its budgets. The seed of a question follows from the call's seed
//! and the number of the question, so it is the same in every replay. If a model gives no answer, its caller ends as well:
//! no trajectory must be judged by such a failure. A question may have a JSON Schema, and then it has an answer that fits, or
//! the error `unavailable`.

use std::pin::pin;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesOrdered;
use rlf_endpoint::{ChatMessage, Completion, Sampling, tokens_of};
use rlf_sandbox::{OpenGate, State, Stopped};
use wasmtime::Result;
use wasmtime::component::{HasData, Linker};

use super::answer_schema::{AnswerSchema, SchemaSizes};
use super::nesting::{ChatAnswer, GateAnswer, LanguageModel, ModelQuestion, Nesting};
use crate::bindings::types::{Error, Role};
use crate::seed;

#[allow(missing_docs, unreachable_pub, clippy::pedantic)] // generated
mod bindings {
    wasmtime::component::bindgen!({
        path: "../../wit",
        inline: "package rlf:model-gate; world gate { import rlf:plugin/model@0.1.0; }",
        world: "rlf:model-gate/gate",
        imports: { default: async | trappable },
        with: { "rlf:plugin/types@0.1.0": crate::bindings::rlf::plugin::types },
    });
}

pub(super) use bindings::rlf::plugin::model as wit;

/// Key in a question's `extra` for a request in the form of OpenAI's chat completions.
pub(super) const CHAT: &str = "chat";
/// Key in a question's `extra` for the JSON Schema that the answer must fit.
pub(super) const SCHEMA: &str = "schema";
/// Key in an answer's `extra` for the assistant's message in OpenAI's form.
pub(super) const MESSAGE: &str = "message";

/// Access to the models that the grants name.
pub(crate) struct ModelGate {
    names: Arc<[String]>,
}

impl ModelGate {
    pub(crate) fn open(names: &[String]) -> Self {
        Self {
            names: Arc::from(names),
        }
    }
}

impl OpenGate for ModelGate {
    fn interface(&self) -> &'static str {
        "rlf:plugin/model"
    }

    fn link(&self, linker: &mut Linker<State>) -> Result<()> {
        wit::add_to_linker::<State, HasModel>(linker, |state| View(state))
    }
}

struct HasModel;

impl HasData for HasModel {
    type Data<'a> = View<'a>;
}

pub(super) struct View<'a>(pub(super) &'a mut State);

impl View<'_> {
    /// The names of the open models, and the context of this call. `None` if no model can be asked from here.
    fn open(&self) -> Option<(Arc<[String]>, Arc<Nesting>)> {
        let names = Arc::clone(&self.0.gate::<ModelGate>()?.names);
        Some((names, self.0.context()?))
    }
}

impl wit::Host for View<'_> {
    async fn list_models(&mut self) -> Result<Vec<wit::Description>> {
        let Some((names, nesting)) = self.open() else {
            return Ok(Vec::new());
        };
        let models = names.iter().filter_map(|name| {
            let model = nesting.calls.model(name)?;
            Some(wit::Description {
                name: name.clone(),
                max_tokens: model.max_tokens(),
                context_tokens: model.context_tokens(),
                extra: Vec::new(),
            })
        });
        Ok(models.collect())
    }

    async fn ask(
        &mut self,
        questions: Vec<wit::Question>,
    ) -> Result<Vec<Result<wit::Answer, Error>>> {
        let most = self.0.limits().nested_calls;
        let Some((names, nesting)) = self.open() else {
            let refusal = || Err(Error::Denied("no model can be asked from here".to_owned()));
            return Ok(questions.iter().map(|_| refusal()).collect());
        };
        let mut schemas = SchemaSizes::default();
        // Polled in this order at first, so that questions use up budgets in the order of the list.
        let asked: FuturesOrdered<_> = questions
            .into_iter()
            .map(|question| {
                let checked = checked(question, &names, &nesting, most, &mut schemas);
                let nesting = Arc::clone(&nesting);
                async move {
                    match checked {
                        Ok(checked) => checked.ask(&nesting).await,
                        Err(refusal) => Ok(Err(refusal)),
                    }
                }
            })
            .collect();
        // All answers wait together in the host's memory.
        let most_bytes = self.0.limits().hostcall_bytes;
        let all = async move {
            let mut answers = Vec::with_capacity(asked.len());
            let mut bytes = 0_u64;
            let mut asked = pin!(asked);
            while let Some(answer) = asked.next().await {
                let answer = answer?;
                bytes += answer.as_ref().map_or(0, answer_bytes);
                if bytes > most_bytes {
                    return Err(Stopped::limited("hostcall_bytes", most_bytes, bytes));
                }
                answers.push(answer);
            }
            Ok::<_, Stopped>(answers)
        };
        Ok(self.0.outside(all).await?)
    }
}

fn answer_bytes(answer: &wit::Answer) -> u64 {
    let extra = answer.extra.iter().map(|(_, value)| value.len());
    (answer.text.len() + extra.sum::<usize>()) as u64
}

/// A question that can be asked.
struct Checked {
    model: Arc<dyn LanguageModel>,
    asked: Asked,
    sampling: Sampling,
}

/// The conversation of a question.
enum Asked {
    /// Texts, and the schema that the answer must fit.
    Messages(Vec<ChatMessage>, Option<Box<AnswerSchema>>),
    /// A request in the form of OpenAI's chat completions, as JSON text.
    Chat(String),
}

impl Checked {
    async fn ask(self, nesting: &Nesting) -> GateAnswer<wit::Answer> {
        let Self {
            model,
            asked,
            sampling,
        } = self;
        match asked {
            Asked::Messages(messages, schema) => {
                let question = ModelQuestion {
                    messages: &messages,
                    sampling,
                    schema: schema.as_deref(),
                };
                let answer = model.ask(question, nesting).await?;
                Ok(answer.map(|answer| to_guest(answer, &messages)))
            }
            Asked::Chat(request) => {
                let answer = model.chat(&request, sampling, nesting).await?;
                Ok(answer.map(chat_to_guest))
            }
        }
    }
}

/// Turns a guest's question into one that can be asked, if it is allowed.
fn checked(
    question: wit::Question,
    names: &[String],
    nesting: &Nesting,
    most: u32,
    schemas: &mut SchemaSizes,
) -> Result<Checked, Error> {
    let label = nesting.count_question(most)?;
    let name = match names.first() {
        Some(first) if question.model.is_empty() => first,
        _ => &question.model,
    };
    let model = Some(name)
        .filter(|name| names.contains(name))
        .and_then(|name| nesting.calls.model(name))
        .ok_or_else(|| {
            let name: String = name.chars().take(64).collect();
            let open = names.join(", ");
            Error::NotFound(format!(
                "no model {name:?} is open to this plugin; there are: {open}"
            ))
        })?;
    let asked = asked(question.messages, question.extra, schemas)?;
    if let Some(temperature) = question.temperature
        && !(0.0..=2.0).contains(&temperature)
    {
        let what = format!("the temperature is {temperature}; it goes from 0 to 2");
        return Err(Error::InvalidArguments(what));
    }
    let seed = seed::derive(nesting.turn.seed, "question", &[&label]);
    Ok(Checked {
        model,
        asked,
        sampling: Sampling {
            max_tokens: Some(question.max_tokens).filter(|most| *most > 0),
            temperature: question.temperature,
            seed: Some(seed),
        },
    })
}

/// Reads the conversation of a question, and what its `extra` says about it.
fn asked(
    messages: Vec<wit::ChatMessage>,
    extra: Vec<(String, String)>,
    schemas: &mut SchemaSizes,
) -> Result<Asked, Error> {
    let invalid = |what: &str| Err(Error::InvalidArguments(what.to_owned()));
    let (mut chat, mut schema) = (None, None);
    for (name, value) in extra {
        match name.as_str() {
            CHAT => chat = Some(value),
            SCHEMA => schema = Some(value),
            _ => {}
        }
    }
    if let Some(request) = chat {
        if !messages.is_empty() {
            return invalid(
                "the question has `chat`, and messages besides; put all messages into `chat`",
            );
        }
        if schema.is_some() {
            return invalid(
                "the question has `chat`, whose answer is a turn of the policy; leave `schema` out",
            );
        }
        return Ok(Asked::Chat(request));
    }
    if messages.is_empty() {
        return invalid("there is no message");
    }
    let schema = schema.map(|schema| schemas.parse(&schema)).transpose()?;
    let messages = messages.into_iter().map(message);
    let messages = messages.collect::<Result<_, _>>()?;
    Ok(Asked::Messages(messages, schema.map(Box::new)))
}

fn message(message: wit::ChatMessage) -> Result<ChatMessage, Error> {
    match message.role {
        Role::System => Ok(ChatMessage::system(message.text)),
        Role::User => Ok(ChatMessage::user(message.text)),
        Role::Assistant => Ok(ChatMessage::assistant(message.text)),
        Role::Tool => Err(Error::InvalidArguments(
            "a message of the role `tool` cannot be asked; put the text into a message of the user"
                .into(),
        )),
    }
}

fn to_guest(answer: Completion, messages: &[ChatMessage]) -> wit::Answer {
    let (prompt_tokens, completion_tokens) = if let Some(usage) = answer.usage {
        (usage.prompt_tokens, usage.completion_tokens)
    } else {
        let texts = messages.iter().map(|message| tokens_of(&message.content));
        (texts.sum(), tokens_of(&answer.text))
    };
    wit::Answer {
        text: without_thoughts(answer.text),
        extra: Vec::new(),
        cut_short: answer.cut_short,
        prompt_tokens,
        completion_tokens,
    }
}

fn chat_to_guest(answer: ChatAnswer) -> wit::Answer {
    let ChatAnswer {
        message,
        completion,
    } = answer;
    let usage = completion.usage.unwrap_or_default();
    wit::Answer {
        text: completion.text,
        extra: vec![(MESSAGE.to_owned(), message.to_string())],
        cut_short: completion.cut_short,
        prompt_tokens: usage.prompt_tokens,
        completion_tokens: usage.completion_tokens,
    }
}

/// The text behind the think block at its beginning. A block that is not closed leaves nothing.
fn without_thoughts(text: String) -> String {
    let Some(thoughts) = text.trim_start().strip_prefix("<think>") else {
        return text;
    };
    let spoken = thoughts.split_once("</think>").map(|(_, spoken)| spoken);
    spoken.unwrap_or_default().trim_start().to_owned()
}

#[cfg(test)]
mod tests {
    use super::without_thoughts;

    #[test]
    fn thoughts_are_no_part_of_an_answer() {
        for (text, spoken) in [
            ("yes", "yes"),
            ("<think>\nno?\n</think>\n\nyes", "yes"),
            ("<think>no?", ""),
            ("it says </think> here", "it says </think> here"),
            ("say <think>a</think>", "say <think>a</think>"),
        ] {
            assert_eq!(without_thoughts(text.to_owned()), spoken);
        }
    }
}
