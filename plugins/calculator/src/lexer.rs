//! Splits the text of an expression into tokens, each with the position of its first character.

use crate::error::{ExpressionError, Problem};
use crate::number::Number;

/// The maximum length of an expression, in characters.
pub(crate) const MAX_LENGTH: usize = 2_000;

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Token {
    Number(Number),
    Name(String),
    Symbol(Symbol),
    End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Symbol {
    Plus,
    Minus,
    Times,
    Divide,
    FloorDivide,
    Remainder,
    Power,
    Open,
    Close,
    Comma,
}

/// Tokens with their positions, counted in characters from 1; the last one is the end.
pub(crate) fn tokens(expression: &str) -> Result<Vec<(Token, usize)>, ExpressionError> {
    let characters: Vec<char> = expression.chars().collect();
    if characters.len() > MAX_LENGTH {
        return Err(ExpressionError {
            at: MAX_LENGTH + 1,
            problem: Problem::TooLong { limit: MAX_LENGTH },
        });
    }
    let mut tokens = Vec::new();
    let mut next = 0;
    while let Some(&character) = characters.get(next) {
        let at = next + 1;
        let doubled = characters.get(next + 1) == Some(&character);
        next += 1;
        let symbol = match character {
            space if space.is_whitespace() => continue,
            '0'..='9' | '.' => {
                let (number, length) =
                    number(&characters[at - 1..]).map_err(|(offset, problem)| ExpressionError {
                        at: at + offset,
                        problem,
                    })?;
                next = at - 1 + length;
                tokens.push((Token::Number(number), at));
                continue;
            }
            letter if letter.is_ascii_alphabetic() => {
                let rest = &characters[at - 1..];
                let name: String = rest
                    .iter()
                    .take_while(|c| c.is_ascii_alphanumeric() || **c == '_')
                    .collect();
                next = at - 1 + name.len();
                tokens.push((Token::Name(name.to_ascii_lowercase()), at));
                continue;
            }
            '*' | '/' if doubled => {
                next += 1;
                if character == '*' {
                    Symbol::Power
                } else {
                    Symbol::FloorDivide
                }
            }
            '+' => Symbol::Plus,
            // Models also write typographic signs.
            '-' | '\u{2212}' => Symbol::Minus,
            '*' | '\u{d7}' => Symbol::Times,
            '/' | '\u{f7}' => Symbol::Divide,
            '%' => Symbol::Remainder,
            '^' => Symbol::Power,
            '(' => Symbol::Open,
            ')' => Symbol::Close,
            ',' => Symbol::Comma,
            other => {
                return Err(ExpressionError {
                    at,
                    problem: Problem::Character(other),
                });
            }
        };
        tokens.push((Token::Symbol(symbol), at));
    }
    tokens.push((Token::End, characters.len() + 1));
    Ok(tokens)
}

/// One number at the start of `characters`, and the number of characters it uses.
fn number(characters: &[char]) -> Result<(Number, usize), (usize, Problem)> {
    let digits = |from: usize| {
        characters[from..]
            .iter()
            .take_while(|c| c.is_ascii_digit())
            .count()
    };
    let whole = digits(0);
    let mut length = whole;
    let mut decimals = 0;
    if characters.get(length) == Some(&'.') {
        decimals = digits(length + 1);
        length += 1 + decimals;
    }
    if whole + decimals == 0 {
        return Err((0, Problem::Character('.')));
    }
    let coefficient: String = characters[..length].iter().filter(|c| **c != '.').collect();
    let mut exponent = 0_i64;
    if let Some('e' | 'E') = characters.get(length) {
        let sign = characters
            .get(length + 1)
            .filter(|c| matches!(c, '+' | '-'));
        let start = length + 1 + usize::from(sign.is_some());
        let count = if start <= characters.len() {
            digits(start)
        } else {
            0
        };
        if count > 0 {
            let text: String = characters[start..start + count].iter().collect();
            exponent = text
                .parse()
                .unwrap_or(i64::from(i32::MAX))
                .min(i64::from(i32::MAX));
            if sign == Some(&'-') {
                exponent = -exponent;
            }
            length = start + count;
        }
    }
    // `1.2.3` and `12abc` are mistakes, not products.
    match characters.get(length) {
        Some('.') => return Err((length, Problem::Character('.'))),
        Some(letter) if letter.is_ascii_alphabetic() || *letter == '_' => {
            return Err((length, Problem::AfterNumber(*letter)));
        }
        _ => {}
    }
    let number = Number::decimal(&coefficient, decimals as i64 - exponent)
        .map_err(|error| (0, Problem::Number(error)))?;
    Ok((number, length))
}
