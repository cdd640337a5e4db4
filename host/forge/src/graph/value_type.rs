//! Types of inputs and outputs, and which output fits which input.

use std::fmt;

use rlf_specification::model::Type;
use serde::{Deserialize, Serialize};

/// The type of an input or output of any tool. It is wider than a specification's [`Type`]: a JSON schema can say that
/// a value is an object, or nothing at all. A key names its environment, too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ValueType {
    /// Text.
    Text,
    /// A whole number.
    Integer,
    /// Any number.
    Number,
    /// True or false.
    Boolean,
    /// A day.
    Date,
    /// One of these texts.
    Enumeration(Vec<String>),
    /// The key of the entity of this name: `LendingLibrary.book`.
    Key(String),
    /// A list of values of one type.
    List(Box<ValueType>),
    /// An object that was not flattened.
    Object,
    /// Nothing is known of it.
    Any,
}

impl ValueType {
    /// The type that a specification declares. Environments have states of their own, so a key of one means nothing in
    /// another: it has the name of its server.
    pub fn from_declared(kind: &Type, server: &str) -> Self {
        match kind {
            Type::Text => Self::Text,
            Type::Integer => Self::Integer,
            Type::Number => Self::Number,
            Type::Boolean => Self::Boolean,
            Type::Date => Self::Date,
            Type::Enumeration(values) => Self::Enumeration(values.clone()),
            Type::Reference(entity) => Self::Key(format!("{server}.{entity}")),
            Type::List(item) => Self::List(Box::new(Self::from_declared(item, server))),
        }
    }

    /// The type without lists: of a value, or of the items of a list.
    pub fn item(&self) -> &Self {
        match self {
            Self::List(item) => item.item(),
            other => other,
        }
    }

    /// True if an output of this type can be passed as the input: every value of the output is one of the input's.
    ///
    /// Lists do not count: a list gives one of its items, and several values make a list. Two enumerations fit if they
    /// share a value. An input that is a key takes only keys of the same entity.
    pub fn fits(&self, input: &Self) -> bool {
        match (self.item(), input.item()) {
            (output, Self::Key(entity)) => *output == Self::Key(entity.clone()),
            (Self::Any, _)
            | (_, Self::Any)
            | (Self::Key(_) | Self::Date | Self::Enumeration(_), Self::Text)
            | (Self::Integer, Self::Number) => true,
            (Self::Enumeration(ours), Self::Enumeration(theirs)) => {
                ours.iter().any(|value| theirs.contains(value))
            }
            (output, input) => output == input,
        }
    }
}

impl fmt::Display for ValueType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text => f.write_str("text"),
            Self::Integer => f.write_str("integer"),
            Self::Number => f.write_str("number"),
            Self::Boolean => f.write_str("boolean"),
            Self::Date => f.write_str("date"),
            Self::Enumeration(values) => write!(f, "one of {}", values.join(", ")),
            Self::Key(entity) => write!(f, "key of {entity}"),
            Self::List(item) => write!(f, "list of {item}"),
            Self::Object => f.write_str("object"),
            Self::Any => f.write_str("any"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one_of(values: &[&str]) -> ValueType {
        ValueType::Enumeration(values.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn a_value_fits_where_every_value_of_its_type_is_allowed() {
        use ValueType::{Any, Boolean, Date, Integer, Key, List, Number, Object, Text};
        let book = Key("Library.book".into());
        let fit = [
            (Integer, Number),
            (Date, Text),
            (book.clone(), Text),
            (book.clone(), book.clone()),
            (one_of(&["a"]), Text),
            (one_of(&["a", "b"]), one_of(&["b", "c"])),
            (List(Box::new(Integer)), Number),
            (Integer, List(Box::new(List(Box::new(Integer))))),
            (Any, Boolean),
            (Object, Any),
            (Object, Object),
        ];
        for (output, input) in fit {
            assert!(output.fits(&input), "{output} -> {input}");
        }
        let other = Key("Warehouse.book".into());
        let no_fit = [
            (Number, Integer),
            (Text, Date),
            (Text, book.clone()),
            (Any, book.clone()),
            (book, other),
            (Text, one_of(&["a"])),
            (one_of(&["a"]), one_of(&["b"])),
            (Boolean, Text),
            (Object, Text),
        ];
        for (output, input) in no_fit {
            assert!(!output.fits(&input), "{output} -> {input}");
        }
    }
}
