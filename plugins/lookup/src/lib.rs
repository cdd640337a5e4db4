//! The tool `lookup`: one fact, by entity and column, from a table that the operator bound as data.
//!
//! The tool's schema lists the columns, so that the host refuses others before the tool runs. The table is read and
//! indexed in `init`; a call reads one slot of a hash table and one cell.
//!
//! ```toml
//! [plugins.lookup]
//! data.table = "countries.csv"
//!
//! [plugins.lookup.config]        # every key may be left out
//! key = "country"                # column of the entities' names; default: the first one
//! columns = ["capital", "area"]  # what may be asked; default: every other column
//! name = "lookup"                # the tool's name
//! description = "..."            # the tool's description
//! key_argument = "entity"        # names of the two arguments
//! column_argument = "column"
//! schema = "full"                # "short" leaves descriptions out, for small prompts
//! show = "{value}"               # what is returned; {column} and {key} are known as well
//! ignore_case = true             # entities are found whatever their case
//! suggestions = 3                # nearest names shown for an unknown entity; 0 shows none
//! ```

mod cells;
mod config;
mod definition;
mod nearest;
mod read;
mod table;

use std::fmt;

use rlf_plugin::serde_json::{Map, Value};
use rlf_plugin::{data, plugin, tool};

use config::Config;
use definition::describe;
use table::Table;

/// The state that `init` makes and calls borrow.
struct Facts {
    table: Table,
    config: Config,
}

fn init(config: Config) -> Result<Facts, InitError> {
    let files = data::texts("table")
        .map_err(|error| InitError(rlf_plugin::error_message(&error).to_owned()))?;
    let rows = read::rows(&files).map_err(|error| InitError(error.to_string()))?;
    let table = Table::build(rows, &config).map_err(|error| InitError(error.to_string()))?;
    Ok(Facts { table, config })
}

/// Looks one fact up in a table.
#[tool(pure, refine = describe)]
fn lookup(arguments: Map<String, Value>, facts: &Facts) -> Result<String, LookupError> {
    let Facts { table, config } = facts;
    let argument = |name: &str| match arguments.get(name) {
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Number(number)) => Ok(number.to_string()),
        _ => Err(LookupError::Argument(name.to_owned())),
    };
    let key = argument(&config.key_argument)?;
    let column = argument(&config.column_argument)?;

    let Some(position) = table.column(&column) else {
        return Err(LookupError::Column(
            column,
            table.columns().map(str::to_owned).collect(),
        ));
    };
    let Some(row) = table.row(&key) else {
        return Err(LookupError::Key(
            key.clone(),
            table.nearest(&key, config.suggestions),
        ));
    };
    let value = table.cell(row, position);
    let (key, column) = (table.key(row), table.column_name(position));
    if value.is_empty() {
        return Err(LookupError::Cell(key.to_owned(), column.to_owned()));
    }
    Ok(config.shown(key, column, value))
}

plugin!(init: init, tools: [lookup]);

/// The reason why the table cannot be used.
#[derive(Debug)]
struct InitError(String);

impl fmt::Display for InitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The text that the model reads if the fact does not exist.
#[derive(Debug, PartialEq)]
enum LookupError {
    Argument(String),
    Column(String, Vec<String>),
    Key(String, Vec<String>),
    Cell(String, String),
}

impl fmt::Display for LookupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Argument(name) => write!(f, "the argument `{name}` must be a string"),
            Self::Column(column, known) => {
                write!(f, "no column {column}; there are {}", known.join(", "))
            }
            Self::Key(key, nearest) if nearest.is_empty() => write!(f, "nothing known of {key}"),
            Self::Key(key, nearest) => {
                write!(
                    f,
                    "nothing known of {key}; did you mean {}?",
                    nearest.join(" or ")
                )
            }
            Self::Cell(key, column) => write!(f, "no {column} known of {key}"),
        }
    }
}

#[cfg(test)]
mod tests;
