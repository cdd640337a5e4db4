//! Finds the first difference between two records of one trajectory.
//!
//! The first one is that which came first when the trajectory was played. Within a turn, the model's tokens come before
//! the outcomes of its calls, and those before the observation that the model read.

use rlf_dialogue::tokenizer::Tokenizer;
use rlf_dialogue::tool::CallOutcome;
use rlf_dialogue::trajectory::{Event, ModelSegment, Segment, TrainingSequence, Trajectory};
use serde_json::{Map, Value, json};

use super::record::Record;

/// Maximum number of characters of a value in a message.
const MAX_VALUE: usize = 200;

/// A difference: the part that differs, and both values.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Found {
    pub(super) what: String,
    pub(super) recorded: String,
    pub(super) replayed: String,
}

impl Found {
    pub(super) fn new(
        what: impl Into<String>,
        recorded: impl Into<String>,
        replayed: impl Into<String>,
    ) -> Self {
        Self {
            what: what.into(),
            recorded: shortened(recorded.into()),
            replayed: shortened(replayed.into()),
        }
    }
}

fn shortened(text: String) -> String {
    match text.char_indices().nth(MAX_VALUE) {
        Some((end, _)) => format!("{}..", &text[..end]),
        None => text,
    }
}

/// The moment of a difference: the turn, from 1, and what came first within it.
type Moment = (usize, u8);

const SAMPLED: u8 = 0;
const HAPPENED: u8 = 1;
const READ: u8 = 2;

/// The first difference between a trajectory as it was recorded and as it was replayed.
pub(super) fn first_difference(
    recorded: &Record,
    replayed: &Record,
    tokenizer: &Tokenizer,
) -> Option<Found> {
    let (old, new) = (&recorded.trajectory, &replayed.trajectory);
    if old.id != new.id {
        return Some(Found::new("the task", &old.id, &new.id));
    }
    if old.tools != new.tools {
        let [old, new] = [&old.tools, &new.tools].map(|tools| json!(tools).to_string());
        return Some(Found::new("the tools on offer", old, new));
    }
    let tokens = in_tokens(old, new, tokenizer);
    let played = [tokens, in_events(old, new)].into_iter().flatten();
    let first = played.min_by_key(|(moment, _)| *moment);
    first
        .map(|(_, found)| found)
        .or_else(|| unequal(&facts(recorded), &facts(replayed)).next())
}

/// The tokens of a segment: what they are, their ids, and their log-probabilities if they were sampled.
struct Tokens<'a> {
    kind: &'static str,
    ids: &'a [u32],
    log_probs: &'a [f32],
}

const TURN: &str = "turn";

impl<'a> Tokens<'a> {
    fn new(kind: &'static str, ids: &'a [u32], log_probs: &'a [f32]) -> Self {
        Self {
            kind,
            ids,
            log_probs,
        }
    }
}

impl<'a> From<&'a Segment> for Tokens<'a> {
    fn from(segment: &'a Segment) -> Self {
        match segment {
            Segment::Prompt(ids) => Self::new("prompt", ids, &[]),
            Segment::Observation(ids) => Self::new("observation", ids, &[]),
            Segment::Model(segment) => match segment {
                ModelSegment::Sampled { ids, log_probs } => Self::new(TURN, ids, log_probs),
                ModelSegment::Demonstrated { ids, .. } => Self::new(TURN, ids, &[]),
                // There is none in RL.
                ModelSegment::Text(_) => Self::new(TURN, &[], &[]),
            },
        }
    }
}

/// The first difference in tokens and log-probabilities.
fn in_tokens(old: &Trajectory, new: &Trajectory, tokenizer: &Tokenizer) -> Option<(Moment, Found)> {
    let (old, new) = (segments(old), segments(new));
    let mut turn = 0;
    for (old, new) in old.iter().zip(&new) {
        let (old, new) = (Tokens::from(*old), Tokens::from(*new));
        let (moment, place) = if old.kind == TURN {
            turn += 1;
            ((turn, SAMPLED), format!("turn {turn}"))
        } else if turn == 0 {
            ((turn, READ), old.kind.to_owned())
        } else {
            ((turn, READ), format!("{} after turn {turn}", old.kind))
        };
        if old.kind != new.kind {
            return Some((moment, Found::new(place, old.kind, new.kind)));
        }
        for index in 0..old.ids.len().max(new.ids.len()) {
            let what = format!("{place}, token {}", index + 1);
            let ids = [&old, &new].map(|tokens| tokens.ids.get(index).copied());
            if ids[0] != ids[1] {
                let [old, new] = ids.map(|id| token(id, tokenizer));
                return Some((moment, Found::new(what, old, new)));
            }
            let log_probs = [&old, &new].map(|tokens| tokens.log_probs.get(index).copied());
            if log_probs[0].map(f32::to_bits) != log_probs[1].map(f32::to_bits) {
                let what = format!("{what}, log-probability");
                let [old, new] = log_probs.map(shown_number);
                return Some((moment, Found::new(what, old, new)));
            }
        }
    }
    (old.len() != new.len()).then(|| {
        let [old, new] = [old, new].map(|segments| segments.len().to_string());
        ((turn, READ), Found::new("number of segments", old, new))
    })
}

/// The segments of all sequences, in order.
fn segments(trajectory: &Trajectory) -> Vec<&Segment> {
    let sequences = trajectory.sequences.iter();
    sequences.flat_map(TrainingSequence::segments).collect()
}

fn shown_number(number: Option<f32>) -> String {
    number.map_or_else(|| "none".to_owned(), |number| format!("{number}"))
}

fn token(id: Option<u32>, tokenizer: &Tokenizer) -> String {
    id.map_or_else(
        || "no token".to_owned(),
        |id| format!("{id} {:?}", tokenizer.decode(&[id])),
    )
}

/// The first difference in what happened.
fn in_events(old: &Trajectory, new: &Trajectory) -> Option<(Moment, Found)> {
    let mut turn = 0;
    for index in 0..old.events.len().max(new.events.len()) {
        let (old, new) = (old.events.get(index), new.events.get(index));
        let is_turn = matches!(old.or(new), Some(Event::Turn(_)));
        turn += usize::from(is_turn);
        if old.map(repeatable) == new.map(repeatable) {
            continue;
        }
        let what = match old.or(new) {
            Some(Event::Outcome(outcome)) => format!("turn {turn}, call of `{}`", outcome.name),
            Some(Event::User(_)) => format!("message of the user after turn {turn}"),
            Some(Event::Turn(_)) | None => format!("turn {turn}, as it was parsed"),
        };
        let part = if is_turn { SAMPLED } else { HAPPENED };
        let mut found = Found::new(&*what, shown(old), shown(new));
        if found.recorded == found.replayed {
            found = hidden(&what, old, new).unwrap_or(found);
        }
        return Some(((turn, part), found));
    }
    None
}

/// An event without what no seed repeats: times, and details for logs. The component that served a call is left out
/// too, because the replay reports changed plugins by themselves.
fn repeatable(event: &Event) -> Event {
    let mut event = event.clone();
    if let Event::Outcome(outcome) = &mut event {
        clear(outcome);
    }
    event
}

fn clear(outcome: &mut CallOutcome) {
    outcome.wall_us = 0;
    outcome.component.clear();
    outcome.detail = None;
    for call in &mut outcome.nested {
        clear(&mut call.outcome);
    }
}

fn shown(event: Option<&Event>) -> String {
    match event {
        None => "nothing".to_owned(),
        Some(Event::Turn(turn)) => format!("{:?}", turn.text),
        Some(Event::User(message)) => format!("{:?}", message.plain_text()),
        Some(Event::Outcome(outcome)) => {
            let seen = outcome.observation.as_ref();
            let seen = seen.map(|seen| format!(": {}", json!(seen.content)));
            format!("{}{}", outcome.ended.as_str(), seen.unwrap_or_default())
        }
    }
}

/// The first field of an event that differs, for events that are shown alike.
fn hidden(what: &str, old: Option<&Event>, new: Option<&Event>) -> Option<Found> {
    let fields = |event: Option<&Event>| match json!(event.map(repeatable)) {
        // An event is an object with one entry: its kind.
        Value::Object(kinds) => kinds.into_iter().next().map(|(_, fields)| fields),
        _ => None,
    };
    let (Value::Object(old), Value::Object(new)) = (fields(old)?, fields(new)?) else {
        return None;
    };
    let mut found = unequal(&old, &new).next()?;
    found.what = format!("{what}, `{}`", found.what);
    Some(found)
}

/// The end of a trajectory and its grade, by name.
fn facts(record: &Record) -> Map<String, Value> {
    let trajectory = &record.trajectory;
    let mut facts = Map::new();
    let mut add = |name: &str, value: Value| facts.insert(name.to_owned(), value);
    add("reason of its end", json!(trajectory.finish));
    add("answer", json!(trajectory.answer));
    add("final state", json!(trajectory.final_state));
    add("verdict", json!(trajectory.verdict));
    add("reason of its exclusion", json!(record.excluded));
    if let Some(score) = &record.score {
        for (term, value) in &score.terms {
            add(&format!("term `{term}`"), json!(value));
        }
        add("reward", json!(score.reward));
        add("success", json!(score.success));
        add("credit of events", json!(score.per_event));
        add("rewards of turns", json!(score.turn_rewards));
    }
    add("advantage", json!(record.advantage));
    facts
}

/// The entries that differ, in the order of `old`. The ones that only `new` has come last.
pub(super) fn unequal<'a>(
    old: &'a Map<String, Value>,
    new: &'a Map<String, Value>,
) -> impl Iterator<Item = Found> + 'a {
    let added = new.keys().filter(move |name| !old.contains_key(*name));
    let names = old.keys().chain(added);
    names.filter_map(move |name| {
        let nothing = || "nothing".to_owned();
        let shown = |value: Option<&Value>| value.map_or_else(nothing, Value::to_string);
        let (old, new) = (old.get(name), new.get(name));
        (old != new).then(|| Found::new(name, shown(old), shown(new)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A trajectory of two turns with a call between them.
    fn record(change: impl FnOnce(&mut Value)) -> Record {
        let mut record = json!({
            "group": 0,
            "task": "sum",
            "score": {"reward": 1.0, "success": true, "terms": [["em.score", 1.0]]},
            "excluded": null,
            "advantage": 0.5,
            "trajectory": {
                "id": "train-0/0:sum/0",
                "task": "sum",
                "tools": [],
                "events": [
                    {"turn": {
                        "text": "a", "reasoning": null, "visible": "a", "calls": [], "malformed": [], "tokens": 2,
                    }},
                    {"outcome": {
                        "call-id": "train-0/0:sum/0/0/0", "name": "add", "ended": "ok", "fault": "none",
                        "observation": {"content": [{"text": "4"}], "failed": false}, "wall-us": 7,
                    }},
                    {"turn": {
                        "text": "b", "reasoning": null, "visible": "b", "calls": [], "malformed": [], "tokens": 1,
                    }},
                ],
                "sequences": [[
                    {"prompt": [1, 2]},
                    {"model": {"sampled": {"ids": [3, 4], "log_probs": [-0.5, -0.25]}}},
                    {"observation": [5]},
                    {"model": {"sampled": {"ids": [6], "log_probs": [-1.5]}}},
                ]],
                "answer": "4",
                "finish": "answered",
                "excluded": null,
                "closed_turns": 0,
            },
        });
        change(&mut record);
        serde_json::from_value(record).unwrap()
    }

    fn tokenizer() -> Tokenizer {
        let corpus = ["a b c".to_owned()].into_iter();
        Tokenizer::train_bpe(corpus, &rlf_dialogue::BpeOptions::default()).unwrap()
    }

    fn found(change: impl FnOnce(&mut Value)) -> Option<(String, String, String)> {
        let found = first_difference(&record(|_| {}), &record(change), &tokenizer());
        found.map(|found| (found.what, found.recorded, found.replayed))
    }

    /// The part that differs, with the first word of each value.
    fn told(change: impl FnOnce(&mut Value)) -> String {
        let (what, recorded, replayed) = found(change).expect("a difference");
        let first = |text: &str| text.split(' ').next().unwrap_or_default().to_owned();
        format!("{what}: {} / {}", first(&recorded), first(&replayed))
    }

    #[test]
    fn the_first_difference_is_the_one_that_came_first_in_the_trajectory() {
        let sampled = |record: &mut Value, segment: usize, key: &str, value: Value| {
            record["trajectory"]["sequences"][0][segment]["model"]["sampled"][key][0] = value;
        };
        let call = |record: &mut Value| {
            record["trajectory"]["events"][1]["outcome"]["observation"]["content"][0]["text"] =
                json!("5");
        };
        let observation = |record: &mut Value| {
            record["trajectory"]["sequences"][0][2]["observation"][0] = json!(9);
        };
        let reward = |record: &mut Value| record["score"]["reward"] = json!(0.0);

        assert_eq!(told(reward), "reward: 1.0 / 0.0");
        let last = |record: &mut Value| {
            reward(record);
            sampled(record, 3, "log_probs", json!(-1.25));
        };
        assert_eq!(told(last), "turn 2, token 1, log-probability: -1.5 / -1.25");
        let read = |record: &mut Value| {
            last(record);
            observation(record);
        };
        assert_eq!(told(read), "observation after turn 1, token 1: 5 / 9");
        let called = |record: &mut Value| {
            read(record);
            call(record);
        };
        assert_eq!(
            told(called),
            "turn 1, call of `add`: ok: / ok:",
            "the call explains what the model read"
        );
        let first = |record: &mut Value| {
            called(record);
            sampled(record, 1, "ids", json!(8));
        };
        assert_eq!(told(first), "turn 1, token 1: 3 / 8");
    }

    #[test]
    fn a_difference_that_is_not_shown_is_named_by_its_field() {
        let blamed = |record: &mut Value| {
            record["trajectory"]["events"][1]["outcome"]["fault"] = json!("model");
        };
        assert_eq!(
            told(blamed),
            "turn 1, call of `add`, `fault`: \"none\" / \"model\""
        );
    }

    #[test]
    fn times_and_the_component_of_a_call_are_no_difference() {
        let timed = |record: &mut Value| {
            let outcome = &mut record["trajectory"]["events"][1]["outcome"];
            outcome["wall-us"] = json!(9);
            outcome["component"] = json!("other");
            outcome["detail"] = json!("after 9 us");
        };
        assert_eq!(found(timed), None);
    }
}
