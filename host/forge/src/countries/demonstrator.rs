//! Demonstrations: the calls that a question needs, turn by turn, and then the answer.
//!
//! A demonstrator takes no fact from the table. It only copies from the question and from the tools' answers, so a
//! demonstration is right because it was carried out, not because it was composed.

use rlf_dialogue::tool::ToolCall;
use serde_json::json;

use super::question::{Formula, Question, Term};
use super::table::{Column, Table};
use super::tools::{CALCULATE, COLUMN_ARGUMENT, EXPRESSION_ARGUMENT, KEY_ARGUMENT, LOOKUP};

/// One turn of a demonstration: either calls, all to be made at once, or the answer.
#[derive(Debug, Clone, PartialEq)]
pub enum DemonstratedTurn {
    /// Calls, in order; their ids are empty.
    Act(Vec<ToolCall>),
    /// The answer, which ends the trajectory.
    Answer(String),
}

impl DemonstratedTurn {
    /// The calls; none in a turn that answers.
    pub fn calls(&self) -> &[ToolCall] {
        match self {
            Self::Act(calls) => calls,
            Self::Answer(_) => &[],
        }
    }

    /// The answer, if this turn gives it.
    pub fn answer(&self) -> Option<&str> {
        match self {
            Self::Act(_) => None,
            Self::Answer(answer) => Some(answer),
        }
    }

    /// The turn in the Hermes protocol, as the small chat template writes it, without white space because a small
    /// model pays for every token. The answer is in answer tags. The end-of-turn token is not included.
    pub fn to_hermes(&self) -> String {
        match self {
            Self::Act(calls) => {
                let calls = calls
                    .iter()
                    .map(|call| format!("<tool_call>{}</tool_call>", json_text(call)));
                calls.collect::<Vec<_>>().concat()
            }
            Self::Answer(answer) => format!("<answer>{answer}</answer>"),
        }
    }

    /// The texts between the markers of the turn.
    pub(crate) fn bodies(&self) -> Vec<String> {
        match self {
            Self::Act(calls) => calls.iter().map(json_text).collect(),
            Self::Answer(answer) => vec![answer.clone()],
        }
    }
}

fn json_text(call: &ToolCall) -> String {
    json!({"name": call.name, "arguments": call.arguments}).to_string()
}

/// The reason why a demonstration cannot continue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DemonstrationError {
    /// The task does not belong to this generator.
    #[error("task `{id}` was not made by this generator: ids look like `facts/train/sft/0`")]
    UnknownTask {
        /// The task's id.
        id: String,
    },
    /// A demonstration of a held-out task would show the answer to a test question.
    #[error("task `{id}` is held out: there are no demonstrations of it")]
    HeldOut {
        /// The task's id.
        id: String,
    },
    /// Every call of the last turn has one observation.
    #[error("the last turn made {calls} calls, but {observations} observations came back")]
    Observations {
        /// Number of expected observations.
        calls: usize,
        /// Number of given observations.
        observations: usize,
    },
}

/// The origin of a piece of text.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    /// From the question.
    Said(String),
    /// From the observation with this number, counted over the whole trajectory.
    Seen(usize),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Look(Vec<(Source, Column)>),
    Compute(Vec<Source>),
    Answer(Source),
}

/// Demonstrates one task: gives its turns, one for each round of observations.
#[derive(Debug, Clone)]
pub struct CountryDemonstrator {
    steps: std::vec::IntoIter<Step>,
    due: usize,
    seen: Vec<String>,
}

impl CountryDemonstrator {
    pub(crate) fn new(question: &Question, table: &Table) -> Self {
        Self {
            steps: plan(question, table).into_iter(),
            due: 0,
            seen: Vec::new(),
        }
    }

    /// The next turn, or none after the answer. `observations` are the results of the last turn's calls, in call
    /// order; none before the first turn.
    pub fn next_turn(
        &mut self,
        observations: &[String],
    ) -> Result<Option<DemonstratedTurn>, DemonstrationError> {
        if observations.len() != self.due {
            return Err(DemonstrationError::Observations {
                calls: self.due,
                observations: observations.len(),
            });
        }
        self.seen
            .extend(observations.iter().map(|text| text.trim().to_owned()));
        let turn = self.steps.next().map(|step| match step {
            Step::Look(keys) => DemonstratedTurn::Act(
                keys.iter()
                    .map(|(key, column)| self.lookup(key, *column))
                    .collect(),
            ),
            Step::Compute(pieces) => {
                let expression: String = pieces.iter().map(|piece| self.text(piece)).collect();
                DemonstratedTurn::Act(vec![call(
                    CALCULATE,
                    json!({EXPRESSION_ARGUMENT: expression}),
                )])
            }
            Step::Answer(source) => DemonstratedTurn::Answer(self.text(&source).to_owned()),
        });
        self.due = turn.as_ref().map_or(0, |turn| turn.calls().len());
        Ok(turn)
    }

    fn text<'a>(&'a self, source: &'a Source) -> &'a str {
        match source {
            Source::Said(text) => text,
            // A plan only refers to observations of earlier turns, and each turn's are counted.
            Source::Seen(index) => &self.seen[*index],
        }
    }

    fn lookup(&self, key: &Source, column: Column) -> ToolCall {
        call(
            LOOKUP,
            json!({KEY_ARGUMENT: self.text(key), COLUMN_ARGUMENT: column.as_str()}),
        )
    }
}

fn call(name: &str, arguments: serde_json::Value) -> ToolCall {
    ToolCall {
        call_id: String::new(),
        name: name.to_owned(),
        arguments,
    }
}

/// Plans the turns: first one with all calls that can be made at once, then those that depend on them.
fn plan(question: &Question, table: &Table) -> Vec<Step> {
    let facts = question.facts();
    let mut steps = Vec::new();
    let mut observed = facts.len();
    // Number of the observation with each fact's value.
    let mut values: Vec<usize> = (0..facts.len()).collect();
    if !facts.is_empty() {
        let first = |fact: &super::question::Fact| {
            let column = if fact.hop {
                Column::Neighbour
            } else {
                fact.column
            };
            (Source::Said(table.rows()[fact.row].name.clone()), column)
        };
        steps.push(Step::Look(facts.iter().map(first).collect()));
    }
    if facts.iter().any(|fact| fact.hop) {
        let mut keys = Vec::new();
        for (index, fact) in facts.iter().enumerate().filter(|(_, fact)| fact.hop) {
            keys.push((Source::Seen(index), fact.column));
            values[index] = observed;
            observed += 1;
        }
        steps.push(Step::Look(keys));
    }
    let answer = match question {
        // The answer is in the question itself.
        Question::Spell(_) => Source::Said(question.answer(table).unwrap_or_default()),
        Question::Fact(_) | Question::Contrast { .. } => Source::Seen(values[0]),
        Question::Formula(_) | Question::Extreme { .. } => {
            steps.push(Step::Compute(expression(question, &mut values.into_iter())));
            Source::Seen(observed)
        }
    };
    steps.push(Step::Answer(answer));
    steps
}

fn expression(question: &Question, values: &mut impl Iterator<Item = usize>) -> Vec<Source> {
    let said = |text: &str| Source::Said(text.to_owned());
    let mut pieces = Vec::new();
    match question {
        Question::Formula(formula) => write_formula(formula, values, &mut pieces),
        Question::Extreme {
            larger,
            left,
            right,
        } => {
            pieces.push(said(if *larger { "max(" } else { "min(" }));
            write_formula(left, values, &mut pieces);
            pieces.push(said(","));
            write_formula(right, values, &mut pieces);
            pieces.push(said(")"));
        }
        Question::Spell(_) | Question::Fact(_) | Question::Contrast { .. } => {}
    }
    pieces
}

fn write_formula(
    formula: &Formula,
    values: &mut impl Iterator<Item = usize>,
    pieces: &mut Vec<Source>,
) {
    let operators =
        std::iter::once(None).chain(formula.rest.iter().map(|(operator, _)| Some(operator)));
    for (operator, term) in operators.zip(formula.terms()) {
        pieces.extend(operator.map(|operator| Source::Said(operator.symbol().to_owned())));
        pieces.extend(match term {
            Term::Given(number) => Some(Source::Said(number.to_string())),
            Term::Fact(_) => values.next().map(Source::Seen),
        });
    }
}
