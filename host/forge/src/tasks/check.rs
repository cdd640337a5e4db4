//! Checks whether a task can be solved from what its text says, and whether it is worth solving.
//!
//! | looking for | module |
//! |---|---|
//! | the gold calls: they do what the task says | `gold` |
//! | the origin of each argument of the gold calls | `flow` |
//! | values that the text must say, and values that it must not say | `said` |
//! | a solver that acts, given only what the text says | `solver`, `fitting` |
//! | descriptions that fit other entities too, which no lookup of the solver showed | `described` |
//! | tasks that are trivial, do nothing, or are there already | `filters` |

mod described;
mod filters;
mod fitting;
mod flow;
mod gold;
mod said;
mod solver;

pub use filters::Seen;
pub(super) use said::{says, times_said};
pub use solver::solves;

use std::collections::BTreeMap;

use rlf_random::{Key, Purpose};
use serde::{Deserialize, Serialize};

use super::options::TaskOptions;
use super::record::{Measures, Origin, TaskRecord};
use super::rejection::{Reason, Rejection};
use super::suite::Suite;
use crate::graph::ToolGraph;

/// Findings of the checks about a task that passed them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checked {
    /// The origin of each argument, for each call of each turn.
    pub origins: Vec<Vec<BTreeMap<String, Origin>>>,
    /// The turns that are context only, from 0: see [`Turn::context_only`](super::record::Turn::context_only).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub context_only: Vec<usize>,
    /// The task's size and difficulty.
    pub measures: Measures,
}

/// Checks a task. Its origins and measures need not be filled in.
///
/// The checks read these options: the seed of the solver's choices, its attempts and how many must succeed,
/// `keep_trivial`, and `unchecked`. With the last one every task passes, and its difficulty is 0.
pub fn check(
    suite: &Suite,
    graph: &ToolGraph,
    task: &TaskRecord,
    options: &TaskOptions,
) -> Result<Checked, Rejection> {
    let measures = Measures::new(&task.turns, task.servers.len());
    if options.unchecked {
        let origins = flow::origins(suite, task, true)?;
        return Ok(Checked {
            origins,
            context_only: Vec::new(),
            measures,
        });
    }
    said::everything(suite, task)?;
    let origins = flow::origins(suite, task, false)?;
    said::nothing_more(suite, task)?;
    let context_only = filters::worth_doing(suite, task, &origins, options.keep_trivial)?;
    gold::carried_out(suite, task)?;
    let key = Key::new(options.seed, Purpose::Order)
        .named("forge solver")
        .named(&task.id);
    let attempts = options.attempts;
    let mut passes = 0;
    let mut last = String::new();
    for attempt in 0..attempts {
        match solves(suite, graph, task, key, attempt) {
            Ok(()) => passes += 1,
            Err(why) => last = why.to_string(),
        }
    }
    if passes < options.min_passes {
        let detail =
            format!("{passes} of {attempts} attempts reached the goal; the last failure: {last}");
        return Err(Rejection::new(Reason::Impossible, detail));
    }
    described::fit_one(suite, task)?;
    Ok(Checked {
        origins,
        context_only,
        measures: measures.tried(attempts, passes),
    })
}
