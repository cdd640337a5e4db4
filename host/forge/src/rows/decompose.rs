//! Stage 1, scenario decomposition: questions with their sub-questions, from a graph of facts.

mod chain;
mod wording;

use rlf_dialogue::split::Split;
use rlf_random::Key;

use super::draw::{chance, pick, root, weighted};
use super::facts::{Fact, Facts, Relation};
use super::matching::{plain, triviality};
use super::options::{RowOptions, Scenario, split_of_tenth};
use super::question::{Lookup, Operation, Question, Source, Step, Work};
use super::rejection::{Check, Finding};

pub(crate) use self::wording::without_subject;

/// Number of draws of a question before a candidate is given up.
const ATTEMPTS: u64 = 60;

/// Weights of chains of 2, 3, .. sub-answers: the longer, the rarer.
const MULTI_HOP: [u32; 9] = [5, 5, 5, 4, 4, 3, 2, 1, 1];

/// The way in which the ends of parallel branches become one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Combination {
    /// A tool computes it.
    Calculated(Operation),
    /// The largest number, or the latest date or year.
    Most,
    /// The smallest number, or the earliest date or year.
    Least,
}

/// Makes candidate number `index`. The error is the check that no draw passed.
pub fn decompose(facts: &Facts, options: &RowOptions, index: usize) -> Result<Question, Finding> {
    let key = root(options.seed).named("decompose").at(index as u64);
    let turn = index.checked_rem(options.scenarios.len());
    let scenario = turn.map(|turn| options.scenarios[turn]).ok_or_else(|| {
        Finding::new(
            Check::NoQuestion,
            "the options have no scenario; name at least one",
        )
    })?;
    let split = split_of_tenth(key.named("split").below(0, 10));
    let mut why = Finding::new(
        Check::NoQuestion,
        format!("the graph has no {scenario} question in the split {split}"),
    );
    for attempt in 0..ATTEMPTS {
        let draft = Draft {
            facts,
            split,
            max_calls: options.max_calls,
            shape: key.named("shape"),
            key: key.named("attempt").at(attempt),
        };
        let Some((question, answer, steps)) = draft.draw(scenario) else {
            continue;
        };
        let question = Question {
            id: format!("{}-{index:06}", options.seed),
            scenario,
            split,
            question,
            answer,
            steps,
        };
        match trivial(&question) {
            None => return Ok(question),
            Some(finding) => why = finding,
        }
    }
    Err(why)
}

/// Returns a finding if the question states one of its answers, or if an answer is so short that most texts contain it.
pub(crate) fn trivial(question: &Question) -> Option<Finding> {
    let said = plain(&question.question);
    let answers = question.steps.iter().map(|step| &step.answer);
    let reason = answers
        .chain([&question.answer])
        .find_map(|answer| triviality(&said, answer))?;
    Some(Finding::new(Check::Trivial, reason))
}

/// One draw of a question.
struct Draft<'a> {
    facts: &'a Facts,
    split: Split,
    max_calls: usize,
    /// Key of the draws of the question's shape, such as the length of its chain. All attempts use the same, so that a
    /// retry never takes a shorter chain.
    shape: Key,
    key: Key,
}

type Drawn = (String, String, Vec<Step>);

impl<'a> Draft<'a> {
    fn draw(&self, scenario: Scenario) -> Option<Drawn> {
        match scenario {
            Scenario::SingleHop => self.chain_question(1),
            Scenario::MultiHop => {
                let most = self.max_calls.clamp(2, 10) - 1;
                let length = 2 + weighted(self.shape.named("length"), &MULTI_HOP[..most]);
                self.chain_question(length)
            }
            Scenario::ParallelSingleHop => {
                // A calculation, or a third branch, is a third sub-answer.
                let has_room = self.max_calls > 2;
                let combination = self.combination(has_room);
                let calculated = matches!(combination, Combination::Calculated(_));
                let three = has_room && !calculated && chance(self.shape.named("three"), 0.4);
                self.parallel(&vec![1; if three { 3 } else { 2 }], combination)
            }
            Scenario::ParallelMultiHop => {
                let combination = self.combination(true);
                let calculated = usize::from(matches!(combination, Combination::Calculated(_)));
                let most = self.max_calls.clamp(5, 11);
                let calls = 5 + weighted(
                    self.shape.named("calls"),
                    &[6, 6, 5, 4, 3, 2, 1][..=most - 5],
                );
                let hops = calls - calculated;
                let first = (hops / 2).max(1);
                let first = if chance(self.key.named("longer"), 0.5) {
                    first
                } else {
                    hops - first
                };
                self.parallel(&[first, hops - first], combination)
            }
        }
    }

    fn combination(&self, may_calculate: bool) -> Combination {
        let calculations = if may_calculate { 3 } else { 0 };
        let weights = [calculations, calculations, 2, 2];
        match weighted(self.shape.named("combination"), &weights) {
            0 => Combination::Calculated(Operation::Sum),
            1 => Combination::Calculated(Operation::Difference),
            2 => Combination::Most,
            _ => Combination::Least,
        }
    }

    /// A question about the end of a chain.
    fn chain_question(&self, length: usize) -> Option<Drawn> {
        let ends = self.facts.of_split(self.split);
        let chain = self.chain(*pick(self.key.named("end"), ends)?, length, &[])?;
        let mut steps = Vec::new();
        let phrase = self.add_steps(&chain, &mut steps);
        let last = *chain.last()?;
        let relation = self.facts.relation(&last.relation)?;
        let subject = phrase.subject;
        let question = wording::asked(relation, &subject, self.key.named("ask"));
        Some((question, last.object.clone(), steps))
    }

    /// A question that combines the ends of several chains.
    fn parallel(&self, lengths: &[usize], combination: Combination) -> Option<Drawn> {
        let ends = self.facts.of_split(self.split);
        let end = *pick(self.key.named("end"), ends)?;
        let relation = self.facts.relation(&self.facts.facts()[end].relation)?;
        let measure = relation.target.measure()?;
        if matches!(combination, Combination::Calculated(_)) && measure == "date" {
            return None;
        }
        let mut chains: Vec<Vec<&Fact>> = Vec::new();
        for (number, length) in lengths.iter().enumerate() {
            let key = self.key.named("branch").at(number as u64);
            let end = if number == 0 {
                end
            } else {
                self.end_with(measure, key)?
            };
            let chain = self.chain(end, *length, &chains)?;
            chains.push(chain);
        }
        let mut steps = Vec::new();
        let phrases: Vec<wording::Phrase> = chains
            .iter()
            .map(|chain| self.add_steps(chain, &mut steps))
            .collect();
        let values: Vec<&str> = chains
            .iter()
            .filter_map(|chain| Some(chain.last()?.object.as_str()))
            .collect();
        let nouns: Vec<String> = phrases.iter().map(|phrase| phrase.noun.clone()).collect();
        let key = self.key.named("ask");
        match combination {
            Combination::Calculated(operation) => {
                let numbers: Option<Vec<i64>> =
                    values.iter().map(|value| value.parse().ok()).collect();
                let answer = operation.apply(&numbers?)?.to_string();
                let sources: Vec<Source> = phrases
                    .iter()
                    .map(|phrase| Source::Step(phrase.step))
                    .collect();
                let refs: Vec<String> = phrases
                    .iter()
                    .map(|phrase| format!("#{}", phrase.step + 1))
                    .collect();
                steps.push(Step {
                    question: wording::calculation(operation, &refs, key.named("step")),
                    answer: answer.clone(),
                    sources,
                    work: Work::Calculate(operation),
                });
                Some((wording::calculation(operation, &nouns, key), answer, steps))
            }
            Combination::Most | Combination::Least => {
                let is_most = combination == Combination::Most;
                let answer = extreme(&values, is_most)?;
                let question = wording::comparison(measure, is_most, &nouns, key);
                Some((question, answer.to_owned(), steps))
            }
        }
    }

    /// A fact whose object has this measure.
    fn end_with(&self, measure: &str, key: Key) -> Option<usize> {
        let same: Vec<&Relation> = self
            .facts
            .relations()
            .filter(|relation| relation.target.measure() == Some(measure))
            .collect();
        let relation = pick(key.named("relation"), &same)?;
        let facts = self.facts.of_relation(self.split, &relation.name);
        pick(key.named("fact"), facts).copied()
    }

    /// Adds the steps of a chain, and puts its end into words.
    fn add_steps(&self, chain: &[&Fact], steps: &mut Vec<Step>) -> wording::Phrase {
        let mut subject = chain
            .first()
            .map_or_else(String::new, |fact| self.facts.in_sentence(&fact.subject));
        let mut noun = String::new();
        for (position, fact) in chain.iter().enumerate() {
            let Some(relation) = self.facts.relation(&fact.relation) else {
                continue;
            };
            let (source, named) = if position == 0 {
                (Source::Text(fact.subject.clone()), subject.clone())
            } else {
                subject.clone_from(&noun);
                let before = steps.len() - 1;
                (Source::Step(before), format!("#{}", before + 1))
            };
            noun = wording::filled(&relation.noun, &subject);
            steps.push(Step {
                question: wording::filled(relation.ask.first().map_or("", String::as_str), &named),
                answer: fact.object.clone(),
                sources: vec![source],
                work: Work::Lookup(Lookup {
                    relation: relation.name.clone(),
                    kind: relation.kind.clone(),
                    about: without_subject(&relation.noun, &relation.kind),
                    target: relation.target.clone(),
                    tools: relation.tools.clone(),
                }),
            });
        }
        wording::Phrase {
            subject,
            noun,
            step: steps.len().saturating_sub(1),
        }
    }

    /// A chain of this length that ends with the fact `end`, and shares no entity with other chains.
    fn chain(&self, end: usize, length: usize, others: &[Vec<&'a Fact>]) -> Option<Vec<&'a Fact>> {
        chain::backward(self.facts, end, length, others, self.key.named("chain"))
    }
}

/// The largest or smallest value: a number, or a date in ISO form. None if two values are the same.
fn extreme<'a>(values: &[&'a str], is_most: bool) -> Option<&'a str> {
    let numbers: Option<Vec<i64>> = values.iter().map(|value| value.parse().ok()).collect();
    match numbers {
        Some(numbers) => last_or_first(numbers.into_iter().zip(values.iter().copied()), is_most),
        // Dates in ISO form are ordered as their texts are.
        None => last_or_first(values.iter().copied().zip(values.iter().copied()), is_most),
    }
}

/// The value with the largest or smallest key. None if two keys are the same.
fn last_or_first<'a, K: Ord>(
    values: impl Iterator<Item = (K, &'a str)>,
    is_most: bool,
) -> Option<&'a str> {
    let mut sorted: Vec<(K, &str)> = values.collect();
    sorted.sort();
    if sorted.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return None;
    }
    let end = if is_most {
        sorted.pop()
    } else {
        sorted.into_iter().next()
    };
    end.map(|(_, value)| value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rows::generated_facts::generate_facts;

    #[test]
    fn the_larger_value_is_the_larger_number_or_the_later_date() {
        for (values, most, least) in [
            (&["-191", "-233"][..], "-191", "-233"),
            (&["-5", "12", "3"], "12", "-5"),
            (&["+7", "10"], "10", "+7"),
            (&["1749", "1832"], "1832", "1749"),
            (&["1749-08-28", "1832-03-22"], "1832-03-22", "1749-08-28"),
        ] {
            assert_eq!(extreme(values, true), Some(most), "{values:?}");
            assert_eq!(extreme(values, false), Some(least), "{values:?}");
        }
        for same in [["+7", "7"], ["0", "-0"], ["1832-03-22", "1832-03-22"]] {
            assert_eq!(extreme(&same, true), None, "{same:?}");
        }
    }

    #[test]
    fn without_a_scenario_there_is_no_question() {
        let options = RowOptions {
            scenarios: Vec::new(),
            ..RowOptions::default()
        };
        let found = decompose(&generate_facts(0, 10), &options, 3).unwrap_err();
        assert_eq!(found.check, Check::NoQuestion);
        assert!(found.reason.contains("name at least one"), "{found:?}");
    }
}
