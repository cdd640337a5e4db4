//! A question as a tree, with its wording and its right answer.
//!
//! Names are in quotation marks, in questions as in calls. So a byte-level tokenizer cuts a name into the same pieces
//! everywhere, and copying a name is copying its ids.

use std::fmt::Write as _;

use super::decimal::Decimal;
use super::table::{Column, Table};

/// A column of a country, or of its neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fact {
    /// Position in the table.
    pub(crate) row: usize,
    /// True if the column is the neighbour's.
    pub(crate) hop: bool,
    pub(crate) column: Column,
}

impl Fact {
    /// Position of the country whose column is meant. `None` if there is no neighbour.
    pub(crate) fn target(&self, table: &Table) -> Option<usize> {
        if self.hop {
            table.rows()[self.row].neighbour
        } else {
            Some(self.row)
        }
    }

    pub(crate) fn cell(&self, table: &Table) -> Option<String> {
        table.cell(&table.rows()[self.target(table)?], self.column)
    }

    fn words(&self, table: &Table) -> String {
        let of = if self.hop { "the neighbour of " } else { "" };
        format!(
            "the {} of {of}\"{}\"",
            self.column.as_str(),
            table.rows()[self.row].name
        )
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operator {
    Plus,
    Minus,
    Times,
    /// Rounded down.
    Over,
}

impl Operator {
    pub(crate) fn symbol(self) -> &'static str {
        match self {
            Self::Plus => "+",
            Self::Minus => "-",
            Self::Times => "*",
            Self::Over => "//",
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Plus => "plus",
            Self::Minus => "minus",
            Self::Times => "times",
            Self::Over => "over",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Term {
    Given(Decimal),
    Fact(Fact),
}

impl Term {
    fn words(&self, table: &Table) -> String {
        match self {
            Self::Given(number) => number.to_string(),
            Self::Fact(fact) => fact.words(table),
        }
    }

    pub(crate) fn value(&self, table: &Table) -> Option<Decimal> {
        match self {
            Self::Given(number) => Some(*number),
            Self::Fact(fact) => table.rows()[fact.target(table)?].number(fact.column),
        }
    }
}

/// Terms with operators between them. `Times` and `Over` only follow the first term, so that reading from left to
/// right and the usual precedence agree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Formula {
    pub(crate) first: Term,
    pub(crate) rest: Vec<(Operator, Term)>,
}

impl Formula {
    pub(crate) fn terms(&self) -> impl Iterator<Item = &Term> {
        std::iter::once(&self.first).chain(self.rest.iter().map(|(_, term)| term))
    }

    pub(crate) fn value(&self, table: &Table) -> Option<Decimal> {
        self.rest
            .iter()
            .try_fold(self.first.value(table)?, |value, (operator, term)| {
                let term = term.value(table)?;
                match operator {
                    Operator::Plus => value.add(term),
                    Operator::Minus => value.subtract(term),
                    Operator::Times => value.multiply(term),
                    Operator::Over => value.quotient(term),
                }
            })
    }

    fn words(&self, table: &Table) -> String {
        let mut words = self.first.words(table);
        for (operator, term) in &self.rest {
            write!(words, " {} {}", operator.word(), term.words(table))
                .expect("writing to a string cannot fail");
        }
        words
    }

    fn is_rounded(&self) -> bool {
        self.rest
            .iter()
            .any(|(operator, _)| *operator == Operator::Over)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Question {
    /// Write the names in another question, in order.
    Spell(Box<Question>),
    Fact(Fact),
    /// A fact, after the names of some countries that are not asked about.
    Contrast {
        others: Vec<usize>,
        fact: Fact,
    },
    Formula(Formula),
    /// The larger of two values, or the smaller.
    Extreme {
        larger: bool,
        left: Formula,
        right: Formula,
    },
}

impl Question {
    /// The user's wording.
    pub(crate) fn words(&self, table: &Table) -> String {
        match self {
            Self::Spell(question) => format!("Names: {}", question.words(table)),
            Self::Contrast { others, fact } => {
                let quoted: Vec<String> = others
                    .iter()
                    .map(|&row| format!("\"{}\"", table.rows()[row].name))
                    .collect();
                format!(
                    "Not {}: what is {}?",
                    quoted.join(" nor "),
                    fact.words(table)
                )
            }
            Self::Fact(fact) => format!("What is {}?", fact.words(table)),
            Self::Formula(formula) => {
                let what = if formula.is_rounded() {
                    "Rounded down, what"
                } else {
                    "What"
                };
                format!("{what} is {}?", formula.words(table))
            }
            Self::Extreme {
                larger,
                left,
                right,
            } => {
                let which = if *larger { "larger" } else { "smaller" };
                format!(
                    "What is the {which} of {} and {}?",
                    left.words(table),
                    right.words(table)
                )
            }
        }
    }

    /// The right answer, from the table alone. `None` if a cell is empty or a value cannot be computed.
    pub(crate) fn answer(&self, table: &Table) -> Option<String> {
        match self {
            Self::Spell(question) => {
                let names = question
                    .named()
                    .into_iter()
                    .map(|row| table.rows()[row].name.as_str());
                Some(names.collect::<Vec<_>>().join("/"))
            }
            Self::Fact(fact) | Self::Contrast { fact, .. } => fact.cell(table),
            Self::Formula(formula) => formula.value(table).map(|value| value.to_string()),
            Self::Extreme {
                larger,
                left,
                right,
            } => {
                let (left, right) = (left.value(table)?, right.value(table)?);
                Some(
                    if (left > right) == *larger {
                        left
                    } else {
                        right
                    }
                    .to_string(),
                )
            }
        }
    }

    /// The facts it needs, in the order in which it names them.
    pub(crate) fn facts(&self) -> Vec<Fact> {
        let of = |formula: &Formula| -> Vec<Fact> {
            formula
                .terms()
                .filter_map(|term| {
                    if let Term::Fact(fact) = term {
                        Some(*fact)
                    } else {
                        None
                    }
                })
                .collect()
        };
        match self {
            Self::Spell(_) => Vec::new(),
            Self::Fact(fact) | Self::Contrast { fact, .. } => vec![*fact],
            Self::Formula(formula) => of(formula),
            Self::Extreme { left, right, .. } => [of(left), of(right)].concat(),
        }
    }

    /// Positions of the countries it names.
    pub(crate) fn named(&self) -> Vec<usize> {
        match self {
            Self::Spell(question) => question.named(),
            Self::Contrast { others, fact } => [others.as_slice(), &[fact.row]].concat(),
            _ => self.facts().iter().map(|fact| fact.row).collect(),
        }
    }
}
