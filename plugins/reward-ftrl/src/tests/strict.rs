//! `matching = "strict"`: cases that the published matching rewards and this one does not.

use rlf_plugin::serde_json::json;
use rlf_plugin::{Content, Ended, Event, Finish, Observation, error_message, testing};

use super::{call, grade, say, spoken, turn_with};
use crate::Plugin;

/// True if this observation of a call with this ending solves the sub-answer: by published matching, and by strict.
fn solved(sub_answer: &str, observation: &Observation, ended: Ended) -> [f64; 2] {
    ["published", "strict"].map(|matching| {
        let calls = vec![(call("a", json!({})), Some((ended, observation.clone())))];
        let reference = json!({ "unsolved": { "a": [sub_answer] } });
        let trajectory = turn_with(testing::trajectory(), calls);
        let score = grade(json!({ "matching": matching }), reference, trajectory);
        score.get("solve_r").unwrap()
    })
}

#[test]
fn parts_of_words_and_of_numbers_are_found_by_the_published_matching_only() {
    for (sub_answer, observation) in [
        ("2", "12"),
        ("2", "2.5"),
        ("5", "-5"),
        ("24", "1,024"),
        ("Rome", "Romeo"),
        ("Rome", "\"\\nRomeo\""),
        ("cafe", "cafe\u{301}"),
    ] {
        let found = solved(sub_answer, &Observation::text(observation), Ended::Ok);
        assert_eq!(found, [1.0, 0.0], "{sub_answer} in {observation}");
    }
}

#[test]
fn whole_ones_are_found_by_both_however_they_are_written() {
    for (sub_answer, observation) in [
        ("2", "from 12 to 2."),
        ("2,048", "2048 bytes"),
        ("2048", "2,048 bytes"),
        (
            "Abdel Fattah el-Sisi.",
            "{\"leader\": \"ABDEL FATTAH EL-SISI.\"}",
        ),
        ("Brazil, China", "China, India and Brazil"),
        ("2007-11-7", "on 2007-11-7."),
        (
            "\u{5317}\u{4eac}",
            "\u{6211}\u{5728}\u{5317}\u{4eac}\u{3002}",
        ),
    ] {
        let found = solved(sub_answer, &Observation::text(observation), Ended::Ok);
        assert_eq!(found, [1.0, 1.0], "{sub_answer} in {observation}");
    }
    // Only strictly: numbers by value, and texts behind what JSON makes of them.
    for (sub_answer, observation) in [("5.0", "5"), ("Crime and", "{\"title\": \"Crime\\nand\"}")] {
        let found = solved(sub_answer, &Observation::text(observation), Ended::Ok);
        assert_eq!(found, [0.0, 1.0], "{sub_answer} in {observation}");
    }
}

#[test]
fn structured_results_are_read() {
    let mut observation = Observation::text("found:");
    observation
        .content
        .push(Content::Structured("{\"city\":\"Rome\"}".to_owned()));
    assert_eq!(solved("Rome", &observation, Ended::Ok), [1.0, 1.0]);
}

#[test]
fn an_error_that_repeats_the_call_solves_nothing() {
    let echo = Observation::text("no such city: Rome");
    for ended in [
        Ended::Failed,
        Ended::InvalidArguments,
        Ended::Timeout,
        Ended::Trap,
    ] {
        assert_eq!(solved("Rome", &echo, ended), [1.0, 0.0], "{ended:?}");
    }
    let failed = Observation {
        failed: true,
        ..echo
    };
    assert_eq!(solved("Rome", &failed, Ended::Ok), [1.0, 0.0]);
}

#[test]
fn an_answer_that_was_only_thought_is_none() {
    for (text, visible, expected) in [
        ("<think>Rome</think>Paris", "Paris", [1.0, 0.5]),
        ("<think>hm</think>Rome", "Rome", [1.0, 1.0]),
        ("<think>hm</think>Romeo", "Romeo", [1.0, 0.5]),
        ("<think>hm</think>", "", [0.5, -0.5]),
    ] {
        let rewards = ["published", "strict"].map(|matching| {
            let mut trajectory = testing::trajectory();
            let mut turn = spoken(text);
            visible.clone_into(&mut turn.visible);
            trajectory.events.push(Event::Turn(turn));
            trajectory.answer = Some(visible.to_owned()).filter(|answer| !answer.is_empty());
            trajectory.finish = Finish::Answered;
            let reference = json!({ "unsolved": {}, "answer": "Rome" });
            let score = grade(json!({ "matching": matching }), reference, trajectory);
            score.get("final").unwrap()
        });
        assert_eq!(rewards, expected, "{text}");
    }
}

#[test]
fn only_the_last_turn_can_give_the_answer() {
    let mut trajectory = testing::trajectory();
    trajectory.events.push(Event::Turn(spoken("It is Rome")));
    let trajectory = say(trajectory, "Rome");
    let reference = json!({ "unsolved": {"a": ["x"]}, "answer": "Rome" });
    let score = grade(json!({ "matching": "strict" }), reference, trajectory);
    assert_eq!(super::credits(&score, "step"), [(0, 0.0), (1, 0.5)]);
}

#[test]
fn what_could_never_be_found_excludes_instead_of_scoring() {
    for reference in [
        json!({ "unsolved": { "a": ["$"] } }),
        json!({ "unsolved": { "a": [""] } }),
        json!({ "unsolved": {}, "answer": "?" }),
    ] {
        testing::init_reward::<Plugin>(json!({ "matching": "strict" })).unwrap();
        let graded = testing::grade::<Plugin>(&testing::task(reference), testing::trajectory());
        let message = error_message(&graded.unwrap_err()).to_owned();
        assert!(message.contains("neither word nor number"), "{message}");
    }
}
