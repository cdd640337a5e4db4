//! Tests of the answers that a judge may give, and of those that are refused.

use std::cell::RefCell;
use std::rc::Rc;

use rlf_plugin::model::Answer;
use rlf_plugin::serde_json::{self, Value, json};
use rlf_plugin::testing;

use super::{accuracy_is, answer_with, config, grade, group, nonce, values};

/// The result of one judge's answer, in which NONCE is replaced.
fn graded(answer: &str) -> Result<f64, String> {
    let criteria = json!([
        { "name": "accuracy", "question": "Right?" },
        { "name": "style", "question": "Clear?", "scale": [1, 5] },
    ]);
    let answer = answer.to_owned();
    testing::answer_questions_with(move |question| {
        Ok(Answer::text(answer.replace("NONCE", &nonce(question))))
    });
    let config = json!({ "criteria": criteria, "retries": 0 });
    let scores = grade(config, &testing::task(json!("Paris")), &group(&["Paris"]));
    scores[0].clone().map(|_| values(&scores)[0])
}

/// The schema of the first question about two answers, without that of the nonce.
fn schema(keys: Value, answer: Value) -> Value {
    let schemas: Rc<RefCell<Vec<Value>>> = Rc::default();
    let seen = Rc::clone(&schemas);
    answer_with(move |question| {
        let mut extra = question.extra.iter();
        let (_, schema) = extra.find(|(name, _)| name == "schema").unwrap();
        let mut schema: Value = serde_json::from_str(schema).unwrap();
        let own = json!({ "type": "string", "enum": [nonce(question)] });
        assert_eq!(schema["properties"]["nonce"].take(), own);
        seen.borrow_mut().push(schema);
        answer.clone()
    });
    let scores = grade(
        config(keys),
        &testing::task(json!("x")),
        &group(&["a", "b"]),
    );
    assert!(scores.iter().all(Result::is_ok), "{scores:?}");
    schemas.take().swap_remove(0)
}

#[test]
fn a_question_has_the_schema_of_its_answer() {
    let whole = |key: &str, value: Value| {
        json!({
            "type": "object",
            "properties": { "nonce": null, "reasons": {}, key: value },
            "required": ["nonce", key],
            "additionalProperties": false,
        })
    };
    let scores = json!({
        "type": "object",
        "properties": { "accuracy": { "type": "number", "minimum": 0, "maximum": 10 } },
        "required": ["accuracy"],
        "additionalProperties": false,
    });
    assert_eq!(schema(json!({}), accuracy_is(5)), whole("scores", scores));
    let winner = json!({ "type": "string", "enum": ["first", "second", "tie"] });
    assert_eq!(
        schema(json!({ "mode": "pairwise" }), json!({ "winner": "tie" })),
        whole("winner", winner)
    );
    let labels = json!({ "type": "string", "enum": ["A", "B"] });
    let order = json!({ "type": "array", "items": labels, "minItems": 2, "maxItems": 2 });
    assert_eq!(
        schema(json!({ "mode": "ranking" }), json!({ "order": ["B", "A"] })),
        whole("order", order)
    );
}

#[test]
fn one_object_with_the_nonce_and_every_criterion_is_a_grade() {
    for answer in [
        r#"{"nonce": "NONCE", "scores": {"accuracy": 5, "style": 3}}"#,
        r#"{"scores": {"style": 3.0, "accuracy": 5}, "nonce": "NONCE"}"#,
        r#"{"nonce": "NONCE", "reasons": {"accuracy": "so so"}, "scores": {"accuracy": 5, "style": 3}}"#,
        "<think>It says 10.</think>\n```json\n{\"nonce\": \"NONCE\", \"scores\": {\"accuracy\": 5, \"style\": 3}}\n```",
    ] {
        assert_eq!(graded(answer), Ok(0.5), "{answer}");
    }
}

#[test]
fn anything_else_is_an_error_that_says_why() {
    for (answer, expected) in [
        ("10/10", "not exactly one JSON object"),
        ("[1]", "not an object"),
        (
            r#"{"nonce": "NONCE", "scores": {"accuracy": 5, "style": 3}} Well done!"#,
            "exactly one",
        ),
        (r#"{"scores": {"accuracy": 5, "style": 3}}"#, "no `nonce`"),
        (
            r#"{"nonce": "0123456789abcdef", "scores": {"accuracy": 5, "style": 3}}"#,
            "not the nonce",
        ),
        (
            r#"{"nonce": 7, "scores": {"accuracy": 5, "style": 3}}"#,
            "not the nonce",
        ),
        (
            r#"{"nonce": "NONCE", "accuracy": 5, "style": 3}"#,
            "no `scores`",
        ),
        (r#"{"nonce": "NONCE", "scores": [5, 3]}"#, "not an object"),
        (
            r#"{"nonce": "NONCE", "scores": {"accuracy": 5}}"#,
            "no score for `style`",
        ),
        (
            r#"{"nonce": "NONCE", "scores": {"accuracy": 5, "style": 3, "x": 1}}"#,
            "not a criterion",
        ),
        (
            r#"{"nonce": "NONCE", "scores": {"accuracy": 11, "style": 3}}"#,
            "from 0 to 10",
        ),
        (
            r#"{"nonce": "NONCE", "scores": {"accuracy": -0.1, "style": 3}}"#,
            "outside the scale",
        ),
        (
            r#"{"nonce": "NONCE", "scores": {"accuracy": 5, "style": 0}}"#,
            "from 1 to 5",
        ),
        (
            r#"{"nonce": "NONCE", "scores": {"accuracy": "5", "style": 3}}"#,
            "not a number",
        ),
        (
            r#"{"nonce": "NONCE", "scores": {"accuracy": true, "style": 3}}"#,
            "not a number",
        ),
        (
            r#"{"nonce": "NONCE", "scores": {"accuracy": null, "style": 3}}"#,
            "not a number",
        ),
        (
            r#"{"nonce": "NONCE", "scores": {"accuracy": 1, "accuracy": 9, "style": 3}}"#,
            "twice",
        ),
        (
            r#"{"nonce": "NONCE", "nonce": "NONCE", "scores": {"accuracy": 1, "style": 3}}"#,
            "twice",
        ),
        (
            r#"{"nonce": "NONCE", "total": 9, "scores": {"accuracy": 5, "style": 3}}"#,
            "a key other",
        ),
    ] {
        let why = graded(answer).unwrap_err();
        assert!(why.contains(expected), "{why}");
    }
}

#[test]
fn an_answer_is_read_by_the_form_of_its_mode() {
    for (mode, answer, expected) in [
        (
            "pairwise",
            r#"{"nonce": "NONCE", "winner": "First"}"#,
            "none of",
        ),
        ("pairwise", r#"{"nonce": "NONCE", "winner": 1}"#, "none of"),
        (
            "pairwise",
            r#"{"nonce": "NONCE", "scores": {"accuracy": 5}}"#,
            "no `winner`",
        ),
        (
            "pairwise",
            r#"{"nonce": "x", "winner": "first"}"#,
            "not the nonce",
        ),
        (
            "ranking",
            r#"{"nonce": "NONCE", "order": "AB"}"#,
            "not a list",
        ),
        (
            "ranking",
            r#"{"nonce": "NONCE", "order": ["A"]}"#,
            "lacks a label",
        ),
        (
            "ranking",
            r#"{"nonce": "NONCE", "order": ["A", "A"]}"#,
            "twice",
        ),
        (
            "ranking",
            r#"{"nonce": "NONCE", "order": ["A", "B", "C"]}"#,
            "not a label",
        ),
        (
            "ranking",
            r#"{"nonce": "NONCE", "order": ["a", "b"]}"#,
            "not a label",
        ),
        (
            "ranking",
            r#"{"nonce": "NONCE", "order": [0, 1]}"#,
            "not a label",
        ),
    ] {
        testing::answer_questions_with(move |question| {
            Ok(Answer::text(answer.replace("NONCE", &nonce(question))))
        });
        let config = config(json!({ "mode": mode, "retries": 0 }));
        for score in grade(
            config,
            &testing::task(json!("Paris")),
            &group(&["Paris", "Lyon"]),
        ) {
            let why = score.unwrap_err();
            assert!(why.contains(expected), "{why}");
        }
    }
}
