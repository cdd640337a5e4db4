//! Published data sets' files as the project's own tasks, for RL and evaluation, and as demonstrations, for SFT.
//!
//! Every data set comes in a form of its own, and nothing behind this crate shall know of it: a row becomes a
//! [`Task`](rlf_dialogue::Task) or a [`Demonstration`], its format recognised row by row, and an error names file, line
//! and field. [`play`] makes a demonstration a trajectory by the same [`Episode`](rlf_dialogue::Episode) that makes
//! those of rollouts, so that what is imitated is what is sampled, to the token.
//!
//! The crate must not know how tools run, how rewards grade or how a model learns.
//!
//! | module | one idea |
//! |---|---|
//! | `rows`, `parquet` | a file's rows as JSON, one at a time |
//! | `format` | what each format's rows hold; one file for each |
//! | `conversation`, `protocol_text` | chat messages, calls and results in order, whatever they are written in |
//! | `demonstration`, `play` | a conversation to imitate, and the trajectory it becomes |
//! | `steps` | FTRL's step-level samples from our own trajectories |
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
pub use error::ImportError;
pub use format::{FORMATS, Format, formats};
pub use formats::Imported;
pub use options::{CustomerMode, FunctionScoping, Options, Reasoning};
pub use play::{PlayError, play};
pub use read::{Rows, read, rows, write_demonstrations, write_tasks};
pub use steps::{steps, steps_of_run};
pub use task_file::read_tasks;
