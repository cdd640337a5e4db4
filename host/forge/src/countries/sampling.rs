//! Draws a question of a kind.

use super::decimal::Decimal;
use super::draws::Draws;
use super::kind::QuestionKind;
use super::question::{Fact, Formula, Operator, Question, Term};
use super::table::{Column, Table};

/// The countries that questions of one split may name, as positions in the table.
pub(crate) struct Pool {
    /// Real countries, and those of them with a neighbour.
    pub(crate) real: CountryRows,
    /// Made-up countries; empty in held-out splits.
    pub(crate) generated: CountryRows,
    /// Share of real countries among those drawn, if there are both.
    pub(crate) real_share: f64,
}

/// Countries, and those among them that have a neighbour.
#[derive(Default)]
pub(crate) struct CountryRows {
    pub(crate) all: Vec<usize>,
    pub(crate) with_neighbour: Vec<usize>,
}

impl Pool {
    fn draw(&self, draws: &mut Draws, hop: bool) -> usize {
        let is_real = self.generated.all.is_empty() || draws.chance(self.real_share);
        let countries = if is_real { &self.real } else { &self.generated };
        *draws.pick(if hop {
            &countries.with_neighbour
        } else {
            &countries.all
        })
    }

    fn draw_distinct(&self, draws: &mut Draws, count: usize) -> Vec<usize> {
        let mut drawn = Vec::with_capacity(count);
        while drawn.len() < count {
            let row = self.draw(draws, false);
            if !drawn.contains(&row) {
                drawn.push(row);
            }
        }
        drawn
    }
}

/// Draws a question of this kind. Its answer is never negative.
pub(crate) fn draw(kind: QuestionKind, pool: &Pool, table: &Table, draws: &mut Draws) -> Question {
    match kind {
        QuestionKind::Spell => {
            let kind = *draws.pick(&QuestionKind::SPELT);
            Question::Spell(Box::new(draw(kind, pool, table, draws)))
        }
        QuestionKind::Contrast => {
            let count = draws.between(2, 3) as usize;
            let mut others = pool.draw_distinct(draws, count);
            let row = others.pop().unwrap_or_default();
            let column = *draws.pick(&Column::ALL[..4]);
            Question::Contrast {
                others,
                fact: Fact {
                    row,
                    hop: false,
                    column,
                },
            }
        }
        QuestionKind::Lookup => {
            let column = *draws.pick(&Column::ALL);
            Question::Fact(Fact {
                row: pool.draw(draws, column == Column::Neighbour),
                hop: false,
                column,
            })
        }
        QuestionKind::Calculate => calculate(draws, table),
        QuestionKind::Chain => {
            // The neighbour of the neighbour is often the country itself, so that is not asked.
            let column = *draws.pick(&Column::ALL[..4]);
            Question::Fact(Fact {
                row: pool.draw(draws, true),
                hop: true,
                column,
            })
        }
        QuestionKind::Scale => scale(pool, table, draws, false),
        QuestionKind::ChainScale => scale(pool, table, draws, true),
        QuestionKind::Sum => {
            let operator = *draws.pick(&[Operator::Plus, Operator::Minus]);
            Question::Formula(two(facts(pool, draws, 2), operator, table))
        }
        QuestionKind::Ratio => Question::Formula(two(facts(pool, draws, 2), Operator::Over, table)),
        QuestionKind::Compare => {
            let facts = facts(pool, draws, 2);
            extreme(draws, just(facts[0]), just(facts[1]))
        }
        QuestionKind::CompareSums => {
            let facts = facts(pool, draws, 3);
            let sum = Formula {
                first: facts[0],
                rest: vec![(Operator::Plus, facts[1])],
            };
            extreme(draws, sum, just(facts[2]))
        }
    }
}

/// The same numeric column of several distinct countries.
fn facts(pool: &Pool, draws: &mut Draws, count: usize) -> Vec<Term> {
    let column = *draws.pick(&Column::NUMERIC);
    let rows = pool.draw_distinct(draws, count);
    rows.into_iter()
        .map(|row| {
            Term::Fact(Fact {
                row,
                hop: false,
                column,
            })
        })
        .collect()
}

fn just(first: Term) -> Formula {
    Formula {
        first,
        rest: Vec::new(),
    }
}

/// Two terms, the larger first if the order matters.
fn two(mut terms: Vec<Term>, operator: Operator, table: &Table) -> Formula {
    if operator != Operator::Plus && terms[0].value(table) < terms[1].value(table) {
        terms.swap(0, 1);
    }
    Formula {
        first: terms[0],
        rest: vec![(operator, terms[1])],
    }
}

fn extreme(draws: &mut Draws, left: Formula, right: Formula) -> Question {
    Question::Extreme {
        larger: draws.chance(0.5),
        left,
        right,
    }
}

/// A fact, then arithmetic with given numbers: `times 7 plus 12`, `times 7` or `plus 12`.
fn scale(pool: &Pool, table: &Table, draws: &mut Draws, hop: bool) -> Question {
    let column = *draws.pick(&Column::NUMERIC);
    let first = Term::Fact(Fact {
        row: pool.draw(draws, hop),
        hop,
        column,
    });
    Question::Formula(with_given(first, table, draws))
}

fn with_given(first: Term, table: &Table, draws: &mut Draws) -> Formula {
    let mut formula = just(first);
    let shape = draws.index(3);
    if shape != 0 {
        formula
            .rest
            .push((Operator::Times, Term::Given(draws.between(2, 9).into())));
    }
    if shape != 1 {
        let addend = draws.between(1, 99);
        let would_be_negative = formula
            .value(table)
            .is_none_or(|value| value < addend.into());
        let operator = if would_be_negative || draws.chance(0.5) {
            Operator::Plus
        } else {
            Operator::Minus
        };
        formula.rest.push((operator, Term::Given(addend.into())));
    }
    formula
}

/// A number that could be an area or a population.
fn number(draws: &mut Draws) -> Term {
    Term::Given(if draws.chance(0.5) {
        draws.magnitude(1, 19_999).into()
    } else {
        Decimal::new(draws.magnitude(1, 15_999).into(), 1)
    })
}

/// Every form of arithmetic that other kinds use, with given numbers instead of facts.
fn calculate(draws: &mut Draws, table: &Table) -> Question {
    let (a, b, c) = (number(draws), number(draws), number(draws));
    match draws.index(6) {
        0 | 1 => Question::Formula(with_given(a, table, draws)),
        2 => {
            let operator = *draws.pick(&[Operator::Plus, Operator::Minus]);
            Question::Formula(two(vec![a, b], operator, table))
        }
        3 => Question::Formula(two(vec![a, b], Operator::Over, table)),
        4 => extreme(draws, just(a), just(b)),
        _ => extreme(
            draws,
            Formula {
                first: a,
                rest: vec![(Operator::Plus, b)],
            },
            just(c),
        ),
    }
}
