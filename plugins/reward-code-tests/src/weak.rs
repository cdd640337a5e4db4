//! Tests that must run in the candidate's process.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use rlf_plugin::execute::{Limits, Program, Report};
use rlf_plugin::serde_json::json;

use crate::outcome::{Test, cut_short};
use crate::row::Python;

const HARNESS: &str = include_str!("python/weak.py");

/// One candidate's run of the weak tests.
#[derive(Debug)]
pub(crate) struct WeakRun {
    /// A word that is part of every verdict. The candidate was written before the word was known.
    word: String,
    wanted: Vec<usize>,
}

impl WeakRun {
    pub(crate) fn new(wanted: Vec<usize>, code: &str, seed: u64) -> Self {
        let half = |which: u8| {
            let mut hasher = DefaultHasher::new();
            (which, seed, code).hash(&mut hasher);
            hasher.finish()
        };
        Self {
            word: format!("{:016x}{:016x}", half(0), half(1)),
            wanted,
        }
    }

    pub(crate) fn program(&self, row: &Python, code: &str, limits: Limits, seed: u64) -> Program {
        let row = json!({
            "prelude": row.prelude,
            "setup": row.setup,
            "tests": row.tests,
            "entry": row.entry,
            "wanted": self.wanted,
            "word": self.word,
        });
        Program::new("python", format!("{HARNESS}\n\nmain()\n"))
            .file("row.json", row.to_string())
            .file("candidate.py", code)
            .seed(seed)
            .limits(limits)
    }

    /// The outcome of each of the wanted tests.
    pub(crate) fn read(&self, report: &Report) -> Vec<Test> {
        let printed = [&*report.stdout.head, &*report.stdout.tail].concat();
        let printed = String::from_utf8_lossy(&printed);
        let said = |what: &str| {
            printed
                .lines()
                .any(|line| line.strip_prefix('\u{1e}') == Some(what))
        };
        let test = |number: &usize| {
            if said(&format!("passed {number} {}", self.word)) {
                Test::Passed
            } else if said(&format!("failed {number}")) {
                Test::Wrong
            } else if said(&format!("started {number}")) || !said("loaded") {
                cut_short(report)
            } else {
                Test::Unreached
            }
        };
        self.wanted.iter().map(test).collect()
    }
}
