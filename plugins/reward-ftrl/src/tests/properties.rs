//! Properties of every trajectory's score.

use proptest::prelude::*;
use rlf_plugin::serde_json::{Value, json};
use rlf_plugin::{Score, Trajectory, testing};

use super::{act, call, grade, say, turn_with};

/// Distinct whole words, none of which is part of another, so that the order of calls does not matter.
const WORDS: [&str; 5] = ["rome", "7", "joaqu\u{ed}n", "\u{5317}", "x_y"];

fn matching() -> impl Strategy<Value = Value> {
    prop_oneof![Just("published"), Just("strict")]
        .prop_map(|matching| json!({ "matching": matching }))
}

fn word() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&WORDS[..])
}

/// Calls of two tools that each show one word.
fn calls() -> impl Strategy<Value = Vec<(&'static str, &'static str)>> {
    prop::collection::vec((prop_oneof![Just("a"), Just("b")], word()), 0..8)
}

fn unsolved() -> impl Strategy<Value = Value> {
    let list = || prop::collection::vec(word(), 0..4);
    (list(), list()).prop_map(|(a, b)| json!({ "unsolved": { "a": a, "b": b } }))
}

/// One call a turn.
fn spread(calls: &[(&str, &str)]) -> Trajectory {
    let one = |trajectory, call: &(&str, &str)| act(trajectory, &[*call]);
    calls.iter().fold(testing::trajectory(), one)
}

fn shares(score: &Score) -> [f64; 3] {
    ["solve_p", "solve_r", "solve_f1"].map(|term| score.get(term).unwrap())
}

proptest! {
    #[test]
    fn the_order_of_calls_and_their_turns_does_not_matter_to_the_shares(
        config in matching(), reference in unsolved(), (calls, shuffled) in calls().prop_flat_map(|calls| (Just(calls.clone()), Just(calls).prop_shuffle())),
    ) {
        let score = |trajectory| shares(&grade(config.clone(), reference.clone(), trajectory));
        let expected = score(spread(&calls));
        prop_assert_eq!(score(spread(&shuffled)), expected);
        prop_assert_eq!(score(act(testing::trajectory(), &shuffled)), expected);
    }

    #[test]
    fn shares_are_shares_and_rewards_are_bounded(
        config in matching(), reference in unsolved(), calls in calls(), text in "\\PC{0,20}",
    ) {
        let score = grade(config, reference, say(act(testing::trajectory(), &calls), &text));
        for share in shares(&score) {
            prop_assert!((0.0..=1.0).contains(&share));
        }
        prop_assert!((-0.5..=1.0).contains(&score.get("final").unwrap()));
        for (_, credit) in &score.per_event {
            prop_assert!((-0.5..2.0).contains(&credit.value));
        }
    }

    #[test]
    fn repeating_calls_solves_nothing_more_where_each_sub_answer_is_there_once(config in matching(), calls in calls()) {
        let reference = json!({ "unsolved": { "a": WORDS, "b": WORDS } });
        let solved = |calls: &[(&str, &str)]| {
            shares(&grade(config.clone(), reference.clone(), spread(calls)))[1]
        };
        let again = [calls.clone(), calls.clone()].concat();
        prop_assert_eq!(solved(&calls), solved(&again));
    }

    #[test]
    fn what_strict_matching_finds_in_plain_words_published_matching_finds(
        sub_answer in "[a-z\u{e9}]{1,3}( [a-z]{1,3}){0,2}", observation in "[a-z\u{e9}]{1,3}( [a-z]{1,3}){0,6}",
    ) {
        let reference = json!({ "unsolved": { "a": [sub_answer] } });
        let [published, strict] = ["published", "strict"].map(|matching| {
            let trajectory = act(testing::trajectory(), &[("a", &observation)]);
            shares(&grade(json!({ "matching": matching }), reference.clone(), trajectory))[1]
        });
        prop_assert!(strict <= published);
    }

    #[test]
    fn any_text_is_graded(matching in matching(), sub_answer in "\\PC{0,12}[a-z0-9]", observation in "\\PC{0,60}", text in "\\PC{0,40}") {
        let reference = json!({ "unsolved": { "a": [sub_answer.clone()] }, "answer": sub_answer });
        let trajectory = act(testing::trajectory(), &[("a", &observation)]);
        prop_assert!(grade(matching, reference, say(trajectory, &text)).get("step").unwrap().is_finite());
    }

    #[test]
    fn an_observation_of_the_sub_answer_itself_solves_it(config in matching(), sub_answer in "\\PC{0,12}[a-z0-9]") {
        let reference = json!({ "unsolved": { "a": [sub_answer.clone()] } });
        let trajectory = act(testing::trajectory(), &[("a", &sub_answer)]);
        prop_assert_eq!(grade(config, reference, trajectory).get("solve_f1"), Some(1.0));
    }

    #[test]
    fn matched_is_a_share_and_is_full_for_the_gold_calls_in_any_order(
        (gold, shuffled) in prop::collection::vec(("[fg]", 0..3_i64, "[1-3]"), 0..6)
            .prop_flat_map(|gold| (Just(gold.clone()), Just(gold).prop_shuffle())),
        other in prop::collection::vec(("[fg]", 0..3_i64, "[1-3]"), 0..6),
    ) {
        let arguments = |number: i64, text: &str| json!({ "number": number, "text": text });
        let reference = json!({ "unsolved": {}, "calls": gold.iter().map(|(name, number, text)| {
            json!({ "name": name, "arguments": arguments(*number, text) })
        }).collect::<Vec<_>>() });
        let made = |calls: &[(String, i64, String)]| {
            let calls = calls.iter().map(|(name, number, text)| (call(name, arguments(*number, text)), None));
            grade(json!({}), reference.clone(), turn_with(testing::trajectory(), calls.collect())).get("matched").unwrap()
        };
        prop_assert!((made(&shuffled) - 1.0).abs() < 1e-12);
        prop_assert!((0.0..=1.0).contains(&made(&other)));
    }
}
