//! Conditions over reward terms: `plugin.term OP number`, as in `format.ok >= 1`.
//!
//! ```
//! let gate: rlf_rewards::expression::Condition = "format.ok >= 1".parse()?;
//! assert_eq!((gate.plugin.as_str(), gate.term.as_str()), ("format", "ok"));
//! assert!(gate.holds(1.0) && !gate.holds(0.0));
//! # Ok::<(), rlf_rewards::expression::ConditionError>(())
//! ```

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use rlf_plugins::manifest::is_valid_name;

/// A comparison of a term with a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// `>=`
    AtLeast,
    /// `<=`
    AtMost,
    /// `>`
    Above,
    /// `<`
    Below,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
}

impl Comparison {
    /// Longer operators first, because `>` is a prefix of `>=`.
    const ALL: [Self; 6] = [
        Self::AtLeast,
        Self::AtMost,
        Self::Equal,
        Self::NotEqual,
        Self::Above,
        Self::Below,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Self::AtLeast => ">=",
            Self::AtMost => "<=",
            Self::Above => ">",
            Self::Below => "<",
            Self::Equal => "==",
            Self::NotEqual => "!=",
        }
    }
}

/// A comparison of one term of one reward plugin with a number. A configuration writes it as a string.
#[derive(Debug, Clone, PartialEq)]
pub struct Condition {
    /// The reward plugin.
    pub plugin: String,
    /// A term that the plugin returns.
    pub term: String,
    /// The comparison.
    pub comparison: Comparison,
    /// The number that the term is compared with; finite.
    pub number: f64,
}

impl Condition {
    /// True if the condition is true for this value of its term.
    pub fn holds(&self, value: f64) -> bool {
        match self.comparison {
            Comparison::AtLeast => value >= self.number,
            Comparison::AtMost => value <= self.number,
            Comparison::Above => value > self.number,
            Comparison::Below => value < self.number,
            Comparison::Equal => value == self.number,
            Comparison::NotEqual => value != self.number,
        }
    }
}

/// The reason why a text is not a condition.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a condition: {what}; write `plugin.term OP number`, such as `format.ok >= 1`"
)]
pub struct ConditionError {
    text: String,
    what: String,
}

impl FromStr for Condition {
    type Err = ConditionError;

    fn from_str(text: &str) -> Result<Self, ConditionError> {
        let fail = |what: String| ConditionError {
            text: text.chars().take(120).collect(),
            what,
        };
        let Some(at) = text.find(['<', '>', '=', '!']) else {
            return Err(fail("it has no comparison (>=, <=, >, <, ==, !=)".into()));
        };
        let (left, rest) = text.split_at(at);
        let Some(comparison) = Comparison::ALL
            .into_iter()
            .find(|c| rest.starts_with(c.as_str()))
        else {
            let written: String = rest.chars().take_while(|c| "<>=!".contains(*c)).collect();
            return Err(fail(format!(
                "`{written}` is no comparison (>=, <=, >, <, ==, !=)"
            )));
        };
        let Some((plugin, term)) = left.trim().split_once('.') else {
            return Err(fail(format!("`{}` names no term of a plugin", left.trim())));
        };
        if !is_valid_name(plugin) {
            return Err(fail(format!("`{plugin}` is not the name of a plugin")));
        }
        if term.is_empty() || term.chars().any(char::is_whitespace) {
            return Err(fail(format!("`{term}` is not the name of a term")));
        }
        let number = rest[comparison.as_str().len()..].trim();
        match number.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Self {
                plugin: plugin.into(),
                term: term.into(),
                comparison,
                number: value,
            }),
            _ => Err(fail(format!("`{number}` is not a number"))),
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}.{} {} {}",
            self.plugin,
            self.term,
            self.comparison.as_str(),
            self.number
        )
    }
}

impl Serialize for Condition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Condition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_comparison_is_read_and_means_what_it_says() {
        // Columns: a value, then whether `value OP 2` is true for OP in >=, <=, >, <, ==, !=.
        let table = [
            (1.0, [false, true, false, true, false, true]),
            (2.0, [true, true, false, false, true, false]),
            (3.0, [true, false, true, false, false, true]),
        ];
        for (value, expected) in table {
            for (op, expected) in [">=", "<=", ">", "<", "==", "!="].into_iter().zip(expected) {
                let condition: Condition = format!("a-b.c.d {op} 2").parse().unwrap();
                assert_eq!(condition.holds(value), expected, "{value} {op} 2");
                assert_eq!(
                    (condition.plugin.as_str(), condition.term.as_str()),
                    ("a-b", "c.d")
                );
            }
        }
    }

    #[test]
    fn white_space_around_the_comparison_is_free() {
        let close: Condition = "exact-match.em>=-0.5".parse().unwrap();
        assert_eq!(close, "  exact-match.em  >=  -0.5 ".parse().unwrap());
        assert_eq!(close.to_string(), "exact-match.em >= -0.5");
    }

    #[test]
    fn what_is_wrong_with_a_condition_is_said() {
        let cases = [
            ("format.ok", "it has no comparison (>=, <=, >, <, ==, !=)"),
            (
                "format.ok = 1",
                "`=` is no comparison (>=, <=, >, <, ==, !=)",
            ),
            ("format >= 1", "`format` names no term of a plugin"),
            ("for mat.ok >= 1", "`for mat` is not the name of a plugin"),
            ("format. >= 1", "`` is not the name of a term"),
            ("format.ok >= one", "`one` is not a number"),
            ("format.ok >= NaN", "`NaN` is not a number"),
            ("format.ok >=> 1", "`> 1` is not a number"),
        ];
        for (text, what) in cases {
            assert_eq!(
                text.parse::<Condition>().unwrap_err().to_string(),
                format!(
                    "`{text}` is not a condition: {what}; \
                     write `plugin.term OP number`, such as `format.ok >= 1`"
                )
            );
        }
    }

    #[test]
    fn a_value_that_is_not_a_number_opens_no_gate() {
        let gate: Condition = "format.ok >= 1".parse().unwrap();
        assert!(!gate.holds(f64::NAN));
    }
}
