//! The generator: its table, its splits, and tasks by number.

use rlf_dialogue::message::{Message, Role};
use rlf_dialogue::split::Split;
use rlf_dialogue::task::Task;
use rlf_dialogue::tool::ToolCall;
use serde_json::{Map, Value, json};

use super::arithmetic;
use super::config::{CountriesConfig, CountriesConfigError, KindShares};
use super::demonstrator::{CountryDemonstrator, DemonstratedTurn, DemonstrationError};
use super::draws::Draws;
use super::facts::{self, Country, CountryTableError};
use super::kind::QuestionKind;
use super::name::Namer;
use super::question::Question;
use super::sampling::{self, CountryRows, Pool};
use super::split;
use super::table::{Column, Row, Table};
use super::tools::{CALCULATE, COLUMN_ARGUMENT, EXPRESSION_ARGUMENT, KEY_ARGUMENT, LOOKUP};

/// The use that tasks are drawn for. Each has its own shares of question kinds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Supervised fine-tuning on demonstrations.
    Sft,
    /// Reinforcement learning, from the reward alone.
    Rl,
    /// Evaluation.
    Eval,
}

impl Stage {
    /// All three.
    pub const ALL: [Self; 3] = [Self::Sft, Self::Rl, Self::Eval];

    /// The name in task ids.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sft => "sft",
            Self::Rl => "rl",
            Self::Eval => "eval",
        }
    }
}

/// The reason why the tasks cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CountriesError {
    /// A setting is wrong.
    #[error(transparent)]
    Config(#[from] CountriesConfigError),
    /// The shipped table of countries is wrong.
    #[error(transparent)]
    Facts(#[from] CountryTableError),
}

/// Real countries in three splits, made-up countries for training, and questions about them.
pub struct CountryTasks {
    seed: u64,
    config: CountriesConfig,
    table: Table,
    pools: [Pool; 3],
}

/// Minimum number of countries with a neighbour that a split needs.
const MIN_COUNTRIES: usize = 4;

impl CountryTasks {
    /// Makes the table of this seed. The seed decides the made-up countries and the training tasks;
    /// `config.split_seed` deals the real countries and decides the held-out questions.
    pub fn generate(seed: u64, config: &CountriesConfig) -> Result<Self, CountriesError> {
        config.validate()?;
        let countries = facts::real_countries()?;
        let splits = split::assign_splits(
            &countries,
            config.split_seed,
            [config.validation_share, config.test_share],
        );
        let neighbours = split::neighbours(&countries, &splits, config.split_seed);
        let mut rows: Vec<Row> = (countries.iter().zip(&splits).zip(neighbours))
            .map(|((country, split), neighbour)| Row::real(country, *split, neighbour))
            .collect();
        rows.extend(generated_rows(seed, config.generated, &countries, &splits));
        let table = Table::new(rows);
        let pools = Split::ALL.map(|split| pool(&table, split, config.real_share));
        for (split, pool) in Split::ALL.into_iter().zip(&pools) {
            let countries = pool.real.with_neighbour.len();
            if countries < MIN_COUNTRIES {
                return Err(CountriesConfigError::FewCountries {
                    split: split.as_str(),
                    countries,
                    least: MIN_COUNTRIES,
                }
                .into());
            }
        }
        Ok(Self {
            seed,
            config: config.clone(),
            table,
            pools,
        })
    }

    /// The table for the lookup plugin; [`Table::to_csv`] writes it.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The configuration it was made from.
    pub fn config(&self) -> &CountriesConfig {
        &self.config
    }

    /// Task number `index` of a split. It is the same whatever was drawn before it.
    pub fn task(&self, split: Split, stage: Stage, index: u64) -> Task {
        let (kind, question) = self.question(split, stage, index);
        let answer = question.answer(&self.table);
        let mut extra = Map::new();
        extra.insert("kind".into(), kind.as_str().into());
        extra.insert("split".into(), split.as_str().into());
        Task {
            id: format!("facts/{}/{}/{index}", split.as_str(), stage.as_str()),
            source: "facts".into(),
            prompt: vec![Message::text(Role::User, question.words(&self.table))],
            tools: Some(vec![LOOKUP.into(), CALCULATE.into()]),
            reference: json!({"answer": answer.into_iter().collect::<Vec<_>>()}),
            environment: None,
            setup: Value::Null,
            extra,
        }
    }

    /// Demonstrates how a competent model would solve a training task of this generator.
    pub fn demonstration(&self, task: &Task) -> Result<CountryDemonstrator, DemonstrationError> {
        let (split, stage, index) =
            parse_id(&task.id).ok_or_else(|| DemonstrationError::UnknownTask {
                id: task.id.clone(),
            })?;
        if split != Split::Train {
            return Err(DemonstrationError::HeldOut {
                id: task.id.clone(),
            });
        }
        Ok(CountryDemonstrator::new(
            &self.question(split, stage, index).1,
            &self.table,
        ))
    }

    /// Answers a call as the two tools would, by this module's own reading of them. For audits and tests; trainers
    /// run the real tools.
    pub fn execute(&self, call: &ToolCall) -> String {
        let argument = |name: &str| {
            call.arguments
                .get(name)
                .and_then(serde_json::Value::as_str)
                .unwrap_or("")
        };
        match call.name.as_str() {
            LOOKUP => {
                let (key, column) = (argument(KEY_ARGUMENT), argument(COLUMN_ARGUMENT));
                let cell = self.table.row(key).zip(Column::parse(column));
                let cell = cell.and_then(|(row, column)| self.table.cell(row, column));
                cell.unwrap_or_else(|| format!("no {column} of {key}"))
            }
            CALCULATE => match arithmetic::evaluate(argument(EXPRESSION_ARGUMENT)) {
                Ok(value) => value.to_string(),
                Err(problem) => format!("error: {problem}"),
            },
            other => format!("no tool {other}"),
        }
    }

    /// The turns that solve a question, each with the observations of its calls, by this module's own reading of the tools.
    pub(crate) fn solve(&self, question: &Question) -> Vec<(DemonstratedTurn, Vec<String>)> {
        let mut demonstrator = CountryDemonstrator::new(question, &self.table);
        let mut turns = Vec::new();
        let mut observations = Vec::new();
        // One observation is made for each call, so the demonstrator has nothing to refuse.
        while let Ok(Some(turn)) = demonstrator.next_turn(&observations) {
            observations = turn.calls().iter().map(|call| self.execute(call)).collect();
            turns.push((turn, observations.clone()));
        }
        turns
    }

    /// Asks the same questions over another table of the same size.
    #[cfg(test)]
    pub(crate) fn with_table(&self, table: Table) -> Self {
        let pools = Split::ALL.map(|split| pool(&table, split, self.config.real_share));
        Self {
            seed: self.seed,
            config: self.config.clone(),
            table,
            pools,
        }
    }

    pub(crate) fn question(
        &self,
        split: Split,
        stage: Stage,
        index: u64,
    ) -> (QuestionKind, Question) {
        // Held-out questions are the same for every seed, so that runs can be compared.
        let seed = if split == Split::Train {
            self.seed
        } else {
            self.config.split_seed
        };
        let purpose = format!("facts/{}/{}", split.as_str(), stage.as_str());
        let mut draws = Draws::new(seed, &purpose, index);
        let kind = self.shares(stage).draw(&mut draws);
        (
            kind,
            sampling::draw(kind, &self.pools[split as usize], &self.table, &mut draws),
        )
    }

    fn shares(&self, stage: Stage) -> &KindShares {
        match stage {
            Stage::Sft => &self.config.sft,
            Stage::Rl => &self.config.rl,
            Stage::Eval => &self.config.eval,
        }
    }

    /// Names and capitals of the held-out countries, those of validation and test.
    pub(crate) fn held_out_names(&self) -> impl Iterator<Item = &str> {
        let held = self
            .table
            .rows()
            .iter()
            .filter(|row| row.split != Split::Train);
        held.flat_map(|row| [row.name.as_str(), row.capital.as_str()])
    }
}

fn parse_id(id: &str) -> Option<(Split, Stage, u64)> {
    let mut parts = id.strip_prefix("facts/")?.split('/');
    let (split, stage, index) = (parts.next()?, parts.next()?, parts.next()?.parse().ok()?);
    let split = Split::ALL
        .into_iter()
        .find(|known| known.as_str() == split)?;
    let stage = Stage::ALL
        .into_iter()
        .find(|known| known.as_str() == stage)?;
    parts.next().is_none().then_some((split, stage, index))
}

fn pool(table: &Table, split: Split, real_share: f64) -> Pool {
    let select = |generated: bool| {
        let mine = table
            .rows()
            .iter()
            .enumerate()
            .filter(|(_, row)| row.split == split && row.generated == generated);
        let all: Vec<usize> = mine.map(|(position, _)| position).collect();
        let with_neighbour = all
            .iter()
            .copied()
            .filter(|&row| table.rows()[row].neighbour.is_some())
            .collect();
        CountryRows {
            all,
            with_neighbour,
        }
    };
    Pool {
        real: select(false),
        generated: select(true),
        real_share,
    }
}

fn generated_rows(seed: u64, count: usize, countries: &[Country], splits: &[Split]) -> Vec<Row> {
    let seen = split::names(countries, splits, Split::Train);
    let real = countries
        .iter()
        .flat_map(|country| [country.name.as_str(), country.capital.as_str()]);
    let mut namer = Namer::new(seen.iter().map(String::as_str), real);
    let mut draws = Draws::new(seed, "facts/generated", 0);
    let first = countries.len();
    (0..count)
        .map(|index| Row {
            name: namer.make(&mut draws),
            capital: namer.make(&mut draws),
            continent: draws.pick(countries).continent.clone(),
            area: draws.magnitude(2, 17_999) as u32,
            population: draws.magnitude(2, 14_999) as u32,
            // Any other made-up country.
            neighbour: Some(first + (index + 1 + draws.index(count - 1)) % count),
            split: Split::Train,
            generated: true,
        })
        .collect()
}
