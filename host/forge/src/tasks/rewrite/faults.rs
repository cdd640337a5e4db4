//! Faults of a text that a model wrote.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use rlf_specification::is_invisible;
use serde_json::Value;

use super::solver::Unsolved;
use crate::tasks::check::{says, times_said};
use crate::tasks::record::{TaskRecord, Turn};
use crate::tasks::rejection::Rejection;
use crate::tasks::request::{Description, Fact, Mention, Request};
use crate::tasks::text::{spaced, spoken};

/// Maximum length of the words of a turn, as a multiple of the length of the grammar's words.
const MAX_LENGTH: usize = 4;
/// Number of characters that the words of a turn may always have.
const ANY_LENGTH: usize = 600;
/// Maximum number of faults that the model is told.
const MAX_TOLD: usize = 12;

/// Words that mean the highest of several.
const HIGHEST: [&str; 21] = [
    "highest",
    "most",
    "largest",
    "biggest",
    "greatest",
    "maximum",
    "latest",
    "newest",
    "longest",
    "last",
    "top",
    "dearest",
    "priciest",
    "costliest",
    "heaviest",
    "furthest",
    "farthest",
    "youngest",
    "tallest",
    "fullest",
    "strongest",
];
/// Words that mean the lowest of several.
const LOWEST: [&str; 18] = [
    "lowest",
    "least",
    "fewest",
    "smallest",
    "minimum",
    "earliest",
    "oldest",
    "shortest",
    "first",
    "cheapest",
    "lightest",
    "tiniest",
    "soonest",
    "nearest",
    "slightest",
    "weakest",
    "closest",
    "emptiest",
];

/// One thing that is wrong, in words for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    /// The kind, by which faults are counted.
    pub(super) kind: &'static str,
    /// The fault, its place, and what to write instead.
    pub(super) what: String,
}

impl Fault {
    fn new(kind: &'static str, turn: usize, what: &str) -> Self {
        let what = format!("turn {}: {what}", turn + 1);
        Self { kind, what }
    }

    /// A fault: the answer does not have the form that was asked for.
    pub(super) fn form(what: impl Into<String>) -> Self {
        let (kind, what) = ("form", what.into());
        Self { kind, what }
    }

    /// A fault: the solver did not reach the goal.
    pub(super) fn unsolved(why: &Unsolved) -> Self {
        let what = format!(
            "a reader who was given only your text and the tools did something else: {why}; say more clearly what is wanted"
        );
        let kind = "unsolved";
        Self { kind, what }
    }
}

impl From<Rejection> for Fault {
    fn from(rejection: Rejection) -> Self {
        Self {
            kind: rejection.reason.as_str(),
            what: rejection.detail,
        }
    }
}

/// Faults as a list.
pub(super) fn listed(faults: &[Fault]) -> String {
    let mut list = String::new();
    for fault in faults.iter().take(MAX_TOLD) {
        let _ = write!(list, "\n- {}", fault.what);
    }
    list
}

/// Compares rewritten words with those of the grammar, and returns every fault.
pub(super) fn faults(grammar: &TaskRecord, task: &TaskRecord) -> Vec<Fault> {
    let mut all = Vec::new();
    for (number, turn) in task.turns.iter().enumerate() {
        let known: Vec<&str> = grammar.turns[..=number]
            .iter()
            .map(|turn| turn.query.as_str())
            .collect();
        let known = known.join("\n");
        let old = &grammar.turns[number];
        shape(number, old, turn, &mut all);
        unsaid(number, old, turn, &mut all);
        invented(number, turn, &known, &mut all);
        names(number, grammar, turn, &known, &mut all);
    }
    all
}

/// Finds words that are empty or far too long, and characters that nobody sees and that the grammar did not write.
fn shape(number: usize, old: &Turn, turn: &Turn, all: &mut Vec<Fault>) {
    let most = ANY_LENGTH.max(MAX_LENGTH * old.query.chars().count());
    let length = turn.query.chars().count();
    if length == 0 {
        all.push(Fault::new("form", number, "there are no words"));
    } else if length > most {
        let what = format!("{length} characters are too many; write {most} at most");
        all.push(Fault::new("form", number, &what));
    }
    let mut letters = turn.query.chars();
    let hidden = letters.find(|one| is_invisible(*one) && !old.query.contains(*one));
    if let Some(hidden) = hidden {
        let code = u32::from(hidden);
        let what = format!("the words have the invisible character U+{code:04X}; leave it out");
        all.push(Fault::new("form", number, &what));
    }
}

/// Finds values and constraints of the requests that the words do not say, or say the opposite of.
fn unsaid(number: usize, old: &Turn, turn: &Turn, all: &mut Vec<Fault>) {
    let mentions = turn
        .requests
        .iter()
        .flat_map(|request| request.arguments.values());
    let mut values: Vec<&Value> = Vec::new();
    for value in mentions.flat_map(Mention::values) {
        if !values.contains(&value) {
            values.push(value);
        }
    }
    for value in values {
        let (wanted, found) = (
            times_said(&old.query, value).max(1),
            times_said(&turn.query, value),
        );
        let said = spoken(value);
        if found == 0 {
            let what = format!("the words do not say `{said}`; write it exactly so");
            all.push(Fault::new("unsaid", number, &what));
        } else if found < wanted {
            let what = format!(
                "the words say `{said}` {found} of {wanted} times; say it for each request that needs it"
            );
            all.push(Fault::new("unsaid", number, &what));
        }
        let Some(opposite) = value.as_bool().map(|value| Value::Bool(!value)) else {
            continue;
        };
        if times_said(&turn.query, &opposite) > times_said(&old.query, &opposite) {
            let opposite = spoken(&opposite);
            let what = format!("the words say `{opposite}` where `{said}` is meant; leave it out");
            all.push(Fault::new("unsaid", number, &what));
        }
    }
    for request in &turn.requests {
        for (field, highest) in request.extremes() {
            let wanted: &[&str] = if highest { &HIGHEST } else { &LOWEST };
            if !words(&turn.query).any(|word| wanted.contains(&word.as_str())) {
                let what = format!(
                    "the words do not say that the one with the {} {} is meant",
                    if highest { "highest" } else { "lowest" },
                    spaced(field)
                );
                all.push(Fault::new("unsaid", number, &what));
            }
        }
    }
}

/// Finds numbers that nothing asks for, and values that only tools know.
fn invented(number: usize, turn: &Turn, known: &str, all: &mut Vec<Fault>) {
    let there: BTreeSet<&str> = digits(known).collect();
    for digits in digits(&turn.query).collect::<BTreeSet<_>>() {
        if !there.contains(digits) {
            let what = format!("the words say {digits}, which nothing asks for; leave it out");
            all.push(Fault::new("invented", number, &what));
        }
    }
    let mut results = BTreeSet::new();
    for call in &turn.calls {
        scalars(&call.result, &mut results);
    }
    for value in results {
        let json = Value::from(value);
        if says(&turn.query, &json) && !says(known, &json) {
            let what = format!("the words say `{value}`, which only a tool can know; leave it out");
            all.push(Fault::new("leak", number, &what));
        }
    }
}

/// Finds names of tools and parameters, which no user knows.
fn names(number: usize, grammar: &TaskRecord, turn: &Turn, known: &str, all: &mut Vec<Fault>) {
    let tools = grammar.tools.iter();
    let tools = tools.filter(|tool| turn.query.contains(tool.as_str()));
    let words = turn
        .query
        .split(|letter: char| !(letter.is_alphanumeric() || letter == '_'));
    let words = words.filter(|word| word.trim_matches('_').contains('_') && !known.contains(word));
    let found: BTreeSet<&str> = tools.map(String::as_str).chain(words).collect();
    for name in found {
        let what =
            format!("`{name}` is a name of the program, which no user says; use plain words");
        all.push(Fault::new("name", number, &what));
    }
}

/// Collects texts in a result that look like names, keys or dates: with a capital, a digit or a space.
fn scalars<'v>(value: &'v Value, all: &mut BTreeSet<&'v str>) {
    match value {
        Value::String(text) => {
            let tells =
                |letter: char| letter.is_uppercase() || letter.is_ascii_digit() || letter == ' ';
            if text.chars().count() > 1 && text.contains(tells) {
                all.insert(text);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| scalars(item, all)),
        Value::Object(fields) => fields.values().for_each(|field| scalars(field, all)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The runs of digits of a text.
fn digits(text: &str) -> impl Iterator<Item = &str> {
    let runs = text.split(|letter: char| !letter.is_ascii_digit());
    runs.filter(|run| !run.is_empty())
}

fn words(text: &str) -> impl Iterator<Item = String> {
    let words = text.split(|letter: char| !letter.is_alphanumeric());
    words.filter(|word| !word.is_empty()).map(str::to_lowercase)
}

/// Facts that choose the highest or lowest of several, anywhere in a request.
trait Extremes {
    /// The field of each, and whether the highest is meant.
    fn extremes(&self) -> Vec<(&str, bool)>;
}

impl Extremes for Request {
    fn extremes(&self) -> Vec<(&str, bool)> {
        self.arguments
            .values()
            .flat_map(Extremes::extremes)
            .collect()
    }
}

impl Extremes for Mention {
    fn extremes(&self) -> Vec<(&str, bool)> {
        match self {
            Self::Described(Description { facts, .. }) => facts
                .iter()
                .flat_map(|fact| match fact {
                    Fact::Extreme { field, highest } => vec![(field.as_str(), *highest)],
                    Fact::Of { mention, .. } => mention.extremes(),
                    Fact::Is { .. } | Fact::Among { .. } | Fact::Only => Vec::new(),
                })
                .collect(),
            Self::Value(_) | Self::Same { .. } | Self::Produced { .. } | Self::FieldOf { .. } => {
                Vec::new()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Turn, unsaid};

    fn turn(query: &str) -> Turn {
        serde_json::from_value(json!({
            "query": query, "template": "", "answer": "", "calls": [], "goal": {},
            "requests": [{ "tool": "Post-send", "arguments": {
                "urgent": { "value": true }, "to": { "value": "Ada" }, "from": { "value": "Ada" },
            }}],
        }))
        .unwrap()
    }

    #[test]
    fn the_opposite_of_a_truth_and_a_value_that_is_left_out_are_faults() {
        let grammar = turn("Send it to Ada from Ada, urgent: yes; no hurry.");
        for (query, faults) in [
            ("No hurry: Ada to Ada; is it urgent? Yes.", ""),
            (
                "Ada to Ada, no hurry; urgent? Yes, no?",
                "`no` where `yes` is meant",
            ),
            (
                "Urgent: yes. Send Ada what she wrote.",
                "`Ada` 1 of 2 times",
            ),
            ("Send Ada's to Ada, it is urgent.", "do not say `yes`"),
        ] {
            let mut all = Vec::new();
            unsaid(0, &grammar, &turn(query), &mut all);
            let told: Vec<&str> = all.iter().map(|fault| fault.what.as_str()).collect();
            assert_eq!(
                told.len(),
                usize::from(!faults.is_empty()),
                "{query}: {told:?}"
            );
            assert!(
                told.iter().all(|fault| fault.contains(faults)),
                "{query}: {told:?}"
            );
        }
    }
}
