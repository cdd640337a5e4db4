//! Checks of the steps that a model found. Execution would find most of these mistakes too, but then nobody could tell the
//! model.

use crate::rows::deployment::number;
use crate::rows::given_questions::{Given, GivenStep};
use crate::rows::matching::plain;
use crate::rows::question::{Question, Work};
use crate::rows::rejection::{Check, Finding};

/// The question with the steps of a model, or the first mistake in them.
pub(super) fn checked(
    given: &Given,
    steps: Vec<GivenStep>,
    max_calls: usize,
) -> Result<Question, Finding> {
    if steps.len() > max_calls {
        let count = steps.len();
        let reason = format!("there are {count} steps; at most {max_calls} are allowed");
        return Err(Finding::malformed(reason));
    }
    let question = given.with_steps(steps)?;
    check_sources(&question)?;
    check_calculations(&question)?;
    Ok(question)
}

/// Checks that the question names every subject.
fn check_sources(question: &Question) -> Result<(), Finding> {
    let said = plain(&question.question);
    match question
        .given()
        .into_iter()
        .find(|subject| plain(subject).is_empty() || !said.contains(&plain(subject)))
    {
        None => Ok(()),
        Some(subject) => Err(Finding::new(
            Check::InformationFlow,
            format!(
                "the question does not name the subject {subject:?}; copy it letter by letter, or refer to a step"
            ),
        )),
    }
}

/// Checks the results of calculations.
fn check_calculations(question: &Question) -> Result<(), Finding> {
    for (place, step) in (1..).zip(&question.steps) {
        let Work::Calculate(operation) = step.work else {
            continue;
        };
        let operands = step.sources.iter().filter_map(|one| question.value(one));
        let mut whole = Vec::new();
        for operand in operands {
            let Some(number) = number(operand) else {
                let reason = format!("step {place} computes with {operand:?}, which is no number");
                return Err(Finding::malformed(reason));
            };
            whole.extend(number.as_i64());
        }
        // What is not whole is left to execution.
        if whole.len() < step.sources.len() {
            continue;
        }
        let result = operation.apply(&whole).map(|result| result.to_string());
        if result.as_deref() != Some(plain(&step.answer).as_str()) {
            let result = result.unwrap_or_else(|| "too large".to_owned());
            let reason = format!(
                "step {place}: the {} is {result}, not {:?}",
                operation.as_str(),
                step.answer
            );
            return Err(Finding::new(Check::Oracle, reason));
        }
    }
    Ok(())
}
