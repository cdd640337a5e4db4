//! Checks of a row that need no execution.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::rows::matching::{is_short, plain, plain_contains, triviality};
use crate::rows::options::MAX_TOOLS;
use crate::rows::output::references;
use crate::rows::rejection::{Check, Finding};
use crate::rows::row::Row;

/// Maximum length of a tool's name, in bytes.
const MAX_NAME: usize = 64;

pub(super) fn check(row: &Row) -> Vec<Finding> {
    let mut findings = Vec::new();
    well_formed(row, &mut findings);
    trivial(row, &mut findings);
    leaks(row, &mut findings);
    findings
}

/// All answers that a policy has to find, each once.
pub(super) fn answers(row: &Row) -> BTreeSet<&str> {
    let answers = row.calls.iter().map(|call| call.answer.as_str());
    answers.chain([row.answer.as_str()]).collect()
}

fn well_formed(row: &Row, findings: &mut Vec<Finding>) {
    let mut add = |reason: String| findings.push(Finding::malformed(reason));
    let mut names = BTreeSet::new();
    if row.tools.is_empty() || row.tools.len() > MAX_TOOLS {
        add(format!(
            "it has {} tools; 1 to {MAX_TOOLS} are allowed",
            row.tools.len()
        ));
    }
    for tool in &row.tools {
        let name = tool.name.as_str();
        let is_identifier = name.len() <= MAX_NAME
            && !name.starts_with(|first: char| first.is_ascii_digit())
            && name
                .chars()
                .all(|one| one.is_ascii_alphanumeric() || one == '_');
        if !is_identifier || name.is_empty() {
            add(format!("`{name}` cannot be the name of a function"));
        }
        if !names.insert(name) {
            add(format!("two tools are called `{name}`"));
        }
    }
    if row.calls.is_empty() {
        add("it has no gold call".to_owned());
    }
    for (number, call) in (1..).zip(&row.calls) {
        let Some(tool) = row.tool(&call.tool) else {
            add(format!(
                "gold call {number} is to `{}`, which is none of its tools",
                call.tool
            ));
            continue;
        };
        if let Some(later) = references(&call.question).find(|step| step + 1 >= number) {
            add(format!(
                "gold call {number} refers to #{}, which is not before it",
                later + 1
            ));
        }
        match jsonschema::validator_for(&tool.parameters) {
            Err(error) => add(format!(
                "the schema of `{}` is not valid JSON Schema: {error}",
                tool.name
            )),
            Ok(validator) => {
                let arguments = Value::Object(call.arguments.clone());
                if let Err(error) = validator.validate(&arguments) {
                    add(format!(
                        "the arguments of gold call {number} do not fit the schema of `{}`: {error}",
                        tool.name
                    ));
                }
            }
        }
    }
}

fn trivial(row: &Row, findings: &mut Vec<Finding>) {
    let question = plain(&row.question);
    let reasons = answers(row)
        .into_iter()
        .filter_map(|answer| triviality(&question, answer));
    findings.extend(reasons.map(|reason| Finding::new(Check::Trivial, reason)));
}

/// Finds answers in the text that the policy reads of the tools.
fn leaks(row: &Row, findings: &mut Vec<Finding>) {
    let answers: Vec<&str> = answers(row)
        .into_iter()
        .filter(|answer| !is_short(answer))
        .collect();
    for tool in &row.tools {
        let shown = json!([tool.name, tool.description, tool.parameters]).to_string();
        let shown = plain(&shown);
        for answer in answers
            .iter()
            .filter(|answer| plain_contains(&shown, answer))
        {
            let reason = format!(
                "the description of `{}` states the answer {answer:?}",
                tool.name
            );
            findings.push(Finding::new(Check::Leak, reason));
        }
    }
}
