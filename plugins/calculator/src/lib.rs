//! The tool `calculate`: arithmetic that a language model should not do in its head.
//!
//! Numbers are exact fractions of integers of any size up to a bound. Only the shown result is rounded: a quotient or
//! root that is not a whole number is rounded to 12 significant digits, half to even. So `1 / 3 * 3` is 1, `0.1 +
//! 0.2` is 0.3, and `2 ^ 200` has all its digits.
//!
//! The error of a wrong expression says what is wrong and at which character.

mod error;
mod evaluate;
mod functions;
mod lexer;
mod number;

use rlf_plugin::{plugin, tool};
use schemars::JsonSchema;
use serde::Deserialize;

/// The arguments of [`calculate`](fn@calculate).
#[derive(Deserialize, JsonSchema)]
pub struct Calculate {
    /// For example (2 + 3) * 4 or max(1, 2.5) or 7 // 2
    expression: String,
}

/// Computes an arithmetic expression with + - * / // % ^ and parentheses.
#[tool(pure)]
pub fn calculate(Calculate { expression }: Calculate) -> Result<String, error::ExpressionError> {
    evaluate::evaluate(&expression).map(|number| number.to_string())
}

plugin!(tools: [calculate]);

#[cfg(test)]
mod tests;
