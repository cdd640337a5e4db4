//! The reward `reward-envfactory`: grades gold calls and final states as EnvFactory does.
//!
//! Formula: "EnvFactory: Scaling Tool-Use Agents via Executable Environments Synthesis and Robust RL" (arXiv
//! 2605.18703).
//!
//! | term | is |
//! |---|---|
//! | `score` | max(0, τ `trace` + (1 - τ) `state` - `length` - `format`), 0 to 1 |
//! | `trace` | 1 if every gold call has a matching call of its own, else 0 |
//! | `state` | share of the servers named in the reference's `state` that ended in that state, 0 to 1; 1 where none is named |
//! | `length` | a cost: 0.05 for each call more than there are gold calls, at most 0.5 |
//! | `format` | a cost: 0.05 for each call that could not be parsed or whose tool is not there, at most 0.5 |
//! | `solved` | 1 if `trace` and `state` are 1, else 0 |
//!
//! The metric `tau` is the τ that was used, the metric `calls` the number of parsed calls.
//!
//! # Calls
//!
//! Each gold call in turn takes the first matching call of the trajectory that is still free, so the order does not
//! matter. A call matches if it has the same name and equal values for every gold argument that is not masked.
//! Further arguments do not matter, and a masked one may be left out. Numbers are equal within 1e-6 of the larger
//! one, in lists and objects too. A number and a text of that number differ, as in the tool's schema; so do `null`
//! and a missing value, and `true` and 1. As published, the choice is greedy: if a gold call that compares fewer
//! arguments comes before a similar one, it may take the only call that the other could have used.
//!
//! Calls count as the model made them, whether they succeeded, failed or were not run.
//!
//! # States
//!
//! States are JSON values; the order of keys does not matter, and numbers are compared by value (1 is 1.0, as in
//! Python; `true` is not 1, unlike in Python). A server that was never called is in its initial state: the state that
//! the trajectory's final state has for it, else the reference's `initial`. As published (`uncalled = "mismatch"`) it
//! never matches, even if the task must not change it. A server was called if the name of a call begins with the
//! server's name and `-`; of two such servers the longer name counts.
//!
//! # Reference
//!
//! ```json
//! {"calls": [{"name": "Files-move", "arguments": {"from": "/a", "to": "/b", "note": "x"}, "masked": ["note"]}],
//!  "state": {"Files": {"/b": "text"}},
//!  "initial": {"Files": {"/a": "text"}}}
//! ```
//!
//! `calls` and `state` may be empty but not left out; `masked` may be left out, and so may `initial` if the final
//! state names every server.
//!
//! ```toml
//! [plugins.envfactory.config]       # every key may be left out
//! tau = { from = 0.9, to = 0.1 }    # or a number: 0.5
//! uncalled = "initial"              # or "mismatch", as published
//! ```
//!
//! A τ with `from` and `to` changes linearly over the steps of training: it is `from` in the first step and `to` in
//! the last one. Outside training (another split than `train`, or a run without planned steps) it is `to`, so that
//! evaluations of one run can be compared.

mod config;
mod reference;
mod state;
mod trace;
mod value;

use rlf_plugin::{Grading, Task, Terms, Trajectory, plugin, reward};

use config::{Config, init};
use reference::Reference;

/// Compares calls and states with those of the reference.
#[reward]
fn envfactory(
    task: &Task,
    trajectory: &Trajectory,
    grading: &Grading,
    config: &Config,
) -> Result<Terms, String> {
    let reference = task.reference_value().map_err(|error| error.to_string())?;
    let reference = Reference::read(&reference)?;
    let calls = trace::calls(trajectory);
    let trace = truth(trace::holds(&calls, &reference.calls));
    let state = state::share(trajectory, &calls, &reference, config.uncalled)?;
    let cost = |count: usize| (0.05 * count as f64).min(0.5);
    let length = cost(calls.len().saturating_sub(reference.calls.len()));
    let format = cost(trace::malformed(trajectory));
    let tau = config.tau.at(grading);
    let score = tau * trace + (1.0 - tau) * state - length - format;
    Ok(Terms::new()
        .term("score", score.max(0.0))
        .term("trace", trace)
        .term("state", state)
        .term("length", length)
        .term("format", format)
        .term("solved", truth(trace == 1.0 && state == 1.0))
        .metric("tau", tau)
        .metric("calls", calls.len() as f64))
}

fn truth(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

plugin!(init: init, reward: envfactory);

#[cfg(test)]
mod tests;
