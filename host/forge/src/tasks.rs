//! Tasks for policies: chains of tools, executed, put into words, refined, and kept only if they can be solved from
//! what their text says.
//!
//! A candidate is a number. From it and a seed follow its environments, scenarios and chain of tools
//! ([`mod@make`]). The chain is executed in the environments; calls that contribute nothing are pruned, and the rest is split
//! into turns. A query is written back from what was done, and says less where a model can find out the rest
//! ([`text`]). A task is kept if every argument of its gold calls can be known, a solver that is given only what the text
//! says reaches the goal, and the task is worth doing ([`check`](mod@check)). Then it is replayed in the sandboxed
//! environment ([`replay`](mod@replay)). Each rejected candidate is kept with its reason.
//!
//! | looking for | module |
//! |---|---|
//! | the record of a task | [`record`] |
//! | the meaning of a user's words | [`request`] |
//! | environments: opening, calling, states; those of a run | [`environment`], [`suite`] |
//! | held-out environments and tools | [`split`] |
//! | tools that a task offers besides those that it needs, and the names that it shows | `inventory`, [`shown`] |
//! | environments in Python files: observed, and played in the sandbox | [`sandboxed`] |
//! | sampling and execution | [`mod@make`] |
//! | requests, refinement and sentences | [`text`] |
//! | words that a language model writes in their place | [`mod@rewrite`] |
//! | information flow, solver, filters | [`check`](mod@check) |
//! | the entities of a state, with the fields that results show | `entities` |
//! | the stages in order, and their files | [`pipeline`], `folder`, `stage_file` |
//! | counts of what was made and rejected | [`statistics`] |
//! | rows for training: our tasks and demonstrations, alpaca, verl | [`output`] |
//!
//! ```
//! use rlf_forge::tasks::text::{Templates, query};
//! use rlf_forge::tasks::{Maker, Suite, TaskOptions};
//! use rlf_specification::{Format, check_text};
//!
//! let text = include_str!("../../../plugins/specified/examples/LendingLibrary.toml");
//! let program = check_text(text, Format::Toml).program.unwrap();
//! let suite = Suite::from_programs(vec![(program, "lifestyle".to_owned())])?;
//! let options = TaskOptions::default();
//! let maker = Maker::new(&suite, &options);
//! let mut queries = (0..20).filter_map(|number| {
//!     let candidate = maker.candidate(number).unwrap().ok()?;
//!     let trajectory = maker.trajectory(&candidate).unwrap().ok()?;
//!     query(&maker, &candidate, &trajectory, &Templates::default()).ok()
//! });
//! assert!(!queries.next().unwrap().turns[0].text.is_empty());
//! # Ok::<(), rlf_forge::tasks::SuiteError>(())
//! ```

mod assemble;
pub mod check;
mod entities;
pub mod environment;
mod error;
mod folder;
mod inventory;
pub mod make;
pub mod options;
pub mod output;
pub mod pipeline;
pub mod record;
pub mod rejection;
pub mod replay;
pub mod request;
pub mod rewrite;
pub mod sandboxed;
pub mod shown;
pub mod split;
mod stage_file;
pub mod statistics;
pub mod suite;
pub mod text;

pub use error::PipelineError;
pub use folder::{Folder, Manifest};
pub use make::Maker;
pub use options::TaskOptions;
pub use pipeline::{Made, Progress, make, make_in_words};
pub use record::TaskRecord;
pub use rejection::{Reason, Rejected, Rejection, Stage};
pub use stage_file::FileError;
pub use statistics::Statistics;
pub use suite::{Suite, SuiteError};
