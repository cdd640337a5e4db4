//! An estimate of questions and tokens, before a model is asked.

use rlf_endpoint::{Price, tokens_of};
use serde::Serialize;

use super::Rewriter;
use super::question::question;
use crate::ask::Question;
use crate::ask::prompts::PromptError;
use crate::tasks::record::TaskRecord;

/// Tokens around the words of an answer, and of the faults that a model is told.
const AROUND: u64 = 30;
const FAULTS: u64 = 150;
/// Typical number of steps in which a model solves a turn, and tokens of a step with its results.
const STEPS: u64 = 3;
const STEP: u64 = 300;

/// An estimate for some tasks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Estimate {
    /// Number of tasks.
    pub tasks: u64,
    /// Questions for words, if every text passes at once.
    pub questions: u64,
    /// Tokens of the questions for words.
    pub prompt_tokens: u64,
    /// Tokens of the answers.
    pub answer_tokens: u64,
    /// Questions of the solver, if it is asked for.
    pub solver_questions: u64,
    /// Tokens of the questions of the solver.
    pub solver_prompt_tokens: u64,
    /// Tokens of the solver's answers.
    pub solver_answer_tokens: u64,
    /// Tokens of all questions and answers, if every text but the last one of each task fails.
    pub most_tokens: u64,
}

impl Estimate {
    /// Tokens of questions, and of answers, if every text passes at once.
    pub fn tokens(&self) -> (u64, u64) {
        (
            self.prompt_tokens + self.solver_prompt_tokens,
            self.answer_tokens + self.solver_answer_tokens,
        )
    }

    /// The cost of these tokens.
    pub fn cost(&self, price: Price) -> f64 {
        let (prompt, answer) = self.tokens();
        price.cost(prompt, answer)
    }

    /// The estimate for more tasks of the same kind.
    #[must_use]
    pub fn times(&self, factor: f64) -> Self {
        let scaled = |count: u64| (count as f64 * factor).round() as u64;
        Self {
            tasks: scaled(self.tasks),
            questions: scaled(self.questions),
            prompt_tokens: scaled(self.prompt_tokens),
            answer_tokens: scaled(self.answer_tokens),
            solver_questions: scaled(self.solver_questions),
            solver_prompt_tokens: scaled(self.solver_prompt_tokens),
            solver_answer_tokens: scaled(self.solver_answer_tokens),
            most_tokens: scaled(self.most_tokens),
        }
    }
}

impl Rewriter<'_> {
    /// Estimates the tokens for tasks, as if no answer were on disk. Returns the first question too. Nothing is asked.
    pub fn estimate(
        &self,
        tasks: &[TaskRecord],
    ) -> Result<(Estimate, Option<Question>), PromptError> {
        let mut sum = Estimate::default();
        let mut first = None;
        let rounds = u64::from(self.options.rounds);
        let attempts = u64::from(self.options.attempts);
        for task in tasks {
            let asked = question(self.maker, self.prompts, task)?;
            let words = task.turns.iter().map(|turn| tokens_of(&turn.query));
            let (prompt, answer) = (asked.tokens(), words.sum::<u64>() + AROUND);
            let tools = task.tools.iter();
            let tools = tools.filter_map(|tool| self.maker.suite.definition(tool));
            let tools: u64 = tools
                .map(|tool| {
                    tokens_of(&tool.description) + tokens_of(&tool.input_schema.to_string())
                })
                .sum();
            // Each question repeats the ones before it.
            let steps = STEPS * task.turns.len() as u64;
            let solved = attempts * (steps * tools + STEP * steps * (steps + 1) / 2);
            sum.tasks += 1;
            sum.questions += 1;
            sum.prompt_tokens += prompt;
            sum.answer_tokens += answer;
            sum.solver_questions += attempts * steps;
            sum.solver_prompt_tokens += solved;
            sum.solver_answer_tokens += attempts * steps * STEP / 3;
            let again = (answer + FAULTS) * rounds * (rounds + 1) / 2;
            sum.most_tokens += (rounds + 1) * (prompt + answer + solved) + again;
            first.get_or_insert(asked);
        }
        Ok((sum, first))
    }
}
