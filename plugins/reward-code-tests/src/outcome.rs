//! The outcomes of one candidate's tests.

use rlf_plugin::execute::{Outcome, Report};
use rlf_plugin::{Ended, Terms};

use crate::config::{Config, Scoring};

/// The outcome of one test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Test {
    Passed,
    /// Another value than the expected one.
    Wrong,
    /// An exception.
    Raised,
    /// The returned value is not plain data.
    Refused,
    TimedOut,
    /// Out of memory, of stack or of output.
    Exceeded,
    /// The program ended early: `sys.exit`, `os._exit`.
    Exited,
    /// It did not run: the code did not load, or the candidate's programs were used up.
    Unreached,
}

const KINDS: [(Test, &str); 7] = [
    (Test::Wrong, "wrong"),
    (Test::Raised, "raised"),
    (Test::Refused, "refused"),
    (Test::TimedOut, "timed_out"),
    (Test::Exceeded, "exceeded"),
    (Test::Exited, "exited"),
    (Test::Unreached, "unreached"),
];

/// The outcome of a program that did not run to its end.
pub(crate) fn cut_short(report: &Report) -> Test {
    match report.ended {
        Ended::Timeout => Test::TimedOut,
        Ended::MemoryLimit | Ended::OutputLimit | Ended::Trap => Test::Exceeded,
        _ => match report.outcome {
            Some(Outcome::Raised(_) | Outcome::Rejected(_)) => Test::Raised,
            _ => Test::Exited,
        },
    }
}

/// All results of one candidate.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Graded {
    pub(crate) tests: Vec<Test>,
    /// Number of tests that ran in the candidate's process.
    pub(crate) weak: usize,
    /// True if there was code that parses.
    pub(crate) extracted: bool,
    pub(crate) programs: usize,
    /// True if a program used numpy where its default integers have 32 bits.
    pub(crate) narrow_integers: bool,
}

impl Graded {
    /// The outcomes of an answer without code.
    pub(crate) fn nothing() -> Self {
        Self {
            tests: Vec::new(),
            weak: 0,
            extracted: false,
            programs: 0,
            narrow_integers: false,
        }
    }

    pub(crate) fn terms(&self, config: &Config) -> Terms {
        let count = |kind: Test| self.tests.iter().filter(|test| **test == kind).count();
        let passed = count(Test::Passed);
        let all = f64::from(u8::from(passed == self.tests.len() && passed > 0));
        let rate = if self.tests.is_empty() {
            0.0
        } else {
            passed as f64 / self.tests.len() as f64
        };
        let score = match config.score {
            Scoring::All => all,
            Scoring::Rate => rate,
        };
        let mut terms = Terms::new()
            .term("score", score)
            .term("all", all)
            .term("rate", rate)
            .term("extracted", f64::from(u8::from(self.extracted)))
            .metric("tests", self.tests.len() as f64)
            .metric("passed", passed as f64)
            .metric("failed", (self.tests.len() - passed) as f64)
            .metric("weak", self.weak as f64)
            .metric("programs", self.programs as f64)
            .metric("narrow_integers", f64::from(u8::from(self.narrow_integers)));
        for (kind, name) in KINDS {
            terms = terms.metric(name, count(kind) as f64);
        }
        terms
    }
}
