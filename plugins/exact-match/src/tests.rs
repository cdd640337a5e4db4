use proptest::prelude::*;
use rlf_plugin::serde_json::{Value, json};
use rlf_plugin::{error_message, testing};

use crate::Plugin;
use crate::normalize::normalize;
use crate::score::f1;

fn grade(reference: Value, answer: &str) -> (f64, f64) {
    let score = testing::grade::<Plugin>(
        &testing::task(reference),
        testing::trajectory().answered(answer),
    )
    .unwrap();
    (score.get("em").unwrap(), score.get("f1").unwrap())
}

#[test]
fn verbatim_keeps_signs_decimal_points_and_case() {
    let verbatim = |reference: Value, answer: &str| {
        testing::grade::<Plugin>(
            &testing::task(reference),
            testing::trajectory().answered(answer),
        )
        .unwrap()
        .get("verbatim")
        .unwrap()
    };
    assert_eq!(verbatim(json!("68.4"), " 68.4\n"), 1.0);
    assert_eq!(verbatim(json!(["5", "68.4"]), "68.4"), 1.0);
    for (reference, answer) in [
        ("68.4", "684"),
        ("-5", "5"),
        ("Paris", "paris"),
        ("68.4", ""),
    ] {
        assert_eq!(
            verbatim(json!(reference), answer),
            0.0,
            "{reference} / {answer}"
        );
    }
}

/// Computed with `normalize_answer` of SQuAD's evaluate-v1.1.py under Python 3.11.
#[test]
fn normalisation_is_that_of_the_official_script() {
    for (text, expected) in [
        ("The Eiffel Tower!", "eiffel tower"),
        ("  an  apple a day ", "apple day"),
        ("U.S.A.", "usa"),
        ("state-of-the-art", "stateoftheart"),
        ("The", ""),
        ("A", ""),
        ("don't", "dont"),
        ("\u{201c}Paris\u{201d}", "\u{201c}paris\u{201d}"),
        ("the\u{2013}end", "\u{2013}end"),
        ("Theatre", "theatre"),
        ("co_op", "coop"),
        ("\u{c9}COLE", "\u{e9}cole"),
        ("1,000.5", "10005"),
        ("\u{130}stanbul", "i\u{307}stanbul"),
        ("well\u{a0}known", "well known"),
        ("a\tb\nthe c", "b c"),
    ] {
        assert_eq!(normalize(text), expected, "{text:?}");
    }
}

/// Computed with `f1_score` of HotpotQA's hotpot_evaluate_v1.py.
#[test]
fn f1_is_that_of_the_official_script() {
    for (answer, reference, expected) in [
        ("the cat sat", "cat", 0.666_666_666_666_666_6),
        ("Barack Hussein Obama", "Barack Obama", 0.8),
        ("dog dog cat", "dog cat cat", 0.666_666_666_666_666_6),
        ("yes", "yes it is", 0.0),
        ("yes it is", "yes", 0.0),
        ("no", "no", 1.0),
        ("Paris", "London", 0.0),
        ("new york city", "city of new york", 0.857_142_857_142_857_1),
    ] {
        assert_eq!(
            f1(&normalize(answer), &normalize(reference)),
            expected,
            "{answer} / {reference}"
        );
    }
}

#[test]
fn the_best_of_several_references_counts() {
    assert_eq!(
        grade(json!(["New York City", "NYC"]), "the NYC."),
        (1.0, 1.0)
    );
    assert_eq!(grade(json!({ "target": ["Paris"] }), "paris"), (1.0, 1.0));
    assert_eq!(
        grade(json!({ "answer": "Barack Obama" }), "Barack Hussein Obama"),
        (0.0, 0.8)
    );
}

#[test]
fn an_answer_of_which_nothing_is_left_matches_nothing() {
    assert_eq!(grade(json!("Paris"), ""), (0.0, 0.0));
    assert_eq!(grade(json!(["Paris", "The"]), "The"), (0.0, 0.0));
    let silent = testing::trajectory().said("Paris");
    let score = testing::grade::<Plugin>(&testing::task(json!("Paris")), silent).unwrap();
    assert_eq!(score.get("em"), Some(0.0));
}

#[test]
fn a_reference_that_nothing_can_match_excludes_instead_of_scoring() {
    for reference in [
        json!("A"),
        json!([]),
        json!({ "solution": "x" }),
        json!(null),
    ] {
        let graded = testing::grade::<Plugin>(
            &testing::task(reference),
            testing::trajectory().answered("x"),
        );
        assert!(!error_message(&graded.unwrap_err()).is_empty());
    }
}

proptest! {
    #[test]
    fn scores_are_shares_and_a_match_is_a_full_overlap(answer in "\\PC{0,40}", reference in "[a-z]{2,8}( [a-z]{2,8}){0,3}") {
        prop_assume!(!normalize(&reference).is_empty());
        let (em, f1) = grade(json!(reference.clone()), &answer);
        prop_assert!((0.0..=1.0).contains(&f1) && em <= f1);
        let shouted = format!("The {}!", reference.to_uppercase());
        prop_assert_eq!(grade(json!(reference), &shouted), (1.0, 1.0));
    }

    #[test]
    fn normalisation_is_idempotent(text in "\\PC{0,60}") {
        let once = normalize(&text);
        prop_assert_eq!(normalize(&once), once);
    }
}
