//! Judges the results of calls.

use serde_json::{Map, Value, json};

use super::execution::Outputs;
use super::probes::{Probe, ProbeKind};
use super::static_checks::answers;
use crate::rows::matching::{contains, is_short, plain, plain_contains};
use crate::rows::rejection::{Check, Finding};
use crate::rows::row::Row;

/// Maximum number of characters of a text that a finding shows.
const MAX_SHOWN: usize = 160;

/// Checks that each gold call gives its sub-answer in both executors, and no other sub-answer of its tool.
pub(super) fn gold(row: &Row, outputs: &Outputs) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (index, call) in row.calls.iter().enumerate() {
        let number = index + 1;
        let (clean, published) = (&outputs.clean[index], &outputs.published[index]);
        let place = format!("gold call {number} to `{}`", call.tool);
        if clean.failed || !contains(&clean.text, &call.answer) {
            let (answer, said) = (&call.answer, shown(&clean.text));
            let reason = format!("{place} does not give {answer:?}: {said}");
            findings.push(Finding::new(Check::Oracle, reason));
        } else if published.failed || !contains(&published.text, &call.answer) {
            let said = shown(&published.text);
            let reason = format!("{place} gives something else in FTRL's executor: {said}");
            findings.push(Finding::new(Check::Scoping, reason));
        }
        for other in row.sub_answers(&call.tool) {
            if plain(other) != plain(&call.answer) && contains(&clean.text, other) {
                let reason = format!("{place} also gives {other:?}, the answer of another call");
                findings.push(Finding::new(Check::Confusable, reason));
            }
        }
    }
    findings
}

/// Judges all other calls.
pub(super) fn others(row: &Row, probes: &[Probe], outputs: &Outputs) -> Vec<Finding> {
    let all: Vec<&str> = answers(row)
        .into_iter()
        .filter(|answer| !is_short(answer))
        .collect();
    let mut findings = Vec::new();
    for (probe, output) in probes.iter().zip(&outputs.clean[row.calls.len()..]) {
        let tool = &row.tools[probe.tool].name;
        if probe.kind == ProbeKind::Example && output.failed {
            let (arguments, said) = (
                shown(&json!(probe.arguments).to_string()),
                shown(&output.text),
            );
            let reason = format!("`{tool}` fails with {arguments}, which it should answer: {said}");
            findings.push(Finding::malformed(reason));
        }
        let own: Vec<&str> = row.sub_answers(tool).collect();
        let said = plain(&output.text);
        let sought = if probe.kind == ProbeKind::Wrong || own.is_empty() {
            all.as_slice()
        } else {
            own.as_slice()
        };
        let Some(answer) = sought.iter().find(|answer| plain_contains(&said, answer)) else {
            continue;
        };
        if knows_as_much(row, probe, tool, answer) {
            continue;
        }
        let arguments = shown(&json!(probe.arguments).to_string());
        let (check, what) = if probe.kind == ProbeKind::Wrong {
            (Check::ErrorText, "wrong arguments give")
        } else if own.is_empty() {
            (Check::Distractor, "the distractor gives")
        } else {
            (Check::Shortcut, "a call that is no gold call gives")
        };
        let reason = format!("{what} {answer:?}: `{tool}` with {arguments}");
        findings.push(Finding::new(check, reason));
    }
    findings.sort_by_key(|finding| finding.check);
    findings.dedup_by(|one, other| one == other);
    findings
}

/// True if the arguments have every value of a gold call that gives this answer: the same request in other words.
fn knows_as_much(row: &Row, probe: &Probe, tool: &str, answer: &str) -> bool {
    let has = leaves(&probe.arguments);
    let mut gold = row.calls.iter();
    gold.any(|call| {
        call.tool == tool
            && call.answer == answer
            && leaves(&call.arguments)
                .iter()
                .all(|leaf| has.contains(leaf))
    })
}

/// All values inside of arguments.
fn leaves(arguments: &Map<String, Value>) -> Vec<Value> {
    fn add(value: &Value, leaves: &mut Vec<Value>) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| add(item, leaves)),
            Value::Object(fields) => fields.values().for_each(|field| add(field, leaves)),
            other => leaves.push(other.clone()),
        }
    }
    let mut found = Vec::new();
    for value in arguments.values() {
        add(value, &mut found);
    }
    found
}

fn shown(text: &str) -> String {
    let short: String = text.chars().take(MAX_SHOWN).collect();
    if short.len() < text.len() {
        format!("{short}..")
    } else {
        short
    }
}
