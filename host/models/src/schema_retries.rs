//! Asks a model for a plugin, and asks again until the answer fits the schema of the question.

use std::sync::OnceLock;

use rlf_endpoint::{ChatMessage, ChatRole, Completion, Sampling};
use rlf_plugins::bindings::types::Error;
use rlf_plugins::gates::{AnswerSchema, GateAnswer, LanguageModel, Misfit, ModelQuestion, Nesting};
use rlf_plugins::seed;
use rlf_sandbox::BoxFuture;

use crate::config::MAX_SCHEMA_RETRIES;
use crate::model::{Model, Payer};
use crate::source::Source;

/// Number of characters of an answer that are shown in the error that it does not fit.
const EXCERPT: usize = 200;

impl LanguageModel for Model {
    fn max_tokens(&self) -> u32 {
        self.source().map_or(0, Source::max_tokens)
    }

    fn context_tokens(&self) -> u32 {
        self.source().map_or(0, Source::context_tokens)
    }

    fn ask<'a>(
        &'a self,
        question: ModelQuestion<'a>,
        asker: &'a Nesting,
    ) -> BoxFuture<'a, GateAnswer<Completion>> {
        Box::pin(async move {
            let payer = Payer {
                account: asker.account(),
                calls: asker.ledgers(self.name()),
            };
            self.ask_until_it_fits(question, &payer).await
        })
    }
}

impl Model {
    /// Answers a question. If it has a schema, the answer fits, or the plugin gets an error after the configured number of
    /// retries.
    async fn ask_until_it_fits(
        &self,
        question: ModelQuestion<'_>,
        payer: &Payer<'_>,
    ) -> GateAnswer<Completion> {
        let Some(schema) = question.schema else {
            return self.answer(question, payer).await;
        };
        let with_reminder = OnceLock::new();
        let mut retry = 0;
        let mut asked = question;
        loop {
            let answer = match self.answer(asked, payer).await? {
                Ok(answer) => answer,
                Err(error) => return Ok(Err(error)),
            };
            let misfit = match schema.read(&answer.text) {
                Ok(text) => {
                    let text = text.to_owned();
                    return Ok(Ok(Completion { text, ..answer }));
                }
                Err(misfit) => misfit,
            };
            self.count(|counts| counts.unfit += 1);
            retry += 1;
            let number = retry.to_string();
            let other = |first: u64| seed::derive(first, "schema", &[number.as_str()]);
            asked = ModelQuestion {
                messages: with_reminder.get_or_init(|| reminded(question.messages, schema)),
                sampling: Sampling {
                    seed: question.sampling.seed.map(other),
                    ..question.sampling
                },
                schema: Some(schema),
            };
            if !self.asks_again(retry, asked) {
                return Ok(Err(self.unfit(&answer, &misfit)));
            }
        }
    }

    /// True if a question is asked again. A replay asks again exactly where its record did, whatever its configuration.
    fn asks_again(&self, retry: u32, question: ModelQuestion<'_>) -> bool {
        if self.source().is_some() {
            retry <= self.config().schema_retries
        } else {
            retry <= MAX_SCHEMA_RETRIES && self.has_recorded(question)
        }
    }

    /// The error of a question whose last answer does not fit its schema.
    fn unfit(&self, answer: &Completion, misfit: &Misfit) -> Error {
        let name = self.name();
        let cut = if answer.cut_short {
            ", and the limit of tokens cut it short"
        } else {
            ""
        };
        let excerpt: String = answer.text.chars().take(EXCERPT).collect();
        Error::Unavailable(format!(
            "the answer of model `{name}` does not fit the schema of the question: {misfit}{cut}. It begins {excerpt:?}"
        ))
    }
}

/// The messages of a question that is asked again because an answer does not fit its schema. None of the answer's words are in
/// it: they may quote what the plugin keeps apart from its own.
fn reminded(messages: &[ChatMessage], schema: &AnswerSchema) -> Vec<ChatMessage> {
    let reminder = format!(
        "An earlier answer was refused, because it was not one JSON object that fits this JSON Schema: {}\nAnswer with such \
         an object and nothing else.",
        schema.value()
    );
    let mut messages = messages.to_vec();
    // Many chat templates do not accept two messages of the same side in a row.
    match messages
        .last_mut()
        .filter(|last| last.role == ChatRole::User)
    {
        Some(last) => last.content = format!("{}\n\n{reminder}", last.content),
        None => messages.push(ChatMessage::user(reminder)),
    }
    messages
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::{Arc, Mutex};
    use std::task::{Context, Poll, Waker};

    use rlf_endpoint::{Budget, Ledger};
    use rlf_plugins::gates::Account;

    use super::*;
    use crate::config::ModelConfig;
    use crate::record::Record;
    use crate::source::SourceError;

    /// Gives one answer after the other, at once, and keeps the questions.
    struct Script {
        answers: Mutex<Vec<&'static str>>,
        asked: Mutex<Vec<(String, Sampling)>>,
    }

    impl Source for Script {
        fn max_tokens(&self) -> u32 {
            100
        }

        fn context_tokens(&self) -> u32 {
            0
        }

        fn answer<'a>(
            &'a self,
            question: ModelQuestion<'a>,
        ) -> BoxFuture<'a, Result<Completion, SourceError>> {
            let [message] = question.messages else {
                panic!("not one message: {question:?}")
            };
            let asked = (message.content.clone(), question.sampling);
            self.asked.lock().unwrap().push(asked);
            let text = self.answers.lock().unwrap().remove(0).to_owned();
            Box::pin(async move {
                Ok(Completion {
                    text,
                    ..Completion::default()
                })
            })
        }
    }

    fn script(answers: &[&'static str]) -> Arc<Script> {
        Arc::new(Script {
            answers: Mutex::new(answers.to_vec()),
            asked: Mutex::default(),
        })
    }

    fn model(config: ModelConfig, answers: &[&'static str]) -> (Model, Arc<Script>) {
        let script = script(answers);
        let source = Arc::clone(&script) as Arc<dyn Source>;
        (Model::new("m", config, Some(source), None), script)
    }

    fn retrying(schema_retries: u32) -> ModelConfig {
        ModelConfig {
            schema_retries,
            ..ModelConfig::default()
        }
    }

    /// Asks for an object with the key `a`.
    fn ask(model: &Model) -> Result<String, Error> {
        let schema = r#"{"type": "object", "required": ["a"]}"#;
        let schema = AnswerSchema::parse(schema).unwrap();
        let question = ModelQuestion {
            messages: &[ChatMessage::user("?")],
            sampling: Sampling {
                seed: Some(7),
                ..Sampling::default()
            },
            schema: Some(&schema),
        };
        let payer = Payer {
            account: &Account::Trajectory("t".to_owned()),
            calls: vec![Ledger::default()],
        };
        let mut answer = pin!(model.ask_until_it_fits(question, &payer));
        let Poll::Ready(answer) = answer
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()))
        else {
            panic!("the script answers at once")
        };
        answer.unwrap().map(|answer| answer.text)
    }

    #[test]
    fn an_answer_that_fits_is_the_json_alone() {
        let (model, script) = model(retrying(2), &["<think>?</think>```json\n{\"a\": 1}\n```"]);
        assert_eq!(ask(&model).unwrap(), "{\"a\": 1}");
        assert_eq!(script.asked.lock().unwrap().len(), 1);
        assert_eq!((model.spent().answers, model.counts().unfit), (1, 0));
    }

    #[test]
    fn an_answer_that_does_not_fit_is_an_error_that_is_charged() {
        let (model, _) = model(retrying(0), &["{\"b\": 1}"]);
        let Err(Error::Unavailable(why)) = ask(&model) else {
            panic!("it was given")
        };
        let said = "the answer of model `m` does not fit the schema of the question: at `/`: ";
        assert!(why.starts_with(said), "{why}");
        assert!(why.ends_with(r#"It begins "{\"b\": 1}""#), "{why}");
        assert_eq!((model.spent().answers, model.counts().unfit), (1, 1));
    }

    #[test]
    fn a_retry_names_the_schema_has_another_seed_and_none_of_the_answers_words() {
        let (model, script) = model(retrying(1), &["SECRET", "{\"a\": 1}"]);
        assert_eq!(ask(&model).unwrap(), "{\"a\": 1}");
        let asked = script.asked.lock().unwrap();
        let [(first, before), (second, after)] = &asked[..] else {
            panic!("not two questions: {asked:?}")
        };
        assert_eq!(first, "?");
        assert!(second.starts_with("?\n\nAn earlier answer was refused"));
        assert!(second.contains(r#"{"type":"object","required":["a"]}"#));
        assert!(!second.contains("SECRET"), "{second}");
        assert_eq!(before.seed, Some(7));
        assert!(after.seed.is_some() && after.seed != before.seed);
        assert_eq!((model.spent().answers, model.counts().unfit), (2, 1));
    }

    #[test]
    fn retries_end_with_the_configured_number_or_with_the_budget() {
        let (often, script) = model(retrying(2), &["1", "2", "3"]);
        assert!(matches!(ask(&often), Err(Error::Unavailable(_))));
        assert_eq!(script.asked.lock().unwrap().len(), 3);
        let call = Budget {
            questions: Some(2),
            ..Budget::default()
        };
        let config = ModelConfig {
            call,
            ..retrying(2)
        };
        let (poor, script) = model(config, &["1", "2"]);
        assert!(matches!(ask(&poor), Err(Error::Exhausted(_))));
        assert_eq!(script.asked.lock().unwrap().len(), 2);
    }

    #[test]
    fn a_replay_asks_again_exactly_where_its_record_did() {
        let folder = tempfile::tempdir().unwrap();
        for retries in [0, 1, 2] {
            let path = folder.path().join(format!("{retries}.jsonl"));
            let script = script(&["1", "2", "{\"a\": 3}"]);
            let record = Record::open(&path).unwrap();
            let first = Model::new("m", retrying(retries), Some(script), Some(record));
            let answer = format!("{:?}", ask(&first));
            assert_eq!(answer.starts_with("Ok"), retries == 2, "{answer}");
            for other in [0, 1, 2] {
                let record = Record::open_to_read(&path).unwrap();
                let replay = Model::new("m", retrying(other), None, Some(record));
                assert_eq!(format!("{:?}", ask(&replay)), answer);
                assert_eq!(replay.spent().answers, first.spent().answers);
                assert_eq!(replay.counts().unfit, first.counts().unfit);
            }
        }
    }
}
