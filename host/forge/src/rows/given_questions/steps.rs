//! Steps of a question as a file gives them, and the steps of a decomposition that they become.

use rlf_specification::date;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::rows::facts::{Target, with_article};
use crate::rows::options::Scenario;
use crate::rows::output::references;
use crate::rows::question::{Lookup, Operation, Source, Step, Work};
use crate::rows::tool_names::identifier;

/// Maximum number of words of a sub-question that become the name of a relation.
const MAX_KEYWORDS: usize = 3;

/// A sub-question, as a file or a language model gives it. A model reads these comments in the JSON schema.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GivenStep {
    /// The sub-question. #1 is the answer of the first step.
    question: String,
    /// Its answer, as short as possible.
    #[schemars(extend("type" = ["string", "number"]))]
    answer: Value,
    /// The subject of a look-up: one name from the question, or one earlier step such as #1.
    subject: Option<String>,
    /// The kind of the subject in a word, such as person, city or book.
    kind: Option<String>,
    /// A name for the relation between subject and answer, such as birth_year.
    relation: Option<String>,
    /// The thing that is found, without naming the subject: the author of a book.
    about: Option<String>,
    /// The operation of a calculation.
    operation: Option<Operation>,
}

/// The reason why a step cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum StepError {
    #[error("an answer is a text or a number, not {0}")]
    Answer(Value),
    #[error("it refers to #{0}, which is not before it")]
    Later(usize),
    #[error("a calculation refers to at least two steps, such as #1 and #2")]
    FewOperands,
    #[error("its subject {0:?} has to be one earlier step, such as #1, or words")]
    Subject(String),
    // Calls are put into turns by the references of their sub-questions.
    #[error("its subject is #{0}, so its sub-question has to say #{0} too")]
    Unmentioned(usize),
    #[error("say with `subject` what is looked up: words of the question, or #1")]
    NoSubject,
}

impl GivenStep {
    /// The step number `index`, counted from 0.
    pub(super) fn into_step(self, index: usize) -> Result<Step, StepError> {
        let answer = answer_text(&self.answer)?;
        let referred: Vec<usize> = references(&self.question).collect();
        if let Some(step) = referred.iter().find(|step| **step >= index) {
            return Err(StepError::Later(step + 1));
        }
        if let Some(operation) = self.operation {
            if referred.len() < 2 {
                return Err(StepError::FewOperands);
            }
            return Ok(Step {
                sources: referred.into_iter().map(Source::Step).collect(),
                work: Work::Calculate(operation),
                question: self.question,
                answer,
            });
        }
        let source = source(self.subject, &referred, index)?;
        let kind = self.kind.unwrap_or_else(|| "subject".to_owned());
        let about = self
            .about
            .unwrap_or_else(|| about(&self.question, &source, &kind));
        let relation = identifier(&self.relation.unwrap_or_else(|| keywords(&about, &kind)));
        Ok(Step {
            work: Work::Lookup(Lookup {
                tools: vec![
                    relation.clone(),
                    format!("{}_{relation}", identifier(&kind)),
                ],
                relation,
                kind,
                about,
                target: target(&answer),
            }),
            sources: vec![source],
            question: self.question,
            answer,
        })
    }
}

/// The text of an answer.
pub(super) fn answer_text(value: &Value) -> Result<String, StepError> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        other => Err(StepError::Answer(other.clone())),
    }
}

/// The subject of a look-up. `referred` are the steps that the sub-question refers to.
fn source(subject: Option<String>, referred: &[usize], index: usize) -> Result<Source, StepError> {
    let Some(subject) = subject else {
        return match referred {
            [only] => Ok(Source::Step(*only)),
            _ => Err(StepError::NoSubject),
        };
    };
    let reference = references(&subject).next();
    match reference {
        None => Ok(Source::Text(subject)),
        Some(step) if subject.trim() == format!("#{}", step + 1) && step < index => {
            if referred.contains(&step) {
                Ok(Source::Step(step))
            } else {
                Err(StepError::Unmentioned(step + 1))
            }
        }
        Some(_) => Err(StepError::Subject(subject)),
    }
}

/// The thing that a sub-question finds, without naming the subject.
fn about(question: &str, source: &Source, kind: &str) -> String {
    let thing = with_article(kind);
    let general = match source {
        Source::Text(text) => question.replace(text.as_str(), &thing),
        Source::Step(step) => question.replace(&format!("#{}", step + 1), &thing),
    };
    format!("the answer to the question '{general}'")
}

/// The words that name the subject of a description.
fn keywords(about: &str, kind: &str) -> String {
    const FILLERS: [&str; 40] = [
        "the", "a", "an", "of", "to", "in", "on", "at", "is", "was", "are", "were", "did", "does",
        "do", "has", "have", "had", "by", "for", "from", "with", "and", "or", "that", "this", "it",
        "its", "be", "been", "answer", "question", "which", "what", "who", "whose", "given",
        "there", "as", "into",
    ];
    let plain = about.to_lowercase();
    let words: Vec<&str> = plain
        .split(|one: char| !one.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty() && !FILLERS.contains(word) && *word != kind)
        .take(MAX_KEYWORDS)
        .collect();
    if words.is_empty() {
        "fact".to_owned()
    } else {
        words.join("_")
    }
}

/// The type that an answer has.
fn target(answer: &str) -> Target {
    if date::parse(answer).is_some() {
        Target::Date
    } else if answer.len() == 4 && answer.parse::<u16>().is_ok() {
        Target::Year
    } else if answer.replace(',', "").parse::<f64>().is_ok() {
        Target::Number(String::new())
    } else {
        Target::Entity("thing".to_owned())
    }
}

/// The scenario that follows from the shape of the steps.
pub(crate) fn scenario_of(steps: &[Step]) -> Scenario {
    let is_hop = |step: &Step| {
        matches!(step.work, Work::Lookup(_))
            && matches!(step.sources.first(), Some(Source::Step(_)))
    };
    let beginnings = steps
        .iter()
        .filter(|step| matches!(step.sources.first(), Some(Source::Text(_))))
        .count();
    match (steps.iter().any(is_hop), beginnings > 1) {
        (false, false) => Scenario::SingleHop,
        (true, false) => Scenario::MultiHop,
        (false, true) => Scenario::ParallelSingleHop,
        (true, true) => Scenario::ParallelMultiHop,
    }
}
