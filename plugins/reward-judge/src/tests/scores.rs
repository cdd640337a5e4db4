//! Mode `score`: terms, metrics and what excludes a trajectory.

use rlf_plugin::serde_json::json;
use rlf_plugin::{Error, testing};

use super::{accuracy_is, answer_with, block, config, grade, group, metric, nonce, user, values};
use crate::Plugin;

#[test]
fn the_score_is_the_weighted_mean_of_shares_of_each_scale() {
    answer_with(|_| json!({ "scores": { "accuracy": 8, "style": 1, "tone": -2.5 } }));
    let config = json!({
        "criteria": [
            { "name": "accuracy", "question": "Right?", "weight": 2 },
            { "name": "style", "question": "Clear?", "scale": [1, 5] },
            { "name": "tone", "question": "Polite?", "scale": [-5, 5], "weight": 0.5 },
        ],
    });
    let scores = grade(config, &testing::task(json!("Paris")), &group(&["Paris"]));
    let score = scores[0].as_ref().unwrap();
    let terms: Vec<(&str, f64)> = score
        .terms
        .iter()
        .map(|term| (term.name.as_str(), term.value))
        .collect();
    let mean = (2.0 * 0.8 + 0.0 + 0.5 * 0.25) / 3.5;
    assert_eq!(
        terms,
        [
            ("score", mean),
            ("accuracy", 0.8),
            ("style", 0.0),
            ("tone", 0.25)
        ]
    );
    assert_eq!(metric(&scores[0], "questions"), Some(1.0));
    assert_eq!(metric(&scores[0], "unanswered"), Some(0.0));
    assert_eq!(metric(&scores[0], "disagreement"), None);
}

#[test]
fn tokens_of_question_and_answer_are_counted() {
    testing::answer_questions_with(|question| {
        let text = json!({ "nonce": nonce(question), "scores": { "accuracy": 1 } }).to_string();
        let mut answer = rlf_plugin::model::Answer::text(text);
        (answer.prompt_tokens, answer.completion_tokens) = (700, 30);
        Ok(answer)
    });
    let config = config(json!({ "looks": 2 }));
    let scores = grade(config, &testing::task(json!("Paris")), &group(&["Paris"]));
    assert_eq!(metric(&scores[0], "judge_tokens"), Some(1460.0));
    assert_eq!(metric(&scores[0], "questions"), Some(2.0));
}

#[test]
fn nothing_to_judge_is_the_worst_and_costs_no_question() {
    answer_with(|_| panic!("the judge was asked"));
    let mut nothing = group(&["", " \n", "\u{200b}\u{2060}"]);
    nothing.push(testing::trajectory());
    let task = testing::task(json!("Paris"));
    let config = config(json!({ "scale": [3, 7], "looks": 2 }));
    for score in grade(config, &task, &nothing) {
        assert_eq!(score.as_ref().unwrap().get("score"), Some(0.0));
        assert_eq!(score.as_ref().unwrap().get("accuracy"), Some(0.0));
        assert_eq!(metric(&score, "unanswered"), Some(1.0));
        assert_eq!(metric(&score, "questions"), Some(0.0));
        assert_eq!(metric(&score, "judge_tokens"), Some(0.0));
    }
}

#[test]
fn one_failure_excludes_one_trajectory() {
    testing::answer_questions_with(|question| {
        if user(question).contains("refuse me") {
            return Err(Error::InvalidArguments(
                "the model refuses the question".to_owned(),
            ));
        }
        let score = if block(question, "candidate").unwrap() == "Paris" {
            10
        } else {
            0
        };
        let object = json!({ "nonce": nonce(question), "scores": { "accuracy": score } });
        Ok(rlf_plugin::model::Answer::text(object.to_string()))
    });
    let answers = group(&["Paris", "refuse me", "Lyon", ""]);
    let mut scores = grade(config(json!({})), &testing::task(json!("Paris")), &answers);
    let why = scores.remove(1).unwrap_err();
    assert!(
        why.contains("could not be asked: the model refuses the question"),
        "{why}"
    );
    assert_eq!(values(&scores), [1.0, 0.0, 0.0]);
}

#[test]
fn a_group_that_needs_too_many_questions_is_refused_before_the_first() {
    answer_with(|_| panic!("the judge was asked"));
    let config = config(json!({ "looks": 2, "max_questions": 5 }));
    for score in grade(
        config,
        &testing::task(json!("Paris")),
        &group(&["a", "b", "c"]),
    ) {
        let why = score.unwrap_err();
        assert!(
            why.contains("needs 6 questions") && why.contains("`max_questions` = 5"),
            "{why}"
        );
    }
}

#[test]
fn the_same_seed_asks_the_same_and_another_seed_has_another_nonce() {
    let asked = |seed| {
        let (tell, told) = std::sync::mpsc::channel();
        answer_with(move |question| {
            tell.send(question.messages.clone()).unwrap();
            accuracy_is(5)
        });
        let task = testing::task(json!("Paris"));
        super::grade_with_seed(
            config(json!({ "looks": 2 })),
            &task,
            &group(&["a", "b"]),
            seed,
        );
        told.try_iter().collect::<Vec<_>>()
    };
    assert_eq!(asked(1), asked(1));
    let (one, two) = (asked(1), asked(2));
    assert_eq!(one.len(), 4);
    for (one, two) in one.iter().zip(&two) {
        assert_ne!(one, two);
    }
}

#[test]
fn a_plugin_whose_gate_is_closed_says_so() {
    testing::init_reward::<Plugin>(config(json!({}))).unwrap();
    let trajectory = testing::trajectory().answered("Paris");
    let error = testing::grade::<Plugin>(&testing::task(json!("Paris")), trajectory).unwrap_err();
    assert!(
        rlf_plugin::error_message(&error).contains("no model is open"),
        "{error:?}"
    );
}
