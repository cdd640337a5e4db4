//! The formats that rows come in, and how each is recognised.

use std::fmt;
use std::str::FromStr;

use crate::error::{ImportError, RowError};
use crate::field::Row;

/// A format of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    /// FTRL: questions that come with their own Python tools.
    Ftrl,
    /// EnvFactory's rows for RL: tool calls to make in environments with a given state.
    EnvFactory,
    /// tau-bench: the wish of a customer, and the database after it.
    TauBench,
    /// verl's and Search-R1's rows.
    Verl,
    /// Our own tasks, questions with answers, and programming problems with tests.
    Tasks,
    /// Alpaca, as LLaMA-Factory reads it and EnvFactory writes it for SFT.
    Alpaca,
    /// OpenAI's messages with tools.
    Messages,
    /// ShareGPT's conversations.
    ShareGpt,
    /// Our own demonstrations.
    Demonstrations,
}

/// Every format. If a row fits several, the first one is taken.
pub const FORMATS: [Format; 9] = [
    Format::Ftrl,
    Format::EnvFactory,
    Format::TauBench,
    Format::Verl,
    Format::Tasks,
    Format::Demonstrations,
    Format::Alpaca,
    Format::Messages,
    Format::ShareGpt,
];

impl Format {
    /// The name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ftrl => "ftrl",
            Self::EnvFactory => "envfactory",
            Self::TauBench => "tau-bench",
            Self::Verl => "verl",
            Self::Tasks => "tasks",
            Self::Alpaca => "alpaca",
            Self::Messages => "messages",
            Self::ShareGpt => "sharegpt",
            Self::Demonstrations => "demonstrations",
        }
    }

    /// Description of its rows, for people.
    pub fn about(self) -> &'static str {
        match self {
            Self::Ftrl => {
                "questions with their own Python tools: messages, tools, codes, unsolved_set, answer"
            }
            Self::EnvFactory => {
                "calls to make in environments: prompt, reward_model, extra_info.mcp_factory_kwargs"
            }
            Self::TauBench => {
                "a customer's wish and the database after it: instruction, actions, gold_hash"
            }
            Self::Verl => "verl and Search-R1: data_source, prompt, reward_model",
            Self::Tasks => {
                "our own tasks; question, answer; text, test_list; prompt, entry_point, test"
            }
            Self::Alpaca => "demonstrations: instruction, input, output, system, history, tools",
            Self::Messages => "demonstrations: messages with tool_calls, tools",
            Self::ShareGpt => "demonstrations: conversations of {from, value}, system, tools",
            Self::Demonstrations => "our own demonstrations: id, source, tools, messages, given",
        }
    }

    /// True if its rows are demonstrations.
    pub fn is_for_sft(self) -> bool {
        match self {
            Self::Ftrl | Self::EnvFactory | Self::TauBench | Self::Verl | Self::Tasks => false,
            Self::Alpaca | Self::Messages | Self::ShareGpt | Self::Demonstrations => true,
        }
    }

    fn fits(self, row: &Row) -> bool {
        let has = |names: &[&str]| names.iter().all(|name| row.contains_key(*name));
        match self {
            Self::Ftrl => has(&["messages", "codes"]) || has(&["messages", "unsolved_set"]),
            Self::EnvFactory => {
                let environment = row
                    .get("extra_info")
                    .and_then(|extra| extra.get("mcp_factory_kwargs"));
                environment.is_some_and(|environment| !environment.is_null())
                    && has(&["reward_model"])
            }
            Self::TauBench => has(&["instruction", "actions"]),
            Self::Verl => has(&["reward_model"]),
            Self::Tasks => {
                has(&["question"])
                    || has(&["test_list"])
                    || has(&["entry_point"])
                    || has(&["prompt", "reference"])
            }
            Self::Demonstrations => has(&["messages", "given"]),
            Self::Alpaca => has(&["instruction", "output"]),
            Self::Messages => has(&["messages"]),
            Self::ShareGpt => has(&["conversations"]),
        }
    }

    pub(crate) fn recognise(row: &Row) -> Result<Self, RowError> {
        let found = FORMATS.into_iter().find(|format| format.fits(row));
        found.ok_or_else(|| {
            let fields: Vec<&str> = row.keys().take(12).map(String::as_str).collect();
            RowError::Row(format!(
                "its fields ({}) are those of no known format; the formats are {}",
                fields.join(", "),
                known()
            ))
        })
    }
}

/// Every format, the more specific first.
pub fn formats() -> &'static [Format] {
    &FORMATS
}

fn known() -> String {
    FORMATS.map(Format::as_str).join(", ")
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Format {
    type Err = ImportError;

    fn from_str(name: &str) -> Result<Self, ImportError> {
        let found = FORMATS.into_iter().find(|format| format.as_str() == name);
        found.ok_or_else(|| ImportError::UnknownFormat {
            name: name.to_owned(),
            known: known(),
        })
    }
}
