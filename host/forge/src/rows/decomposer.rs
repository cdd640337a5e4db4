//! Questions decomposed by a language model, as FTRL decomposes them: stage 1 for questions that a file gives without
//! steps.
//!
//! The model answers with steps in the form in which a file has them. An answer goes back to the model, with the
//! reason, in three cases: it is not JSON of this form; a step refers to something that is not before it, looks up
//! something that the question does not name, or computes wrongly; or the steps do not lead to the question's own
//! answer. Later stages treat a model's steps like all others, so verification by execution has the last word.

mod checks;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::StreamExt as _;
use rlf_endpoint::ChatMessage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::artefact;
use super::error::RowsError;
use super::given_questions::{Given, GivenStep, read_questions};
use super::options::RowOptions;
use super::question::Question;
use super::rejection::{Check, Finding};
use crate::ask::prompts::{PromptError, Prompts, Shipped};
use crate::ask::{self, AskError, Asker, Total, Unusable, schema_of};

/// Name of the stage in the names of answers, and of its prompt.
const STAGE: &str = "decompose";
/// Number of questions that are in flight at once. Each reserves the tokens of the longest answer.
const SIDE_BY_SIDE: usize = 4;
/// Tokens of a typical answer.
const ANSWER: u64 = 400;
/// Tokens of the reason why an answer cannot be used.
const REASON: u64 = 60;

/// The shipped prompts.
pub const PROMPTS: &[Shipped] = &[
    Shipped {
        name: "system",
        text: include_str!("prompts/system.txt"),
        needs: &[],
        knows: &[],
    },
    Shipped {
        name: STAGE,
        text: include_str!("prompts/decompose.txt"),
        needs: &["question", "answer", "schema"],
        knows: &["scenario", "max_steps"],
    },
];

/// The answer of the model.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Decomposition {
    /// The steps, each after those that it refers to.
    #[schemars(length(min = 1, max = 11))]
    steps: Vec<GivenStep>,
}

/// Asks a model for the steps of questions.
#[derive(Debug)]
pub struct Decomposer<'a> {
    /// Asks the model.
    pub asker: &'a Asker<'a>,
    /// The prompts.
    pub prompts: &'a Prompts,
}

impl Decomposer<'_> {
    /// A hash of everything that the steps depend on, besides the questions.
    pub(crate) fn identity(&self, options: &RowOptions) -> Result<String, RowsError> {
        let model = self.asker.model.identity();
        let seed = self.asker.seed.to_string();
        let asked = asked(self.prompts, options, ("", "", ""))?;
        let texts = asked.messages.iter().map(|one| one.content.as_str());
        let parts: Vec<&str> = [model.as_str(), &seed].into_iter().chain(texts).collect();
        Ok(artefact::key(&parts))
    }

    /// Asks for steps. Returns all questions, in order, each with its steps or the reason why it cannot be used. If a
    /// question has no answer, no further one is asked. Answers to questions in flight are waited for and kept.
    pub(crate) async fn questions(
        &self,
        given: &[Given],
        options: &RowOptions,
    ) -> Result<Vec<Result<Question, Finding>>, RowsError> {
        let failed = &AtomicBool::new(false);
        let made = futures_util::stream::iter(given).map(|given| async move {
            match given.own() {
                Some(made) => Ok(Some(made)),
                None if failed.load(Ordering::Relaxed) => Ok(None),
                None => {
                    let made = self.question(given, options).await;
                    failed.fetch_or(made.is_err(), Ordering::Relaxed);
                    made.map(Some)
                }
            }
        });
        let made: Vec<_> = made.buffered(SIDE_BY_SIDE).collect().await;
        // A question is left out only after another one failed, and that error ends the collection.
        made.into_iter().filter_map(Result::transpose).collect()
    }

    async fn question(
        &self,
        given: &Given,
        options: &RowOptions,
    ) -> Result<Result<Question, Finding>, RowsError> {
        let (answer, scenario) = (given.answer(), given.scenario());
        let asked = asked(self.prompts, options, (given.text(), &answer, scenario))?;
        let made = self.asker.json(&asked, |found: Decomposition| {
            checks::checked(given, found.steps, options.max_calls)
                .map_err(|finding| Unusable::new(finding.reason))
        });
        match made.await {
            Ok(question) => Ok(Ok(question)),
            Err(error @ AskError::Unusable { .. }) => {
                Ok(Err(Finding::new(Check::NoDecomposition, error.to_string())))
            }
            Err(error) => Err(error.into()),
        }
    }
}

/// The question to the model for the steps of a question, given as text, answer and scenario.
fn asked(
    prompts: &Prompts,
    options: &RowOptions,
    (question, answer, scenario): (&str, &str, &str),
) -> Result<ask::Question, PromptError> {
    let schema = format!("{:#}", schema_of::<Decomposition>());
    let values = [
        ("question", question),
        ("answer", answer),
        ("scenario", scenario),
        ("max_steps", &options.max_calls.to_string()),
        ("schema", &schema),
    ];
    let messages = vec![
        ChatMessage::system(prompts.render("system", &[])?),
        ChatMessage::user(prompts.render(STAGE, &values)?),
    ];
    Ok(ask::Question::new(STAGE, messages))
}

/// An estimate of the tokens for the questions of a file that have no steps. Answers on disk cost nothing again.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
    /// The estimate if the first answer to each question can be used.
    pub least: Total,
    /// The estimate if only the last attempt at each question can be used.
    pub most: Total,
    /// The first question as it would be sent.
    #[serde(skip)]
    pub first: ask::Question,
}

/// Estimates the tokens for a file. None if all of its questions have steps. Nothing is asked.
pub fn estimate(
    prompts: &Prompts,
    file: &Path,
    options: &RowOptions,
    attempts: u32,
) -> Result<Option<Estimate>, RowsError> {
    let mut estimate: Option<Estimate> = None;
    for given in read_questions(file)? {
        if given.own().is_some() {
            continue;
        }
        let answer = given.answer();
        let question = asked(prompts, options, (given.text(), &answer, given.scenario()))?;
        let tokens = question.tokens();
        let found = estimate.get_or_insert_with(|| Estimate {
            least: Total::default(),
            most: Total::default(),
            first: question,
        });
        found.least.add(tokens, ANSWER);
        for attempt in 0..u64::from(attempts) {
            found.most.add(tokens + attempt * (ANSWER + REASON), ANSWER);
        }
    }
    Ok(estimate)
}
