//! Rows in FTRL's form: questions with their own Python tools, made in five stages and verified by execution.
//!
//! "Feedback-Driven Tool-Use Improvements in Large Language Models via Automated Build Environments" (arXiv 2508.08791)
//! builds such rows with a language model. Here a graph of facts takes its place: every question, tool and call follows
//! from facts, and so the answers are known. Each stage is a function from artefact to artefact. A language model can
//! take the place of the first one, for questions that a file gives.
//!
//! | looking for | module |
//! |---|---|
//! | the options of a run | [`options`] |
//! | facts: the graph, a generated one, one from a file | [`facts`], [`generated_facts`], `read_facts`, `library` |
//! | stage 1, scenario decomposition | [`decompose`], artefact in [`question`] |
//! | questions from a file, and their decomposition by a language model | `given_questions`, [`decomposer`] |
//! | stage 2, document generation | [`document_generation`], artefact in [`document`] |
//! | stage 3, function integration | [`function_integration`] |
//! | stage 4, complexity scaling | [`complexity_scaling`] |
//! | stage 5, local deployment | [`deployment`], artefact in [`row`] |
//! | verification by execution | [`verification`] |
//! | rows, tasks and demonstrations | [`output`], `results`, [`figures`] |
//! | the folder, artefacts on disk, resuming | [`folder`], [`pipeline`], [`stage`], [`artefact`], [`rejection`] |
//! | draws, names of tools, matching as FTRL does it | `draw`, `tool_names`, `matching` |
//!
//! ```
//! use rlf_forge::rows::options::{Complexity, RowOptions};
//! use rlf_forge::rows::{decompose::decompose, document_generation::document, deployment::deploy};
//! use rlf_forge::rows::{function_integration::integrate, generated_facts::generate_facts};
//!
//! let options = RowOptions { count: 1, complexity: Complexity::None, ..RowOptions::default() };
//! let facts = generate_facts(options.seed, 60);
//! let question = decompose(&facts, &options, 0).expect("the graph has such a question");
//! let row = deploy(integrate(document(question, &facts, &options), &options), &options).expect("it is small");
//! assert_eq!(row.calls[0].answer, row.answer);
//! ```

pub mod artefact;
pub mod complexity_scaling;
pub mod decompose;
pub mod decomposer;
pub mod deployment;
pub mod document;
pub mod document_generation;
mod draw;
pub mod error;
pub mod facts;
pub mod figures;
pub mod folder;
pub mod function_integration;
pub mod generated_facts;
mod given_questions;
mod library;
mod matching;
pub mod options;
pub mod output;
pub mod pipeline;
pub mod question;
mod read_facts;
pub mod rejection;
mod results;
pub mod row;
pub mod stage;
mod tool_names;
pub mod verification;

pub use self::decomposer::Decomposer;
pub use self::error::RowsError;
pub use self::pipeline::{Input, Progress, make_rows};
pub use self::stage::Stage;
