//! Checks the tasks that were really made: no held-out name reaches training, and no token that a held-out task needs
//! is too rare in training.

use std::collections::{BTreeMap, HashMap, HashSet};

use rlf_dialogue::split::Split;

use super::split::words;
use super::tasks::{CountryTasks, Stage};

/// A held-out name where training can see it, or a country of another split in a held-out question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leak {
    /// The task, or the row of the table.
    pub place: String,
    /// The text that contains the name.
    pub text: String,
    /// The name.
    pub name: String,
}

/// Coverage of the tokens of held-out tasks by training.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coverage {
    /// Distinct tokens that held-out tasks need.
    pub tokens: usize,
    /// The tokens met too seldom, the rarest first.
    pub rare: Vec<RareToken>,
}

/// A token that a held-out task needs and that training rarely showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RareToken {
    /// Its id.
    pub id: u32,
    /// True if the model has to write it; otherwise it only has to read it.
    pub written: bool,
    /// Number of times that training had it in that role.
    pub count: u64,
    /// A held-out task that needs the token.
    pub task: String,
}

/// The texts of one solved task.
struct Transcript {
    /// The question and the observations.
    read: Vec<String>,
    /// The model's turns.
    written: Vec<String>,
}

impl CountryTasks {
    /// Looks for leaks and returns them; the result is empty if there are none. It looks for held-out names in every
    /// text of the first `tasks` training tasks of both training stages, solved, and in every row that training may
    /// name. It looks for countries of other splits in as many held-out questions.
    pub fn audit(&self, tasks: u64) -> Vec<Leak> {
        let held: HashSet<Vec<&str>> = self
            .held_out_names()
            .map(|name| words(name).collect())
            .collect();
        let longest = held.iter().map(Vec::len).max().unwrap_or(0);
        let find = |place: &str, text: &str| -> Option<Leak> {
            let words: Vec<&str> = words(text).collect();
            let spans = (0..words.len()).flat_map(|start| {
                (start..words.len().min(start + longest)).map(move |end| (start, end))
            });
            let mut said = spans.map(|(start, end)| &words[start..=end]);
            let name = said.find(|name| held.contains(*name))?.join(" ");
            Some(Leak {
                place: place.into(),
                text: text.into(),
                name,
            })
        };

        let mut leaks = Vec::new();
        for row in self
            .table()
            .rows()
            .iter()
            .filter(|row| row.split == Split::Train)
        {
            let neighbour = row
                .neighbour
                .map_or("", |neighbour| self.table().rows()[neighbour].name.as_str());
            for text in [&row.name, &row.capital, &row.continent, neighbour] {
                leaks.extend(find(&format!("row `{}`", row.name), text));
            }
        }
        for stage in [Stage::Sft, Stage::Rl] {
            for index in 0..tasks {
                let transcript = self.transcript(Split::Train, stage, index);
                let place = self.task(Split::Train, stage, index).id;
                for text in transcript.read.iter().chain(&transcript.written) {
                    leaks.extend(find(&place, text));
                }
            }
        }
        for split in [Split::Validation, Split::Test] {
            for index in 0..tasks {
                let (_, question) = self.question(split, Stage::Eval, index);
                let reached = question
                    .facts()
                    .into_iter()
                    .filter_map(|fact| fact.target(self.table()));
                for row in question
                    .named()
                    .into_iter()
                    .chain(reached)
                    .map(|row| &self.table().rows()[row])
                {
                    if row.split != split {
                        let task = self.task(split, Stage::Eval, index);
                        leaks.push(Leak {
                            place: task.id,
                            text: task.prompt[0].plain_text(),
                            name: row.name.clone(),
                        });
                    }
                }
            }
        }
        leaks
    }

    /// Counts how often the first `trained` demonstrations have each token that the first `held_out` tasks of
    /// validation and test need. Tokens to write are counted in the model's own turns, tokens to read everywhere.
    /// `encode` is the tokenizer, with the markers of calls and answers recognised. A token met fewer than `least`
    /// times is rare.
    pub fn token_coverage(
        &self,
        encode: &dyn Fn(&str) -> Vec<u32>,
        trained: u64,
        held_out: u64,
        least: u64,
    ) -> Coverage {
        let mut counts: HashMap<(u32, bool), u64> = HashMap::new();
        for index in 0..trained {
            let transcript = self.transcript(Split::Train, Stage::Sft, index);
            for id in transcript.written.iter().flat_map(|text| encode(text)) {
                *counts.entry((id, true)).or_default() += 1;
                *counts.entry((id, false)).or_default() += 1;
            }
            for id in transcript.read.iter().flat_map(|text| encode(text)) {
                *counts.entry((id, false)).or_default() += 1;
            }
        }
        let mut needed: BTreeMap<(u32, bool), String> = BTreeMap::new();
        for split in [Split::Validation, Split::Test] {
            for index in 0..held_out {
                let transcript = self.transcript(split, Stage::Eval, index);
                for (texts, written) in [(&transcript.written, true), (&transcript.read, false)] {
                    for id in texts.iter().flat_map(|text| encode(text)) {
                        needed
                            .entry((id, written))
                            .or_insert_with(|| self.task(split, Stage::Eval, index).id);
                    }
                }
            }
        }
        let tokens = needed.len();
        let mut rare: Vec<RareToken> = needed
            .into_iter()
            .map(|((id, written), task)| RareToken {
                id,
                written,
                count: counts.get(&(id, written)).copied().unwrap_or(0),
                task,
            })
            .filter(|token| token.count < least)
            .collect();
        rare.sort_by_key(|token| token.count);
        Coverage { tokens, rare }
    }

    /// The texts of a task, solved with this module's own reading of the tools.
    fn transcript(&self, split: Split, stage: Stage, index: u64) -> Transcript {
        let (_, question) = self.question(split, stage, index);
        let mut transcript = Transcript {
            read: vec![question.words(self.table())],
            written: Vec::new(),
        };
        for (turn, observations) in self.solve(&question) {
            transcript.written.push(turn.to_hermes());
            transcript.read.extend(observations);
        }
        transcript
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::countries::config::{CountriesConfig, KindShares};
    use crate::countries::kind::QuestionKind;
    use crate::countries::table::Table;

    fn small() -> CountriesConfig {
        CountriesConfig {
            generated: 300,
            ..CountriesConfig::default()
        }
    }

    /// Audits the same tasks with some rows changed.
    fn tampered(
        generator: &CountryTasks,
        change: impl Fn(&mut Vec<crate::countries::table::Row>),
    ) -> Vec<Leak> {
        let mut rows = generator.table().rows().to_vec();
        change(&mut rows);
        generator.with_table(Table::new(rows)).audit(200)
    }

    #[test]
    fn a_held_out_name_in_training_is_found_wherever_it_stands() {
        let generator = CountryTasks::generate(1, &small()).unwrap();
        assert_eq!(generator.audit(200), []);
        let rows = generator.table().rows();
        let held = rows
            .iter()
            .position(|row| row.split == Split::Test && row.name.contains(' '))
            .unwrap();
        let train = rows
            .iter()
            .position(|row| row.split == Split::Train)
            .unwrap();
        let made = rows.iter().position(|row| row.generated).unwrap();
        let name = rows[held].name.clone();

        let leaks = tampered(&generator, |rows| rows[train].neighbour = Some(held));
        assert!(leaks.iter().any(|leak| leak.name == name), "{leaks:?}");
        let leaks = tampered(&generator, |rows| {
            rows[made].capital = format!("upper {name}");
        });
        assert!(leaks.iter().any(|leak| leak.name == name), "{leaks:?}");
    }

    #[test]
    fn a_held_out_question_that_leaves_its_split_is_found() {
        let generator = CountryTasks::generate(2, &small()).unwrap();
        let train = generator
            .table()
            .rows()
            .iter()
            .position(|row| row.split == Split::Train)
            .unwrap();
        let leaks = tampered(&generator, |rows| {
            for row in rows.iter_mut().filter(|row| row.split == Split::Test) {
                row.neighbour = row.neighbour.map(|_| train);
            }
        });
        assert!(
            leaks
                .iter()
                .any(|leak| leak.place.starts_with("facts/test/")),
            "{leaks:?}"
        );
    }

    #[test]
    fn letters_are_common_and_a_tokenizer_with_whole_names_is_found_out() {
        let generator = CountryTasks::generate(3, &small()).unwrap();
        let letters = |text: &str| text.chars().map(u32::from).collect::<Vec<_>>();
        let coverage = generator.token_coverage(&letters, 1_500, 200, 20);
        assert!(coverage.tokens > 60, "{}", coverage.tokens);
        assert_eq!(coverage.rare, []);

        let held = generator
            .table()
            .rows()
            .iter()
            .find(|row| row.split == Split::Test)
            .unwrap()
            .name
            .clone();
        let with_a_name = |text: &str| {
            let is_said = text.contains(&format!("\"{held}\""));
            letters(text)
                .into_iter()
                .chain(is_said.then_some(u32::MAX))
                .collect::<Vec<_>>()
        };
        let rare = generator
            .token_coverage(&with_a_name, 1_500, 1_000, 20)
            .rare;
        assert_eq!(
            rare.iter()
                .map(|token| (token.id, token.count))
                .collect::<BTreeMap<_, _>>(),
            [(u32::MAX, 0)].into()
        );
    }

    #[test]
    fn what_is_only_read_does_not_count_as_written() {
        // Lookups alone never write an operator.
        let config = CountriesConfig {
            sft: KindShares::new([(QuestionKind::Lookup, 1.0)]),
            eval: KindShares::new([(QuestionKind::Calculate, 1.0)]),
            ..small()
        };
        let generator = CountryTasks::generate(4, &config).unwrap();
        let letters = |text: &str| text.chars().map(u32::from).collect::<Vec<_>>();
        let rare = generator.token_coverage(&letters, 500, 100, 5).rare;
        assert!(
            rare.iter()
                .any(|token| token.written && token.id == u32::from('+')),
            "{rare:?}"
        );
    }
}
