//! A candidate's runs: its code, then the steps of the plan, each answered as soon as it is done.
//!
//! All steps share one program, as is usual in the field, so that each step sees the effects of the ones before. If a
//! step ends the program (it loops, it exits), another program continues after it: earlier answers stay, and a step
//! that loops counts as failed.

use std::collections::{BTreeMap, BTreeSet};

use rlf_plugin::execute::{Compiled, Limits, Program, Report};
use rlf_plugin::serde_json::{self, Value, json};

use crate::outcome::{Test, cut_short};
use crate::plan::{MODULE, Plan};

const CODE: &str = "candidate.py";
const RESULTS: &str = "results";
/// Begins every line of the protocol; everything else that a candidate prints is its own output.
const MARK: char = '\u{1e}';

/// The progress of a candidate so far.
#[derive(Debug, Default)]
pub(crate) struct Candidate {
    code: String,
    values: BTreeMap<usize, Value>,
    /// Steps that ended without a value.
    failed: BTreeMap<usize, Test>,
    /// Statements that ended their program.
    skipped: BTreeSet<usize>,
    /// The reason why the code itself did not run to its end.
    pub(crate) broken: Option<Test>,
    /// True if the code does not even parse.
    pub(crate) rejected: bool,
    pub(crate) programs: usize,
    /// True if a program used numpy where its default integers have 32 bits.
    pub(crate) narrow_integers: bool,
    finished: bool,
}

impl Candidate {
    pub(crate) fn new(code: String) -> Self {
        Self {
            code,
            ..Self::default()
        }
    }

    /// Steps that must still run, in order.
    fn wanted(&self, plan: &Plan) -> Vec<usize> {
        let open = |step: &usize| {
            if plan.steps[*step] {
                !self.values.contains_key(step) && !self.failed.contains_key(step)
            } else {
                !self.skipped.contains(step)
            }
        };
        (0..plan.steps.len()).filter(open).collect()
    }

    /// True if another program could still give a result.
    pub(crate) fn is_open(&self, plan: &Plan, attempts: usize) -> bool {
        !self.finished
            && self.broken.is_none()
            && self.programs < attempts
            && self.wanted(plan).iter().any(|step| plan.steps[*step])
    }

    /// The program that continues after the last one.
    pub(crate) fn program(
        &self,
        plan: &Plan,
        module: &Compiled,
        limits: Limits,
        seed: u64,
    ) -> Program {
        Program::new(
            "python",
            format!("import {MODULE}\n{MODULE}.main({MODULE}.STEPS)\n"),
        )
        .arguments(["main.py".to_owned(), json!(self.wanted(plan)).to_string()])
        .file(CODE, self.code.clone())
        .fetch(RESULTS)
        .module(module)
        .seed(seed)
        .limits(limits)
    }

    /// Reads a program's report.
    pub(crate) fn learn(&mut self, plan: &Plan, report: &Report) {
        self.programs += 1;
        self.narrow_integers |= report.has_narrow_integers();
        let wanted = self.wanted(plan);
        let mut loaded = false;
        let mut done = BTreeSet::new();
        let parts = [
            &*report.stdout.head,
            &*report.stdout.tail,
            report.file(RESULTS).unwrap_or_default(),
        ];
        for line in parts
            .into_iter()
            .flat_map(|part| part.split(|byte| *byte == b'\n'))
        {
            let Some(line) = std::str::from_utf8(line)
                .ok()
                .and_then(|line| line.strip_prefix(MARK))
            else {
                continue;
            };
            let (what, rest) = line.split_once(' ').unwrap_or((line, ""));
            match what {
                "rejected" => {
                    self.rejected = true;
                    self.broken = Some(Test::Raised);
                }
                "raised" => self.broken = Some(Test::Raised),
                "loaded" => loaded = true,
                step => {
                    let Some(step) = step.parse().ok().filter(|step| wanted.contains(step)) else {
                        continue;
                    };
                    if done.insert(step) && plan.steps[step] {
                        self.answered(step, rest);
                    }
                }
            }
        }
        if self.broken.is_some() {
            return;
        }
        if !loaded {
            self.broken = Some(cut_short(report));
            return;
        }
        match wanted.into_iter().find(|step| !done.contains(step)) {
            None => self.finished = true,
            Some(step) if plan.steps[step] => {
                self.failed.insert(step, cut_short(report));
            }
            Some(step) => {
                self.skipped.insert(step);
            }
        }
    }

    fn answered(&mut self, step: usize, answer: &str) {
        let (kind, text) = answer.split_once(' ').unwrap_or((answer, ""));
        match (kind, serde_json::from_str(text)) {
            ("value", Ok(value)) => {
                self.values.insert(step, value);
            }
            ("raised", _) => {
                self.failed.insert(step, Test::Raised);
            }
            _ => {
                self.failed.insert(step, Test::Refused);
            }
        }
    }

    pub(crate) fn value(&self, step: usize) -> Option<&Value> {
        self.values.get(&step)
    }

    /// The reason why an assertion cannot hold if one of its values is missing.
    pub(crate) fn missing(&self, holes: &[usize]) -> Option<Test> {
        let step = holes.iter().find(|step| !self.values.contains_key(step))?;
        let known = self.broken.or_else(|| self.failed.get(step).copied());
        Some(known.unwrap_or(Test::Unreached))
    }
}
