//! Expressions as Python writes them.

use serde_json::Value as Json;

use super::literal;
use crate::expression::{
    Arithmetic, Comparison, Expr, Function, Loop, LoopKind, MAX_TEXT, Part, Schema, Template,
};
use crate::value::Value;

/// The names of locals by their position on the stack.
pub(super) struct Names<'a> {
    schema: &'a Schema,
    pub(super) locals: Vec<String>,
}

impl<'a> Names<'a> {
    pub(super) fn new(schema: &'a Schema) -> Self {
        Self {
            schema,
            locals: Vec::new(),
        }
    }

    pub(super) fn collection(&self, entity: usize) -> String {
        format!("self.state.{}", self.schema.entities[entity].collection)
    }

    /// Writes an expression, in parentheses where it needs them.
    pub(super) fn python(&mut self, expr: &Expr) -> String {
        match expr {
            Expr::Literal(value) => value_literal(value),
            Expr::Local(slot) => self.locals[*slot].clone(),
            Expr::Global(index) => format!("self.state.{}", self.schema.values[*index].0),
            Expr::Count(entity) => format!("len({})", self.collection(*entity)),
            Expr::Keys(entity) => format!("sorted({})", self.collection(*entity)),
            Expr::Row(entity, key) => {
                let name = &self.schema.entities[*entity].name;
                format!(
                    "_row({}, {}, \"{name}\")",
                    self.collection(*entity),
                    self.python(key)
                )
            }
            Expr::Has(entity, key) => {
                format!("({} in {})", self.python(key), self.collection(*entity))
            }
            Expr::Field(record, entity, field) => {
                let name = &self.schema.entities[*entity].fields[*field].0;
                format!("{}.{name}", self.python(record))
            }
            Expr::Not(inner) => format!("(not {})", self.python(inner)),
            Expr::Negate(inner) => format!("_subtract(0, {})", self.python(inner)),
            Expr::Arithmetic(operator, left, right) => {
                let function = match operator {
                    Arithmetic::Add => "_add",
                    Arithmetic::Subtract => "_subtract",
                    Arithmetic::Multiply => "_multiply",
                    Arithmetic::Divide => "_divide",
                    Arithmetic::Remainder => "_remainder",
                };
                format!("{function}({}, {})", self.python(left), self.python(right))
            }
            Expr::Compare(comparison, left, right) => {
                let null = Expr::Literal(Value::Null);
                let is_null = **left == null || **right == null;
                let operator = match comparison {
                    Comparison::Equal if is_null => "is",
                    Comparison::NotEqual if is_null => "is not",
                    Comparison::Equal => "==",
                    Comparison::NotEqual => "!=",
                    Comparison::Less => "<",
                    Comparison::LessOrEqual => "<=",
                    Comparison::Greater => ">",
                    Comparison::GreaterOrEqual => ">=",
                };
                format!("({} {operator} {})", self.python(left), self.python(right))
            }
            Expr::And(left, right) => format!("({} and {})", self.python(left), self.python(right)),
            Expr::Or(left, right) => format!("({} or {})", self.python(left), self.python(right)),
            Expr::Choose(condition, one, other) => {
                let (condition, one) = (self.python(condition), self.python(one));
                format!("({one} if {condition} else {})", self.python(other))
            }
            Expr::List(items) => {
                let items: Vec<String> = items.iter().map(|item| self.python(item)).collect();
                format!("[{}]", items.join(", "))
            }
            Expr::Contains(item, list) => {
                format!("({} in {})", self.python(item), self.python(list))
            }
            Expr::Item(list, index) => {
                format!("_item({}, {})", self.python(list), self.python(index))
            }
            Expr::Loop(looped) => self.looped(looped),
            Expr::Call(function, arguments) => self.call(*function, arguments),
        }
    }

    fn looped(&mut self, looped: &Loop) -> String {
        let over = self.python(&looped.over);
        let name = looped.name.clone();
        self.locals.truncate(looped.slot);
        self.locals.push(name.clone());
        let filter = looped.filter.as_ref().map(|filter| self.python(filter));
        let body = looped.body.as_ref().map(|body| self.python(body));
        self.locals.pop();
        let body = body.unwrap_or_else(|| name.clone());
        match looped.kind {
            LoopKind::All => format!("all({body} for {name} in {over})"),
            LoopKind::Exists => format!("any({body} for {name} in {over})"),
            LoopKind::ExistsOne => format!("(sum(1 for {name} in {over} if {body}) == 1)"),
            LoopKind::Collect => match filter {
                Some(filter) => format!("[{body} for {name} in {over} if {filter}]"),
                None => format!("[{body} for {name} in {over}]"),
            },
        }
    }

    fn call(&mut self, function: Function, arguments: &[Expr]) -> String {
        let arguments: Vec<String> = arguments.iter().map(|one| self.python(one)).collect();
        let all = arguments.join(", ");
        let first = arguments.first().cloned().unwrap_or_default();
        let second = arguments.get(1).cloned().unwrap_or_default();
        match function {
            Function::Size => format!("len({all})"),
            Function::TextContains => format!("({second} in {first})"),
            Function::StartsWith => format!("{first}.startswith({second})"),
            Function::EndsWith => format!("{first}.endswith({second})"),
            Function::LowerAscii => format!("_lower_ascii({all})"),
            Function::UpperAscii => format!("_upper_ascii({all})"),
            Function::Trim => format!("{first}.strip(\" \\t\\n\\r\")"),
            Function::ToInteger => format!("_to_integer({all})"),
            Function::ToNumber => format!("float({all})"),
            Function::ToText => format!("_shown({all})"),
            Function::Least => format!("min({all})"),
            Function::Greatest => format!("max({all})"),
            Function::Sum => format!("_sum({all}, 0)"),
            Function::SumNumbers => format!("_sum({all}, 0.0)"),
            Function::AddDays => format!("_add_days({all})"),
            Function::DaysBetween => format!("_days_between({all})"),
        }
    }

    /// Writes a message, as an expression that makes a text.
    pub(super) fn message(&mut self, template: &Template) -> String {
        let parts: Vec<String> = template
            .parts
            .iter()
            .map(|part| match part {
                Part::Text(text) => literal(&Json::from(text.as_str())),
                Part::Value(expr) => format!("_shown({})", self.python(expr)),
            })
            .collect();
        match template.parts.as_slice() {
            [] => "\"\"".to_owned(),
            [Part::Text(text)] if text.len() <= MAX_TEXT => parts.concat(),
            _ => format!("_message({})", parts.join(" + ")),
        }
    }
}

fn value_literal(value: &Value) -> String {
    match value {
        Value::Number(_) => value.shown(),
        value => literal(&value.to_json()),
    }
}
