//! SPDX licence expressions: `(MIT OR Apache-2.0) AND Unicode-3.0`.

use anyhow::{Result, bail};

/// Whether `expression` can be satisfied with licences for which `allowed` says yes. It is asked for single licences,
/// `MIT`, and for ones with an exception, `Apache-2.0 WITH LLVM-exception`.
///
/// `/` counts as `OR`: crates from before SPDX expressions write it so.
pub fn satisfied(expression: &str, allowed: impl Fn(&str) -> bool) -> Result<bool> {
    let spaced = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let mut parser = Parser {
        tokens: spaced.split_whitespace().collect(),
        allowed,
    };
    parser.tokens.reverse();
    let answer = parser.any();
    match (answer, parser.tokens.last()) {
        (Some(answer), None) => Ok(answer),
        (_, Some(token)) => bail!("`{expression}` is no SPDX expression at `{token}`"),
        (None, None) => bail!("`{expression}` is no SPDX expression: it ends too early"),
    }
}

struct Parser<'text, F> {
    /// What is left to read, backwards.
    tokens: Vec<&'text str>,
    allowed: F,
}

impl<'text, F: Fn(&str) -> bool> Parser<'text, F> {
    /// `all (OR all)*`
    fn any(&mut self) -> Option<bool> {
        let mut answer = self.all()?;
        while self.take("OR") {
            answer |= self.all()?;
        }
        Some(answer)
    }

    /// `one (AND one)*`
    fn all(&mut self) -> Option<bool> {
        let mut answer = self.one()?;
        while self.take("AND") {
            answer &= self.one()?;
        }
        Some(answer)
    }

    /// `( any )` or `licence [WITH exception]`
    fn one(&mut self) -> Option<bool> {
        if self.take("(") {
            let answer = self.any()?;
            return self.take(")").then_some(answer);
        }
        let licence = self.word()?;
        if self.take("WITH") {
            let exception = self.word()?;
            return Some((self.allowed)(&format!("{licence} WITH {exception}")));
        }
        Some((self.allowed)(licence))
    }

    fn take(&mut self, token: &str) -> bool {
        let found = self.tokens.last() == Some(&token);
        if found {
            self.tokens.pop();
        }
        found
    }

    fn word(&mut self) -> Option<&'text str> {
        match *self.tokens.last()? {
            "OR" | "AND" | "WITH" | "(" | ")" => None,
            _ => self.tokens.pop(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(allowed: &'static [&str], expression: &str) -> bool {
        satisfied(expression, |licence| allowed.contains(&licence)).unwrap()
    }

    #[test]
    fn one_side_of_or_is_enough_and_both_of_and_are_needed() {
        assert!(with(&["MIT"], "MIT OR Apache-2.0"));
        assert!(!with(&["MIT"], "MIT AND Apache-2.0"));
        assert!(with(&["MIT", "Apache-2.0"], "MIT AND Apache-2.0"));
        assert!(!with(&[], "MIT OR Apache-2.0"));
    }

    #[test]
    fn and_binds_tighter_than_or() {
        assert!(with(&["MIT"], "MIT OR Apache-2.0 AND BSD-3-Clause"));
        assert!(!with(&["MIT"], "(MIT OR Apache-2.0) AND BSD-3-Clause"));
        assert!(with(
            &["MIT", "Unicode-3.0"],
            "(MIT OR Apache-2.0) AND Unicode-3.0"
        ));
    }

    #[test]
    fn a_licence_with_an_exception_is_another_licence() {
        let expression = "Apache-2.0 WITH LLVM-exception";
        assert!(!with(&["Apache-2.0"], expression));
        assert!(with(&["Apache-2.0 WITH LLVM-exception"], expression));
    }

    #[test]
    fn a_slash_of_older_crates_is_or() {
        assert!(with(&["MIT"], "MIT/Apache-2.0"));
        assert!(with(&["Apache-2.0"], "Apache-2.0 / MIT"));
    }

    #[test]
    fn nonsense_is_an_error_and_not_a_no() {
        for text in [
            "", "MIT OR", "OR MIT", "(MIT", "MIT)", "MIT MIT", "MIT WITH", "()",
        ] {
            assert!(satisfied(text, |_| true).is_err(), "{text}");
        }
    }
}
