//! One reader for each format. Each makes a task or a demonstration of a row.

mod alpaca;
mod envfactory;
mod ftrl;
mod messages;
mod programming;
mod questions;
mod sharegpt;
mod tasks;
mod tau_bench;
mod verl;

use rlf_dialogue::Task;
use serde_json::Value;

use crate::demonstration::Demonstration;
use crate::error::RowError;
use crate::format::Format;
use crate::row_context::RowContext;

pub(crate) use ftrl::Unsolved;
pub(crate) use tasks::{from_row, ids_may_repeat};

/// An imported row.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::large_enum_variant,
    reason = "most rows are tasks, so a box would save nothing"
)]
pub enum Imported {
    /// A task, for RL and evaluation.
    Task(Task),
    /// A conversation to imitate, for SFT.
    Demonstration(Demonstration),
}

impl Imported {
    /// Its id.
    pub fn id(&self) -> &str {
        match self {
            Self::Task(task) => &task.id,
            Self::Demonstration(demonstration) => &demonstration.id,
        }
    }

    pub(crate) fn id_mut(&mut self) -> &mut String {
        match self {
            Self::Task(task) => &mut task.id,
            Self::Demonstration(demonstration) => &mut demonstration.id,
        }
    }
}

/// Imports a row: recognises its format, if the options name none, and reads it.
pub(crate) fn import(row: Value, context: &RowContext) -> Result<(Format, Imported), RowError> {
    let Value::Object(row) = row else {
        return Err(RowError::Row("a row must be a JSON object".into()));
    };
    let format = match context.options.from {
        Some(format) => format,
        None => Format::recognise(&row)?,
    };
    let read = match format {
        Format::Ftrl => ftrl::task(&row, context).map(Imported::Task),
        Format::EnvFactory => envfactory::task(&row, context).map(Imported::Task),
        Format::TauBench => tau_bench::task(&row, context).map(Imported::Task),
        Format::Verl | Format::Tasks => tasks::task(row, context).map(Imported::Task),
        Format::Alpaca => alpaca::demonstration(&row, context).map(Imported::Demonstration),
        Format::Messages => messages::demonstration(&row, context).map(Imported::Demonstration),
        Format::ShareGpt => sharegpt::demonstration(&row, context).map(Imported::Demonstration),
        Format::Demonstrations => Demonstration::from_row(row).map(Imported::Demonstration),
    };
    match read {
        Ok(imported) => Ok((format, imported)),
        Err(error) => Err(RowError::ReadAs {
            format: format.as_str(),
            source: error.into(),
        }),
    }
}
