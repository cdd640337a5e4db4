//! The names of the two tools that the questions are made for.

/// Name of the tool that answers questions about the table.
pub const LOOKUP: &str = "lookup";
/// The argument of [`LOOKUP`] that names the country.
pub const KEY_ARGUMENT: &str = "of";
/// The argument of [`LOOKUP`] that names the column.
pub const COLUMN_ARGUMENT: &str = "get";
/// Name of the tool that computes.
pub const CALCULATE: &str = "calculate";
/// The argument of [`CALCULATE`].
pub const EXPRESSION_ARGUMENT: &str = "expression";
