//! The reward `reward-ftrl`: tool calls that yielded the sub-answers of a question, as FTRL grades them.
//!
//! Formulas: "Feedback-Driven Tool-Use Improvements in Large Language Models via Automated Build Environments" (arXiv
//! 2508.08791), and the code published with it. A task has sub-answers by tool. A call solves the first remaining
//! sub-answer of its tool that its observation contains, and this one is then removed.
//!
//! | term | is |
//! |---|---|
//! | `solve_f1` | 2 solved / (calls + sub-answers), 0 to 1 |
//! | `solve_p` | solved / calls, 0 to 1; 1 where no call was made |
//! | `solve_r` | solved / sub-answers, 0 to 1 |
//! | `solve_product` | `solve_p` x `solve_r`, 0 to 1: an alternative to F1 that FTRL compares it with |
//! | `final` | the reward of the last turn if it made no call, -0.5 to 1; 0 if it made one |
//! | `step` | the reward of the last turn, of any kind: samples of one turn are trained on it |
//! | `step_mean` | the mean reward of all turns; 0 without turns |
//! | `matched` | only with gold calls in the reference: 2 x the sum of all similarities / (calls + gold calls), 0 to 1 |
//!
//! | credit of a turn | is |
//! |---|---|
//! | `step` | the reward of the turn, see below |
//! | `matched` | only with gold calls, of turns with a call: the mean similarity of its calls to the gold calls they got, 0 to 1 |
//!
//! If a task has no sub-answer, `solve_r` is 1, and `solve_f1` is 1 without a call and 0 with one; FTRL's evaluation
//! refuses such tasks. The metrics `calls`, `solved` and `sub_answers` are the numbers of the shares.
//!
//! # The reward of a turn
//!
//! With p calls of which q solved something, t sub-answers being left before the turn. The first line that holds
//! counts:
//!
//! | turn | `step = "published"` | `"precision"` | `"solved"` | `"solved-precision"` |
//! |---|---|---|---|---|
//! | p > 0 | 2q / (p + 1), below 2 | q / p | q | q² / p |
//! | it is empty | -0.5 | the same | the same | the same |
//! | a call in it could not be parsed | -0.3 | | | |
//! | it has the right answer | 1 / (t + 1) | | | |
//! | nothing was left to solve | 0.5 | | | |
//! | any other | 0 | | | |
//!
//! `"published"` is the reward that FTRL trains on. It is not quite the F1 of its evaluation: it has 1 instead of the
//! number of sub-answers. The others are alternatives in FTRL's code. A call that could not be parsed costs -0.3 only
//! in a turn without a good call; beside a good call it does not count. The answer is worth more if fewer sub-answers
//! are left: without any call, with four sub-answers left, it is worth 0.2. The code gives half a point for a wrong
//! answer in a row whose `solve_rate` is 1; here that is a task without remaining sub-answers.
//!
//! p counts calls that ended, in any way, and calls of tools that do not exist. Calls that the host did not run, in a
//! last turn without `last_turn_calls = "grade"`, count nowhere: the reward of their turn is 0.
//!
//! # Matching
//!
//! | | `matching = "published"` | `matching = "strict"` |
//! |---|---|---|
//! | a sub-answer | every part between `", "` is somewhere in the observation | the same, as whole words and numbers |
//! | `2` in `12` | found | not found |
//! | an error that repeats the call | may solve | never solves: only calls that ended `ok`, not marked as failed |
//! | the answer | is somewhere in the text of the turn, reasoning included | is in the answer that the host took, which is outside reasoning |
//! | an empty one | is found everywhere | is an error, as nothing could match it |
//! | an empty turn | has no text but special tokens | has nothing outside reasoning and calls |
//! | a call that is not parsed | any tag of a call in the text, or the parser's word | the parser's word |
//!
//! Both ignore case and thousands commas. Published matching is exact: it finds in a turn's text exactly what FTRL
//! finds. So the model may be rewarded for its own text that a tool repeats. The host's parsing of a turn, before any
//! reward, differs: FTRL runs a call inside reasoning, and it may still read the JSON of a call that is not closed.
//! And a structured result is searched as compact JSON, while FTRL's has a space after `:`.
//!
//! # Two ways to use it
//!
//! Over whole trajectories, weigh `solve_f1` and `final`, or give each turn its credit `step`. To train as FTRL does,
//! use samples of one turn: each task's prompt contains the earlier turns, its `unsolved` the sub-answers that they
//! left, `max_turns` is 1 and `last_turn_calls` is `"grade"`; then weigh `step`.
//!
//! # Reference
//!
//! ```json
//! {"answer": "Salmon", "unsolved": {"business_locator": ["Seattle Bait Store"], "fish_identifier": ["Salmon"]},
//!  "calls": [{"name": "business_locator", "arguments": {"port": "Seattle Port"}}]}
//! ```
//!
//! `answer` and `calls` may be left out. Gold calls and the trajectory's calls are matched one to one with the
//! greatest sum of similarities: a retry can replace the attempt before it, and a repetition gets nothing. Calls with
//! the same name have similarity (1 + share) / 2, where share is the part of their arguments, by name, that are in
//! both and equal; calls with different names have 0. Here calls count as the model wrote them, run or not.
//!
//! ```toml
//! [plugins.ftrl.config]     # every key may be left out
//! step = "published"        # or "precision", "solved", "solved-precision"
//! matching = "published"    # or "strict"
//! ```

mod assignment;
mod gold_calls;
mod matching;
mod reference;
mod steps;
mod words;

use rlf_plugin::serde::Deserialize;
use rlf_plugin::{Task, Terms, Trajectory, plugin, reward};

use matching::Matching;
use reference::Reference;
use steps::Episode;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, crate = "rlf_plugin::serde")]
struct Config {
    step: StepReward,
    matching: Matching,
}

/// The value of a turn with calls.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "kebab-case", crate = "rlf_plugin::serde")]
enum StepReward {
    #[default]
    Published,
    Precision,
    Solved,
    SolvedPrecision,
}

impl StepReward {
    /// The value of `calls` calls, at least one, of which `solved` solved a sub-answer.
    fn value(self, calls: usize, solved: usize) -> f64 {
        let (calls, solved) = (calls as f64, solved as f64);
        match self {
            Self::Published => 2.0 * solved / (calls + 1.0),
            Self::Precision => solved / calls,
            Self::Solved => solved,
            Self::SolvedPrecision => solved * solved / calls,
        }
    }
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "an `init` may refuse, this one has nothing to refuse"
)]
fn init(config: Config) -> Result<Config, String> {
    Ok(config)
}

/// Grades what the calls solved, turn by turn.
#[reward]
fn ftrl(task: &Task, trajectory: &Trajectory, config: &Config) -> Result<Terms, String> {
    let reference = task.reference_value().map_err(|error| error.to_string())?;
    let reference = Reference::read(&reference, config.matching)?;
    let episode = Episode::new(trajectory, &reference, config);
    let mut terms = Terms::new()
        .term("solve_f1", episode.solve_f1())
        .term("solve_p", episode.solve_p())
        .term("solve_r", episode.solve_r())
        .term("solve_product", episode.solve_p() * episode.solve_r())
        .term("final", episode.last(|step| !step.acted))
        .term("step", episode.last(|_| true))
        .term("step_mean", episode.mean())
        .metric("calls", episode.calls() as f64)
        .metric("solved", episode.solved() as f64)
        .metric("sub_answers", episode.sub_answers as f64);
    for step in &episode.steps {
        terms = terms.at_event(step.event, "step", step.reward);
    }
    if let Some(gold) = &reference.calls {
        let matched = gold_calls::matched(trajectory, gold);
        terms = terms.term("matched", matched.term);
        for (event, credit) in matched.turns {
            terms = terms.at_event(event, "matched", credit);
        }
    }
    Ok(terms)
}

plugin!(init: init, reward: ftrl);

#[cfg(test)]
mod tests;
