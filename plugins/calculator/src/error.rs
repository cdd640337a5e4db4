//! Errors in an expression, and the text that a model reads of them.

use std::fmt;

use crate::number::NumberError;

/// An error in an expression, and the character it is at, counted from 1.
#[derive(Debug, Clone, PartialEq)]
pub struct ExpressionError {
    pub(crate) at: usize,
    pub(crate) problem: Problem,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Problem {
    Empty,
    /// Longer than this many characters.
    TooLong {
        limit: usize,
    },
    /// More than this many parentheses or signs inside each other.
    TooDeep {
        limit: usize,
    },
    Character(char),
    AfterNumber(char),
    /// Something else stands where a number is needed.
    Expected(&'static str, String),
    /// A comma outside a function's arguments.
    Separator,
    Percent,
    UnknownName {
        name: String,
        /// The names that are known.
        known: &'static str,
    },
    Arguments {
        function: &'static str,
        takes: &'static str,
        given: usize,
    },
    Number(NumberError),
}

impl fmt::Display for ExpressionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error at character {}: ", self.at)?;
        match &self.problem {
            Problem::Empty => f.write_str("the expression is empty"),
            Problem::TooLong { limit } => {
                write!(f, "the expression is longer than {limit} characters")
            }
            Problem::TooDeep { limit } => {
                write!(
                    f,
                    "more than {limit} parentheses or signs inside each other"
                )
            }
            Problem::Character(character) => write!(f, "unexpected `{character}`"),
            Problem::AfterNumber(letter) => {
                write!(
                    f,
                    "`{letter}` directly after a number; write * to multiply, and no units"
                )
            }
            Problem::Expected(what, found) => write!(f, "expected {what}, found {found}"),
            Problem::Separator => f.write_str(
                "unexpected `,`; write numbers without thousands separators, such as 1234.5",
            ),
            Problem::Percent => {
                f.write_str("`%` is the remainder, as in 7 % 3; for a percentage write / 100")
            }
            Problem::UnknownName { name, known } => {
                write!(f, "unknown name `{name}`; known are {known}")
            }
            Problem::Arguments {
                function,
                takes,
                given,
            } => {
                write!(f, "{function} takes {takes}, not {given}")
            }
            Problem::Number(error) => error.fmt(f),
        }
    }
}
