//! Reads questions that are decomposed already: JSON lines with sub-questions and answers.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use rlf_random::{Key, Purpose};
use serde::Deserialize;
use serde_json::Value;

use super::artefact::Line;
use super::decompose::trivial;
use super::error::RowsError;
use super::facts::Target;
use super::options::{Scenario, Split};
use super::output::references;
use super::question::{Lookup, Operation, Question, Source, Step, Work};
use super::rejection::{Check, Rejection};
use super::tool_names::identifier;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenQuestion {
    id: Option<String>,
    question: String,
    answer: Value,
    scenario: Option<Scenario>,
    split: Option<Split>,
    steps: Vec<GivenStep>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenStep {
    question: String,
    answer: Value,
    /// What is looked up: words of the question, or `#1`.
    subject: Option<String>,
    /// Kind of the subject.
    kind: Option<String>,
    /// Name of the relation.
    relation: Option<String>,
    /// What is found, without naming a subject.
    about: Option<String>,
    operation: Option<Operation>,
}

/// Reads a file. Questions that cannot be used are rejected; a line that is no such object is an error.
pub(crate) fn read_questions(path: &Path, stage: &str) -> Result<Vec<Line<Question>>, RowsError> {
    let text = fs::read_to_string(path).map_err(|source| RowsError::read(path, source))?;
    let mut lines = Vec::new();
    let mut given_splits = BTreeMap::new();
    let mut ids = BTreeSet::new();
    let all = (1..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty());
    for (number, line) in all {
        let given: GivenQuestion = serde_json::from_str(line).map_err(|error| {
            let problem = format!(
                "{error}; a question is {{\"question\": .., \"answer\": .., \"steps\": [{{\"question\": .., \"answer\": .., \"subject\": ..}}]}}"
            );
            RowsError::line(path, number, &problem)
        })?;
        let id = given.id.clone().unwrap_or_else(|| format!("{number:06}"));
        if !ids.insert(id.clone()) {
            let problem = format!("the id {id:?} is there twice");
            return Err(RowsError::line(path, number, &problem));
        }
        if let Some(split) = given.split {
            given_splits.insert(id.clone(), split);
        }
        let made = question(&id, given).and_then(|question| match trivial(&question) {
            Some(reason) => Err((Check::Trivial, reason)),
            None => Ok(question),
        });
        lines.push(match made {
            Ok(question) => Line::Item(question),
            Err((check, reason)) => Line::Rejected(Rejection {
                id,
                stage: stage.to_owned(),
                check,
                reason: format!("line {number}: {reason}"),
            }),
        });
    }
    if lines.is_empty() {
        return Err(RowsError::Empty {
            path: path.to_owned(),
            problem: "no questions in it; write one JSON object a line",
        });
    }
    assign_splits(&mut lines, &given_splits);
    Ok(lines)
}

type Problem = (Check, String);

fn question(id: &str, given: GivenQuestion) -> Result<Question, Problem> {
    let malformed = |reason: String| (Check::Malformed, reason);
    if given.steps.is_empty() {
        return Err(malformed("it has no `steps`".to_owned()));
    }
    let mut steps = Vec::with_capacity(given.steps.len());
    for (index, step) in given.steps.into_iter().enumerate() {
        let made = make_step(step, index)
            .map_err(|reason| malformed(format!("step {}: {reason}", index + 1)))?;
        steps.push(made);
    }
    let scenario = given.scenario.unwrap_or_else(|| scenario_of(&steps));
    Ok(Question {
        id: id.to_owned(),
        scenario,
        split: Split::Train,
        question: given.question,
        answer: plain(&given.answer).map_err(malformed)?,
        steps,
    })
}

fn make_step(given: GivenStep, index: usize) -> Result<Step, String> {
    let answer = plain(&given.answer)?;
    let referred: Vec<usize> = references(&given.question).collect();
    if let Some(step) = referred.iter().find(|step| **step >= index) {
        return Err(format!(
            "it refers to #{}, which is not before it",
            step + 1
        ));
    }
    if let Some(operation) = given.operation {
        if referred.len() < 2 {
            return Err("a calculation refers to at least two steps, such as #1 and #2".to_owned());
        }
        return Ok(Step {
            sources: referred.into_iter().map(Source::Step).collect(),
            work: Work::Calculate(operation),
            question: given.question,
            answer,
        });
    }
    let source = match given.subject {
        Some(subject) => match first_reference(&subject) {
            Some(step) if subject.trim() == format!("#{}", step + 1) && step < index => {
                Source::Step(step)
            }
            Some(_) => {
                return Err(format!(
                    "its subject {subject:?} has to be one earlier step, such as #1, or words"
                ));
            }
            None => Source::Text(subject),
        },
        None => match referred.as_slice() {
            [only] => Source::Step(*only),
            _ => {
                return Err(
                    "say with `subject` what is looked up: words of the question, or #1".to_owned(),
                );
            }
        },
    };
    let kind = given.kind.unwrap_or_else(|| "subject".to_owned());
    let about = given
        .about
        .unwrap_or_else(|| about(&given.question, &source, &kind));
    let relation = identifier(&given.relation.unwrap_or_else(|| keywords(&about, &kind)));
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
        question: given.question,
        answer,
    })
}

fn first_reference(text: &str) -> Option<usize> {
    references(text).next()
}

fn plain(value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        other => Err(format!("an answer is a text or a number, not {other}")),
    }
}

/// What a sub-question finds, without naming the subject.
fn about(question: &str, source: &Source, kind: &str) -> String {
    let thing = super::facts::with_article(kind);
    let general = match source {
        Source::Text(text) => question.replace(text.as_str(), &thing),
        Source::Step(step) => question.replace(&format!("#{}", step + 1), &thing),
    };
    format!("the answer to the question '{general}'")
}

/// The words of a description that say what it is about.
fn keywords(about: &str, kind: &str) -> String {
    const FILLERS: [&str; 40] = [
        "the", "a", "an", "of", "to", "in", "on", "at", "is", "was", "are", "were", "did", "does",
        "do", "has", "have", "had", "by", "for", "from", "with", "and", "or", "that", "this", "it",
        "its", "be", "been", "answer", "question", "which", "what", "who", "whose", "given",
        "there", "as", "into",
    ];
    let plain = identifier_words(about);
    let words: Vec<&str> = plain
        .iter()
        .map(String::as_str)
        .filter(|word| !FILLERS.contains(word) && *word != kind)
        .take(3)
        .collect();
    if words.is_empty() {
        "fact".to_owned()
    } else {
        words.join("_")
    }
}

fn identifier_words(text: &str) -> Vec<String> {
    text.to_lowercase()
        .split(|one: char| !one.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

fn target(answer: &str) -> Target {
    let digits = answer.replace(',', "");
    if rlf_specification::date::parse(answer).is_some() {
        Target::Date
    } else if answer.len() == 4 && answer.parse::<u16>().is_ok() {
        Target::Year
    } else if digits.parse::<f64>().is_ok() {
        Target::Number(String::new())
    } else {
        Target::Entity("thing".to_owned())
    }
}

/// The scenario that the shape of the steps says.
fn scenario_of(steps: &[Step]) -> Scenario {
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

/// Puts questions that share an entity into one split: the one that a question of the group says, or one by the hash of
/// its first entity.
fn assign_splits(lines: &mut [Line<Question>], given: &BTreeMap<String, Split>) {
    let mut group: Vec<usize> = (0..lines.len()).collect();
    let mut owner: BTreeMap<String, usize> = BTreeMap::new();
    for (index, line) in lines.iter().enumerate() {
        let Line::Item(question) = line else { continue };
        for name in entities(question) {
            let other = *owner.entry(name).or_insert(index);
            let (one, other) = (root(&mut group, index), root(&mut group, other));
            group[one.max(other)] = one.min(other);
        }
    }
    let mut splits: BTreeMap<usize, Split> = BTreeMap::new();
    for (index, line) in lines.iter().enumerate() {
        let Line::Item(question) = line else { continue };
        let root = root(&mut group, index);
        if let Some(split) = given.get(&question.id) {
            splits.entry(root).or_insert(*split);
        }
    }
    for (index, line) in lines.iter_mut().enumerate() {
        let Line::Item(question) = line else { continue };
        let root = root(&mut group, index);
        let drawn = || {
            let name = entities(question).into_iter().next().unwrap_or_default();
            Split::of_tenth(Key::new(0, Purpose::Order).named(&name).below(0, 10))
        };
        question.split = *splits.entry(root).or_insert_with(drawn);
    }
}

/// The first member of a group, which all others lead to.
fn root(group: &mut [usize], mut at: usize) -> usize {
    while group[at] != at {
        group[at] = group[group[at]];
        at = group[at];
    }
    at
}

/// The names that a question is about: everything that is looked up, and every answer that has a letter.
pub(crate) fn entities(question: &Question) -> BTreeSet<String> {
    let given = question.given().into_iter();
    let answers = question.steps.iter().map(|step| step.answer.as_str());
    given
        .chain(answers.filter(|answer| answer.chars().any(char::is_alphabetic)))
        .map(str::to_lowercase)
        .collect()
}
