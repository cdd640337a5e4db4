//! The reward `reward-judge`: a language model grades trajectories by the operator's rubric.
//!
//! The README has the configuration, the terms, and what a judge cannot promise.
//!
//! # Where to find things
//!
//! | module | does |
//! |---|---|
//! | `config`, `criteria` | read and check the configuration |
//! | `judged` | chooses what the judge sees of a task and of a trajectory |
//! | `neutral`, `shown` | make untrusted text harmless and short |
//! | `seeded`, `nonce` | draw everything random from the grading seed |
//! | `prompt` | puts data between delimiters and writes the two messages |
//! | `json`, `reply` | read the judge's answer, strictly |
//! | `ask` | asks side by side, and again after an unusable answer |
//! | `score`, `pairwise`, `ranking` | the three modes |
//!
//! # What no module may do
//!
//! Put untrusted text into a message without [`shown::Part`] and [`prompt::Block`], or repeat the judge's own words to
//! the judge: they may quote the data.

mod ask;
mod case;
mod config;
mod criteria;
mod json;
mod judged;
mod neutral;
mod nonce;
mod pairwise;
mod prompt;
mod ranking;
mod reply;
mod score;
mod seeded;
mod shown;

use rlf_plugin::{Grading, Task, Terms, Trajectory, plugin, reward};

use case::Case;
use config::{Mode, Settings, init};

/// Grades a group by the rubric.
#[reward]
fn judge(
    settings: &Settings,
    task: &Task,
    group: &[Trajectory],
    grading: &Grading,
) -> Vec<Result<Terms, String>> {
    let case = Case::new(settings, task, group, grading.seed);
    let graded = match settings.config.mode {
        Mode::Score => score::grade(&case),
        Mode::Pairwise => pairwise::grade(&case),
        Mode::Ranking => ranking::grade(&case),
    };
    graded.unwrap_or_else(|why| group.iter().map(|_| Err(why.clone())).collect())
}

plugin!(init: init, reward: judge);

#[cfg(test)]
mod tests;
