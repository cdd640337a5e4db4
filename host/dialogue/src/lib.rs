//! Conversations with tools: messages, chat templates, the parser, and the trajectory with its loss mask.
//!
//! The silent errors of multi-turn tool RL happen between the text of a conversation and the ids that training sees.
//! This crate is the one place for everything between them. The loss mask follows from provenance, and there is no
//! other way to get one. The crate knows no sandbox and no model: it neither runs tools nor samples tokens.
//!
//! | looking for | module |
//! |---|---|
//! | **the loss mask**, token ids and log-probabilities for training | [`trajectory`]: [`LossMask`](trajectory::LossMask), [`TrainingSequence`] |
//! | **the trajectory**: turns, calls, how it ended | [`trajectory`]: [`Trajectory`], [`Event`](trajectory::Event), [`Finish`] |
//! | how a trajectory is made, turn by turn | [`episode`]: [`Episode`], a state machine between generator and tools |
//! | **the parser**: calls and diagnostics from a turn's text | [`parser`]: [`parse`](parser::parse), [`Diagnostic`] |
//! | a conversation that another program had, as a trajectory for rewards | [`conversation`] |
//! | whether a turn calls, answers or does neither | [`turn`]: [`TurnOutcome`](turn::TurnOutcome) |
//! | how models write calls (Hermes, Llama 3.1) | [`protocol`] |
//! | chat templates, rendered as transformers renders them | [`template`]: [`ChatTemplate`]; Python's formatting in `python` |
//! | which earlier turns a template changes when it renders again | [`prefix`]: [`PrefixReport`] |
//! | how untrusted text is kept from becoming control tokens | `trust` |
//! | the text between two turns of the model | `observation`; changed tools in `tool_changes` |
//! | text to ids and back; training a small tokenizer | [`tokenizer`]: [`Tokenizer`]; [`bpe`] |
//! | the tokens of names and arguments in calls | `call_tokens` |
//! | settings, and everything that all trajectories of a run share | [`config`], [`dialogue`]: [`Dialogue`] |
//! | a task, a message and its content, a tool, how a call ended | [`task`], [`message`], `content`, [`tool`] |
//! | tools under other names than their authors gave | [`own_names`] |
//! | the split of a task, a group of trajectories and their scores | [`split`], [`group`], [`score`] |
//! | earlier turns as messages; the sequences of an unfinished trajectory | `history`, `sequences` |
//!
//! This example makes a trajectory by hand, with a tokenizer trained on the spot:
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
mod call_tokens;
pub mod config;
mod content;
pub mod conversation;
pub mod dialogue;
pub mod episode;
pub mod group;
mod history;
pub mod message;
mod observation;
pub mod own_names;
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
mod tool_changes;
pub mod trajectory;
mod trust;
pub mod turn;

pub use bpe::BpeOptions;
pub use config::{AnswerRule, DialogueConfig, History, InvalidDialogue, LastTurnCalls, OnNoAnswer};
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
