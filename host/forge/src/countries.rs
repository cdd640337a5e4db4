//! The countries of the quickstart: a table, questions over it, and verified demonstrations.
//!
//! A small model has *learned* to use tools only if it could not have memorised the test questions. So [`CountryTasks`]
//! makes a table of real countries, divided into three splits that share no country, and adds tens of thousands of
//! made-up countries for training. Every question needs tools, and the model must copy names that it has never seen.
//! Training questions, hops and observations never name a held-out country. [`CountryTasks::audit`] checks this on the
//! texts that the tools return, not on the generator's intentions.
//!
//! All randomness is counter-based: task number `i` of a split is the same whatever was made before it. So a resumed
//! run, an evaluation and a worker agree without passing state around.
//!
//! A [`CountryDemonstrator`] says what a competent model would do next, given what the tools answered. The caller owns
//! the tools and runs them.
//!
//! | module | one idea |
//! |---|---|
//! | `tasks` | the generator: the table, its splits, and tasks by number |
//! | `facts`, `table`, `name` | the real countries, the table of all, and names for made-up ones |
//! | `split` | which real countries are for training, for validation and for the test |
//! | `kind`, `question`, `sampling` | kinds of questions, what a question means and says, how one is drawn |
//! | `demonstrator`, `tools` | the calls that answer a question, and the names of the two tools |
//! | `arithmetic`, `decimal` | this module's own calculator, to check demonstrations before any tool runs |
//! | `audit`, `corpus` | checks against leaks and rare tokens; text for a tokenizer |
//! | `config`, `draws` | `[tasks.facts]` of a configuration; counter-based randomness |
//!
//! ```
//! use rlf_dialogue::split::Split;
//! use rlf_forge::countries::{CountriesConfig, CountryTasks, Stage};
//!
//! let config = CountriesConfig { generated: 500, ..CountriesConfig::default() };
//! let countries = CountryTasks::generate(7, &config)?;
//! let task = countries.task(Split::Train, Stage::Rl, 0);
//! println!("{}: {}", task.kind(), task.prompt[0].plain_text());
//!
//! // Solve it with this module's own reading of the two tools; a trainer runs the real ones.
//! let mut demonstrator = countries.demonstration(&task)?;
//! let mut observations = Vec::new();
//! while let Some(turn) = demonstrator.next_turn(&observations)? {
//!     observations = turn.calls().iter().map(|call| countries.execute(call)).collect();
//!     if let Some(answer) = turn.answer() {
//!         assert_eq!(task.reference["answer"][0], answer);
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod arithmetic;
mod audit;
mod config;
mod corpus;
mod decimal;
mod demonstrator;
mod draws;
mod facts;
mod kind;
mod name;
mod question;
mod sampling;
mod split;
mod table;
mod tasks;
mod tools;

pub use audit::{Coverage, Leak, RareToken};
pub use config::{CountriesConfig, CountriesConfigError, KindShares};
pub use demonstrator::{CountryDemonstrator, DemonstratedTurn, DemonstrationError};
pub use draws::Draws;
pub use facts::{Country, CountryTableError, real_countries};
pub use kind::QuestionKind;
pub use table::{Column, Row, Table};
pub use tasks::{CountriesError, CountryTasks, Stage};
pub use tools::{CALCULATE, COLUMN_ARGUMENT, EXPRESSION_ARGUMENT, KEY_ARGUMENT, LOOKUP};
