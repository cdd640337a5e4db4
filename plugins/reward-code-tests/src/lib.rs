//! The reward `reward-code-tests`: runs a candidate's Python code against hidden tests, which the code never sees.
//!
//! | term | is |
//! |---|---|
//! | `all` | 1 if every test passed, else 0 |
//! | `rate` | share of the tests that passed, 0 to 1 |
//! | `score` | `all` or `rate`, as the configuration says |
//! | `extracted` | 1 if the answer held code, else 0 |
//!
//! Expected values, comparisons and the verdict stay out of the interpreter that runs the candidate. The
//! README says which rows are read, what cannot be fooled, and what `weak` means.
//!
//! ```toml
//! [plugins.tests.config]   # every key may be left out
//! score = "all"            # or "rate"
//! code = "last-block"      # or "first-block", "all-blocks", "answer"
//! weak = "run"             # or "fail", "error"
//! wall_ms = 1_000          # CPU time and virtual time of one program
//! memory_bytes = 0         # 0: what the interpreter's own limits allow
//! attempts = 3             # programs for one candidate's calls; a new one goes on behind a call that never ends
//! max_tests = 0            # 0: all of a row
//! programs = 64            # what limits.nested_calls allows one grade call
//! ```

mod candidate;
mod config;
mod extract;
mod grade;
mod judge;
mod outcome;
mod plan;
mod row;
mod streams;
mod value;
mod weak;

use config::{Config, init};
use rlf_plugin::{Grading, Task, Terms, Trajectory, plugin, reward};

/// Runs the code of the answers against the task's tests.
#[reward]
fn code_tests(
    config: &Config,
    task: &Task,
    group: &[Trajectory],
    grading: &Grading,
) -> Vec<Result<Terms, String>> {
    grade::group(config, task, group, grading)
        .unwrap_or_else(|why| group.iter().map(|_| Err(why.clone())).collect())
}

plugin!(init: init, reward: code_tests);

#[cfg(test)]
mod tests;
