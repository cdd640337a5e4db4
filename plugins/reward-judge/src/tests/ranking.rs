//! Mode `ranking`: one question about the whole group.

use rlf_plugin::Score;
use rlf_plugin::model::Question;
use rlf_plugin::serde_json::{Value, json};
use rlf_plugin::testing;

use super::{answer_with, block, config, grade_with_seed, group, metric, values};

fn ranking(answers: &[&str], keys: Value, seed: u64) -> Vec<Result<Score, String>> {
    let mut keys = keys;
    keys["mode"] = json!("ranking");
    grade_with_seed(
        config(keys),
        &testing::task(json!("x")),
        &group(answers),
        seed,
    )
}

/// Labels and texts, as the judge sees them.
fn candidates(question: &Question) -> Vec<(String, String)> {
    let labels = ["A", "B", "C", "D"];
    let one = |label: &str| Some((label.to_owned(), block(question, label)?));
    labels.iter().filter_map(|label| one(label)).collect()
}

fn longest_first(question: &Question) -> Value {
    let mut candidates = candidates(question);
    candidates.sort_by_key(|(_, text)| std::cmp::Reverse(text.len()));
    let order: Vec<String> = candidates.into_iter().map(|(label, _)| label).collect();
    json!({ "order": order })
}

#[test]
fn the_score_falls_with_the_rank_from_1_to_0() {
    answer_with(longest_first);
    for seed in 0..10 {
        let scores = ranking(&["a", "bbbb", "cc", "ddd"], json!({}), seed);
        assert_eq!(
            values(&scores),
            [0.0, 1.0, 1.0 - 2.0 / 3.0, 1.0 - 1.0 / 3.0]
        );
        assert_eq!(metric(&scores[0], "questions"), Some(0.25));
        assert_eq!(metric(&scores[0], "disagreement"), None);
    }
}

#[test]
fn the_seed_decides_who_has_which_label() {
    let mut firsts: Vec<String> = Vec::new();
    for seed in 0..20 {
        let (tell, told) = std::sync::mpsc::channel();
        answer_with(move |question| {
            tell.send(candidates(question)[0].1.clone()).unwrap();
            longest_first(question)
        });
        ranking(&["a", "bb", "ccc"], json!({}), seed);
        firsts.extend(told.try_iter());
    }
    firsts.sort();
    firsts.dedup();
    assert_eq!(firsts, ["a", "bb", "ccc"]);
}

#[test]
fn a_judge_that_prefers_a_place_cancels_itself_in_two_looks() {
    answer_with(|question| {
        let labels: Vec<String> = candidates(question)
            .into_iter()
            .map(|(label, _)| label)
            .collect();
        json!({ "order": labels })
    });
    let scores = ranking(&["a", "bb", "ccc"], json!({ "looks": 2 }), 3);
    assert_eq!(values(&scores), [0.5, 0.5, 0.5]);
    let mut disagreements: Vec<f64> = scores
        .iter()
        .map(|score| metric(score, "disagreement").unwrap())
        .collect();
    disagreements.sort_by(f64::total_cmp);
    assert_eq!(disagreements, [0.0, 1.0, 1.0]);
    let strict = ranking(
        &["a", "bb", "ccc"],
        json!({ "looks": 2, "max_disagreement": 0.5 }),
        3,
    );
    assert_eq!(strict.iter().filter(|score| score.is_err()).count(), 2);
}

#[test]
fn nothing_to_judge_is_last_and_is_not_shown() {
    answer_with(|question| {
        assert_eq!(candidates(question).len(), 2);
        longest_first(question)
    });
    assert_eq!(
        values(&ranking(&["", "a", "bb"], json!({}), 0)),
        [0.0, 0.5, 1.0]
    );
    answer_with(|_| panic!("the judge was asked"));
    assert_eq!(
        values(&ranking(&["", "a", ""], json!({}), 0)),
        [0.0, 1.0, 0.0]
    );
    assert_eq!(values(&ranking(&["", ""], json!({}), 0)), [0.0, 0.0]);
}

#[test]
fn without_a_usable_order_all_that_were_shown_are_excluded() {
    answer_with(|_| json!({ "order": ["A", "A"] }));
    let scores = ranking(&["a", "bb", ""], json!({}), 0);
    assert!(scores[0].as_ref().unwrap_err().contains("a label twice"));
    assert!(scores[1].is_err());
    assert_eq!(scores[2].as_ref().unwrap().get("score"), Some(0.0));
    let why = ranking(&["a"], json!({}), 0)[0].clone().unwrap_err();
    assert!(why.contains("at least two"), "{why}");
}
