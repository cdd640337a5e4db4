//! Asking a language model: its endpoint, its limits, and the lines that say how it answers.

use std::io::IsTerminal as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{anyhow, bail};
use console::style;
use rlf_endpoint::{ChatRole, Endpoint, Price, Spent};
use rlf_forge::ask::{
    Account, Answer, Answers, AskObserver, Asker, Limits, Question, Total, Unusable,
};

use super::counted::counted;
use crate::arguments::{ForgeAsker, ForgeModel};
use crate::display::printable;
use crate::operator::Operator;

/// Default time limit of an answer.
pub(super) const TIMEOUT: Duration = Duration::from_mins(10);

/// The prices of tokens, if they are given.
pub(super) fn price(options: &ForgeModel) -> Option<Price> {
    let prices = options.price_prompt.zip(options.price_answer);
    prices.map(|(prompt, completion)| Price { prompt, completion })
}

/// True if a model is named, on the command line or in the configuration.
pub(super) fn is_named(options: &ForgeModel, operator: &Operator) -> bool {
    options.url.is_some() || options.model.is_some() || operator.writer.is_some()
}

/// The endpoint of the table `[writer]`, with the options of the command line. The limits of an answer (tokens and
/// time) are the defaults of the configuration's keys; `otherwise` says what the user can do without a model.
pub(super) fn endpoint(
    options: &ForgeModel,
    operator: &Operator,
    (max_tokens, timeout): (u32, Duration),
    otherwise: &str,
) -> anyhow::Result<Endpoint> {
    let mut config = operator.writer.clone().unwrap_or_default();
    if !operator.has(&["writer", "max_tokens"]) {
        config.max_tokens = max_tokens;
    }
    if !operator.has(&["writer", "timeout_ms"]) {
        config.timeout = timeout;
    }
    if let Some(url) = &options.url {
        config.url.clone_from(url);
    }
    if let Some(model) = &options.model {
        config.model.clone_from(model);
    }
    if let Some(key) = &options.key_env {
        config.key_env = Some(key.clone());
        config.key_file = None;
    }
    if let Some(temperature) = options.temperature {
        config.temperature = temperature;
    }
    if config.url.is_empty() || config.model.is_empty() {
        bail!(
            "no model is named; give --url and --model, or a table [writer] with `url` and `model` in the file of --config \
             ({otherwise})"
        );
    }
    Endpoint::open(config).map_err(|error| anyhow!("[writer] {error}"))
}

/// Makes an asker, which asks a model and keeps its answers in a folder.
pub(super) fn asker<'a>(
    options: &ForgeAsker,
    model: &'a Endpoint,
    answers: &Path,
    seed: u64,
    shown: &'a Shown,
) -> Asker<'a> {
    Asker {
        model,
        answers: Answers::new(answers),
        account: Account::new(Limits {
            tokens: options.max_tokens_total,
            time: Duration::from_secs(options.endpoint.max_time),
        }),
        attempts: options.attempts,
        seed,
        observer: shown,
    }
}

/// Prints progress on standard error, unless it is told to be quiet.
pub(super) struct Shown {
    quiet: bool,
}

impl Shown {
    pub(super) fn new(quiet: bool) -> Self {
        Self { quiet }
    }

    pub(super) fn line(&self, text: &str) {
        if !self.quiet {
            eprintln!("{text}");
        }
    }
}

impl AskObserver for Shown {
    /// Shows the question on a terminal only, where somebody waits: a model may take minutes.
    fn asks(&self, stage: &str, attempt: u32) {
        if std::io::stderr().is_terminal() {
            self.line(&format!("{stage}: asking, attempt {attempt}"));
        }
    }

    fn answered(&self, stage: &str, answer: &Answer, kept: bool) {
        let tokens = answer.usage.prompt_tokens + answer.usage.completion_tokens;
        let about = if answer.estimated { "about " } else { "" };
        let how = if kept {
            "from disk".to_owned()
        } else {
            format!("{:.1} s", answer.seconds)
        };
        self.line(&format!("{stage}: {about}{tokens} tokens, {how}"));
    }

    fn refused(&self, stage: &str, why: &Unusable) {
        let why = printable(&why.to_string());
        self.line(&format!(
            "{stage}: {} {why}",
            style("not usable:").yellow().for_stderr()
        ));
    }
}

/// Formats an estimate in words.
pub(super) fn total(total: Total, price: Option<Price>) -> String {
    let Total {
        questions,
        prompt_tokens,
        answer_tokens,
        ..
    } = total;
    let cost = cost(price, prompt_tokens, answer_tokens);
    let questions = counted(questions, "question");
    format!("{questions}, {prompt_tokens} + {answer_tokens} tokens{cost}")
}

/// Formats the tokens spent, in words.
pub(super) fn spent(spent: &Spent, price: Option<Price>) -> String {
    let Spent {
        answers,
        prompt_tokens,
        answer_tokens,
        ..
    } = spent;
    let cost = cost(price, *prompt_tokens, *answer_tokens);
    format!("{answers} answers, {prompt_tokens} + {answer_tokens} tokens{cost}")
}

fn cost(price: Option<Price>, prompt_tokens: u64, answer_tokens: u64) -> String {
    price.map_or(String::new(), |price| {
        format!(", cost {:.4}", price.cost(prompt_tokens, answer_tokens))
    })
}

/// Prints a question as it would be sent.
pub(super) fn question(first: &Question) {
    say!();
    say!(
        "{} ({} tokens)",
        style("first question").bold(),
        first.tokens()
    );
    for message in &first.messages {
        let role = match message.role {
            ChatRole::System => "system",
            ChatRole::User => "user",
            ChatRole::Assistant => "assistant",
            ChatRole::Tool => "tool",
        };
        say!();
        say!("{}", style(format!("[{role}]")).cyan());
        say!("{}", printable(&message.content));
    }
}
