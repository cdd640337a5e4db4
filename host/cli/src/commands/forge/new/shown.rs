//! Prints what `forge env new` does: the estimate, each answer and each round.

use std::io::IsTerminal as _;
use std::path::Path;

use console::style;
use rlf_endpoint::ChatRole;
use rlf_forge::ask::{Answer, AskObserver, Price, Question, Unusable};
use rlf_forge::writer::{
    Estimate, Examination, Reached, Round, Stop, Total, WriteObserver, Written,
};

use crate::commands::forge::verify::label as severity;
use crate::display::printable;

/// Most findings that are printed for a round.
const MAX_FINDINGS: usize = 8;

/// Prints progress on standard error, unless it is told to be quiet.
pub(super) struct Shown {
    quiet: bool,
}

impl Shown {
    pub(super) fn new(quiet: bool) -> Self {
        Self { quiet }
    }

    fn line(&self, text: &str) {
        if !self.quiet {
            eprintln!("{text}");
        }
    }
}

impl AskObserver for Shown {
    /// A model may take minutes, and only on a terminal somebody waits.
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

impl WriteObserver for Shown {
    fn examined(&self, round: &Round) {
        let number = round.number;
        self.line(&format!("round {number}: {}", verdict(&round.examination)));
        let findings = &round.examination.findings;
        for finding in findings.iter().take(MAX_FINDINGS) {
            let text = printable(&format!("{finding} ({})", finding.kind));
            self.line(&format!("  {} {text}", severity(finding.severity)));
        }
        if findings.len() > MAX_FINDINGS {
            let more = findings.len() - MAX_FINDINGS;
            self.line(&format!(
                "  and {more} more; they are in {}",
                round.file.display()
            ));
        }
        for finding in round.claims.iter().flat_map(|claims| &claims.untrue) {
            let place = printable(&finding.place);
            self.line(&format!(
                "  the model said that it mended {place} ({}), which is not so",
                finding.kind
            ));
        }
    }
}

fn verdict(found: &Examination) -> String {
    let (loaded, all) = found.loaded;
    let played = format!(
        "{loaded} of {all} initial states, {} tools, {} calls",
        found.tools, found.calls
    );
    let (errors, warnings) = (found.errors(), found.findings.len() - found.errors());
    let (errors, warnings) = (counted(errors, "error"), counted(warnings, "warning"));
    match found.reached {
        Reached::Sound => format!("sound, {warnings} ({played})"),
        Reached::Played => format!("{errors}, {warnings} ({played})"),
        Reached::Checked => format!("{errors}, {warnings} (not played)"),
    }
}

/// A number of things, in words.
fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

/// The estimate of each stage.
pub(super) fn stages(estimated: &Estimate) {
    say!("{:<26} {:>10} {:>10}", "stage", "question", "answer");
    for stage in estimated.stages.iter().chain([&estimated.revision]) {
        say!(
            "{:<26} {:>10} {:>10}",
            stage.stage,
            stage.prompt_tokens,
            stage.answer_tokens
        );
    }
}

/// The totals of an estimate.
pub(super) fn estimate(estimated: &Estimate, price: Option<Price>) {
    let total = |total: Total| {
        let cost = total
            .cost
            .map_or(String::new(), |cost| format!(", cost {cost:.4}"));
        format!(
            "{} questions, {} + {} tokens{cost}",
            total.questions, total.prompt_tokens, total.answer_tokens
        )
    };
    say!(
        "estimate without a revision: {}",
        total(estimated.total(0, price))
    );
    if estimated.rounds > 0 {
        let most = total(estimated.total(estimated.rounds, price));
        let revisions = counted(estimated.rounds as usize, "revision");
        say!("estimate with {revisions}: {most}");
    }
}

/// A question as it would be sent.
pub(in crate::commands::forge) fn question(first: &Question) {
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
        };
        say!();
        say!("{}", style(format!("[{role}]")).cyan());
        say!("{}", printable(&message.content));
    }
}

/// The result.
pub(super) fn written(written: &Written, folder: &Path, price: Option<Price>) {
    let spent = &written.spent;
    let cost = price.map_or(String::new(), |price| {
        let cost = price.cost(spent.prompt_tokens, spent.answer_tokens);
        format!(", cost {cost:.4}")
    });
    say!("{}: {}", style(&written.name).bold(), why(written));
    say!("{}", written.file.display());
    say!(
        "{} answers, {} + {} tokens{cost}; all of it is in {}",
        spent.answers,
        spent.prompt_tokens,
        spent.answer_tokens,
        folder.display()
    );
}

/// The reason for the end, and what to do.
fn why(written: &Written) -> String {
    let revisions = written.rounds.len() - 1;
    let best = format!(
        "not sound; the best candidate is that of round {}",
        written.best
    );
    match &written.stop {
        Stop::Sound if revisions == 0 => "sound at once".to_owned(),
        Stop::Sound => format!("sound after {}", counted(revisions, "revision")),
        Stop::Rounds => format!(
            "{best} after {}; raise --rounds to go on",
            counted(revisions, "revision")
        ),
        Stop::Tokens { message } => format!("{best}; {message}; raise --max-tokens-total to go on"),
        Stop::Time => format!("{best}; the time is up; raise --max-time to go on"),
        Stop::NoProgress { why } => format!(
            "{best}; {}; another model, --seed or changed --prompts may do better, or mend the file by hand",
            why.text()
        ),
        Stop::Unanswered { message } => {
            let message = printable(message);
            format!("{best}; {message}; the same command goes on from there")
        }
    }
}
