//! Prints what `forge env new` does: the estimate, each answer and each round.

use std::path::Path;

use console::style;
use rlf_endpoint::Price;
use rlf_forge::writer::{Estimate, Examination, Reached, Round, Stop, WriteObserver, Written};

use crate::commands::forge::asking::{Shown, spent, total};
use crate::commands::forge::verify::label as severity;
use crate::display::printable;

/// Maximum number of findings that are printed for a round.
const MAX_FINDINGS: usize = 8;

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

/// Formats a number of things, in words.
fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}

/// Prints the estimate of each stage.
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

/// Prints the totals of an estimate.
pub(super) fn estimate(estimated: &Estimate, price: Option<Price>) {
    say!(
        "estimate without a revision: {}",
        total(estimated.total(0, None), price)
    );
    if estimated.rounds > 0 {
        let most = total(estimated.total(estimated.rounds, None), price);
        let revisions = counted(estimated.rounds as usize, "revision");
        say!("estimate with {revisions}: {most}");
    }
}

/// Prints the result.
pub(super) fn written(written: &Written, folder: &Path, price: Option<Price>) {
    say!("{}: {}", style(&written.name).bold(), why(written));
    say!("{}", written.file.display());
    say!(
        "{}; all of it is in {}",
        spent(&written.spent, price),
        folder.display()
    );
}

/// The reason why the rounds ended, and what to do.
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
