//! `rlf-host forge rows`: makes rows in FTRL's form and verifies them by execution.

mod shown;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, anyhow, bail};
use rlf_endpoint::Price;
use rlf_forge::ask::AskError;
use rlf_forge::ask::prompts::Prompts;
use rlf_forge::rows::decomposer::{Decomposer, Estimate, PROMPTS, estimate};
use rlf_forge::rows::options::{RowOptions, Scenario};
use rlf_forge::rows::{Input, RowsError, Stage, folder, make_rows, pipeline};
use serde_json::json;

use self::shown::Display;
use super::asking::{self, Shown, TIMEOUT, asker, endpoint, price};
use super::counted::counted;
use super::interpreter::python;
use super::{interrupt, prompts};
use crate::arguments::{ForgeRows, GroupOptions};
use crate::display::printable;
use crate::operator::Operator;
use crate::warning::warn;

/// Number of rows from which a dry run estimates.
const SAMPLE: usize = 40;
/// Folder of the language model's answers, in the folder of the rows.
const ANSWERS: &str = "answers";
/// Default limit of an answer, in tokens. Some models think before they answer.
const MAX_ANSWER_TOKENS: u32 = 4_096;

pub(super) fn run(rows: &ForgeRows, forge: &GroupOptions) -> anyhow::Result<ExitCode> {
    if let Some(folder) = &rows.write_prompts {
        return prompts::run(PROMPTS, folder, forge.json);
    }
    let options = options(rows)?;
    let (stage, price) = (rows.stage, price(&rows.model.endpoint));
    let prompts = Prompts::load(PROMPTS, rows.model.endpoint.prompts.as_deref())?;
    let asks = stage.is_none_or(|stage| stage == Stage::Decompose);
    let estimated = match &rows.questions {
        Some(file) if asks => estimate(&prompts, file, &options, rows.model.attempts)?,
        _ => None,
    };
    if rows.dry_run {
        return match estimated {
            Some(estimated) => dry_run_of_asking(rows, &estimated, price, forge.json),
            None => dry_run(&input(rows, None), &options, forge.json),
        };
    }
    let output = rows.output.as_deref().context("--output is missing")?;
    interrupt::watch(match stage {
        None => "the same command continues",
        Some(_) => "the same command makes the stage again",
    })?;
    let operator = Operator::load(forge.config.as_deref())?;
    let executes = stage.is_none_or(|stage| stage == Stage::Verify);
    let load = || python(&forge.plugins.plugins, &operator);
    let interpreter = executes.then(load).transpose()?;
    let otherwise = "a question with `steps` needs no model";
    let open = || {
        endpoint(
            &rows.model.endpoint,
            &operator,
            (MAX_ANSWER_TOKENS, TIMEOUT),
            otherwise,
        )
    };
    let endpoint = estimated.is_some().then(open).transpose()?;
    let (shown, answers) = (Shown::new(forge.json), output.join(ANSWERS));
    let asker = endpoint
        .as_ref()
        .map(|endpoint| asker(&rows.model, endpoint, &answers, rows.seed, &shown));
    let decomposer = asker.as_ref().map(|asker| Decomposer {
        asker,
        prompts: &prompts,
    });
    if let Some(estimated) = estimated.filter(|_| !forge.json) {
        say_estimate(rows, &estimated, price);
    }
    let input = input(rows, decomposer.as_ref());
    let _lock = folder::begin(output, &input, &options, rows.restart)?;
    let mut display = Display::new(options.count, forge.json);
    let started = Instant::now();
    let making = make_rows(
        &input,
        &options,
        output,
        stage,
        interpreter.as_ref(),
        |progress| display.show(progress),
    );
    let figures = crate::commands::runtime()?.block_on(making);
    let verified = display.finish();
    let spent = asker.as_ref().map(|asker| asker.account.spent());
    let figures = figures.map_err(explained)?;
    if let Some(spent) = spent.filter(|spent| spent.answers > 0 && !forge.json) {
        let (spent, answers) = (asking::spent(&spent, price), answers.display());
        say!("asked: {spent}; the answers are in {answers}");
    }
    if let Some(stage) = stage.filter(|_| !executes) {
        if !forge.json {
            say!(
                "the stages after {stage} are older now; the same command without --stage makes them again"
            );
        }
        return Ok(ExitCode::SUCCESS);
    }
    if forge.json {
        let mut report = serde_json::to_value(&figures)?;
        report["seconds"] = json!(started.elapsed().as_secs_f64());
        report["verification"] =
            json!({ "rows": verified.rows, "seconds": verified.time.as_secs_f64() });
        if let Some(spent) = spent {
            let cost = price.map(|price| price.cost(spent.prompt_tokens, spent.answer_tokens));
            report["asked"] = json!({ "spent": spent, "cost": cost, "answers": answers });
        }
        say!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        shown::figures(&figures, output, started.elapsed(), verified);
    }
    // Questions and facts of a file may be fewer than rows are asked for.
    let is_given = rows.questions.is_some() || rows.facts.is_some();
    if figures.rows == 0 || (figures.rows < options.count && !is_given) {
        bail!(
            "only {} of {} rows passed; {} says why the others did not",
            figures.rows,
            figures.wanted,
            output.join("rejected.jsonl").display()
        );
    }
    if rows.facts.is_some() && figures.rows < options.count {
        let missing = options.count - figures.rows;
        warn(&format!(
            "{missing} of {} {} missing: the facts give no more; {} says why the others were rejected",
            counted(options.count, "row"),
            if missing == 1 { "is" } else { "are" },
            output.join("rejected.jsonl").display()
        ));
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

/// The source of the questions.
fn input<'a>(rows: &ForgeRows, decomposer: Option<&'a Decomposer<'a>>) -> Input<'a> {
    match (&rows.facts, &rows.questions) {
        (Some(file), _) => Input::Facts(file.clone()),
        (None, Some(file)) => Input::Questions {
            file: file.clone(),
            decomposer,
        },
        (None, None) => Input::Generated,
    }
}

/// An error with advice, if it is about a language model.
fn explained(error: RowsError) -> anyhow::Error {
    let RowsError::Ask(asked) = &error else {
        return error.into();
    };
    let advice = match asked {
        AskError::OutOfTokens { .. } => "; raise --max-tokens-total",
        AskError::OutOfTime { .. } => "; raise --max-time",
        _ => "",
    };
    // It may quote the model.
    anyhow!("{}{advice}", printable(&error.to_string()))
}

/// Prints the estimated number of tokens of all questions to the language model.
fn say_estimate(rows: &ForgeRows, estimated: &Estimate, price: Option<Price>) {
    say!(
        "estimate if each first answer can be used: {}",
        asking::total(estimated.least, price)
    );
    let attempts = rows.model.attempts;
    if attempts > 1 {
        say!(
            "estimate if all {attempts} attempts are needed: {}",
            asking::total(estimated.most, price)
        );
    }
    let limit = rows.model.max_tokens_total;
    if estimated.least.tokens() > limit {
        say!(
            "--max-tokens-total {limit} is less; it ends the run half way, and a larger one continues it"
        );
    }
}

/// Prints the estimate of the tokens, and the first question.
fn dry_run_of_asking(
    rows: &ForgeRows,
    estimated: &Estimate,
    price: Option<Price>,
    as_json: bool,
) -> anyhow::Result<ExitCode> {
    if as_json {
        let report = json!({
            "least": estimated.least.priced(price),
            "most": estimated.most.priced(price),
            "first": {"stage": estimated.first.stage, "messages": estimated.first.messages},
        });
        say!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        say_estimate(rows, estimated, price);
        asking::question(&estimated.first);
    }
    Ok(ExitCode::SUCCESS)
}

fn options(rows: &ForgeRows) -> anyhow::Result<RowOptions> {
    let fits = |scenario: &Scenario| scenario.sub_answers().0 <= rows.max_calls;
    let options = RowOptions {
        count: if rows.questions.is_some() {
            usize::MAX
        } else {
            rows.count
        },
        seed: rows.seed,
        scenarios: if rows.scenario.is_empty() {
            Scenario::ALL.into_iter().filter(fits).collect()
        } else {
            rows.scenario.clone()
        },
        max_calls: rows.max_calls,
        complexity: rows.complexity,
    };
    pipeline::check(&options)?;
    Ok(options)
}

/// Prints the sizes of a small sample, which is made in a temporary folder.
fn dry_run(input: &Input<'_>, options: &RowOptions, as_json: bool) -> anyhow::Result<ExitCode> {
    let folder = tempfile::tempdir().context("cannot make a temporary folder")?;
    let mut sample = options.clone();
    if options.count < usize::MAX {
        sample.count = options.count.min(SAMPLE);
    }
    let making = make_rows(input, &sample, folder.path(), None, None, |_| {});
    crate::commands::runtime()?.block_on(making)?;
    let (figures, bytes) = pipeline::sampled(folder.path(), &sample, options.count)?;
    let rows = if options.count < usize::MAX {
        options.count
    } else {
        figures.rows
    };
    if as_json {
        let report = json!({ "rows": rows, "bytes": bytes, "sample": figures });
        say!("{}", serde_json::to_string_pretty(&report)?);
        return Ok(ExitCode::SUCCESS);
    }
    say!(
        "would make {rows} rows, about {:.1} MB in all files; nothing was written",
        bytes as f64 / 1e6
    );
    say!(
        "in a sample of {} rows that were not verified:",
        figures.rows
    );
    shown::sizes(&figures);
    Ok(ExitCode::SUCCESS)
}
