//! Tasks made automatically: a world of facts, questions over it, and demonstrations that hold.
//!
//! A small model can only be shown to have *learned* to use tools if what it is tested on was out of its
//! reach in training. So this crate makes a [`FactsWorld`]: a table of real countries, split into three
//! parts that never meet, among tens of thousands of entities made up for training. Every question needs
//! tools to be answered; copying a name that was never seen is part of every one of them. Training questions,
//! hops and observations never name a held-out entity, and [`FactsWorld::audit`] checks it on what the tools
//! really say, not on how the generator was meant to work.
//!
//! Everything is counter-based: exercise number `i` of a split is the same whatever was made before it, so
//! that a resumed run, an evaluation and a worker agree without passing state around.
//!
//! The crate must not know how tools run, how text becomes tokens or how a model learns. A [`Demonstrator`]
//! says what a competent model would do next given what the tools answered; whoever owns the tools runs them.
//!
//! ```
//! use rlf_dialogue::Split;
//! use rlf_forge::{FactsConfig, FactsWorld, Stage};
//!
//! let world = FactsWorld::generate(7, &FactsConfig { generated: 500, ..FactsConfig::default() })?;
//! let task = world.task(Split::Train, Stage::Rl, 0);
//! println!("{}: {}", task.kind(), task.prompt[0].plain_text());
//!
//! // Solve it with the crate's own reading of the two tools; a trainer runs the real ones.
//! let mut demonstrator = world.demonstration(&task)?;
//! let mut observations = Vec::new();
//! while let Some(turn) = demonstrator.next_turn(&observations)? {
//!     observations = turn.calls().iter().map(|call| world.execute(call)).collect();
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
mod world;

pub use audit::{Coverage, Leak, RareToken};
pub use config::{ConfigError, FactsConfig, Shares};
pub use demonstrator::{DemonstratedTurn, DemonstrationError, Demonstrator};
pub use draws::Draws;
pub use facts::{Country, FactsError, countries};
pub use kind::Kind;
pub use table::{Column, Row, Table};
pub use world::{FactsWorld, ForgeError, Stage};

/// Name of the tool that answers questions about the table.
pub const LOOKUP: &str = "lookup";
/// The argument of [`LOOKUP`] that names the entity.
pub const KEY_ARGUMENT: &str = "of";
/// The argument of [`LOOKUP`] that names the column.
pub const COLUMN_ARGUMENT: &str = "get";
/// Name of the tool that computes.
pub const CALCULATE: &str = "calculate";
/// The argument of [`CALCULATE`].
pub const EXPRESSION_ARGUMENT: &str = "expression";
