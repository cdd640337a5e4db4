//! What an import can be told.

use crate::format::Format;

/// Settings of an import. The default recognises each row's format by itself.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Options {
    /// The format of all rows. Default: recognised row by row.
    pub from: Option<Format>,
    /// Name of the environment that the tasks live in. Default: `functions` for FTRL, `worlds` for EnvFactory,
    /// `tau-retail` for tau-bench, none for others.
    pub environment: Option<String>,
    /// What FTRL's functions see of the code around them. Default `clean`.
    pub scoping: FunctionScoping,
    /// Takes FTRL's rows whose conversation has begun, as tasks of one turn. Default false: such a row is an error.
    pub steps: bool,
    /// Who speaks for tau-bench's customer. Default `solo`.
    pub user: CustomerMode,
    /// What becomes of reasoning in demonstrations. Default `keep`.
    pub reasoning: Reasoning,
}

/// How the Python source of a tool is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FunctionScoping {
    /// In one namespace, in which imports and other functions of the source are visible.
    #[default]
    Clean,
    /// As the published executor does, where a function's body sees neither.
    Published,
}

/// Who speaks for the customer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CustomerMode {
    /// Nobody: the model is given all that the customer knows, and acts alone.
    #[default]
    Solo,
    /// A model, in the environment.
    Model,
}

/// What becomes of the reasoning of demonstrated turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reasoning {
    /// It is part of the turn.
    #[default]
    Keep,
    /// It is left out, for models that shall answer without thinking.
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
