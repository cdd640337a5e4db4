//! Mode `pairwise`: shares of comparisons won.

use rlf_plugin::Score;
use rlf_plugin::model::Question;
use rlf_plugin::serde_json::{Value, json};
use rlf_plugin::testing;

use super::{answer_with, block, config, grade, group, metric, system, values};

fn pairwise(answers: &[&str], keys: Value) -> Vec<Result<Score, String>> {
    let mut keys = keys;
    keys["mode"] = json!("pairwise");
    grade(config(keys), &testing::task(json!("x")), &group(answers))
}

fn both(question: &Question) -> (String, String) {
    let text = |name| block(question, name).unwrap();
    (text("first"), text("second"))
}

/// The longer text wins; texts of the same length tie.
fn longer(question: &Question) -> Value {
    let (first, second) = both(question);
    let winner = match first.len().cmp(&second.len()) {
        std::cmp::Ordering::Greater => "first",
        std::cmp::Ordering::Less => "second",
        std::cmp::Ordering::Equal => "tie",
    };
    json!({ "winner": winner })
}

#[test]
fn the_score_is_the_share_of_comparisons_won_and_a_tie_is_half() {
    answer_with(longer);
    let scores = pairwise(&["a", "bbb", "cc", "dd"], json!({}));
    assert_eq!(values(&scores), [0.0, 1.0, 0.5, 0.5]);
    for score in &scores {
        assert_eq!(metric(score, "disagreement"), Some(0.0));
        // 12 questions, each shared by two trajectories.
        assert_eq!(metric(score, "questions"), Some(3.0));
        assert_eq!(score.as_ref().unwrap().terms.len(), 1);
    }
}

#[test]
fn a_judge_that_prefers_a_place_cancels_itself_and_its_disagreement_shows() {
    answer_with(|_| json!({ "winner": "first" }));
    let scores = pairwise(&["a", "b", "c"], json!({}));
    assert_eq!(values(&scores), [0.5, 0.5, 0.5]);
    assert!(
        scores
            .iter()
            .all(|score| metric(score, "disagreement") == Some(1.0))
    );
    for score in pairwise(&["a", "b", "c"], json!({ "max_disagreement": 0.5 })) {
        assert!(
            score
                .unwrap_err()
                .contains("disagrees with itself by 1.000")
        );
    }
}

#[test]
fn nothing_to_judge_loses_without_a_question() {
    answer_with(longer);
    let scores = pairwise(&["", "bb", "c", ""], json!({ "max_questions": 2 }));
    assert_eq!(values(&scores), [0.0, 1.0, 2.0 / 3.0, 0.0]);
    assert_eq!(metric(&scores[0], "unanswered"), Some(1.0));
    answer_with(|_| panic!("the judge was asked"));
    assert_eq!(values(&pairwise(&["", ""], json!({}))), [0.0, 0.0]);
    assert_eq!(values(&pairwise(&["", "b"], json!({}))), [0.0, 1.0]);
}

#[test]
fn a_text_that_no_comparison_survives_excludes_only_itself() {
    answer_with(|question| {
        let (first, second) = both(question);
        if first == "poison" || second == "poison" {
            return json!({ "winner": "neither" });
        }
        longer(question)
    });
    let scores = pairwise(&["a", "poison", "bb", "ccc"], json!({}));
    let why = scores[1].as_ref().unwrap_err();
    assert!(why.contains("its `winner` is none of"), "{why}");
    let others: Vec<_> = [0, 2, 3].map(|index| scores[index].clone()).into();
    assert_eq!(values(&others), [0.0, 0.5, 1.0]);
    // Of two, nobody can tell whose fault it is.
    assert!(
        pairwise(&["a", "poison"], json!({}))
            .iter()
            .all(Result::is_err)
    );
}

#[test]
fn a_group_of_one_or_one_too_large_is_refused() {
    answer_with(|_| panic!("the judge was asked"));
    let why = pairwise(&["a"], json!({}))[0].clone().unwrap_err();
    assert!(
        why.contains("at least two") && why.contains("mode = \"score\""),
        "{why}"
    );
    for score in pairwise(&["a"; 9], json!({})) {
        let why = score.unwrap_err();
        assert!(why.contains("needs 72 questions"), "{why}");
    }
}

#[test]
fn weights_are_told_if_they_differ() {
    answer_with(|question| {
        assert!(
            system(question).contains("- `a` (weight 2): Right?"),
            "{}",
            system(question)
        );
        json!({ "winner": "tie" })
    });
    let criteria = json!([
        { "name": "a", "question": "Right?", "weight": 2 },
        { "name": "b", "question": "Clear?" },
    ]);
    let scores = pairwise(&["x", "y"], json!({ "criteria": criteria }));
    assert_eq!(values(&scores), [0.5, 0.5]);
}
