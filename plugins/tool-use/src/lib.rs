//! The reward `tool-use`: calls were valid, and not too many.
//!
//! | term | is |
//! |---|---|
//! | `ok` | 1 if at least `at_least` and at most `at_most` calls were made, all of them valid, else 0 |
//! | `valid_share` | share of valid calls among those tried, 0 to 1; 1 where none was tried |
//! | `used` | 1 if at least `at_least` calls ended well, else 0 |
//! | `calls` | calls tried, malformed ones included; give it a small negative weight to make each one cost |
//! | `excess` | how many of them were more than `at_most` |
//! | `repeated` | how many had the name and arguments of an earlier one |
//! | `unparsed` | how many could not be parsed, with think blocks that are not closed or not opened |
//! | `unknown_tool` | how many were of a tool that does not exist |
//! | `bad_arguments` | how many had arguments that did not fit, or were no JSON object |
//! | `stopped` | how many were stopped: by a limit of time, memory or output, by a closed gate, or by the tool's own exit |
//! | `tools` | how many different tools had a call that succeeded |
//! | `several` | 1 if those are two or more, else 0 |
//!
//! Each kind of error can have a negative weight of its own, as in TL-Training (Ye et al. 2024, arXiv:2412.15495). Tool-Star (Dong et al. 2025, arXiv:2505.16410) adds a bonus for several tools to right
//! answers: `weights = { several = 0.1 }` with `gate = "exact-match.em >= 1"`.
//!
//! A call is valid if the tool answered it, even with a failure ("no such city"). It is invalid if it could not be
//! parsed, its arguments did not fit, or it ran into a limit. Faults of the plugin or the host (a trap, something
//! unavailable) do not count, and neither does a call in the last turn, which is not run.
//!
//! | credit | is |
//! |---|---|
//! | `valid` | of each graded call: 1 or 0. A turn with more calls has more of it |
//! | `turn_valid` | of each turn with a graded call: the share of valid ones among them, 0 to 1 |
//!
//! ```toml
//! [plugins.tool-use.config]   # every key may be left out
//! at_least = 1
//! at_most = 8
//! ```

use std::collections::{BTreeMap, BTreeSet};

use rlf_plugin::serde::Deserialize;
use rlf_plugin::{Ended, Event, Task, Terms, Trajectory, plugin, reward};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, default, crate = "rlf_plugin::serde")]
struct Config {
    at_least: usize,
    at_most: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            at_least: 1,
            at_most: 8,
        }
    }
}

fn init(config: Config) -> Result<Config, String> {
    if config.at_least > config.at_most {
        return Err(format!(
            "configuration: at_least = {} is more than at_most = {}",
            config.at_least, config.at_most
        ));
    }
    Ok(config)
}

/// A turn, and how many of its calls were valid of those that are judged.
struct JudgedTurn {
    event: u32,
    valid: usize,
    judged: usize,
}

/// Counts calls and how they ended.
#[reward]
fn tool_use(_task: &Task, trajectory: &Trajectory, config: &Config) -> Terms {
    let mut terms = Terms::new();
    let (mut calls, mut valid, mut invalid, mut succeeded, mut repeated) =
        (0_usize, 0_usize, 0_usize, 0_usize, 0_usize);
    let mut seen = BTreeSet::new();
    let mut turns: Vec<JudgedTurn> = Vec::new();
    let (mut unparsed, mut unknown, mut bad_arguments) = (0_usize, 0_usize, 0_usize);
    let mut names = BTreeMap::new();
    let mut tools: BTreeSet<&String> = BTreeSet::new();
    for (index, event) in trajectory.events.iter().enumerate() {
        match event {
            Event::Turn(turn) => {
                calls += turn.calls.len() + turn.malformed.len();
                invalid += turn.malformed.len();
                for call in &turn.malformed {
                    match &*call.diagnostic {
                        "unknown-tool" => unknown += 1,
                        "bad-arguments" => bad_arguments += 1,
                        _ => unparsed += 1,
                    }
                }
                names.extend(turn.calls.iter().map(|call| (&call.call_id, &call.name)));
                turns.push(JudgedTurn {
                    event: index as u32,
                    valid: 0,
                    judged: turn.malformed.len(),
                });
                repeated += turn
                    .calls
                    .iter()
                    .filter(|call| !seen.insert((&call.name, &call.arguments)))
                    .count();
            }
            Event::Outcome(outcome) => {
                let credit = match outcome.ended {
                    Ended::Ok | Ended::Failed => {
                        valid += 1;
                        if outcome.ended == Ended::Ok {
                            succeeded += 1;
                            tools.extend(names.get(&outcome.call_id).copied());
                        }
                        1.0
                    }
                    Ended::InvalidArguments
                    | Ended::Timeout
                    | Ended::MemoryLimit
                    | Ended::OutputLimit
                    | Ended::Exited
                    | Ended::Denied => {
                        invalid += 1;
                        bad_arguments += usize::from(outcome.ended == Ended::InvalidArguments);
                        0.0
                    }
                    Ended::Trap | Ended::Unavailable | Ended::Cancelled => continue,
                };
                terms = terms.at_event(index as u32, "valid", credit);
                if let Some(turn) = turns.last_mut() {
                    turn.valid += usize::from(credit == 1.0);
                    turn.judged += 1;
                }
            }
            Event::User(_) => {}
        }
    }
    for turn in turns.iter().filter(|turn| turn.judged > 0) {
        let share = turn.valid as f64 / turn.judged as f64;
        terms = terms.at_event(turn.event, "turn_valid", share);
    }
    let judged = valid + invalid;
    let truth = |holds: bool| if holds { 1.0 } else { 0.0 };
    terms
        .term(
            "ok",
            truth(invalid == 0 && (config.at_least..=config.at_most).contains(&calls)),
        )
        .term(
            "valid_share",
            if judged == 0 {
                1.0
            } else {
                valid as f64 / judged as f64
            },
        )
        .term("used", truth(succeeded >= config.at_least))
        .term("calls", calls as f64)
        .term("excess", calls.saturating_sub(config.at_most) as f64)
        .term("repeated", repeated as f64)
        .term("unparsed", unparsed as f64)
        .term("unknown_tool", unknown as f64)
        .term("bad_arguments", bad_arguments as f64)
        .term(
            "stopped",
            (invalid - unparsed - unknown - bad_arguments) as f64,
        )
        .term("tools", tools.len() as f64)
        .term("several", truth(tools.len() >= 2))
}

plugin!(init: init, reward: tool_use);

#[cfg(test)]
mod tests;
