//! Types of operators and functions.

use cel::common::ast::{CallExpr, Expr as Parsed};

use super::{Scope, Trouble, Typed};
use crate::expression::types::ValueType;
use crate::expression::{Arithmetic, Comparison, Expr, Function};

/// The functions, as findings list them.
const FUNCTIONS: &str = "size, contains, startsWith, endsWith, lowerAscii, upperAscii, trim, int, double, string, \
                         math.least, math.greatest, sum, addDays, daysBetween";

impl Scope<'_> {
    pub(super) fn no_operator(
        &self,
        operator: &str,
        left: &ValueType,
        right: &ValueType,
    ) -> Trouble {
        let numbers = matches!(
            (left, right),
            (ValueType::Integer, ValueType::Number) | (ValueType::Number, ValueType::Integer)
        );
        let optional =
            matches!(left, ValueType::Optional(_)) || matches!(right, ValueType::Optional(_));
        Trouble::mismatch(
            format!(
                "`{operator}` between {} and {}",
                self.schema.shown(left),
                self.schema.shown(right)
            ),
            if numbers {
                "convert the integer: `double(x)`, or write `1.0` for `1`"
            } else if optional {
                "test for null before: `x != null && ..`"
            } else {
                "use values of the same type"
            },
        )
    }

    pub(super) fn compared(
        &self,
        comparison: Comparison,
        (left, left_kind): Typed,
        (right, right_kind): Typed,
    ) -> Result<Typed, Trouble> {
        let equality = matches!(comparison, Comparison::Equal | Comparison::NotEqual);
        let ordered = |kind: &ValueType| {
            matches!(
                kind,
                ValueType::Integer | ValueType::Number | ValueType::Text | ValueType::Date
            )
        };
        let fits = left_kind.comparable(&left, &right_kind, &right)
            && (equality || ordered(&left_kind) && ordered(&right_kind));
        if !fits {
            let operator = if equality { "==" } else { "<" };
            return Err(self.no_operator(operator, &left_kind, &right_kind));
        }
        let compare = Expr::Compare(comparison, Box::new(left), Box::new(right));
        Ok((compare, ValueType::Boolean))
    }

    pub(super) fn computed(
        &self,
        arithmetic: Arithmetic,
        (left, left_kind): Typed,
        (right, right_kind): Typed,
    ) -> Result<Typed, Trouble> {
        let add = arithmetic == Arithmetic::Add;
        let kind = match (&left_kind, &right_kind) {
            (ValueType::Integer, ValueType::Integer) => ValueType::Integer,
            (ValueType::Number, ValueType::Number) if arithmetic != Arithmetic::Remainder => {
                ValueType::Number
            }
            (one, other) if add && one.is_text() && other.is_text() => ValueType::Text,
            (ValueType::List(one), ValueType::List(other)) if add && one.fits(&right, other) => {
                right_kind.clone()
            }
            (ValueType::List(one), ValueType::List(other)) if add && other.fits(&right, one) => {
                left_kind.clone()
            }
            (one, other) => {
                let operator = match arithmetic {
                    Arithmetic::Add => "+",
                    Arithmetic::Subtract => "-",
                    Arithmetic::Multiply => "*",
                    Arithmetic::Divide => "/",
                    Arithmetic::Remainder => "%",
                };
                return Err(self.no_operator(operator, one, other));
            }
        };
        let expr = Expr::Arithmetic(arithmetic, Box::new(left), Box::new(right));
        Ok((expr, kind))
    }

    pub(super) fn index(
        &self,
        of: Expr,
        kind: &ValueType,
        key: Expr,
        key_kind: &ValueType,
    ) -> Result<Typed, Trouble> {
        match (kind, key_kind) {
            (ValueType::Collection(entity), key_kind) if Self::is_key(key_kind, *entity) => Ok((
                Expr::Row(*entity, Box::new(key)),
                ValueType::Record(*entity),
            )),
            (ValueType::List(item), ValueType::Integer) => {
                Ok((Expr::Item(Box::new(of), Box::new(key)), (**item).clone()))
            }
            _ => Err(Trouble::mismatch(
                format!(
                    "{} has no item at {}",
                    self.schema.shown(kind),
                    self.schema.shown(key_kind)
                ),
                "use a key of that entity, or the position in a list",
            )),
        }
    }

    /// True if a value can be a key of this entity: it is one, or a text.
    fn is_key(kind: &ValueType, entity: usize) -> bool {
        *kind == ValueType::Key(entity) || *kind == ValueType::Text
    }

    pub(super) fn membership(
        &self,
        item: Expr,
        kind: &ValueType,
        of: Expr,
        of_kind: &ValueType,
    ) -> Result<Typed, Trouble> {
        let expr = match of_kind {
            ValueType::Collection(entity) if Self::is_key(kind, *entity) => {
                Expr::Has(*entity, Box::new(item))
            }
            ValueType::List(inner) if kind.comparable(&item, inner, &of) => {
                Expr::Contains(Box::new(item), Box::new(of))
            }
            _ => return Err(self.no_operator("in", kind, of_kind)),
        };
        Ok((expr, ValueType::Boolean))
    }

    pub(super) fn call(&mut self, call: &CallExpr) -> Result<Typed, Trouble> {
        let name = call.func_name.as_str();
        let in_math = matches!(
            call.target.as_deref().map(|target| &target.expr),
            Some(Parsed::Ident(target)) if target == "math"
        );
        let target = call.target.as_deref().filter(|_| !in_math);
        let mut arguments = Vec::new();
        let mut kinds = Vec::new();
        for parsed in target.into_iter().chain(&call.args) {
            let (argument, kind) = self.typed(&parsed.expr)?;
            arguments.push(argument);
            kinds.push(kind);
        }
        let method = target.is_some();
        let texts = kinds.iter().all(ValueType::is_text);
        let date = |index: usize| {
            let kind: Option<&ValueType> = kinds.get(index);
            kind.zip(arguments.get(index))
                .is_some_and(|(kind, argument)| kind.fits(argument, &ValueType::Date))
        };
        let found = match (name, kinds.as_slice()) {
            ("size", [ValueType::Collection(entity)]) => {
                return Ok((Expr::Count(*entity), ValueType::Integer));
            }
            ("size", [kind]) if kind.is_text() || matches!(kind, ValueType::List(_)) => {
                Some((Function::Size, ValueType::Integer))
            }
            ("contains", [_, _]) if method && texts => {
                Some((Function::TextContains, ValueType::Boolean))
            }
            ("startsWith", [_, _]) if method && texts => {
                Some((Function::StartsWith, ValueType::Boolean))
            }
            ("endsWith", [_, _]) if method && texts => {
                Some((Function::EndsWith, ValueType::Boolean))
            }
            ("lowerAscii", [_]) if method && texts => Some((Function::LowerAscii, ValueType::Text)),
            ("upperAscii", [_]) if method && texts => Some((Function::UpperAscii, ValueType::Text)),
            ("trim", [_]) if method && texts => Some((Function::Trim, ValueType::Text)),
            ("int", [ValueType::Number | ValueType::Integer]) if !method => {
                Some((Function::ToInteger, ValueType::Integer))
            }
            ("double", [ValueType::Number | ValueType::Integer]) if !method => {
                Some((Function::ToNumber, ValueType::Number))
            }
            ("string", [ValueType::Number | ValueType::Integer | ValueType::Boolean])
                if !method =>
            {
                Some((Function::ToText, ValueType::Text))
            }
            ("string", [kind]) if !method && kind.is_text() => {
                Some((Function::ToText, ValueType::Text))
            }
            (
                "least" | "greatest",
                [first @ (ValueType::Integer | ValueType::Number), rest @ ..],
            ) if in_math && !rest.is_empty() && rest.iter().all(|kind| kind == first) => {
                let function = if name == "least" {
                    Function::Least
                } else {
                    Function::Greatest
                };
                Some((function, first.clone()))
            }
            ("sum", [ValueType::List(item)])
                if method && matches!(**item, ValueType::Integer | ValueType::Number) =>
            {
                let numbers = **item == ValueType::Number;
                let function = if numbers {
                    Function::SumNumbers
                } else {
                    Function::Sum
                };
                Some((function, (**item).clone()))
            }
            ("addDays", [_, ValueType::Integer]) if !method && date(0) => {
                Some((Function::AddDays, ValueType::Date))
            }
            ("daysBetween", [_, _]) if !method && date(0) && date(1) => {
                Some((Function::DaysBetween, ValueType::Integer))
            }
            _ => None,
        };
        let Some((function, kind)) = found else {
            let shown: Vec<String> = kinds
                .iter()
                .map(|kind| self.schema.shown(kind).to_string())
                .collect();
            return Err(Trouble::mismatch(
                format!("there is no function `{name}` of ({})", shown.join(", ")),
                format!("the functions are {FUNCTIONS}"),
            ));
        };
        Ok((Expr::Call(function, arguments), kind))
    }
}
