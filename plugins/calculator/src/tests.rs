use num_bigint::BigInt;
use num_integer::Integer;
use proptest::prelude::*;
use rlf_plugin::testing::{self, text};
use rlf_plugin::{Hints, ToolPlugin};
use serde_json::json;

use crate::Plugin;
use crate::evaluate::evaluate;

fn calculate(expression: &str) -> String {
    match evaluate(expression) {
        Ok(number) => number.to_string(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn the_model_reads_a_short_definition() {
    let tools = Plugin::list_tools();
    assert_eq!(tools.len(), 1);
    assert_eq!(tools[0].name, "calculate");
    assert_eq!(
        tools[0].description,
        "Computes an arithmetic expression with + - * / // % ^ and parentheses."
    );
    assert_eq!(
        tools[0].input_schema,
        r#"{"type":"object","properties":{"expression":{"type":"string","description":"For example (2 + 3) * 4 or max(1, 2.5) or 7 // 2"}},"required":["expression"]}"#
    );
    assert_eq!(
        tools[0].hints,
        Hints::READ_ONLY | Hints::IDEMPOTENT | Hints::DETERMINISTIC
    );
}

#[test]
fn a_call_goes_through_json_and_a_failure_is_an_observation() {
    let right = testing::call::<Plugin>("calculate", json!({ "expression": "(2+3)*4" })).unwrap();
    assert_eq!((text(&right).as_str(), right.failed), ("20", false));
    let wrong = testing::call::<Plugin>("calculate", json!({ "expression": "1 / 0" })).unwrap();
    assert_eq!(
        (text(&wrong).as_str(), wrong.failed),
        ("error at character 3: division by zero", true)
    );
}

#[test]
fn arithmetic_is_exact_and_binds_as_in_mathematics() {
    for (expression, expected) in [
        ("(2+3)*4", "20"),
        ("2 + 3 * 4", "14"),
        ("2^3^2", "512"),
        ("2**10", "1024"),
        ("-2^2", "-4"),
        ("(-2)^2", "4"),
        ("2^-1", "0.5"),
        ("--5", "5"),
        ("2 - -3", "5"),
        ("10 - 4 - 3", "3"),
        ("100 / 10 / 5", "2"),
        ("0.1 + 0.2", "0.3"),
        ("1.10", "1.1"),
        (".5 + 5.", "5.5"),
        ("1e3 + 2.5e-1", "1000.25"),
        ("1 / 3 * 3", "1"),
        ("7 // 2", "3"),
        ("-7 // 2", "-4"),
        ("-7 % 3", "2"),
        ("7 % -3", "-2"),
        ("5.5 % 2", "1.5"),
        (
            "2^200",
            "1606938044258990275541962092341162602522202993782792835301376",
        ),
        ("123456789012345678 / 2", "61728394506172839"),
        ("3 \u{d7} 4 \u{2212} 6 \u{f7} 2", "9"),
        ("0 * -1", "0"),
        ("0^0", "1"),
        ("(-1)^1000000000001", "-1"),
    ] {
        assert_eq!(calculate(expression), expected, "{expression}");
    }
}

/// Python: `decimal.Context(prec=12, rounding=ROUND_HALF_EVEN).divide(a, b)`.
#[test]
fn a_quotient_has_twelve_significant_digits_half_to_even() {
    for (expression, expected) in [
        ("1/3", "0.333333333333"),
        ("2/3", "0.666666666667"),
        ("-2/3", "-0.666666666667"),
        ("10/3", "3.33333333333"),
        ("22/7", "3.14285714286"),
        ("1/1024", "0.0009765625"),
        ("1/7000000", "0.000000142857142857"),
        // A tie in the thirteenth digit goes to the even neighbour.
        ("1000000000005/10000000000000", "0.1"),
        ("1000000000015/10000000000000", "0.100000000002"),
        ("1000000000025/10000000000000", "0.100000000002"),
        ("999999999999.5/1000000000000", "1"),
        ("331893745/1.5", "221262496.667"),
    ] {
        assert_eq!(calculate(expression), expected, "{expression}");
    }
}

#[test]
fn a_quotient_never_loses_digits_of_its_whole_part() {
    for (expression, expected) in [
        ("1000000000000000/7", "142857142857143"),
        ("12345678901234567/2", "6172839450617284"),
        ("10000000000000/3", "3333333333333"),
        ("mean(1000000000000.5)", "1000000000000"),
    ] {
        assert_eq!(calculate(expression), expected, "{expression}");
    }
}

#[test]
fn functions_are_the_usual_ones() {
    for (expression, expected) in [
        ("abs(-3.5)", "3.5"),
        ("min(3, 1, 2)", "1"),
        ("max(1,234)", "234"),
        ("sum(1, 2, 3.5)", "6.5"),
        ("mean(1, 2)", "1.5"),
        ("round(2.5)", "2"),
        ("round(3.5)", "4"),
        ("round(-2.5)", "-2"),
        ("round(2.675, 2)", "2.68"),
        ("round(1000000000000/7, 2)", "142857142857.14"),
        ("round(1250, -2)", "1200"),
        ("floor(-1.5)", "-2"),
        ("ceil(1.2)", "2"),
        ("trunc(-1.5)", "-1"),
        ("sqrt(144)", "12"),
        ("sqrt(0.25)", "0.5"),
        ("sqrt(2)", "1.41421356237"),
        ("sqrt(2)^2", "2"),
        ("2^0.5", "1.41421356237"),
        ("27^(1/3)", "3"),
        ("10^-0.5", "0.316227766017"),
        ("gcd(12, 18)", "6"),
        ("lcm(4, 6)", "12"),
        ("factorial(20)", "2432902008176640000"),
        ("pi", "3.14159265359"),
        ("2*PI", "6.28318530718"),
        ("e", "2.71828182846"),
        ("exp(1)", "2.71828182846"),
        ("ln(10)", "2.30258509299"),
        ("log10(1000)", "3"),
        ("log2(8)", "3"),
        ("log(8, 2)", "3"),
        ("sin(pi)", "0"),
        ("cos(0)", "1"),
    ] {
        assert_eq!(calculate(expression), expected, "{expression}");
    }
}

#[test]
fn an_error_says_where_and_how_to_mend_it() {
    for (expression, expected) in [
        ("", "error at character 1: the expression is empty"),
        (
            "2 +",
            "error at character 4: expected a number, found the end",
        ),
        (
            "(2 + 3",
            "error at character 7: expected `)`, found the end",
        ),
        (
            "2 + 3)",
            "error at character 6: expected an operator or the end, found `)`",
        ),
        (
            "2 3",
            "error at character 3: expected an operator or the end, found the number 3",
        ),
        (
            "2 * / 3",
            "error at character 5: expected a number, found `/`",
        ),
        (
            "1,234 + 1",
            "error at character 2: unexpected `,`; write numbers without thousands separators, such as 1234.5",
        ),
        ("5 $ 3", "error at character 3: unexpected `$`"),
        ("1.2.3", "error at character 4: unexpected `.`"),
        (
            "3km",
            "error at character 2: `k` directly after a number; write * to multiply, and no units",
        ),
        (
            "10%",
            "error at character 3: `%` is the remainder, as in 7 % 3; for a percentage write / 100",
        ),
        ("5 // 0", "error at character 3: division by zero"),
        ("5 % (1 - 1)", "error at character 3: division by zero"),
        ("0^-1", "error at character 2: division by zero"),
        (
            "sqrt(-1)",
            "error at character 1: the square root of a negative number is not real",
        ),
        (
            "abs(1, 2)",
            "error at character 1: abs takes 1 argument, not 2",
        ),
        (
            "2^99999",
            "error at character 2: the result has more than 1200 digits",
        ),
        (
            "9^9^9^9",
            "error at character 4: the result has more than 1200 digits",
        ),
        (
            "1e999999999999999999",
            "error at character 1: the result has more than 1200 digits",
        ),
        (
            "factorial(100000)",
            "error at character 1: the result has more than 1200 digits",
        ),
        (
            "import os",
            "error at character 1: unknown name `import`; known are abs, min, max, sum, mean, round, floor, ceil, trunc, sqrt, gcd, lcm, factorial, exp, ln, log, log2, log10, sin, cos, tan, pi and e",
        ),
    ] {
        assert_eq!(calculate(expression), expected, "{expression}");
    }
}

#[test]
fn depth_and_length_are_bounded() {
    assert_eq!(
        calculate(&format!("{}1{}", "(".repeat(100), ")".repeat(100))),
        "1"
    );
    assert!(
        calculate(&format!("{}1{}", "(".repeat(101), ")".repeat(101)))
            .contains("inside each other")
    );
    assert!(calculate(&"-".repeat(1_500)).contains("inside each other"));
    assert!(calculate(&"1+".repeat(1_500)).contains("longer than 2000 characters"));
    // Each operation is bounded, so even the longest expression of the most expensive operations is bounded.
    let product = vec!["9^1200"; 285].join("*");
    assert!(calculate(&product).contains("more than 1200 digits"));
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,60}") {
        let _ = calculate(&text);
    }

    #[test]
    fn no_sequence_of_its_own_tokens_makes_it_panic(
        tokens in proptest::collection::vec(
            prop_oneof![
                Just("("), Just(")"), Just("+"), Just("-"), Just("*"), Just("/"), Just("//"), Just("%"), Just("^"),
                Just(","), Just("1"), Just("0"), Just("2.5"), Just("1e40"), Just("123456789"), Just("sqrt("),
                Just("round("), Just("max("), Just("log("), Just("exp("), Just("factorial("), Just("pi"),
            ],
            0..24,
        )
    ) {
        let shown = calculate(&tokens.concat());
        prop_assert!(!shown.is_empty());
    }

    #[test]
    fn whole_numbers_agree_with_wide_integers(a in any::<i64>(), b in any::<i64>()) {
        let (x, y) = (i128::from(a), i128::from(b));
        prop_assert_eq!(calculate(&format!("{a} + {b}")), (x + y).to_string());
        prop_assert_eq!(calculate(&format!("{a} - {b}")), (x - y).to_string());
        prop_assert_eq!(calculate(&format!("{a} * {b}")), (x * y).to_string());
        if b != 0 {
            prop_assert_eq!(calculate(&format!("({a}) // ({b})")), BigInt::from(x).div_floor(&BigInt::from(y)).to_string());
            prop_assert_eq!(calculate(&format!("({a}) % ({b})")), BigInt::from(x).mod_floor(&BigInt::from(y)).to_string());
        }
    }

    #[test]
    fn a_shown_decimal_is_read_back_as_itself(whole in any::<i64>(), fraction in "[0-9]{0,20}[1-9]") {
        let text = format!("{whole}.{fraction}");
        prop_assert_eq!(calculate(&text), text);
    }

    #[test]
    fn a_quotient_is_within_half_a_unit_of_its_twelfth_digit(a in 1..i64::MAX, b in 1..i64::MAX) {
        let shown: f64 = calculate(&format!("{a}/{b}")).parse().unwrap();
        let exact = a as f64 / b as f64;
        prop_assert!((shown - exact).abs() <= exact * 5.1e-12, "{} {}", shown, exact);
    }
}
