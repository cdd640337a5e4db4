//! The settings of an import.

use crate::format::Format;

/// Settings of an import. The default recognises each row's format by itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// The format of all rows. Default: recognised row by row.
    pub from: Option<Format>,
    /// Name of the tasks' environment. Default: `functions` for FTRL, `servers` for EnvFactory, `tau-retail` for tau-bench,
    /// none for others.
    pub environment: Option<String>,
    /// Visibility of the code around FTRL's functions. Default `clean`.
    pub scoping: FunctionScoping,
    /// True if FTRL's step-level rows, whose conversation is already under way, are read as tasks of one turn. Default
    /// false: such a row is an error.
    pub steps: bool,
    /// Speaker for tau-bench's customer. Default `solo`.
    pub user: CustomerMode,
    /// Treatment of reasoning in demonstrations. Default `keep`.
    pub reasoning: Reasoning,
}

/// The visibility of the code around a tool's Python function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FunctionScoping {
    /// The function sees imports and other functions of its source.
    #[default]
    Clean,
    /// The function sees neither, as in the published executor.
    Published,
}

/// The speaker for tau-bench's customer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CustomerMode {
    /// No speaker: the model gets everything that the customer knows, and acts alone.
    #[default]
    Solo,
    /// A model, in the environment.
    Model,
}

/// The treatment of reasoning in demonstrated turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reasoning {
    /// Reasoning is part of the turn.
    #[default]
    Keep,
    /// Reasoning is left out, for models that answer without thinking.
    Drop,
}

impl FunctionScoping {
    /// The name used in a task's setup.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Published => "published",
        }
    }
}

impl CustomerMode {
    /// The name used in a task's setup.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Solo => "solo",
            Self::Model => "model",
        }
    }
}
