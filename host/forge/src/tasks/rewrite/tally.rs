//! Tokens and time of each task.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use rlf_endpoint::Spent;

use crate::ask::{Answer, AskObserver, Unusable};

/// Counts what each task spent, and passes everything on.
pub(super) struct Tally<'a> {
    observer: &'a dyn AskObserver,
    spent: Mutex<BTreeMap<String, Spent>>,
}

impl<'a> Tally<'a> {
    pub(super) fn new(observer: &'a dyn AskObserver) -> Self {
        let spent = Mutex::default();
        Self { observer, spent }
    }

    /// The answers and tokens spent on questions about a task. The stages of these questions have its id after the first `-`.
    pub(super) fn spent(&self, task: &str) -> Spent {
        let spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        let mut sum = Spent::default();
        let of_task = |stage: &str| {
            let rest = stage.split_once('-').map(|(_, rest)| rest);
            let rest = rest.and_then(|rest| rest.strip_prefix(task));
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        for (_, one) in spent.iter().filter(|(stage, _)| of_task(stage)) {
            sum.add(one);
        }
        sum
    }
}

impl AskObserver for Tally<'_> {
    fn asks(&self, stage: &str, attempt: u32) {
        self.observer.asks(stage, attempt);
    }

    fn answered(&self, stage: &str, answer: &Answer, kept: bool) {
        let mut spent = self.spent.lock().unwrap_or_else(PoisonError::into_inner);
        spent
            .entry(stage.to_owned())
            .or_default()
            .add(&answer.spent());
        drop(spent);
        self.observer.answered(stage, answer, kept);
    }

    fn refused(&self, stage: &str, why: &Unusable) {
        self.observer.refused(stage, why);
    }
}
