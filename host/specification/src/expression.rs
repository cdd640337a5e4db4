//! Expressions in CEL, the Common Expression Language, compiled against the types of a specification.
//!
//! The crate `cel` parses. What is here resolves names, checks types and evaluates: its own interpreter cannot be told
//! how much work it may do, and knows no types before it runs. A test compares the two on the same expressions.
//!
//! - A collection is a map from keys to entities, as in CEL: `books["B1"].copies`, `"B1" in books`, `books.size()`. The
//!   macros `all`, `exists`, `exists_one`, `filter` and `map` go through its keys, in the order of their text.
//! - `&&`, `||`, `all` and `exists` stop at the first operand that decides. An error in an operand before it is an error.
//!   (CEL lets a later operand decide.)
//! - An optional value is null or has its type. It can be used after a test: `loan.returned == null || loan.returned < today`.
//! - A date is a text `YYYY-MM-DD`. `addDays(date, days)` and `daysBetween(from, to)` compute with dates.

mod compile;
mod evaluate;
mod template;
mod types;

pub(crate) use compile::{Scope, Trouble};
pub(crate) use evaluate::{Fault, MAX_ITEMS, MAX_STEPS, MAX_TEXT, Machine, weigh};
pub(crate) use template::{Part, Template};
pub(crate) use types::{Schema, ValueType};

use crate::value::Value;

/// A compiled expression. Names are positions; types have been checked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expr {
    Literal(Value),
    /// A parameter, binding or loop variable: its position on the stack.
    Local(usize),
    /// A single value of the state.
    Global(usize),
    /// The number of entities.
    Count(usize),
    /// The keys of a collection, which loops go through.
    Keys(usize),
    /// The entity with a key.
    Row(usize, Box<Expr>),
    /// True if there is an entity with a key.
    Has(usize, Box<Expr>),
    /// A field of a record of this entity.
    Field(Box<Expr>, usize, usize),
    Not(Box<Expr>),
    Negate(Box<Expr>),
    Arithmetic(Arithmetic, Box<Expr>, Box<Expr>),
    Compare(Comparison, Box<Expr>, Box<Expr>),
    And(Box<Expr>, Box<Expr>),
    Or(Box<Expr>, Box<Expr>),
    Choose(Box<Expr>, Box<Expr>, Box<Expr>),
    List(Vec<Expr>),
    Contains(Box<Expr>, Box<Expr>),
    Item(Box<Expr>, Box<Expr>),
    Loop(Box<Loop>),
    Call(Function, Vec<Expr>),
}

impl Expr {
    /// True if a test holds for this expression or for a part of it.
    pub(crate) fn any(&self, test: fn(&Self) -> bool) -> bool {
        let any = |part: &Self| part.any(test);
        test(self)
            || match self {
                Self::Literal(_)
                | Self::Local(_)
                | Self::Global(_)
                | Self::Count(_)
                | Self::Keys(_) => false,
                Self::Row(_, inner)
                | Self::Has(_, inner)
                | Self::Field(inner, ..)
                | Self::Not(inner)
                | Self::Negate(inner) => any(inner),
                Self::Arithmetic(_, left, right)
                | Self::Compare(_, left, right)
                | Self::And(left, right)
                | Self::Or(left, right)
                | Self::Contains(left, right)
                | Self::Item(left, right) => any(left) || any(right),
                Self::Choose(condition, one, other) => any(condition) || any(one) || any(other),
                Self::List(items) | Self::Call(_, items) => items.iter().any(any),
                Self::Loop(looped) => {
                    any(&looped.over) || looped.filter.iter().chain(&looped.body).any(any)
                }
            }
    }
}

/// A macro over a list or a collection.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Loop {
    pub(crate) kind: LoopKind,
    /// Position of the loop variable on the stack.
    pub(crate) slot: usize,
    pub(crate) name: String,
    pub(crate) over: Expr,
    pub(crate) filter: Option<Expr>,
    /// The condition, or what `map` makes. `filter` has none.
    pub(crate) body: Option<Expr>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LoopKind {
    All,
    Exists,
    ExistsOne,
    /// `filter` and `map`.
    Collect,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    Size,
    TextContains,
    StartsWith,
    EndsWith,
    LowerAscii,
    UpperAscii,
    Trim,
    ToInteger,
    ToNumber,
    ToText,
    Least,
    Greatest,
    /// The sum of integers.
    Sum,
    /// The sum of numbers.
    SumNumbers,
    AddDays,
    DaysBetween,
}
