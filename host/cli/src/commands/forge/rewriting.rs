//! The words of tasks, written by a language model: `rlf-host forge tasks` with an endpoint.

use std::error::Error;
use std::io::IsTerminal as _;
use std::time::Duration;

use anyhow::bail;
use console::style;
use indicatif::{ProgressBar, ProgressStyle};
use rlf_endpoint::{Endpoint, Price};
use rlf_forge::ask::prompts::Prompts;
use rlf_forge::ask::{Answer, Answers, AskObserver, Limits, Model as _, Silent, Unusable};
use rlf_forge::tasks::rewrite::{Estimate, PROMPTS, Report, RewriteOptions, Rewriter};
use rlf_forge::tasks::{Folder, Maker, Stage, TaskRecord};
use serde_json::{Value, json};

use super::asking::{endpoint, is_named, price, question};
use super::counted::counted;
use crate::arguments::{ForgeTasks, TaskWords};
use crate::display::printable;
use crate::operator::Operator;
use crate::warning::warn;

/// Default limits of a question: tokens of the answer, and time. An answer is a few sentences, perhaps with thoughts.
const MAX_ANSWER_TOKENS: u32 = 4_096;
const TIMEOUT: Duration = Duration::from_mins(2);

/// Advice in errors: what happens without a model.
const WITHOUT: &str = "without a model, the grammar writes the words";

/// A model that writes the words of tasks.
pub(super) struct Rewriting {
    endpoint: Endpoint,
    prompts: Prompts,
    options: RewriteOptions,
    price: Option<Price>,
    as_json: bool,
}

impl Rewriting {
    /// The model that the command line or the configuration names. None if the grammar writes the words.
    pub(super) fn new(
        command: &ForgeTasks,
        operator: &Operator,
        as_json: bool,
    ) -> anyhow::Result<Option<Self>> {
        let writes = match command.words {
            Some(words) => words == TaskWords::Model,
            None => is_named(&command.writer, operator),
        };
        if !writes {
            if command.words.is_none() && !command.restart && !command.dry_run {
                keep_texts(command)?;
            }
            return Ok(None);
        }
        let limits = (MAX_ANSWER_TOKENS, TIMEOUT);
        let endpoint = endpoint(&command.writer, operator, limits, WITHOUT)?;
        let concurrent = operator.writer.clone().unwrap_or_default().max_concurrent as usize;
        Ok(Some(Self {
            endpoint,
            prompts: Prompts::load(PROMPTS, command.writer.prompts.as_deref())?,
            options: RewriteOptions {
                rounds: command.rounds,
                attempts: command.model_attempts,
                // A model can also fail at a clear text.
                min_passes: command.min_passes.unwrap_or(1),
                limits: Limits {
                    tokens: command.max_tokens_total,
                    time: Duration::from_secs(command.writer.max_time),
                },
                concurrent,
            },
            price: price(&command.writer),
            as_json,
        }))
    }

    fn rewriter<'a>(&'a self, maker: &'a Maker<'a>, observer: &'a dyn AskObserver) -> Rewriter<'a> {
        Rewriter {
            maker,
            model: &self.endpoint,
            prompts: &self.prompts,
            options: self.options,
            observer,
        }
    }

    /// Estimates the cost of rewriting `times` as many tasks as the sample has, and shows the first question.
    pub(super) fn dry_run(
        &self,
        maker: &Maker<'_>,
        tasks: &[TaskRecord],
        times: f64,
    ) -> anyhow::Result<Value> {
        let (estimate, first) = self.rewriter(maker, &Silent).estimate(tasks)?;
        let estimate = estimate.times(times);
        if self.as_json {
            let cost = self.price.map(|price| estimate.cost(price));
            let first = first.map(|first| json!(first.messages));
            return Ok(json!({"estimate": estimate, "cost": cost, "first": first}));
        }
        self.show_estimate(&estimate);
        if let Some(first) = first {
            question(&first);
        }
        Ok(Value::Null)
    }

    fn show_estimate(&self, estimate: &Estimate) {
        let (prompt, answer) = estimate.tokens();
        let cost = self.price.map(|price| estimate.cost(price));
        let cost = cost.map_or(String::new(), |cost| format!(", cost {cost:.4}"));
        let solver = match estimate.solver_questions {
            0 => String::new(),
            questions => format!(" and about {questions} of the solver"),
        };
        let line = format!(
            "estimate for {}: {}{solver}, {prompt} + {answer} tokens{cost}; at most {} tokens with {} rounds",
            self.endpoint.model(),
            counted(estimate.questions, "question"),
            estimate.most_tokens,
            self.options.rounds
        );
        say!("{line}");
    }

    /// Rewrites the words of tasks in a folder.
    pub(super) fn rewrite(
        &self,
        maker: &Maker<'_>,
        folder: &Folder,
        tasks: &mut [TaskRecord],
    ) -> Result<Report, Box<dyn Error + Send + Sync>> {
        let shown = Shown::new(tasks.len(), self.as_json);
        let rewriter = self.rewriter(maker, &shown);
        if !self.as_json {
            self.show_estimate(&rewriter.estimate(tasks)?.0);
        }
        let answers = Answers::new(folder.answers());
        let runtime = crate::commands::runtime()?;
        let report = rewriter.rewrite(tasks, answers, folder.stage(Stage::Texts));
        let report = runtime.block_on(report);
        shown.bar.finish_and_clear();
        Ok(report?)
    }

    /// The outcome of rewriting, as JSON.
    pub(super) fn json(&self, report: &Report) -> Value {
        json!({"model": self.endpoint.identity(), "report": report, "cost": self.cost(report)})
    }

    fn cost(&self, report: &Report) -> Option<f64> {
        let spent = &report.spent;
        let price = self.price?;
        Some(price.cost(spent.prompt_tokens, spent.answer_tokens))
    }

    /// Prints the outcome of rewriting.
    pub(super) fn show(&self, report: &Report) {
        let spent = &report.spent;
        let cost = self.cost(report);
        let cost = cost.map_or(String::new(), |cost| format!(", cost {cost:.4}"));
        say!(
            "{} {} tasks have the words of {}; {} answers, {} + {} tokens{cost}",
            style("words").bold(),
            report.written,
            self.endpoint.model(),
            spent.answers,
            spent.prompt_tokens,
            spent.answer_tokens
        );
        let refused: usize = report.refused.values().sum();
        if refused > 0 {
            let kinds = report.refused.iter();
            let kinds: Vec<String> = kinds
                .map(|(kind, count)| format!("{kind} {count}"))
                .collect();
            say!(
                "  {refused} keep those of the grammar, because no text passed: {}",
                kinds.join(", ")
            );
        }
        if report.unanswered > 0 {
            warn(&format!(
                "{} tasks keep the words of the grammar, because the model gave no answer: {}. All answers are kept, and the \
                 same command goes on from there",
                report.unanswered,
                printable(report.why.as_deref().unwrap_or("the run ended before"))
            ));
        }
    }
}

/// Refuses to write the words of the grammar over those of a model without being told to.
fn keep_texts(command: &ForgeTasks) -> anyhow::Result<()> {
    let texts = Folder::new(&command.output).stage(Stage::Texts);
    let has_texts = std::fs::metadata(&texts).is_ok_and(|file| file.len() > 0);
    if has_texts {
        bail!(
            "{} has the words of a model, and no model is named now; name it again with --url and --model, or give \
             --words grammar to have the words of the grammar instead",
            texts.display()
        );
    }
    Ok(())
}

/// Shows the progress of rewriting on a terminal.
struct Shown {
    bar: ProgressBar,
}

impl Shown {
    fn new(tasks: usize, quiet: bool) -> Self {
        if quiet || !std::io::stderr().is_terminal() {
            let bar = ProgressBar::hidden();
            return Self { bar };
        }
        let bar = ProgressBar::new(tasks as u64);
        if let Ok(style) =
            ProgressStyle::with_template("answers {pos} (of {len} or more) {elapsed}  {msg}")
        {
            bar.set_style(style);
        }
        Self { bar }
    }
}

impl AskObserver for Shown {
    fn answered(&self, _: &str, _: &Answer, _: bool) {
        self.bar.inc(1);
    }

    fn refused(&self, stage: &str, why: &Unusable) {
        let why = printable(&why.to_string());
        let line = why.split_whitespace().collect::<Vec<_>>().join(" ");
        self.bar.set_message(format!("{stage}: {line}"));
    }
}
