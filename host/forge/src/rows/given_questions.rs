//! Reads questions that are decomposed already: JSON lines with sub-questions and answers.

mod steps;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use rlf_dialogue::split::Split;
use serde::Deserialize;
use serde_json::Value;

use self::steps::{GivenStep, answer_text, scenario_of};
use super::artefact::Line;
use super::decompose::trivial;
use super::error::RowsError;
use super::options::{Scenario, split_of_name};
use super::question::Question;
use super::rejection::Finding;
use super::stage::Stage;

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

/// Reads a file. Questions that cannot be used are rejected; a line that is no such object is an error.
pub(crate) fn read_questions(path: &Path) -> Result<Vec<Line<Question>>, RowsError> {
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
            Some(finding) => Err(finding),
            None => Ok(question),
        });
        let made = made.map_err(|finding| {
            Finding::new(finding.check, format!("line {number}: {}", finding.reason))
        });
        lines.push(Line::new(made, id, Stage::Decompose));
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

fn question(id: &str, given: GivenQuestion) -> Result<Question, Finding> {
    if given.steps.is_empty() {
        return Err(Finding::malformed("it has no `steps`"));
    }
    let steps = given.steps.into_iter().enumerate();
    let steps = steps
        .map(|(index, step)| {
            step.into_step(index)
                .map_err(|error| Finding::malformed(format!("step {}: {error}", index + 1)))
        })
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Question {
        id: id.to_owned(),
        scenario: given.scenario.unwrap_or_else(|| scenario_of(&steps)),
        split: Split::Train,
        question: given.question,
        answer: answer_text(&given.answer)
            .map_err(|error| Finding::malformed(error.to_string()))?,
        steps,
    })
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
            split_of_name(&name)
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

/// The names that a question is about: every subject of a look-up, and every answer that has a letter.
fn entities(question: &Question) -> BTreeSet<String> {
    let given = question.given().into_iter();
    let answers = question.steps.iter().map(|step| step.answer.as_str());
    given
        .chain(answers.filter(|answer| answer.chars().any(char::is_alphabetic)))
        .map(str::to_lowercase)
        .collect()
}
