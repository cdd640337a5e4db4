//! The reward `format`: the model answered, and its calls were well formed.
//!
//! | term | is |
//! |---|---|
//! | `answered` | 1 if the trajectory ended with an answer that is not blank, else 0 |
//! | `well_formed` | share of the calls that could be parsed, 0 to 1; 1 where none was tried |
//! | `ok` | 1 if the model answered and every call could be parsed, else 0: made for gates |
//!
//! `tool-use` covers calls that could be parsed but were refused for their arguments.
//!
//! ```toml
//! [plugins.format.config]   # may be left out
//! max_answer_chars = 200    # a longer answer counts as none
//! ```

use rlf_plugin::serde::Deserialize;
use rlf_plugin::{Finish, Task, Terms, Trajectory, plugin, reward};

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, crate = "rlf_plugin::serde")]
struct Config {
    max_answer_chars: Option<usize>,
}

fn init(config: Config) -> Result<Config, &'static str> {
    if config.max_answer_chars == Some(0) {
        return Err("configuration: with max_answer_chars = 0 there is no answer");
    }
    Ok(config)
}

/// Grades the form of answer and calls, not their content.
#[reward]
fn format(_task: &Task, trajectory: &Trajectory, config: &Config) -> Terms {
    let answer = trajectory
        .answer
        .as_deref()
        .map(str::trim)
        .unwrap_or_default();
    let fits = config
        .max_answer_chars
        .is_none_or(|most| answer.chars().count() <= most);
    let answered = trajectory.finish == Finish::Answered && !answer.is_empty() && fits;

    let calls: usize = trajectory.turns().map(|turn| turn.calls.len()).sum();
    let malformed: usize = trajectory.turns().map(|turn| turn.malformed.len()).sum();
    let well_formed = if malformed == 0 {
        1.0
    } else {
        calls as f64 / (calls + malformed) as f64
    };

    let truth = |holds: bool| if holds { 1.0 } else { 0.0 };
    Terms::new()
        .term("ok", truth(answered && malformed == 0))
        .term("answered", truth(answered))
        .term("well_formed", well_formed)
}

plugin!(init: init, reward: format);

#[cfg(test)]
mod tests;
