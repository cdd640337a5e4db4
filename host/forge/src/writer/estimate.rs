//! An estimate of questions and tokens, before a model is asked.

use rlf_endpoint::{Price, tokens_of};
use serde::Serialize;

use super::candidate::Form;
use super::stages::{
    format_of, plan_question, question, scenarios_question, sketch_question, source_question,
};
use crate::ask::prompts::{PromptError, Prompts};
use crate::ask::{Question, Total};

/// Tokens of a typical sketch, of a plan, and of what a revision is told.
const SKETCH: u64 = 900;
const PLAN: u64 = 3_500;
const FINDINGS: u64 = 800;

/// Tokens of a typical file and of its scenarios. The shipped examples of both forms are about as long.
fn sizes(form: Form) -> (u64, u64) {
    match form {
        Form::Specification => (4_700, 500),
        Form::Python => (4_200, 2_500),
    }
}

/// Tokens of one question and its answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StageEstimate {
    /// The stage.
    pub stage: String,
    /// Tokens of the question.
    pub prompt_tokens: u64,
    /// Tokens of the answer.
    pub answer_tokens: u64,
}

/// An estimate for one environment. An answer that cannot be used costs more.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Estimate {
    /// The stages up to the first candidate.
    pub stages: Vec<StageEstimate>,
    /// One revision.
    pub revision: StageEstimate,
    /// Maximum number of revisions.
    pub rounds: u32,
}

impl Estimate {
    /// The total with this many revisions.
    pub fn total(&self, revisions: u32, price: Option<Price>) -> Total {
        let times = u64::from(revisions);
        let sum = |of: fn(&StageEstimate) -> u64| {
            self.stages.iter().map(of).sum::<u64>() + times * of(&self.revision)
        };
        let (prompt_tokens, answer_tokens) =
            (sum(|one| one.prompt_tokens), sum(|one| one.answer_tokens));
        Total {
            questions: self.stages.len() as u64 + times,
            prompt_tokens,
            answer_tokens,
            cost: None,
        }
        .priced(price)
    }
}

/// Estimates the tokens of an environment. Returns the first question too. Nothing is asked.
pub fn estimate(
    prompts: &Prompts,
    description: &str,
    form: Form,
    rounds: u32,
) -> Result<(Estimate, Question), PromptError> {
    let (file, scenarios) = sizes(form);
    let [sketched, planned, written] = [SKETCH, PLAN, file].map(text_of);
    let first = sketch_question(prompts, description)?;
    let stage = |asked: &Question, answer_tokens| StageEstimate {
        stage: asked.stage.clone(),
        prompt_tokens: asked.tokens(),
        answer_tokens,
    };
    let stages = vec![
        stage(&first, SKETCH),
        stage(&plan_question(prompts, description, &sketched)?, PLAN),
        stage(
            &source_question(prompts, form, "Name", (&sketched, &planned))?,
            file,
        ),
        stage(
            &scenarios_question(prompts, form, "Name", &written)?,
            scenarios,
        ),
    ];
    // A specification has its scenarios in the file.
    let file_of_revision = match form {
        Form::Specification => text_of(file + scenarios),
        Form::Python => written,
    };
    let format = format_of(prompts, form)?;
    let (findings, states) = (text_of(FINDINGS), text_of(scenarios));
    let values = [
        ("name", "Name"),
        ("file", &file_of_revision),
        ("plan", &planned),
        ("findings", &findings),
        ("again", ""),
        ("format", &format),
        ("scenarios", &states),
    ];
    let revise = question(prompts, &format!("revise-{}", form.name()), &values)?;
    let revision = stage(&revise, file + scenarios);
    let estimate = Estimate {
        stages,
        revision,
        rounds,
    };
    Ok((estimate, first))
}

/// A text of this many tokens.
fn text_of(tokens: u64) -> String {
    let mut text = "abc".repeat(tokens as usize);
    while tokens_of(&text) > tokens {
        text.pop();
    }
    text
}
