//! Values of the state and of expressions.

use std::sync::Arc;

use serde_json::Number;

/// A value. Dates, keys and values of enumerations are texts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// No value, of an optional field or parameter.
    Null,
    /// True or false.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A double, finite.
    Number(f64),
    /// A text.
    Text(Arc<str>),
    /// A list.
    List(Arc<[Value]>),
    /// The fields of an entity, its key first.
    Record(Arc<[Value]>),
}

impl Value {
    pub(crate) fn text(text: &str) -> Self {
        Self::Text(text.into())
    }

    /// The value as JSON. A record is the list of its fields: their names are the schema's.
    pub(crate) fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Null => serde_json::Value::Null,
            Self::Boolean(truth) => (*truth).into(),
            Self::Integer(number) => (*number).into(),
            // Never -0.0, which equals 0.0 and is written otherwise.
            Self::Number(number) => {
                let number = if *number == 0.0 { 0.0 } else { *number };
                Number::from_f64(number).map_or(serde_json::Value::Null, Into::into)
            }
            Self::Text(text) => (**text).into(),
            Self::List(items) | Self::Record(items) => items.iter().map(Self::to_json).collect(),
        }
    }

    /// The value as a text, as Python's `str` writes it, except for booleans and null.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Null => "null".to_owned(),
            Self::Boolean(truth) => truth.to_string(),
            Self::Integer(number) => number.to_string(),
            Self::Number(number) => shown_number(*number),
            Self::Text(text) => text.to_string(),
            Self::List(items) | Self::Record(items) => {
                let items: Vec<String> = items.iter().map(Self::shown).collect();
                format!("[{}]", items.join(", "))
            }
        }
    }
}

/// A double as Python writes it.
fn shown_number(number: f64) -> String {
    let number = if number == 0.0 { 0.0 } else { number };
    let plain = number.abs() < 1e16 && (number == 0.0 || number.abs() >= 1e-4);
    if plain {
        let shown = number.to_string();
        return if shown.contains('.') {
            shown
        } else {
            shown + ".0"
        };
    }
    let shown = format!("{number:e}");
    match shown.split_once('e') {
        Some((mantissa, exponent)) => match exponent.strip_prefix('-') {
            Some(digits) => format!("{mantissa}e-{digits:0>2}"),
            None => format!("{mantissa}e+{exponent:0>2}"),
        },
        None => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_python_writes_them() {
        // From CPython 3.11: repr() of the same doubles.
        for (number, written) in [
            (0.0, "0.0"),
            (-0.0, "0.0"),
            (1.0, "1.0"),
            (19.99, "19.99"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e-7, "1.5e-07"),
            (0.0001, "0.0001"),
            (1e300, "1e+300"),
        ] {
            assert_eq!(shown_number(number), written);
        }
    }
}
