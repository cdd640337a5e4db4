//! The tool `calculate`: digits, `+ - * / ( ) .` and spaces, parsed like a Python expression.
//!
//! ```text
//! sum     = product { ("+" | "-") product }
//! product = signed { ("*" | "/" | "//") signed }
//! signed  = { "+" | "-" } power
//! power   = atom [ "**" signed ]
//! atom    = number | "(" sum ")"
//! ```

use crate::number::{Number, NumberError};
use crate::python;

/// Maximum nesting of parentheses, signs and powers.
const MAX_DEPTH: usize = 100;

const SYNTAX: NumberError = "invalid syntax";

/// The value, rounded to cents, as Python prints it.
pub(crate) fn calculate(expression: &str) -> Result<String, NumberError> {
    let allowed = |character: char| "0123456789+-*/(). ".contains(character);
    if !expression.chars().all(allowed) {
        return Err("invalid characters in expression");
    }
    let mut parser = Parser {
        rest: expression.as_bytes(),
        depth: 0,
    };
    let value = parser.sum()?;
    parser.space();
    if !parser.rest.is_empty() {
        return Err(SYNTAX);
    }
    let mut shown = String::new();
    let rounded = Number::Float(value.to_f64()).round_cents();
    python::write_float(&mut shown, rounded.to_f64());
    Ok(shown)
}

struct Parser<'a> {
    rest: &'a [u8],
    depth: usize,
}

impl Parser<'_> {
    fn space(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }

    /// Takes an operator. The longest one wins: `*` does not take half of `**`.
    fn take(&mut self, operator: &str) -> bool {
        self.space();
        let Some(rest) = self.rest.strip_prefix(operator.as_bytes()) else {
            return false;
        };
        let doubles = operator == "*" || operator == "/";
        if doubles && rest.first() == operator.as_bytes().first() {
            return false;
        }
        self.rest = rest;
        true
    }

    fn deeper(
        &mut self,
        parse: impl FnOnce(&mut Self) -> Result<Number, NumberError>,
    ) -> Result<Number, NumberError> {
        if self.depth == MAX_DEPTH {
            return Err("too many nested parentheses");
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    fn sum(&mut self) -> Result<Number, NumberError> {
        let mut value = self.product()?;
        loop {
            if self.take("+") {
                value = value.plus(self.product()?);
            } else if self.take("-") {
                value = value.minus(self.product()?);
            } else {
                return Ok(value);
            }
        }
    }

    fn product(&mut self) -> Result<Number, NumberError> {
        let mut value = self.signed()?;
        loop {
            if self.take("*") {
                value = value.times(self.signed()?);
            } else if self.take("//") {
                value = value.floor_divide(self.signed()?)?;
            } else if self.take("/") {
                value = value.divide(self.signed()?)?;
            } else {
                return Ok(value);
            }
        }
    }

    fn signed(&mut self) -> Result<Number, NumberError> {
        if self.take("-") {
            self.deeper(Self::signed).map(Number::negate)
        } else if self.take("+") {
            self.deeper(Self::signed)
        } else {
            self.power()
        }
    }

    fn power(&mut self) -> Result<Number, NumberError> {
        let base = self.atom()?;
        if self.take("**") {
            base.power(self.deeper(Self::signed)?)
        } else {
            Ok(base)
        }
    }

    fn atom(&mut self) -> Result<Number, NumberError> {
        if self.take("(") {
            let value = self.deeper(Self::sum)?;
            return if self.take(")") {
                Ok(value)
            } else {
                Err(SYNTAX)
            };
        }
        self.number()
    }

    fn number(&mut self) -> Result<Number, NumberError> {
        let length = self
            .rest
            .iter()
            .take_while(|byte| byte.is_ascii_digit() || **byte == b'.')
            .count();
        let (digits, rest) = self.rest.split_at(length);
        let text = std::str::from_utf8(digits).map_err(|_| SYNTAX)?;
        self.rest = rest;
        if text.contains('.') {
            // This also refuses a single point and a second one.
            return text.parse().map(Number::Float).map_err(|_| SYNTAX);
        }
        let zeros = text.len() > 1 && text.starts_with('0') && !text.bytes().all(|b| b == b'0');
        if text.is_empty() || zeros {
            return Err(SYNTAX);
        }
        match text.parse() {
            Ok(whole) => Ok(Number::Whole(whole)),
            Err(_) => text.parse().map(Number::Float).map_err(|_| SYNTAX),
        }
    }
}
