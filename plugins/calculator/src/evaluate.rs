//! The grammar, evaluated as it is read:
//!
//! ```text
//! sum     = product { ("+" | "-") product }
//! product = signed { ("*" | "/" | "//" | "%") signed }
//! signed  = { "+" | "-" } power
//! power   = atom [ ("^" | "**") signed ]          right to left: 2^3^2 is 2^9, -2^2 is -4
//! atom    = number | name | name "(" sum { "," sum } ")" | "(" sum ")"
//! ```

use crate::error::{ExpressionError, Problem};
use crate::functions;
use crate::lexer::{self, Symbol, Token};
use crate::number::{Number, NumberError};

/// Maximum nesting of parentheses, signs and powers.
const MAX_DEPTH: usize = 100;

/// The value of an expression.
pub(crate) fn evaluate(expression: &str) -> Result<Number, ExpressionError> {
    let mut parser = Parser {
        tokens: lexer::tokens(expression)?,
        next: 0,
        depth: 0,
    };
    if parser.tokens.len() == 1 {
        return Err(ExpressionError {
            at: 1,
            problem: Problem::Empty,
        });
    }
    let value = parser.sum()?;
    match parser.peek() {
        Token::End => Ok(value),
        Token::Symbol(Symbol::Comma) => Err(parser.error(Problem::Separator)),
        _ => {
            let problem = Problem::Expected("an operator or the end", parser.found());
            Err(parser.error(problem))
        }
    }
}

struct Parser {
    tokens: Vec<(Token, usize)>,
    next: usize,
    depth: usize,
}

type Result<T, E = ExpressionError> = std::result::Result<T, E>;

impl Parser {
    fn peek(&self) -> &Token {
        // The last token is the end, and nothing advances past it.
        &self.tokens[self.next].0
    }

    fn at(&self) -> usize {
        self.tokens[self.next].1
    }

    fn take(&mut self, symbol: Symbol) -> bool {
        let found = *self.peek() == Token::Symbol(symbol);
        self.next += usize::from(found);
        found
    }

    /// Takes one of these symbols and returns it with its position.
    fn take_any(&mut self, symbols: &[Symbol]) -> Option<(Symbol, usize)> {
        let at = self.at();
        symbols
            .iter()
            .copied()
            .find(|symbol| self.take(*symbol))
            .map(|symbol| (symbol, at))
    }

    fn error(&self, problem: Problem) -> ExpressionError {
        ExpressionError {
            at: self.at(),
            problem,
        }
    }

    fn found(&self) -> String {
        match self.peek() {
            Token::End => "the end".to_owned(),
            Token::Number(number) => format!("the number {number}"),
            Token::Name(name) => format!("`{name}`"),
            Token::Symbol(symbol) => format!("`{}`", symbol.text()),
        }
    }

    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        if self.depth == MAX_DEPTH {
            return Err(self.error(Problem::TooDeep { limit: MAX_DEPTH }));
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    fn sum(&mut self) -> Result<Number> {
        let mut value = self.product()?;
        while let Some((symbol, at)) = self.take_any(&[Symbol::Plus, Symbol::Minus]) {
            let right = self.product()?;
            let result = if symbol == Symbol::Plus {
                value.add(&right)
            } else {
                value.subtract(&right)
            };
            value = result.map_err(|error| number_error(at, error))?;
        }
        Ok(value)
    }

    fn product(&mut self) -> Result<Number> {
        let mut value = self.signed()?;
        let operators = [
            Symbol::Times,
            Symbol::Divide,
            Symbol::FloorDivide,
            Symbol::Remainder,
        ];
        while let Some((symbol, at)) = self.take_any(&operators) {
            let ends = matches!(
                self.peek(),
                Token::End
                    | Token::Symbol(Symbol::Close | Symbol::Comma | Symbol::Times | Symbol::Divide)
            );
            if symbol == Symbol::Remainder && ends {
                return Err(ExpressionError {
                    at,
                    problem: Problem::Percent,
                });
            }
            let right = self.signed()?;
            let result = match symbol {
                Symbol::Times => value.multiply(&right),
                Symbol::Divide => value.divide(&right),
                Symbol::FloorDivide => value.floor_divide(&right),
                _ => value.remainder(&right),
            };
            value = result.map_err(|error| number_error(at, error))?;
        }
        Ok(value)
    }

    fn signed(&mut self) -> Result<Number> {
        match self.take_any(&[Symbol::Plus, Symbol::Minus]) {
            Some((Symbol::Minus, _)) => self.deeper(Self::signed).map(|value| value.negate()),
            Some(_) => self.deeper(Self::signed),
            None => self.power(),
        }
    }

    fn power(&mut self) -> Result<Number> {
        let base = self.atom()?;
        let at = self.at();
        if !self.take(Symbol::Power) {
            return Ok(base);
        }
        let exponent = self.deeper(Self::signed)?;
        base.power(&exponent)
            .map_err(|error| number_error(at, error))
    }

    fn atom(&mut self) -> Result<Number> {
        let at = self.at();
        match self.peek().clone() {
            Token::Number(number) => {
                self.next += 1;
                Ok(number)
            }
            Token::Name(name) => {
                self.next += 1;
                self.named(&name, at)
            }
            Token::Symbol(Symbol::Open) => {
                self.next += 1;
                let value = self.deeper(Self::sum)?;
                self.close()?;
                Ok(value)
            }
            _ => Err(self.error(Problem::Expected("a number", self.found()))),
        }
    }

    fn named(&mut self, name: &str, at: usize) -> Result<Number> {
        let mut arguments = Vec::new();
        if self.take(Symbol::Open) {
            loop {
                arguments.push(self.deeper(Self::sum)?);
                if !self.take(Symbol::Comma) {
                    break;
                }
            }
            self.close()?;
        }
        functions::apply(name, &arguments).map_err(|problem| ExpressionError { at, problem })
    }

    fn close(&mut self) -> Result<()> {
        if self.take(Symbol::Close) {
            Ok(())
        } else if *self.peek() == Token::Symbol(Symbol::Comma) {
            Err(self.error(Problem::Separator))
        } else {
            Err(self.error(Problem::Expected("`)`", self.found())))
        }
    }
}

fn number_error(at: usize, error: NumberError) -> ExpressionError {
    ExpressionError {
        at,
        problem: Problem::Number(error),
    }
}

impl Symbol {
    fn text(self) -> &'static str {
        match self {
            Self::Plus => "+",
            Self::Minus => "-",
            Self::Times => "*",
            Self::Divide => "/",
            Self::FloorDivide => "//",
            Self::Remainder => "%",
            Self::Power => "^",
            Self::Open => "(",
            Self::Close => ")",
            Self::Comma => ",",
        }
    }
}
