//! From the text of an expression to a checked one.

mod calls;

use cel::common::ast::{ComprehensionExpr, Expr as Parsed, LiteralValue, operators};
use cel::parser::Parser;

use super::types::{Schema, ValueType};
use super::{Arithmetic, Comparison, Expr, Loop, LoopKind};
use crate::finding::Kind;
use crate::value::Value;

/// Maximum length of an expression in bytes.
const MAX_EXPRESSION: usize = 4_096;
/// Maximum nesting of an expression.
const MAX_DEPTH: u16 = 48;
/// Maximum nesting of brackets, and maximum number of operators. Together they bound how deep the parser and
/// everything after it recurse: its own limit comes too late for the smallest stacks.
const MAX_BRACKETS: usize = 8;
const MAX_OPERATORS: usize = 80;

/// The reason why an expression was not compiled.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Trouble {
    pub(crate) kind: Kind,
    pub(crate) message: String,
    pub(crate) mend: String,
}

impl Trouble {
    pub(super) fn unknown(message: impl Into<String>, mend: impl Into<String>) -> Self {
        Self {
            kind: Kind::BadExpression,
            message: message.into(),
            mend: mend.into(),
        }
    }

    pub(super) fn mismatch(message: impl Into<String>, mend: impl Into<String>) -> Self {
        Self {
            kind: Kind::TypeMismatch,
            message: message.into(),
            mend: mend.into(),
        }
    }
}

type Typed = (Expr, ValueType);

/// The names that an expression sees: those of the schema, and locals.
#[derive(Debug, Clone)]
pub(crate) struct Scope<'a> {
    pub(crate) schema: &'a Schema,
    locals: Vec<(String, ValueType)>,
    /// Expressions that are not null here.
    present: Vec<Expr>,
    /// Names of locals that were used.
    used: Vec<String>,
}

impl<'a> Scope<'a> {
    pub(crate) fn new(schema: &'a Schema) -> Self {
        Self {
            schema,
            locals: Vec::new(),
            present: Vec::new(),
            used: Vec::new(),
        }
    }

    /// Adds a local name; returns its position.
    pub(crate) fn declare(&mut self, name: &str, kind: ValueType) -> usize {
        self.locals.push((name.to_owned(), kind));
        self.locals.len() - 1
    }

    /// Forgets the latest local.
    pub(crate) fn forget(&mut self) {
        self.locals.pop();
    }

    pub(crate) fn has_local(&self, name: &str) -> bool {
        self.locals.iter().any(|(local, _)| local == name)
    }

    /// Remembers the names that a copy of this scope used.
    pub(crate) fn keep_used(&mut self, copy: &Self) {
        self.used
            .extend_from_slice(&copy.used[self.used.len().min(copy.used.len())..]);
    }

    pub(crate) fn has_used(&self, name: &str) -> bool {
        self.used.iter().any(|used| used == name)
    }

    /// Notes that the condition is true from now on.
    pub(crate) fn assume(&mut self, condition: &Expr) {
        present_if(condition, true, &mut self.present);
    }

    /// Forgets what is known about the state, because it changes. Locals keep their values.
    pub(crate) fn forget_state(&mut self) {
        self.present.retain(|expr| {
            !expr.any(|part| {
                matches!(
                    part,
                    Expr::Global(_)
                        | Expr::Count(_)
                        | Expr::Keys(_)
                        | Expr::Row(..)
                        | Expr::Has(..)
                )
            })
        });
    }

    /// Compiles an expression of any type.
    pub(crate) fn compile(&mut self, source: &str) -> Result<Typed, Trouble> {
        if source.len() > MAX_EXPRESSION {
            return Err(Trouble::unknown(
                format!("the expression has {} bytes", source.len()),
                format!("use at most {MAX_EXPRESSION}"),
            ));
        }
        if let Some(message) = too_deep(source) {
            return Err(Trouble::unknown(message, "compute parts of it in bindings"));
        }
        let parsed = Parser::new()
            .max_recursion_depth(MAX_DEPTH)
            .parse(source)
            .map_err(|errors| {
                let first = errors.errors.first();
                let message =
                    first.map_or_else(|| "not an expression".to_owned(), |e| e.msg.clone());
                Trouble::unknown(
                    format!("`{source}` cannot be parsed: {message}"),
                    "write an expression in CEL",
                )
            })?;
        self.typed(&parsed.expr)
    }

    /// Compiles an expression that must fit a type.
    pub(crate) fn compile_as(&mut self, source: &str, wanted: &ValueType) -> Result<Expr, Trouble> {
        let (expr, kind) = self.compile(source)?;
        if kind.fits(&expr, wanted) {
            return Ok(expr);
        }
        let null = match &kind {
            ValueType::Optional(inner) if inner.fits(&expr, wanted) => {
                " (test for null before: `x != null && ..`)"
            }
            _ => "",
        };
        Err(Trouble::mismatch(
            format!(
                "`{source}` is {}, expected {}",
                self.schema.shown(&kind),
                self.schema.shown(wanted)
            ),
            format!("write an expression of that type{null}"),
        ))
    }

    fn typed(&mut self, parsed: &Parsed) -> Result<Typed, Trouble> {
        let (expr, kind) = self.plain(parsed)?;
        match kind {
            ValueType::Optional(inner) if self.present.contains(&expr) => Ok((expr, *inner)),
            kind => Ok((expr, kind)),
        }
    }

    fn plain(&mut self, parsed: &Parsed) -> Result<Typed, Trouble> {
        match parsed {
            Parsed::Literal(literal) => self::literal(literal),
            Parsed::Ident(name) => self.name(name),
            Parsed::Select(select) if !select.test => {
                let (record, kind) = self.typed(&select.operand.expr)?;
                self.field(record, &kind, &select.field)
            }
            Parsed::List(list) => {
                let mut items = Vec::new();
                let mut kind = ValueType::Unknown;
                for element in &list.elements {
                    let (item, item_kind) = self.typed(&element.expr)?;
                    kind = self.joined((&item, item_kind), kind)?;
                    items.push(item);
                }
                Ok((Expr::List(items), ValueType::List(Box::new(kind))))
            }
            Parsed::Call(call) => {
                let operator = call.target.is_none();
                match (call.func_name.as_str(), call.args.as_slice()) {
                    (operators::LOGICAL_AND, [left, right]) if operator => {
                        let (left, right) = self.logic(&left.expr, &right.expr, true)?;
                        Ok((Expr::And(left, right), ValueType::Boolean))
                    }
                    (operators::LOGICAL_OR, [left, right]) if operator => {
                        let (left, right) = self.logic(&left.expr, &right.expr, false)?;
                        Ok((Expr::Or(left, right), ValueType::Boolean))
                    }
                    (operators::LOGICAL_NOT, [inner]) if operator => {
                        let inner = self.condition(&inner.expr)?;
                        Ok((Expr::Not(Box::new(inner)), ValueType::Boolean))
                    }
                    (operators::CONDITIONAL, [condition, one, other]) if operator => {
                        self.choice(&condition.expr, &one.expr, &other.expr)
                    }
                    (operators::INDEX, [of, key]) if operator => {
                        let (of, kind) = self.typed(&of.expr)?;
                        let (key, key_kind) = self.typed(&key.expr)?;
                        self.index(of, &kind, key, &key_kind)
                    }
                    (operators::IN, [item, of]) if operator => {
                        let (item, kind) = self.typed(&item.expr)?;
                        let (of, of_kind) = self.typed(&of.expr)?;
                        self.membership(item, &kind, of, &of_kind)
                    }
                    (name, [left, right]) if operator && comparison(name).is_some() => {
                        let left = self.typed(&left.expr)?;
                        let right = self.typed(&right.expr)?;
                        self.compared(comparison(name).unwrap_or(Comparison::Equal), left, right)
                    }
                    (name, [left, right]) if operator && arithmetic(name).is_some() => {
                        let left = self.typed(&left.expr)?;
                        let right = self.typed(&right.expr)?;
                        self.computed(arithmetic(name).unwrap_or(Arithmetic::Add), left, right)
                    }
                    (operators::NEGATE, [inner]) if operator => {
                        let (inner, kind) = self.typed(&inner.expr)?;
                        match kind {
                            ValueType::Integer | ValueType::Number => {
                                Ok((Expr::Negate(Box::new(inner)), kind))
                            }
                            other => Err(self.no_operator("-", &other, &other)),
                        }
                    }
                    _ => self.call(call),
                }
            }
            Parsed::Comprehension(comprehension) => self.comprehension(comprehension),
            Parsed::Select(_) | Parsed::Map(_) | Parsed::Struct(_) | Parsed::Unspecified => {
                Err(Trouble::unknown(
                    "`has`, maps and messages are not supported",
                    "compare with null, or name fields one by one",
                ))
            }
        }
    }

    fn name(&mut self, name: &str) -> Result<Typed, Trouble> {
        if let Some(slot) = self.locals.iter().rposition(|(local, _)| local == name) {
            self.used.push(name.to_owned());
            return Ok((Expr::Local(slot), self.locals[slot].1.clone()));
        }
        let values = &self.schema.values;
        if let Some(index) = values.iter().position(|(value, _)| value == name) {
            return Ok((Expr::Global(index), values[index].1.clone()));
        }
        let entities = &self.schema.entities;
        if let Some(index) = entities.iter().position(|one| one.collection == name) {
            return Ok((Expr::Keys(index), ValueType::Collection(index)));
        }
        let locals = self.locals.iter().map(|(local, _)| local.as_str());
        let values = values.iter().map(|(value, _)| value.as_str());
        let collections = entities.iter().map(|one| one.collection.as_str());
        let known = locals.chain(values).chain(collections);
        Err(Trouble::unknown(
            format!("there is no `{name}`"),
            crate::names::suggestion(name, known),
        ))
    }

    fn field(&self, record: Expr, kind: &ValueType, name: &str) -> Result<Typed, Trouble> {
        let entity = match kind {
            ValueType::Record(entity) => *entity,
            ValueType::Key(entity) => {
                let shape = &self.schema.entities[*entity];
                return Err(Trouble::mismatch(
                    format!("`.{name}` of a key of {}", shape.name),
                    format!("look it up: `{}[key].{name}`", shape.collection),
                ));
            }
            other => {
                return Err(Trouble::mismatch(
                    format!(
                        "`.{name}` of {}, which has no fields",
                        self.schema.shown(other)
                    ),
                    "take a field of an entity: `collection[key].field`",
                ));
            }
        };
        let fields = &self.schema.entities[entity].fields;
        match fields.iter().position(|(field, _)| field == name) {
            Some(index) => Ok((
                Expr::Field(Box::new(record), entity, index),
                fields[index].1.clone(),
            )),
            None => Err(Trouble::unknown(
                format!(
                    "{} has no field `{name}`",
                    self.schema.entities[entity].name
                ),
                crate::names::suggestion(name, fields.iter().map(|(field, _)| field.as_str())),
            )),
        }
    }

    fn condition(&mut self, parsed: &Parsed) -> Result<Expr, Trouble> {
        match self.typed(parsed)? {
            (expr, ValueType::Boolean) => Ok(expr),
            (_, other) => Err(Trouble::mismatch(
                format!("a condition is {}", self.schema.shown(&other)),
                "write one that is true or false",
            )),
        }
    }

    fn logic(
        &mut self,
        left: &Parsed,
        right: &Parsed,
        truth: bool,
    ) -> Result<(Box<Expr>, Box<Expr>), Trouble> {
        let left = self.condition(left)?;
        let known = self.present.len();
        present_if(&left, truth, &mut self.present);
        let right = self.condition(right);
        self.present.truncate(known);
        Ok((Box::new(left), Box::new(right?)))
    }

    fn choice(
        &mut self,
        condition: &Parsed,
        one: &Parsed,
        other: &Parsed,
    ) -> Result<Typed, Trouble> {
        let condition = self.condition(condition)?;
        let known = self.present.len();
        present_if(&condition, true, &mut self.present);
        let one = self.typed(one);
        self.present.truncate(known);
        present_if(&condition, false, &mut self.present);
        let other = self.typed(other);
        self.present.truncate(known);
        let ((one, one_kind), (other, other_kind)) = (one?, other?);
        let kind = self.joined((&one, one_kind), ValueType::Unknown)?;
        let kind = self.joined((&other, other_kind), kind)?;
        let choose = Expr::Choose(Box::new(condition), Box::new(one), Box::new(other));
        Ok((choose, kind))
    }

    /// The type that fits both: the expression, and the type so far.
    fn joined(
        &self,
        (expr, kind): (&Expr, ValueType),
        so_far: ValueType,
    ) -> Result<ValueType, Trouble> {
        match (&kind, &so_far) {
            (_, ValueType::Unknown) => Ok(kind),
            (ValueType::Null, ValueType::Null) => Ok(ValueType::Null),
            (ValueType::Null, ValueType::Optional(_)) => Ok(so_far),
            (ValueType::Null, _) => Ok(ValueType::Optional(Box::new(so_far))),
            (_, ValueType::Null) => Ok(match kind {
                ValueType::Optional(_) => kind,
                kind => ValueType::Optional(Box::new(kind)),
            }),
            _ if kind.fits(expr, &so_far) => Ok(so_far),
            (ValueType::Optional(_), _) if so_far.fits(expr, &kind) => Ok(kind),
            _ if kind.is_text() && so_far.is_text() => Ok(ValueType::Text),
            _ => Err(Trouble::mismatch(
                format!(
                    "{} beside {}",
                    self.schema.shown(&so_far),
                    self.schema.shown(&kind)
                ),
                "make both of the same type",
            )),
        }
    }

    fn comprehension(&mut self, parsed: &ComprehensionExpr) -> Result<Typed, Trouble> {
        let (over, kind) = self.typed(&parsed.iter_range.expr)?;
        let item = match kind {
            ValueType::Collection(entity) => ValueType::Key(entity),
            ValueType::List(item) => *item,
            other => {
                return Err(Trouble::mismatch(
                    format!("a macro over {}", self.schema.shown(&other)),
                    "use it on a collection or a list",
                ));
            }
        };
        let Some(shape) = shape_of(parsed) else {
            return Err(Trouble::unknown(
                "a macro that is not supported",
                "use all, exists, exists_one, filter or map",
            ));
        };
        let name = parsed.iter_var.clone();
        if let Some(problem) = crate::names::problem(&name) {
            return Err(Trouble::unknown(problem, "rename the variable"));
        }
        let slot = self.declare(&name, item.clone());
        let parts = self.body(&shape, &name, &item);
        self.forget();
        let (kind, filter, body, result) = parts?;
        let compiled = Loop {
            kind,
            slot,
            name,
            over,
            filter,
            body,
        };
        Ok((Expr::Loop(Box::new(compiled)), result))
    }

    fn body(
        &mut self,
        shape: &Shape<'_>,
        name: &str,
        item: &ValueType,
    ) -> Result<(LoopKind, Option<Expr>, Option<Expr>, ValueType), Trouble> {
        match *shape {
            Shape::Test(kind, condition) => {
                let condition = self.condition(condition)?;
                Ok((kind, None, Some(condition), ValueType::Boolean))
            }
            Shape::Collect(filter, each) => {
                let filter = filter.map(|filter| self.condition(filter)).transpose()?;
                let known = self.present.len();
                if let Some(filter) = &filter {
                    present_if(filter, true, &mut self.present);
                }
                let is_filter = matches!(each, Parsed::Ident(each) if each == name);
                let typed = self.typed(each);
                self.present.truncate(known);
                let (collected, kind) = typed?;
                let (body, kind) = if is_filter {
                    (None, item.clone())
                } else {
                    (Some(collected), kind)
                };
                Ok((
                    LoopKind::Collect,
                    filter,
                    body,
                    ValueType::List(Box::new(kind)),
                ))
            }
        }
    }
}

/// Finds the reason why an expression is too deep to be parsed.
fn too_deep(source: &str) -> Option<String> {
    let (mut brackets, mut operators) = (0usize, 0usize);
    let mut quote = None;
    let (mut escaped, mut in_operator) = (false, false);
    let (mut before, mut quotes) = (' ', 0usize);
    for one in source.chars() {
        // These would hide what comes after them from the counts below.
        quotes = if matches!(one, '"' | '\'') {
            quotes + 1
        } else {
            0
        };
        let is_prefix = matches!(before, 'r' | 'R' | 'b' | 'B');
        let hides = match (quote, one) {
            (Some(_), '\n' | '\r') => Some("a text with a line break"),
            (None, '/') if before == '/' => Some("a comment"),
            (None, '"' | '\'') if is_prefix => Some("a raw text or bytes"),
            (None, '"' | '\'') if quotes > 2 => Some("a text in three quotes"),
            _ => None,
        };
        if let Some(what) = hides {
            return Some(format!("it has {what}, which no expression may have"));
        }
        before = one;
        match (quote, one) {
            (Some(_), _) if escaped => escaped = false,
            (Some(_), '\\') => escaped = true,
            (Some(open), _) if one == open => quote = None,
            (None, '"' | '\'') => quote = Some(one),
            (None, '(' | '[' | '{') => brackets += 1,
            (None, ')' | ']' | '}') => brackets = brackets.saturating_sub(1),
            (None, '!' | '-') => operators += 1,
            (None, '+' | '*' | '/' | '%' | '?' | ':' | '.' | '<' | '>' | '=' | '&' | '|') => {
                operators += usize::from(!in_operator);
            }
            _ => {}
        }
        in_operator = matches!(one, '<' | '>' | '=' | '&' | '|' | '!');
        if brackets > MAX_BRACKETS {
            return Some(format!("more than {MAX_BRACKETS} brackets are nested"));
        }
    }
    let words = source.split(|one: char| !one.is_alphanumeric() && one != '_');
    let operators = operators + words.filter(|word| *word == "in").count();
    (operators > MAX_OPERATORS).then(|| format!("it has more than {MAX_OPERATORS} operators"))
}

/// A macro as it was written.
enum Shape<'a> {
    Test(LoopKind, &'a Parsed),
    Collect(Option<&'a Parsed>, &'a Parsed),
}

/// Recognises the expansions of the standard macros.
fn shape_of(parsed: &ComprehensionExpr) -> Option<Shape<'_>> {
    if parsed.iter_var2.is_some() {
        return None;
    }
    let Parsed::Call(step) = &parsed.loop_step.expr else {
        return None;
    };
    match (
        &parsed.accu_init.expr,
        step.func_name.as_str(),
        step.args.as_slice(),
    ) {
        (Parsed::Literal(LiteralValue::Boolean(_)), operators::LOGICAL_AND, [_, body]) => {
            Some(Shape::Test(LoopKind::All, &body.expr))
        }
        (Parsed::Literal(LiteralValue::Boolean(_)), operators::LOGICAL_OR, [_, body]) => {
            Some(Shape::Test(LoopKind::Exists, &body.expr))
        }
        (Parsed::Literal(LiteralValue::Int(_)), operators::CONDITIONAL, [body, ..]) => {
            Some(Shape::Test(LoopKind::ExistsOne, &body.expr))
        }
        (Parsed::List(_), operators::CONDITIONAL, [filter, add, _]) => {
            Some(Shape::Collect(Some(&filter.expr), added(&add.expr)?))
        }
        (Parsed::List(_), operators::ADD, _) => {
            Some(Shape::Collect(None, added(&parsed.loop_step.expr)?))
        }
        _ => None,
    }
}

/// The item that `accumulated + [item]` adds.
fn added(parsed: &Parsed) -> Option<&Parsed> {
    let Parsed::Call(call) = parsed else {
        return None;
    };
    let Parsed::List(list) = &call.args.get(1)?.expr else {
        return None;
    };
    list.elements.first().map(|element| &element.expr)
}

/// Collects expressions that are not null if the condition has this truth.
fn present_if(condition: &Expr, truth: bool, present: &mut Vec<Expr>) {
    let null = Expr::Literal(Value::Null);
    match condition {
        Expr::And(left, right) if truth => {
            present_if(left, truth, present);
            present_if(right, truth, present);
        }
        Expr::Or(left, right) if !truth => {
            present_if(left, truth, present);
            present_if(right, truth, present);
        }
        Expr::Not(inner) => present_if(inner, !truth, present),
        Expr::Compare(comparison, left, right) => {
            let is_present = match comparison {
                Comparison::NotEqual => truth,
                Comparison::Equal => !truth,
                _ => false,
            };
            if is_present && **right == null {
                present.push((**left).clone());
            } else if is_present && **left == null {
                present.push((**right).clone());
            }
        }
        _ => {}
    }
}

fn literal(literal: &LiteralValue) -> Result<Typed, Trouble> {
    Ok(match literal {
        LiteralValue::Boolean(truth) => (
            Expr::Literal(Value::Boolean(*truth.inner())),
            ValueType::Boolean,
        ),
        LiteralValue::Int(number) => (
            Expr::Literal(Value::Integer(*number.inner())),
            ValueType::Integer,
        ),
        LiteralValue::Double(number) => (
            Expr::Literal(Value::Number(*number.inner())),
            ValueType::Number,
        ),
        LiteralValue::String(text) => (Expr::Literal(Value::text(text.inner())), ValueType::Text),
        LiteralValue::Null => (Expr::Literal(Value::Null), ValueType::Null),
        LiteralValue::Bytes(_) | LiteralValue::UInt(_) => {
            return Err(Trouble::unknown(
                "bytes and unsigned numbers are not supported",
                "write a text or an integer",
            ));
        }
    })
}

fn comparison(name: &str) -> Option<Comparison> {
    Some(match name {
        operators::EQUALS => Comparison::Equal,
        operators::NOT_EQUALS => Comparison::NotEqual,
        operators::LESS => Comparison::Less,
        operators::LESS_EQUALS => Comparison::LessOrEqual,
        operators::GREATER => Comparison::Greater,
        operators::GREATER_EQUALS => Comparison::GreaterOrEqual,
        _ => return None,
    })
}

fn arithmetic(name: &str) -> Option<Arithmetic> {
    Some(match name {
        operators::ADD => Arithmetic::Add,
        operators::SUBSTRACT => Arithmetic::Subtract,
        operators::MULTIPLY => Arithmetic::Multiply,
        operators::DIVIDE => Arithmetic::Divide,
        operators::MODULO => Arithmetic::Remainder,
        _ => return None,
    })
}
