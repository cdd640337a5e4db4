//! Reads questions of a file: JSON lines with answers, and with sub-questions, unless a language model finds them.

mod steps;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rlf_dialogue::split::Split;
use serde::Deserialize;
use serde_json::Value;

use self::steps::answer_text;
pub(crate) use self::steps::{GivenStep, scenario_of};
use super::artefact::Line;
use super::decompose::trivial;
use super::error::RowsError;
use super::matching::{plain, triviality};
use super::options::{Scenario, split_of_name};
use super::question::{Question, Source};
use super::rejection::{Check, Finding};
use super::stage::Stage;
use crate::lines;

/// A question of a file.
#[derive(Debug)]
pub(crate) struct Given {
    id: String,
    /// The line in the file, from 1.
    line: usize,
    said: Said,
    /// The earlier line that asks the same.
    asked_before: Option<usize>,
}

/// A line of the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Said {
    id: Option<String>,
    question: String,
    answer: Value,
    scenario: Option<Scenario>,
    split: Option<Split>,
    steps: Option<Vec<GivenStep>>,
}

/// Reads a file. A line that is not such an object is an error.
pub(crate) fn read_questions(path: &Path) -> Result<Vec<Given>, RowsError> {
    let text = lines::text(path).map_err(|source| RowsError::read(path, source))?;
    let mut questions = Vec::new();
    let mut ids = BTreeSet::new();
    let mut asked: BTreeMap<String, usize> = BTreeMap::new();
    let lines = (1..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty());
    for (line, text) in lines {
        let said: Said = serde_json::from_str(text).map_err(|error| {
            let problem = format!(
                "{error}; a question is {{\"question\": .., \"answer\": .., \"steps\": [{{\"question\": .., \"answer\": .., \"subject\": ..}}]}}"
            );
            RowsError::line(path, line, &problem)
        })?;
        let id = said.id.clone().unwrap_or_else(|| format!("{line:06}"));
        if !ids.insert(id.clone()) {
            let problem = format!("the id {id:?} is there twice");
            return Err(RowsError::line(path, line, &problem));
        }
        let first = *asked.entry(plain(&said.question)).or_insert(line);
        questions.push(Given {
            id,
            line,
            said,
            asked_before: (first < line).then_some(first),
        });
    }
    if questions.is_empty() {
        return Err(RowsError::Empty {
            path: path.to_owned(),
            problem: "no questions in it; write one JSON object a line",
        });
    }
    Ok(questions)
}

/// The questions of a file, each with its own steps. Without steps of its own, a question is an error.
pub(crate) fn own_steps(
    path: &Path,
    given: &[Given],
) -> Result<Vec<Result<Question, Finding>>, RowsError> {
    let all = given.iter().map(|one| {
        one.own().ok_or_else(|| RowsError::NoSteps {
            path: path.to_owned(),
            line: one.line,
        })
    });
    all.collect()
}

/// The lines of the artefact. Questions that share an entity come into one split.
pub(crate) fn into_lines(
    given: Vec<Given>,
    made: Vec<Result<Question, Finding>>,
) -> Vec<Line<Question>> {
    let mut splits = BTreeMap::new();
    let mut lines = Vec::with_capacity(given.len());
    for (given, made) in given.into_iter().zip(made) {
        let made = made.map_err(|finding| {
            let reason = format!("line {}: {}", given.line, finding.reason);
            Finding::new(finding.check, reason)
        });
        if let Some(split) = given.said.split {
            splits.insert(given.id.clone(), (split, given.line));
        }
        lines.push(Line::new(made, given.id, Stage::Decompose));
    }
    assign_splits(&mut lines, &splits);
    lines
}

impl Given {
    /// The text of the question.
    pub(crate) fn text(&self) -> &str {
        &self.said.question
    }

    /// The final answer as text. Empty if it is neither a text nor a number.
    pub(crate) fn answer(&self) -> String {
        answer_text(&self.said.answer).unwrap_or_default()
    }

    /// The name of the scenario that the file says. Empty if it says none.
    pub(crate) fn scenario(&self) -> &'static str {
        self.said.scenario.map_or("", Scenario::as_str)
    }

    /// The question with its own steps, or the reason why it cannot be used whatever its steps are. None if a model has to
    /// find its steps.
    pub(crate) fn own(&self) -> Option<Result<Question, Finding>> {
        let made = match &self.said.steps {
            Some(steps) => self.with_steps(steps.clone()).map(Some),
            None => self.check_answer().map(|()| None),
        };
        match (made, self.asked_before) {
            (Ok(_), Some(line)) => {
                let reason = format!("line {line} asks the same");
                Some(Err(Finding::new(Check::Duplicate, reason)))
            }
            (made, _) => made.transpose(),
        }
    }

    /// Checks an answer whose steps are not known yet.
    fn check_answer(&self) -> Result<(), Finding> {
        let answer = answer_text(&self.said.answer)
            .map_err(|error| Finding::malformed(error.to_string()))?;
        match triviality(&plain(self.text()), &answer) {
            Some(reason) => Err(Finding::new(Check::Trivial, reason)),
            None => Ok(()),
        }
    }

    /// The question with these steps, or the reason why it cannot be used with them.
    pub(crate) fn with_steps(&self, steps: Vec<GivenStep>) -> Result<Question, Finding> {
        if steps.is_empty() {
            return Err(Finding::malformed("it has no `steps`"));
        }
        let steps = steps.into_iter().enumerate();
        let steps = steps
            .map(|(index, step)| {
                step.into_step(index)
                    .map_err(|error| Finding::malformed(format!("step {}: {error}", index + 1)))
            })
            .collect::<Result<Vec<_>, _>>()?;
        let answer = answer_text(&self.said.answer);
        let question = Question {
            id: self.id.clone(),
            scenario: self.said.scenario.unwrap_or_else(|| scenario_of(&steps)),
            split: Split::Train,
            question: self.said.question.clone(),
            answer: answer.map_err(|error| Finding::malformed(error.to_string()))?,
            steps,
        };
        let shape = scenario_of(&question.steps);
        if question.scenario != shape {
            let said = question.scenario;
            let reason = format!("the question is {said}, and these steps are {shape}");
            return Err(Finding::malformed(reason));
        }
        check_end(&question)?;
        match trivial(&question) {
            Some(finding) => Err(finding),
            None => Ok(question),
        }
    }
}

/// Checks that the steps lead to the final answer.
fn check_end(question: &Question) -> Result<(), Finding> {
    let needed: BTreeSet<usize> = question
        .steps
        .iter()
        .flat_map(|step| &step.sources)
        .filter_map(|source| match source {
            Source::Step(step) => Some(*step),
            Source::Text(_) => None,
        })
        .collect();
    let mut ends = (0..question.steps.len()).filter(|step| !needed.contains(step));
    let is_answer = |step: usize| plain(&question.steps[step].answer) == plain(&question.answer);
    if ends.any(is_answer) {
        return Ok(());
    }
    Err(Finding::new(
        Check::Oracle,
        format!(
            "no step that ends a chain has the answer {:?}, which is the right one",
            question.answer
        ),
    ))
}

/// Puts questions that share an entity into one split: the one that a question of the group says, or one by the hash of
/// its first entity. `given` has splits with their lines in the file. A question that says another split than an earlier
/// one of its group is rejected.
fn assign_splits(lines: &mut [Line<Question>], given: &BTreeMap<String, (Split, usize)>) {
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
    let mut stated: BTreeMap<usize, (Split, usize)> = BTreeMap::new();
    for (index, line) in lines.iter_mut().enumerate() {
        let Line::Item(question) = line else { continue };
        let Some(&(split, number)) = given.get(&question.id) else {
            continue;
        };
        let root = root(&mut group, index);
        let (first, before) = *stated.entry(root).or_insert((split, number));
        if first != split {
            let reason = format!(
                "line {number}: it is for {split}, and line {before} for {first}; they share names, directly or by questions between \
                 them, so give both one split"
            );
            let finding = Finding::new(Check::Split, reason);
            *line = Line::new(Err(finding), question.id.clone(), Stage::Decompose);
        }
    }
    let of_group = |(root, (split, _))| (root, split);
    let mut splits: BTreeMap<usize, Split> = stated.into_iter().map(of_group).collect();
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

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_question_that_states_another_split_than_its_group_is_rejected_with_both_lines() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("questions.jsonl");
        let line = |work: &str, split: &str| {
            format!(
                r#"{{"question": "Who wrote {work}?", "answer": "Johann Wolfgang von Goethe", {split} "steps": [{{"question": "Who wrote {work}?", "answer": "Johann Wolfgang von Goethe", "subject": "{work}", "kind": "work"}}]}}"#
            )
        };
        let text = [
            line("Faust", r#""split": "test","#),
            line("Egmont", ""),
            line("Stella", r#""split": "train","#),
            line("Iphigenie", r#""split": "test","#),
        ];
        // As some editors write it.
        fs::write(&path, format!("\u{feff}{}", text.join("\n"))).unwrap();
        let given = read_questions(&path).unwrap();
        let made = own_steps(&path, &given).unwrap();
        let lines = into_lines(given, made);
        for (number, line) in lines.iter().enumerate() {
            match line {
                Line::Item(question) => {
                    assert_eq!((number != 2, question.split), (true, Split::Test));
                }
                Line::Rejected(rejected) => {
                    assert_eq!((number, rejected.check), (2, Check::Split));
                    let reason = &rejected.reason;
                    assert!(
                        reason.starts_with("line 3: it is for train, and line 1 for test; "),
                        "{reason}"
                    );
                }
            }
        }
    }

    #[test]
    fn steps_that_contradict_their_question_and_repeated_questions_are_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("questions.jsonl");
        let line = |answer: &str, scenario: &str| {
            format!(
                r#"{{"question": "When was the author of Faust born?", "answer": "{answer}", {scenario} "steps": [
                    {{"question": "Who wrote Faust?", "answer": "Johann Wolfgang von Goethe", "subject": "Faust", "kind": "work"}},
                    {{"question": "When was #1 born?", "answer": "1749", "kind": "person"}}]}}"#
            )
            .replace('\n', " ")
        };
        let text = [
            line("1749", ""),
            line("1750", ""),
            line("1749", r#""scenario": "single_hop","#),
            line("1749", ""),
        ];
        fs::write(&path, text.join("\n")).unwrap();
        let given = read_questions(&path).unwrap();
        let made = own_steps(&path, &given).unwrap();
        assert!(made[0].is_ok());
        for (made, said) in [
            (
                &made[1],
                "no step that ends a chain has the answer \"1750\"",
            ),
            (&made[2], "these steps are multi_hop"),
            (&made[3], "line 1 asks the same"),
        ] {
            let reason = &made.as_ref().unwrap_err().reason;
            assert!(reason.contains(said), "{reason}");
        }
    }
}
