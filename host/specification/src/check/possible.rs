//! Operations that no state and no arguments allow, as far as that can be seen.
//!
//! Preconditions are taken apart at `&&`. A part that is constant and false, parts that contradict each other, and
//! comparisons outside of declared limits make an operation impossible. So does a lookup of an entity that no scenario
//! has and no operation inserts.

use std::sync::Arc;

use serde_json::Number;

use crate::expression::{Comparison, Expr, MAX_STEPS, Machine};
use crate::finding::{Finding, Kind};
use crate::model::{Effect, Operation, Specification};
use crate::program::{CompiledBinding, Program};
use crate::state::State;
use crate::value::Value;

pub(super) fn check(program: &Program, findings: &mut Vec<Finding>) {
    let specification = &program.specification;
    for (index, operation) in specification.operations.iter().enumerate() {
        let compiled = &program.operations[index];
        for (number, binding) in compiled.bindings.iter().enumerate() {
            if let CompiledBinding::Find { entity, .. } = binding {
                let name = &specification.entities[*entity].name;
                if !exists(specification, name) {
                    findings.push(Finding::new(
                        Kind::ImpossibleOperation,
                        format!("/operations/{index}/bindings/{number}"),
                        format!("no scenario has a {name}, and no operation inserts one"),
                        "give a scenario some of them",
                    ));
                }
            }
        }
        let mut known: Vec<&Expr> = Vec::new();
        for (number, (condition, _)) in compiled.preconditions.iter().enumerate() {
            parts(condition, &mut known);
            if let Some(message) = contradiction(program, operation, &known) {
                findings.push(Finding::new(
                    Kind::ImpossibleOperation,
                    format!("/operations/{index}/preconditions/{number}/require"),
                    format!("`{}` can never be carried out: {message}", operation.name),
                    "correct the condition, or the limits",
                ));
                break;
            }
        }
    }
}

fn exists(specification: &Specification, entity: &str) -> bool {
    let counted = specification.scenarios.iter().any(|scenario| {
        scenario
            .counts
            .get(entity)
            .is_some_and(|count| count.range().1 > 0)
    });
    let mut effects = specification
        .operations
        .iter()
        .flat_map(|operation| &operation.effects);
    counted
        || effects.any(|effect| matches!(effect, Effect::Insert(insert) if insert.entity == entity))
}

fn parts<'a>(condition: &'a Expr, known: &mut Vec<&'a Expr>) {
    if let Expr::And(left, right) = condition {
        parts(left, known);
        parts(right, known);
    } else {
        known.push(condition);
    }
}

fn contradiction(program: &Program, operation: &Operation, known: &[&Expr]) -> Option<String> {
    let latest = known.last()?;
    if constant(program, latest) == Some(false) {
        return Some("a condition is always false".to_owned());
    }
    let opposite = |one: &Expr, other: &Expr| matches!(one, Expr::Not(inner) if **inner == *other);
    if known
        .iter()
        .any(|one| opposite(one, latest) || opposite(latest, one))
    {
        return Some("two conditions contradict each other".to_owned());
    }
    let (subject, ..) = comparison(latest)?;
    let (mut least, mut most) = limits(program, operation, subject);
    let mut equal: Option<&Value> = None;
    for part in known {
        let Some((of, compared, value)) = comparison(part) else {
            continue;
        };
        if of != subject {
            continue;
        }
        if compared == Comparison::Equal {
            if equal.is_some_and(|other| other != value) {
                return Some("two conditions want different values of the same".to_owned());
            }
            equal = Some(value);
        }
        let whole = matches!(value, Value::Integer(_));
        let step = if whole { 1.0 } else { 0.0 };
        let number = match value {
            Value::Integer(number) => *number as f64,
            Value::Number(number) => *number,
            _ => continue,
        };
        match compared {
            Comparison::Equal => (least, most) = (least.max(number), most.min(number)),
            Comparison::Less => most = most.min(number - step),
            Comparison::LessOrEqual => most = most.min(number),
            Comparison::Greater => least = least.max(number + step),
            Comparison::GreaterOrEqual => least = least.max(number),
            Comparison::NotEqual => {}
        }
    }
    let differs = known.iter().any(|part| {
        comparison(part).is_some_and(|(of, compared, value)| {
            of == subject && compared == Comparison::NotEqual && equal == Some(value)
        })
    });
    (least > most || differs).then(|| "its conditions and limits leave no value".to_owned())
}

/// A comparison with a literal, which is on the right.
fn comparison(expr: &Expr) -> Option<(&Expr, Comparison, &Value)> {
    let Expr::Compare(comparison, left, right) = expr else {
        return None;
    };
    let turned = match comparison {
        Comparison::Less => Comparison::Greater,
        Comparison::LessOrEqual => Comparison::GreaterOrEqual,
        Comparison::Greater => Comparison::Less,
        Comparison::GreaterOrEqual => Comparison::LessOrEqual,
        same => *same,
    };
    match (&**left, &**right) {
        (Expr::Literal(_), Expr::Literal(_)) => None,
        (subject, Expr::Literal(value)) => Some((subject, *comparison, value)),
        (Expr::Literal(value), subject) => Some((subject, turned, value)),
        _ => None,
    }
}

/// The declared limits of the compared value.
fn limits(program: &Program, operation: &Operation, subject: &Expr) -> (f64, f64) {
    let specification = &program.specification;
    let float = |limit: Option<&Number>, otherwise: f64| {
        limit.and_then(Number::as_f64).unwrap_or(otherwise)
    };
    let (minimum, maximum) = match subject {
        Expr::Local(slot) => match operation.parameters.get(*slot) {
            Some(parameter) => (parameter.minimum.as_ref(), parameter.maximum.as_ref()),
            None => (None, None),
        },
        Expr::Global(index) => {
            let value = &specification.values[*index];
            (value.minimum.as_ref(), value.maximum.as_ref())
        }
        Expr::Field(_, entity, field) if *field > 0 => {
            let field = &specification.entities[*entity].fields[*field - 1];
            (field.minimum.as_ref(), field.maximum.as_ref())
        }
        Expr::Count(_) => return (0.0, f64::INFINITY),
        _ => (None, None),
    };
    (
        float(minimum, f64::NEG_INFINITY),
        float(maximum, f64::INFINITY),
    )
}

/// The truth of a condition that reads nothing.
fn constant(program: &Program, expr: &Expr) -> Option<bool> {
    if reads(expr) {
        return None;
    }
    let state = State {
        values: Vec::new(),
        tables: vec![Arc::default(); program.schema.entities.len()],
        next: Vec::new(),
    };
    let (mut locals, mut steps) = (Vec::new(), MAX_STEPS);
    let mut machine = Machine {
        schema: &program.schema,
        state: &state,
        locals: &mut locals,
        steps: &mut steps,
    };
    machine.truth(expr).ok()
}

/// True if an expression reads the state or a local. Macros count as reading: their variable is a local.
fn reads(expr: &Expr) -> bool {
    expr.any(|part| {
        matches!(
            part,
            Expr::Local(_)
                | Expr::Global(_)
                | Expr::Count(_)
                | Expr::Keys(_)
                | Expr::Row(..)
                | Expr::Has(..)
                | Expr::Field(..)
                | Expr::Loop(_)
        )
    })
}
