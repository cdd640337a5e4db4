//! Evaluates arithmetic as the tool `calculate` does, for the part of its language that questions use: numbers,
//! `+ - * //`, `max` and `min` of two.
//!
//! Demonstrations can so be checked before any tool runs. A difference from the real tool shows when the tools run.

use super::decimal::Decimal;

/// The mistake in an expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ArithmeticError {
    #[error("unexpected `{0}`")]
    Unexpected(String),
    #[error("expected {expected} before `{rest}`")]
    Expected { expected: String, rest: String },
    #[error("a number is too large")]
    Overflow,
    #[error("division by zero")]
    DivisionByZero,
}

/// The value of an expression.
pub(crate) fn evaluate(expression: &str) -> Result<Decimal, ArithmeticError> {
    let mut reader = Reader { rest: expression };
    let value = reader.sum()?;
    if reader.rest.is_empty() {
        Ok(value)
    } else {
        Err(ArithmeticError::Unexpected(reader.rest.to_owned()))
    }
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn take(&mut self, token: &str) -> bool {
        let stripped = self.rest.strip_prefix(token);
        self.rest = stripped.unwrap_or(self.rest);
        stripped.is_some()
    }

    fn expect(&mut self, token: &str) -> Result<(), ArithmeticError> {
        if self.take(token) {
            Ok(())
        } else {
            Err(self.expected(format!("`{token}`")))
        }
    }

    fn expected(&self, expected: String) -> ArithmeticError {
        ArithmeticError::Expected {
            expected,
            rest: self.rest.to_owned(),
        }
    }

    fn sum(&mut self) -> Result<Decimal, ArithmeticError> {
        let mut value = self.product()?;
        loop {
            let next = if self.take("+") {
                value.add(self.product()?)
            } else if self.take("-") {
                value.subtract(self.product()?)
            } else {
                return Ok(value);
            };
            value = next.ok_or(ArithmeticError::Overflow)?;
        }
    }

    fn product(&mut self) -> Result<Decimal, ArithmeticError> {
        let mut value = self.atom()?;
        loop {
            value = if self.take("*") {
                value
                    .multiply(self.atom()?)
                    .ok_or(ArithmeticError::Overflow)?
            } else if self.take("//") {
                value
                    .quotient(self.atom()?)
                    .ok_or(ArithmeticError::DivisionByZero)?
            } else {
                return Ok(value);
            };
        }
    }

    fn atom(&mut self) -> Result<Decimal, ArithmeticError> {
        for (name, larger) in [("max(", true), ("min(", false)] {
            if self.take(name) {
                let left = self.sum()?;
                self.expect(",")?;
                let right = self.sum()?;
                self.expect(")")?;
                return Ok(if (left > right) == larger {
                    left
                } else {
                    right
                });
            }
        }
        let length = self
            .rest
            .bytes()
            .take_while(|b| b.is_ascii_digit() || *b == b'.')
            .count();
        let (number, rest) = self.rest.split_at(length);
        let value = number
            .parse()
            .map_err(|()| self.expected("a number".to_owned()))?;
        self.rest = rest;
        Ok(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_have_the_usual_precedence() {
        for (expression, value) in [
            ("643*2", "1286"),
            ("2+3*4", "14"),
            ("9-4-3", "2"),
            ("68.4*5+0.5", "342.5"),
            ("8516//17", "500"),
            ("max(643+2,238)", "645"),
            ("min(643,238)", "238"),
            ("2-7.5", "-5.5"),
        ] {
            assert_eq!(
                evaluate(expression).map(|v| v.to_string()),
                Ok(value.to_owned()),
                "{expression}"
            );
        }
    }

    #[test]
    fn what_is_not_an_expression_is_an_error() {
        for bad in [
            "",
            "2+",
            "2 + 3",
            "max(1)",
            "max(1,2",
            "1/2",
            "4//0",
            "neighbour",
            "99999999999999999999999999*99999999999999999999999999",
        ] {
            assert!(evaluate(bad).is_err(), "{bad:?}");
        }
    }
}
