//! What a conversation with tools is, and nothing about how anything runs.
//!
//! Everything that goes wrong silently in multi-turn tool RL goes wrong between the text of a
//! conversation and the ids that training sees. So that lies here, in one place: messages, chat
//! templates, the wall between trusted and untrusted text, tool-call protocols and their parser,
//! and the trajectory, whose loss mask follows from provenance and can be had in no other way.
//! This crate knows no sandbox and no model; it neither runs tools nor samples tokens.
//!
//! | module | one idea |
//! |---|---|
//! | [`message`], [`tool`], [`task`] | the plain types that every part of the system shares |
//! | [`trajectory`] | what happened, and the sequences with their mask |
//! | [`split`], [`group`], [`score`] | the samples of a task and their grading, as training sees them |
//! | [`episode`] | one trajectory being made |
//! | [`dialogue`], [`config`] | what all trajectories of a run share |
//! | [`tokenizer`], [`bpe`] | text to ids and back; training a small tokenizer |
//! | [`template`] | chat templates, as transformers renders them |
//! | [`prefix`] | which earlier turns a template renders again as they were |
//! | [`protocol`], [`parser`], [`turn`] | how calls are written, read, and what a turn is |
//! | [`dataset`] | task files, of our own format and of others' |
//! | [`exact`] | JSON from outside, read without loss |
//!
//! A trajectory by hand, with a tokenizer trained on the spot:
//!
//! ```
//! use std::sync::Arc;
//! use rlf_dialogue::*;
//!
//! let corpus = ["What is 6 * 7? The answer is 42."].map(String::from).into_iter();
//! let tokenizer = Tokenizer::train_bpe(corpus, &BpeOptions::default())?;
//! let dialogue = Dialogue::new(
//!     Arc::new(tokenizer), ChatTemplate::small(), DialogueConfig::default(), &[],
//! )?;
//! let task: Task = serde_json::from_value(serde_json::json!({
//!     "id": "1", "source": "demo", "reference": "42",
//!     "prompt": [{"role": "user", "content": "What is 6 * 7?"}],
//! }))?;
//! let mut episode = Episode::start(&Arc::new(dialogue), "run/1".into(), &task, Vec::new())?;
//! let NextInput::Restart { ids, .. } = episode.next_input() else { panic!("a prompt comes first") };
//! assert!(!ids.is_empty());
//! let step = episode.push_demonstrated("<answer>42</answer>");
//! assert_eq!(step, Step::Finished(Finish::Answered));
//! let trajectory = episode.finish();
//! assert_eq!(trajectory.answer.as_deref(), Some("42"));
//! // The answer's two tags and two digits, and the end of the turn.
//! assert_eq!(trajectory.sequences[0].masked()?.mask.count(), 5);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod bpe;
pub mod config;
pub mod dataset;
pub mod dialogue;
pub mod episode;
pub mod exact;
pub mod group;
mod history;
pub mod message;
mod observation;
pub mod parser;
pub mod prefix;
pub mod protocol;
mod python;
pub mod score;
mod sequences;
pub mod split;
pub mod task;
pub mod template;
pub mod tokenizer;
pub mod tool;
mod tool_news;
pub mod trajectory;
mod trust;
pub mod turn;

pub use bpe::BpeOptions;
pub use config::{AnswerRule, DialogueConfig, History, LastTurnCalls, OnNoAnswer};
pub use dataset::{TaskError, read_tasks};
pub use dialogue::{Dialogue, DialogueError};
pub use episode::{Episode, NextInput, Reply, Step, Unwritable};
pub use group::Group;
pub use message::{Content, Message, Role};
pub use parser::Diagnostic;
pub use prefix::PrefixReport;
pub use protocol::{Protocol, ProtocolSpec};
pub use score::{EventCredit, Excluded, ExclusionCause, Graded, Score};
pub use split::Split;
pub use task::Task;
pub use template::{ChatTemplate, RenderInput, TemplateError};
pub use tokenizer::{Tokenizer, TokenizerError};
pub use tool::{CallOutcome, Ended, Fault, Observation, ToolCall, ToolDefinition};
pub use trajectory::{Finish, TrainingSequence, Trajectory};
