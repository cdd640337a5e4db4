use proptest::prelude::*;
use rlf_plugin::serde_json::{Value, json};
use rlf_plugin::{RewardPlugin, error_message, testing};

use crate::Plugin;
use crate::number::{Percent, only_number};

fn matches_with(config: Value, reference: Value, answer: &str) -> bool {
    testing::init_reward::<Plugin>(config).unwrap();
    let score = testing::grade::<Plugin>(
        &testing::task(reference),
        testing::trajectory().answered(answer),
    )
    .unwrap();
    score.get("match") == Some(1.0)
}

fn matches(reference: &str, answer: &str) -> bool {
    matches_with(json!({}), json!(reference), answer)
}

#[test]
fn the_same_number_matches_however_it_is_written() {
    for (reference, answer) in [
        ("42", "42"),
        ("42", "42.0"),
        ("42", "+42"),
        ("42", "The answer is 42."),
        ("1234567.5", "1,234,567.50"),
        ("1,234,567", "1234567"),
        ("1234567", "1\u{202f}234\u{202f}567"),
        ("-5", "\u{2212}5"),
        ("-5", "x = -5"),
        ("-5", "- 5"),
        ("-5", "-$5.00"),
        ("0.5", ".5"),
        ("0.12", "12%"),
        ("12%", "0.12"),
        ("12 %", "12%"),
        ("1200", "1.2e3"),
        ("0.001", "1E-3 kg"),
        ("72", "72 apples, all of them"),
        ("300000", "about 300,000 km\u{b2}"),
        ("7", "CO2 rises by 7"),
    ] {
        assert!(matches(reference, answer), "{reference} / {answer}");
    }
}

#[test]
fn another_number_does_not_match_where_squad_would_say_so() {
    for (reference, answer) in [
        ("5", "-5"),
        ("3.14", "314"),
        ("3.14", "3,14"),
        ("12", "12%"),
        ("42", "42.0000000001"),
        ("1234", "12,34"),
        ("1234567", "1,234567"),
        ("1234567", "1234,567"),
        ("12", "1.2.0"),
        ("0.3333333333", "1/3"),
    ] {
        assert!(!matches(reference, answer), "{reference} / {answer}");
    }
}

#[test]
fn more_than_one_number_or_none_is_no_answer() {
    for answer in [
        "",
        "forty-two",
        "42 or 43",
        "42, 43",
        "3-5",
        "42 42",
        "2 x 21",
        "m2",
    ] {
        assert!(!matches("42", answer), "{answer}");
    }
    let silent =
        testing::grade::<Plugin>(&testing::task(json!(42)), testing::trajectory().said("42"))
            .unwrap();
    assert_eq!(silent.get("match"), Some(0.0));
}

#[test]
fn a_stated_tolerance_is_exact_at_its_edge() {
    let absolute = json!({ "absolute": 0.01 });
    assert!(matches_with(absolute.clone(), json!(0.3), "0.31"));
    assert!(!matches_with(absolute, json!(0.3), "0.3100000001"));
    let relative = json!({ "relative": 0.05 });
    assert!(matches_with(relative.clone(), json!("-200"), "-210"));
    assert!(!matches_with(relative.clone(), json!("-200"), "-210.1"));
    assert!(!matches_with(relative, json!(0), "0.001"));
}

#[test]
fn a_percent_sign_can_be_told_to_mean_nothing() {
    let config = json!({ "percent": "ignored" });
    assert!(matches_with(config.clone(), json!(12), "12%"));
    assert!(!matches_with(config, json!(0.12), "12%"));
}

#[test]
fn any_of_several_references_counts() {
    assert!(matches_with(
        json!({}),
        json!({ "target": ["41", "42"] }),
        "42"
    ));
}

#[test]
fn a_reference_without_a_number_excludes_instead_of_scoring() {
    testing::init_reward::<Plugin>(json!({})).unwrap();
    for reference in [json!("Paris"), json!(["1", "two"]), json!(null)] {
        let graded = testing::grade::<Plugin>(
            &testing::task(reference),
            testing::trajectory().answered("1"),
        );
        assert!(!error_message(&graded.unwrap_err()).is_empty());
    }
}

#[test]
fn a_wrong_configuration_is_refused_by_key() {
    let refused =
        |config: Value| error_message(&Plugin::init(&config.to_string()).unwrap_err()).to_owned();
    assert_eq!(
        refused(json!({ "absolute": -1 })),
        "configuration: absolute is 0 or more, not -1"
    );
    assert!(refused(json!({ "tolerance": 1 })).contains("unknown field `tolerance`"));
    assert!(refused(json!({ "percent": "maybe" })).contains("`maybe`"));
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,60}") {
        let _ = only_number(&text, Percent::Hundredths);
    }

    #[test]
    fn nothing_made_of_the_parts_of_numbers_makes_it_panic(text in "[-+0-9.,%eE $\u{a0}\u{2212}]{0,24}") {
        let _ = only_number(&text, Percent::Hundredths);
    }

    #[test]
    fn only_the_same_integer_matches(a in any::<i64>(), b in any::<i64>()) {
        prop_assert_eq!(matches(&a.to_string(), &b.to_string()), a == b);
        let with_decimals = format!("{a}.00");
        prop_assert!(matches(&a.to_string(), &with_decimals));
    }
}
