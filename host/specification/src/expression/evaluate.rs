//! The value of an expression in a state, within limits.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use super::{Arithmetic, Comparison, Expr, Function, Loop, LoopKind, Schema};
use crate::date;
use crate::state::State;
use crate::value::Value;

/// Maximum number of steps of one operation, or of one check of all invariants.
pub(crate) const MAX_STEPS: u64 = 2_000_000;
/// Maximum length of a text in bytes.
pub(crate) const MAX_TEXT: usize = 65_536;
/// Maximum number of items of a list.
pub(crate) const MAX_ITEMS: usize = 10_000;

/// The reason why an expression has no value in a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fault {
    Overflow,
    DivisionByZero,
    NoItem(i64),
    NoRow { entity: String, key: String },
    NotADate(String),
    Null,
    TooLarge,
    TooMuchWork,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overflow => f.write_str("a number is too large"),
            Self::DivisionByZero => f.write_str("division by zero"),
            Self::NoItem(index) => write!(f, "the list has no item {index}"),
            Self::NoRow { entity, key } => write!(f, "there is no {entity} {key}"),
            Self::NotADate(text) => write!(f, "not a date: {text}"),
            Self::Null => f.write_str("a value is missing"),
            Self::TooLarge => f.write_str("a text or list is too large"),
            Self::TooMuchWork => f.write_str("the operation takes too many steps"),
        }
    }
}

/// Evaluates expressions in a state. The locals are a stack.
pub(crate) struct Machine<'a> {
    pub(crate) schema: &'a Schema,
    pub(crate) state: &'a State,
    pub(crate) locals: &'a mut Vec<Value>,
    pub(crate) steps: &'a mut u64,
}

/// Charges a step for each item of a list, and for 16 bytes of a text, as often as a value has them.
pub(crate) fn weigh(value: &Value, steps: &mut u64) -> Result<(), Fault> {
    match value {
        Value::Text(text) => charge(steps, text.len() as u64 / 16),
        Value::List(items) | Value::Record(items) => {
            charge(steps, items.len() as u64)?;
            items.iter().try_for_each(|item| weigh(item, steps))
        }
        _ => Ok(()),
    }
}

fn charge(steps: &mut u64, count: u64) -> Result<(), Fault> {
    *steps = steps.checked_sub(count).ok_or(Fault::TooMuchWork)?;
    Ok(())
}

impl Machine<'_> {
    pub(crate) fn truth(&mut self, expr: &Expr) -> Result<bool, Fault> {
        match self.value(expr)? {
            Value::Boolean(truth) => Ok(truth),
            _ => Err(Fault::Null),
        }
    }

    fn text(&mut self, expr: &Expr) -> Result<Arc<str>, Fault> {
        match self.value(expr)? {
            Value::Text(text) => Ok(text),
            _ => Err(Fault::Null),
        }
    }

    fn integer(&mut self, expr: &Expr) -> Result<i64, Fault> {
        match self.value(expr)? {
            Value::Integer(number) => Ok(number),
            _ => Err(Fault::Null),
        }
    }

    pub(crate) fn list(&mut self, expr: &Expr) -> Result<Arc<[Value]>, Fault> {
        match self.value(expr)? {
            Value::List(items) => Ok(items),
            _ => Err(Fault::Null),
        }
    }

    pub(crate) fn work(&mut self, steps: u64) -> Result<(), Fault> {
        charge(self.steps, steps)
    }

    pub(crate) fn value(&mut self, expr: &Expr) -> Result<Value, Fault> {
        self.work(1)?;
        Ok(match expr {
            Expr::Literal(value) => value.clone(),
            Expr::Local(slot) => self.locals.get(*slot).cloned().ok_or(Fault::Null)?,
            Expr::Global(index) => self.state.values[*index].clone(),
            Expr::Count(entity) => Value::Integer(self.state.tables[*entity].len() as i64),
            Expr::Keys(entity) => {
                let table = &self.state.tables[*entity];
                let count = table.len() as u64;
                let keys = table.keys().cloned().map(Value::Text).collect();
                self.work(count)?;
                Value::List(keys)
            }
            Expr::Row(entity, key) => {
                let key = self.text(key)?;
                Value::Record(self.row(*entity, &key)?)
            }
            Expr::Has(entity, key) => {
                let key = self.text(key)?;
                Value::Boolean(self.state.tables[*entity].contains_key(&key))
            }
            Expr::Field(record, _, field) => match &**record {
                // Without a copy of the whole record.
                Expr::Row(entity, key) => {
                    let key = self.text(key)?;
                    self.row(*entity, &key)?[*field].clone()
                }
                record => match self.value(record)? {
                    Value::Record(fields) => fields[*field].clone(),
                    _ => return Err(Fault::Null),
                },
            },
            Expr::Not(inner) => Value::Boolean(!self.truth(inner)?),
            Expr::Negate(inner) => match self.value(inner)? {
                Value::Integer(number) => {
                    Value::Integer(number.checked_neg().ok_or(Fault::Overflow)?)
                }
                Value::Number(number) => Value::Number(-number),
                _ => return Err(Fault::Null),
            },
            Expr::Arithmetic(operator, left, right) => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                self.arithmetic(*operator, left, right)?
            }
            Expr::Compare(comparison, left, right) => {
                let (left, right) = (self.value(left)?, self.value(right)?);
                Value::Boolean(self.compare(*comparison, &left, &right)?)
            }
            Expr::And(left, right) => Value::Boolean(self.truth(left)? && self.truth(right)?),
            Expr::Or(left, right) => Value::Boolean(self.truth(left)? || self.truth(right)?),
            Expr::Choose(condition, one, other) => {
                let chosen = if self.truth(condition)? { one } else { other };
                self.value(chosen)?
            }
            Expr::List(items) => {
                let items: Result<Vec<Value>, Fault> =
                    items.iter().map(|item| self.value(item)).collect();
                Value::List(items?.into())
            }
            Expr::Contains(item, list) => {
                let item = self.value(item)?;
                let list = self.list(list)?;
                self.work(list.len() as u64)?;
                let mut found = false;
                for one in list.iter() {
                    found = self.equal(one, &item)?;
                    if found {
                        break;
                    }
                }
                Value::Boolean(found)
            }
            Expr::Item(list, index) => {
                let list = self.list(list)?;
                let index = self.integer(index)?;
                let found = usize::try_from(index).ok().and_then(|at| list.get(at));
                found.cloned().ok_or(Fault::NoItem(index))?
            }
            Expr::Loop(looped) => self.looped(looped)?,
            Expr::Call(function, arguments) => self.call(*function, arguments)?,
        })
    }

    pub(crate) fn row(&self, entity: usize, key: &str) -> Result<Arc<[Value]>, Fault> {
        let found = self.state.tables[entity].get(key).cloned();
        found.ok_or_else(|| Fault::NoRow {
            entity: self.schema.entities[entity].name.clone(),
            key: key.to_owned(),
        })
    }

    fn looped(&mut self, looped: &Loop) -> Result<Value, Fault> {
        let items = self.list(&looped.over)?;
        let depth = self.locals.len();
        debug_assert_eq!(depth, looped.slot, "the loop was compiled for other locals");
        let mut found = 0u32;
        let mut collected = Vec::new();
        for item in items.iter() {
            self.locals.truncate(looped.slot);
            self.locals.push(item.clone());
            let holds = match (&looped.filter, &looped.body, looped.kind) {
                (Some(filter), _, LoopKind::Collect) => self.truth(filter)?,
                (_, Some(body), LoopKind::All | LoopKind::Exists | LoopKind::ExistsOne) => {
                    self.truth(body)?
                }
                _ => true,
            };
            match looped.kind {
                LoopKind::All if !holds => {
                    self.locals.truncate(depth);
                    return Ok(Value::Boolean(false));
                }
                LoopKind::Exists if holds => {
                    self.locals.truncate(depth);
                    return Ok(Value::Boolean(true));
                }
                LoopKind::ExistsOne => found += u32::from(holds),
                LoopKind::Collect if holds => {
                    self.work(1)?;
                    collected.push(match &looped.body {
                        Some(body) => self.value(body)?,
                        None => item.clone(),
                    });
                }
                _ => {}
            }
        }
        self.locals.truncate(depth);
        Ok(match looped.kind {
            LoopKind::All => Value::Boolean(true),
            LoopKind::Exists => Value::Boolean(false),
            LoopKind::ExistsOne => Value::Boolean(found == 1),
            LoopKind::Collect => Value::List(collected.into()),
        })
    }

    fn arithmetic(
        &mut self,
        operator: Arithmetic,
        left: Value,
        right: Value,
    ) -> Result<Value, Fault> {
        match (left, right) {
            (Value::Integer(left), Value::Integer(right)) => {
                let zero = right == 0;
                let result = match operator {
                    Arithmetic::Add => left.checked_add(right),
                    Arithmetic::Subtract => left.checked_sub(right),
                    Arithmetic::Multiply => left.checked_mul(right),
                    Arithmetic::Divide if !zero => left.checked_div(right),
                    Arithmetic::Remainder if !zero => left.checked_rem(right),
                    Arithmetic::Divide | Arithmetic::Remainder => {
                        return Err(Fault::DivisionByZero);
                    }
                };
                result.map(Value::Integer).ok_or(Fault::Overflow)
            }
            (Value::Number(left), Value::Number(right)) => {
                let result = match operator {
                    Arithmetic::Add => left + right,
                    Arithmetic::Subtract => left - right,
                    Arithmetic::Multiply => left * right,
                    Arithmetic::Divide if right == 0.0 => return Err(Fault::DivisionByZero),
                    Arithmetic::Divide => left / right,
                    Arithmetic::Remainder => return Err(Fault::Null),
                };
                number(result)
            }
            (Value::Text(left), Value::Text(right)) => {
                let length = left.len() + right.len();
                if length > MAX_TEXT {
                    return Err(Fault::TooLarge);
                }
                self.work(length as u64 / 16)?;
                Ok(Value::text(&[&*left, &*right].concat()))
            }
            (Value::List(left), Value::List(right)) => {
                let length = left.len() + right.len();
                if length > MAX_ITEMS {
                    return Err(Fault::TooLarge);
                }
                self.work(length as u64)?;
                Ok(Value::List(
                    left.iter().chain(right.iter()).cloned().collect(),
                ))
            }
            _ => Err(Fault::Null),
        }
    }

    fn call(&mut self, function: Function, arguments: &[Expr]) -> Result<Value, Fault> {
        let mut values = Vec::with_capacity(arguments.len());
        for argument in arguments {
            values.push(self.value(argument)?);
        }
        let texts = values.iter().map(|value| match value {
            Value::Text(text) => text.len() as u64,
            Value::List(items) => items.len() as u64,
            _ => 0,
        });
        let work = texts.sum::<u64>() / 16;
        self.work(work)?;
        Ok(match (function, values.as_slice()) {
            (Function::Size, [Value::Text(text)]) => Value::Integer(text.chars().count() as i64),
            (Function::Size, [Value::List(items)]) => Value::Integer(items.len() as i64),
            (Function::TextContains, [Value::Text(text), Value::Text(part)]) => {
                Value::Boolean(text.contains(&**part))
            }
            (Function::StartsWith, [Value::Text(text), Value::Text(part)]) => {
                Value::Boolean(text.starts_with(&**part))
            }
            (Function::EndsWith, [Value::Text(text), Value::Text(part)]) => {
                Value::Boolean(text.ends_with(&**part))
            }
            (Function::LowerAscii, [Value::Text(text)]) => Value::text(&text.to_ascii_lowercase()),
            (Function::UpperAscii, [Value::Text(text)]) => Value::text(&text.to_ascii_uppercase()),
            (Function::Trim, [Value::Text(text)]) => {
                Value::text(text.trim_matches([' ', '\t', '\n', '\r']))
            }
            (
                Function::ToInteger | Function::Least | Function::Greatest,
                [only @ Value::Integer(_)],
            )
            | (Function::ToNumber, [only @ Value::Number(_)]) => only.clone(),
            (Function::ToInteger, [Value::Number(number)]) => {
                let limit = 9_223_372_036_854_775_808.0;
                if *number >= limit || *number < -limit {
                    return Err(Fault::Overflow);
                }
                Value::Integer(*number as i64)
            }
            (Function::ToNumber, [Value::Integer(number)]) => Value::Number(*number as f64),
            (Function::ToText, [value]) => Value::text(&value.shown()),
            (Function::Least | Function::Greatest, [first, rest @ ..]) => {
                let wanted = if function == Function::Least {
                    Comparison::Less
                } else {
                    Comparison::Greater
                };
                let mut best = first;
                for other in rest {
                    if self.compare(wanted, other, best)? {
                        best = other;
                    }
                }
                best.clone()
            }
            (Function::Sum | Function::SumNumbers, [Value::List(items)]) => {
                let mut sum = if function == Function::Sum {
                    Value::Integer(0)
                } else {
                    Value::Number(0.0)
                };
                for item in items.iter() {
                    sum = self.arithmetic(Arithmetic::Add, sum, item.clone())?;
                }
                sum
            }
            (Function::AddDays, [Value::Text(text), Value::Integer(days)]) => {
                let number = Self::day(text)?;
                let number = number.checked_add(*days).ok_or(Fault::Overflow)?;
                Value::text(&date::format(number).ok_or(Fault::Overflow)?)
            }
            (Function::DaysBetween, [Value::Text(from), Value::Text(to)]) => {
                Value::Integer(Self::day(to)? - Self::day(from)?)
            }
            _ => return Err(Fault::Null),
        })
    }

    fn compare(
        &mut self,
        comparison: Comparison,
        left: &Value,
        right: &Value,
    ) -> Result<bool, Fault> {
        let order = match (left, right) {
            _ if comparison == Comparison::Equal => return self.equal(left, right),
            _ if comparison == Comparison::NotEqual => return Ok(!self.equal(left, right)?),
            (Value::Integer(left), Value::Integer(right)) => left.cmp(right),
            (Value::Number(left), Value::Number(right)) => {
                left.partial_cmp(right).unwrap_or(Ordering::Equal)
            }
            (Value::Text(left), Value::Text(right)) => {
                self.work(left.len().min(right.len()) as u64 / 16)?;
                left.cmp(right)
            }
            _ => return Err(Fault::Null),
        };
        Ok(match comparison {
            Comparison::Less => order.is_lt(),
            Comparison::LessOrEqual => order.is_le(),
            Comparison::Greater => order.is_gt(),
            _ => order.is_ge(),
        })
    }

    /// True if two values are equal. Every comparison of items is a step, because lists can share their items.
    fn equal(&mut self, left: &Value, right: &Value) -> Result<bool, Fault> {
        match (left, right) {
            (Value::Text(one), Value::Text(other)) if one.len() == other.len() => {
                self.work(one.len() as u64 / 16)?;
                Ok(one == other)
            }
            (Value::List(ones), Value::List(others))
            | (Value::Record(ones), Value::Record(others)) => {
                if ones.len() != others.len() {
                    return Ok(false);
                }
                for (one, other) in ones.iter().zip(others.iter()) {
                    self.work(1)?;
                    if !self.equal(one, other)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            _ => Ok(left == right),
        }
    }

    fn day(text: &str) -> Result<i64, Fault> {
        date::parse(text).ok_or_else(|| Fault::NotADate(text.to_owned()))
    }
}

fn number(number: f64) -> Result<Value, Fault> {
    if number.is_finite() {
        Ok(Value::Number(number))
    } else {
        Err(Fault::Overflow)
    }
}
