//! Checks on the world as it is, not as it was meant: nothing held out reaches training, and nothing that a
//! held-out task needs was too rare in it.

use std::collections::{BTreeMap, HashMap, HashSet};

use rlf_dialogue::split::Split;

use crate::demonstrator::Demonstrator;
use crate::split::words;
use crate::world::{FactsWorld, Stage};

/// A held-out name where training can see it, or an entity in a held-out question that does not belong there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leak {
    /// The task, or the row of the table.
    pub place: String,
    /// The text it stands in.
    pub text: String,
    /// The name.
    pub name: String,
}

/// How often the tokens of held-out tasks were met in training.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coverage {
    /// Distinct tokens that held-out tasks need.
    pub tokens: usize,
    /// Those met too seldom, the rarest first.
    pub rare: Vec<RareToken>,
}

/// A token that a held-out task needs and training hardly showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RareToken {
    /// Its id.
    pub id: u32,
    /// Whether the model has to write it; otherwise it only has to read it.
    pub written: bool,
    /// How often training had it in that role.
    pub count: u64,
    /// A held-out task that needs it.
    pub task: String,
}

/// What one solved task consists of.
struct Transcript {
    /// The question and the observations.
    read: Vec<String>,
    /// The model's turns.
    written: Vec<String>,
}

impl FactsWorld {
    /// Looks for held-out names in everything that the first `tasks` training tasks of both training stages
    /// show a model that solves them, in every row that training may name, and for foreign entities in as many
    /// held-out questions. Empty if all is well.
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

    /// Compares the tokens that the first `held_out` tasks of validation and test need with how often the
    /// first `trained` demonstrations had them: tokens to write with the model's own turns, tokens to read
    /// with everything. `encode` is the tokenizer, the markers of calls and
    /// answers recognised; a token met fewer than `least` times is rare.
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

    /// The task solved with the crate's own reading of the tools.
    fn transcript(&self, split: Split, stage: Stage, index: u64) -> Transcript {
        let (_, question) = self.question(split, stage, index);
        let mut demonstrator = Demonstrator::new(&question, self.table());
        let mut transcript = Transcript {
            read: vec![question.words(self.table())],
            written: Vec::new(),
        };
        let mut observations = Vec::new();
        // One observation is made for each call, so the demonstrator has nothing to refuse.
        while let Ok(Some(turn)) = demonstrator.next_turn(&observations) {
            observations = turn.calls().iter().map(|call| self.execute(call)).collect();
            transcript.read.extend(observations.iter().cloned());
            transcript.written.push(turn.to_hermes());
        }
        transcript
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{FactsConfig, Shares};
    use crate::kind::Kind;
    use crate::table::Table;

    fn small() -> FactsConfig {
        FactsConfig {
            generated: 300,
            ..FactsConfig::default()
        }
    }

    /// The same world with one row changed.
    fn tampered(world: &FactsWorld, change: impl Fn(&mut Vec<crate::table::Row>)) -> Vec<Leak> {
        let mut rows = world.table().rows().to_vec();
        change(&mut rows);
        world.with_table(Table::new(rows)).audit(200)
    }

    #[test]
    fn a_held_out_name_in_training_is_found_wherever_it_stands() {
        let world = FactsWorld::generate(1, &small()).unwrap();
        assert_eq!(world.audit(200), []);
        let rows = world.table().rows();
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

        let leaks = tampered(&world, |rows| rows[train].neighbour = Some(held));
        assert!(leaks.iter().any(|leak| leak.name == name), "{leaks:?}");
        let leaks = tampered(&world, |rows| rows[made].capital = format!("upper {name}"));
        assert!(leaks.iter().any(|leak| leak.name == name), "{leaks:?}");
    }

    #[test]
    fn a_held_out_question_that_leaves_its_split_is_found() {
        let world = FactsWorld::generate(2, &small()).unwrap();
        let train = world
            .table()
            .rows()
            .iter()
            .position(|row| row.split == Split::Train)
            .unwrap();
        let leaks = tampered(&world, |rows| {
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
        let world = FactsWorld::generate(3, &small()).unwrap();
        let letters = |text: &str| text.chars().map(u32::from).collect::<Vec<_>>();
        let coverage = world.token_coverage(&letters, 1_500, 200, 20);
        assert!(coverage.tokens > 60, "{}", coverage.tokens);
        assert_eq!(coverage.rare, []);

        let held = world
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
        let rare = world.token_coverage(&with_a_name, 1_500, 1_000, 20).rare;
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
        let config = FactsConfig {
            sft: Shares::new([(Kind::Lookup, 1.0)]),
            eval: Shares::new([(Kind::Calculate, 1.0)]),
            ..small()
        };
        let world = FactsWorld::generate(4, &config).unwrap();
        let letters = |text: &str| text.chars().map(u32::from).collect::<Vec<_>>();
        let rare = world.token_coverage(&letters, 500, 100, 5).rare;
        assert!(
            rare.iter()
                .any(|token| token.written && token.id == u32::from('+')),
            "{rare:?}"
        );
    }
}
