//! Reads the files of data sets: as tasks for RL and evaluation, and as demonstrations for SFT.
//!
//! This crate is the only one that knows the formats of data sets. A row becomes a [`Task`](rlf_dialogue::Task) or a
//! [`Demonstration`]. Its format is recognised row by row, and an error names file, line and field. [`play()`] turns a
//! demonstration into a trajectory with the same [`Episode`](rlf_dialogue::Episode) as rollouts, so that training
//! imitates exactly the tokens that a model would sample.
//!
//! The crate must not know how tools run, how rewards grade or how a model learns.
//!
//! | looking for | module |
//! |---|---|
//! | task files of a run, read whole | `task_file`: [`read_tasks`] |
//! | an import, row by row, and writing its result | `read`: [`read()`], [`rows`], [`write_tasks`] |
//! | the formats, and how each is recognised | `format`: [`Format`] |
//! | the reader of one format | `formats`, one file for each |
//! | the settings of an import | `options`: [`Options`] |
//! | a file's rows as JSON, one at a time | `file_rows`, `json_rows`, `parquet` |
//! | messages, calls and results in order, in any notation | `conversation`, `protocol_text`, `tools` |
//! | a conversation to imitate, and its trajectory | `demonstration`, `play` |
//! | FTRL's step-level samples from our own trajectories | `steps` |
//! | fields of a row; the row's place; errors | `field`, `row_context`, `error` |
//!
//! ```
//! use rlf_import::{Imported, Options, read, write_tasks};
//!
//! let folder = tempfile::tempdir()?;
//! let rows = folder.path().join("search.jsonl");
//! std::fs::write(&rows, r#"{"data_source": "nq", "prompt": [{"role": "user", "content": "Who wrote Faust?"}],
//!     "reward_model": {"style": "rule", "ground_truth": {"target": ["Goethe"]}}, "extra_info": {"index": 7}}"#
//!     .replace('\n', ""))?;
//! let imported = read(&rows, &Options::default())?;
//! let tasks: Vec<_> = imported
//!     .iter()
//!     .filter_map(|row| if let Imported::Task(task) = row { Some(task) } else { None })
//!     .collect();
//! assert_eq!(tasks[0].id, "7");
//! assert_eq!(tasks[0].reference["target"][0], "Goethe");
//! write_tasks(&folder.path().join("tasks.jsonl"), tasks)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod conversation;
mod demonstration;
mod error;
mod field;
mod file_rows;
mod format;
mod formats;
mod json_rows;
mod options;
#[cfg(feature = "parquet")]
mod parquet;
mod play;
mod protocol_text;
mod read;
mod row_context;
mod steps;
mod task_file;
mod tools;

pub use demonstration::Demonstration;
pub use error::{ImportError, RowError};
pub use format::{FORMATS, Format, formats};
pub use formats::Imported;
pub use options::{CustomerMode, FunctionScoping, Options, Reasoning};
pub use play::{PlayError, play};
pub use read::{Rows, read, rows, write_demonstrations, write_tasks};
pub use steps::{steps, steps_of_run};
pub use task_file::read_tasks;
