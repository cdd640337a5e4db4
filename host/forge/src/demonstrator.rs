//! What a competent model would do: the calls a question needs, turn by turn, and then the answer.
//!
//! A demonstrator takes no fact from the table. It writes down what the question says and what the tools
//! answered, so that a demonstration is right because it was carried out, not because it was composed.

use rlf_dialogue::tool::ToolCall;
use serde_json::json;

use crate::question::{Formula, Question, Term};
use crate::table::{Column, Table};
use crate::{CALCULATE, COLUMN_ARGUMENT, EXPRESSION_ARGUMENT, KEY_ARGUMENT, LOOKUP};

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

    /// The turn as the Hermes protocol reads it and the small chat template writes it, without any white
    /// space: a small model pays for every token. The answer stands in answer tags; the end-of-turn token is
    /// not part of it.
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

    /// What stands between the markers of the turn.
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

/// Why a demonstration cannot go on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DemonstrationError {
    /// The task is not of this world.
    #[error("task `{id}` is none of this world: ids look like `facts/train/sft/0`")]
    UnknownTask {
        /// Its id.
        id: String,
    },
    /// Whoever learns from it would have seen what is tested.
    #[error("task `{id}` is held out: there are no demonstrations of it")]
    HeldOut {
        /// Its id.
        id: String,
    },
    /// Every call of the last turn has one observation.
    #[error("the last turn made {calls} calls, but {observations} observations came back")]
    Observations {
        /// How many were due.
        calls: usize,
        /// How many came.
        observations: usize,
    },
}

/// Where a piece of text comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    /// From the question.
    Said(String),
    /// The observation with this number, counted over the whole trajectory.
    Seen(usize),
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Look(Vec<(Source, Column)>),
    Compute(Vec<Source>),
    Answer(Source),
}

/// Gives the turns of a demonstration, one for each round of observations.
#[derive(Debug, Clone)]
pub struct Demonstrator {
    steps: std::vec::IntoIter<Step>,
    due: usize,
    seen: Vec<String>,
}

impl Demonstrator {
    pub(crate) fn new(question: &Question, table: &Table) -> Self {
        Self {
            steps: plan(question, table).into_iter(),
            due: 0,
            seen: Vec::new(),
        }
    }

    /// The next turn, given what the calls of the last one showed the model, in call order; nothing before
    /// the first turn. None after the answer.
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
                    .map(|(key, column)| self.look(key, *column))
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

    fn look(&self, key: &Source, column: Column) -> ToolCall {
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

/// Everything that can be asked at once is asked at once; then what depends on it.
fn plan(question: &Question, table: &Table) -> Vec<Step> {
    let facts = question.facts();
    let mut steps = Vec::new();
    let mut observed = facts.len();
    // Where the value of each fact will be seen.
    let mut values: Vec<usize> = (0..facts.len()).collect();
    if !facts.is_empty() {
        let first = |fact: &crate::question::Fact| {
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
        // What it says is what is wanted.
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
