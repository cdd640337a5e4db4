//! The types of expressions, and the names that a specification declares.

use std::fmt;
use std::sync::Arc;

use super::Expr;
use crate::date;
use crate::model::{Specification, Type};
use crate::value::Value;

/// The type of an expression.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ValueType {
    Null,
    Boolean,
    Integer,
    Number,
    Text,
    Date,
    Enumeration(Arc<[String]>),
    /// A key of this entity.
    Key(usize),
    /// The fields of this entity.
    Record(usize),
    /// The collection of all entities of one kind, by the index of the kind.
    Collection(usize),
    List(Box<ValueType>),
    Optional(Box<ValueType>),
    /// An item of an empty list.
    Unknown,
}

/// The names and types that expressions see.
#[derive(Debug, Clone, Default)]
pub(crate) struct Schema {
    pub(crate) values: Vec<(String, ValueType)>,
    pub(crate) entities: Vec<EntityShape>,
}

/// An entity: its fields, the key first.
#[derive(Debug, Clone)]
pub(crate) struct EntityShape {
    pub(crate) name: String,
    pub(crate) collection: String,
    pub(crate) fields: Vec<(String, ValueType)>,
}

impl Schema {
    /// The schema of a specification. A reference to an entity that does not exist is a text.
    pub(crate) fn new(specification: &Specification) -> Self {
        let mut schema = Self {
            values: Vec::new(),
            entities: specification
                .entities
                .iter()
                .map(|entity| EntityShape {
                    name: entity.name.clone(),
                    collection: entity.collection.clone(),
                    fields: Vec::new(),
                })
                .collect(),
        };
        for (index, entity) in specification.entities.iter().enumerate() {
            let mut fields = vec![(entity.key.name.clone(), ValueType::Key(index))];
            for field in &entity.fields {
                let kind = schema.resolve(&field.kind, field.optional);
                fields.push((field.name.clone(), kind));
            }
            schema.entities[index].fields = fields;
        }
        schema.values = specification
            .values
            .iter()
            .map(|value| {
                (
                    value.name.clone(),
                    schema.resolve(&value.kind, value.optional),
                )
            })
            .collect();
        schema
    }

    pub(crate) fn entity(&self, name: &str) -> Option<usize> {
        self.entities.iter().position(|entity| entity.name == name)
    }

    /// The type of values of a declared type.
    pub(crate) fn resolve(&self, kind: &Type, optional: bool) -> ValueType {
        let plain = match kind {
            Type::Text => ValueType::Text,
            Type::Integer => ValueType::Integer,
            Type::Number => ValueType::Number,
            Type::Boolean => ValueType::Boolean,
            Type::Date => ValueType::Date,
            Type::Enumeration(values) => ValueType::Enumeration(values.clone().into()),
            Type::Reference(entity) => self.entity(entity).map_or(ValueType::Text, ValueType::Key),
            Type::List(item) => ValueType::List(Box::new(self.resolve(item, false))),
        };
        if optional {
            ValueType::Optional(Box::new(plain))
        } else {
            plain
        }
    }

    /// The name of a type in messages.
    pub(crate) fn shown<'a>(&'a self, kind: &'a ValueType) -> impl fmt::Display + 'a {
        Shown { schema: self, kind }
    }
}

struct Shown<'a> {
    schema: &'a Schema,
    kind: &'a ValueType,
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |entity: &usize| &self.schema.entities[*entity].name;
        match self.kind {
            ValueType::Null => f.write_str("null"),
            ValueType::Boolean => f.write_str("boolean"),
            ValueType::Integer => f.write_str("integer"),
            ValueType::Number => f.write_str("number"),
            ValueType::Text => f.write_str("text"),
            ValueType::Date => f.write_str("date"),
            ValueType::Enumeration(values) => write!(f, "one of {}", values.join(", ")),
            ValueType::Key(entity) => write!(f, "key of {}", name(entity)),
            ValueType::Record(entity) => write!(f, "{}", name(entity)),
            ValueType::Collection(entity) => write!(f, "collection of {}", name(entity)),
            ValueType::List(item) => write!(f, "list of {}", self.schema.shown(item)),
            ValueType::Optional(inner) => write!(f, "{} or null", self.schema.shown(inner)),
            ValueType::Unknown => f.write_str("anything"),
        }
    }
}

impl ValueType {
    /// True if values are texts.
    pub(crate) fn is_text(&self) -> bool {
        matches!(
            self,
            Self::Text | Self::Date | Self::Enumeration(_) | Self::Key(_)
        )
    }

    /// True if an expression of this type can be where `wanted` is expected.
    pub(crate) fn fits(&self, expr: &Expr, wanted: &Self) -> bool {
        match (self, wanted) {
            (Self::Null, Self::Optional(_)) | (Self::Unknown, _) => true,
            (Self::Optional(inner), Self::Optional(other)) => inner.fits(expr, other),
            (_, Self::Optional(other)) => self.fits(expr, other),
            (Self::Text, Self::Enumeration(_) | Self::Date | Self::Key(_)) => match expr {
                Expr::Literal(Value::Text(text)) => wanted.takes(text),
                Expr::Choose(_, one, other) => self.fits(one, wanted) && self.fits(other, wanted),
                _ => false,
            },
            (Self::Enumeration(values), Self::Enumeration(others)) => {
                values.iter().all(|value| others.contains(value))
            }
            (_, Self::Text) => self.is_text(),
            (Self::List(item), Self::List(other)) => match expr {
                Expr::List(items) => items.iter().all(|one| item.fits(one, other)),
                // No expression stands for the items.
                _ => item.fits(expr, other),
            },
            _ => self == wanted,
        }
    }

    /// True if a text can be a value of this type.
    pub(crate) fn takes(&self, text: &str) -> bool {
        match self {
            Self::Enumeration(values) => values.iter().any(|value| value == text),
            Self::Date => date::parse(text).is_some(),
            Self::Optional(inner) => inner.takes(text),
            Self::Key(_) | Self::Text => true,
            _ => false,
        }
    }

    /// True if `==` between these can be true.
    pub(crate) fn comparable(&self, expr: &Expr, other: &Self, other_expr: &Expr) -> bool {
        match (self, other) {
            (Self::Null, Self::Optional(_) | Self::Null) | (Self::Optional(_), Self::Null) => true,
            (Self::Optional(inner), _) => inner.comparable(expr, other, other_expr),
            (_, Self::Optional(inner)) => self.comparable(expr, inner, other_expr),
            (Self::Enumeration(one), Self::Enumeration(other)) => {
                one.iter().any(|value| other.contains(value))
            }
            (Self::Record(_) | Self::Collection(_), _) => false,
            (Self::List(one), Self::List(other)) => one.comparable(expr, other, other_expr),
            (Self::Unknown, _) | (_, Self::Unknown) => true,
            _ => {
                let literal = |text: &Expr, kind: &Self| match text {
                    Expr::Literal(Value::Text(text)) => kind.takes(text),
                    _ => true,
                };
                match (self == &Self::Text, other == &Self::Text) {
                    (true, _) => other.is_text() && literal(expr, other),
                    (_, true) => self.is_text() && literal(other_expr, self),
                    _ => self == other,
                }
            }
        }
    }
}
