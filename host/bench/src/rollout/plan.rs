//! What every trajectory does: its turns, word for word, and how long its tools take. All ways of playing it do the
//! same work.

use std::time::Duration;

use rlf_dialogue::Dialogue;
use rlf_policy::{Key, Purpose};

use super::tool;

/// Number of tasks.
pub(super) const TASKS: usize = 64;
/// Number of trajectories of one task, which begin with the same prompt.
pub(super) const GROUP_SIZE: usize = 8;
/// Number of trajectories.
pub(super) const TRAJECTORIES: usize = TASKS * GROUP_SIZE;
/// Smallest and largest number of turns.
const TURNS: [u64; 2] = [2, 4];
/// Smallest and largest number of tokens in a turn.
const TOKENS: [u64; 2] = [32, 64];
/// Median of the latencies, in milliseconds.
const P50_MS: f64 = 50.0;
/// The latency that one call in a hundred exceeds, in milliseconds.
const P99_MS: f64 = 2_000.0;
/// The 0.99 quantile of the standard normal distribution.
const NORMAL_P99: f64 = 2.326_347_874_040_841;
/// Text that fills turns up to their lengths.
const FILLER: &str = "so wait and see, ";
/// Text of the model's last turn.
const ANSWER: &str = "<answer>done</answer>";

/// One turn.
#[derive(Debug)]
pub(super) struct Turn {
    /// Number of tokens in the turns before it.
    pub(super) start: u64,
    /// Its text, whatever the model drew.
    pub(super) ids: Vec<u32>,
    /// Time that its tool takes. The last turn answers and calls none.
    latency: Option<Duration>,
}

/// One trajectory.
#[derive(Debug)]
pub(super) struct Plan {
    /// Its turns, in order.
    pub(super) turns: Vec<Turn>,
}

impl Plan {
    /// The plans of all trajectories, task by task.
    pub(super) fn all(dialogue: &Dialogue, seed: u64) -> Vec<Self> {
        let root = Key::new(seed, Purpose::Test);
        (0..TRAJECTORIES as u64)
            .map(|trajectory| Self::new(dialogue, root.at(trajectory)))
            .collect()
    }

    fn new(dialogue: &Dialogue, key: Key) -> Self {
        let count = between(key.named("turns"), TURNS);
        let mut start = 0;
        let mut turns = Vec::new();
        for turn in 0..count {
            let key = key.at(turn);
            let latency = (turn + 1 < count).then(|| latency(key.named("latency")));
            let said = latency.map_or_else(|| ANSWER.to_owned(), tool::call);
            let length = between(key.named("tokens"), TOKENS) as usize;
            let ids = ids(dialogue, &said, length);
            let tokens = ids.len() as u64;
            turns.push(Turn {
                start,
                ids,
                latency,
            });
            start += tokens;
        }
        Self { turns }
    }

    /// The turn that begins after this number of drawn tokens, with its index.
    pub(super) fn turn_at(&self, drawn: u64) -> Option<(usize, &Turn)> {
        let mut turns = self.turns.iter().enumerate();
        turns.find(|(_, turn)| turn.start == drawn)
    }

    /// Number of tokens that the model draws.
    pub(super) fn tokens(&self) -> usize {
        self.turns.iter().map(|turn| turn.ids.len()).sum()
    }

    /// The latencies of its calls, in order.
    pub(super) fn latencies(&self) -> impl Iterator<Item = Duration> {
        self.turns.iter().filter_map(|turn| turn.latency)
    }
}

/// The prompt of a task, about a hundred tokens, as in the quickstart.
pub(super) fn prompt(task: usize) -> String {
    let rule = "Wait as long as you are told, then say that it is done. ";
    format!("Question {task}: {}", rule.repeat(6))
}

/// Texts of every kind, from which the tokenizer learns its words.
pub(super) fn corpus() -> impl Iterator<Item = String> + Send {
    let texts = |task: usize| {
        let call = tool::call(Duration::from_millis(task as u64));
        let observation = tool::OBSERVATION;
        format!("{}{FILLER}{call}{observation}{ANSWER}", prompt(task))
    };
    (0..TASKS).map(texts)
}

/// A turn of `length` tokens that ends with this text.
fn ids(dialogue: &Dialogue, said: &str, length: usize) -> Vec<u32> {
    let tokenizer = dialogue.tokenizer();
    let said = tokenizer.encode_trusted(said);
    let filler = tokenizer.encode_trusted(FILLER);
    let missing = length.saturating_sub(said.len() + 1);
    let mut ids: Vec<u32> = filler.into_iter().cycle().take(missing).collect();
    ids.extend(said);
    ids.push(dialogue.end_of_turn());
    ids
}

/// A whole number of this key between two, both included.
fn between(key: Key, [least, most]: [u64; 2]) -> u64 {
    least + key.below(0, most - least + 1)
}

/// A latency of this key, log-normal.
fn latency(key: Key) -> Duration {
    let deviation = (P99_MS / P50_MS).ln() / NORMAL_P99;
    let ms = P50_MS * (deviation * key.normal(0)).exp();
    Duration::from_millis(ms.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_have_the_stated_median_and_p99() {
        let root = Key::new(5, Purpose::Test);
        let mut ms: Vec<u128> = (0..100_000)
            .map(|index| latency(root.at(index)).as_millis())
            .collect();
        ms.sort_unstable();
        // About four standard errors.
        assert!((48..=52).contains(&ms[50_000]), "{}", ms[50_000]);
        assert!((1_850..=2_150).contains(&ms[99_000]), "{}", ms[99_000]);
    }
}
