use proptest::prelude::*;

use crate::calculate::calculate;

/// Results of CPython 3's `str(round(float(..), 2))`.
#[test]
fn arithmetic_is_pythons_rounded_to_cents() {
    for (expression, expected) in [
        ("2 + 2", "4.0"),
        ("3 ** 2 ** 2", "81.0"),
        ("-3 ** 2", "-9.0"),
        ("7 // 2", "3.0"),
        ("-7 // 2", "-4.0"),
        ("7.0 // 2", "3.0"),
        ("7 / 2", "3.5"),
        ("1 / 3", "0.33"),
        ("0.125 * 1", "0.12"),
        ("2.675 * 1", "2.67"),
        ("10 ** 20", "1e+20"),
        ("10 ** 16", "1e+16"),
        ("2 ** -1", "0.5"),
        ("(1.5 + 2.5) * 3 - 4", "8.0"),
        ("1 - - 1", "2.0"),
        ("00", "0.0"),
        ("5.", "5.0"),
        ("  .5", "0.5"),
        ("0.1 + 0.2", "0.3"),
        ("-0.001", "-0.0"),
        ("54.04+123.47+988.99", "1166.5"),
        ("100000000000000000000 * 3", "3e+20"),
    ] {
        assert_eq!(
            calculate(expression),
            Ok(expected.to_owned()),
            "{expression}"
        );
    }
}

#[test]
fn what_is_no_arithmetic_says_why() {
    let cases = [
        ("2 % 2", "invalid characters in expression"),
        ("x", "invalid characters in expression"),
        ("1,000 + 1", "invalid characters in expression"),
        ("2\n+ 2", "invalid characters in expression"),
        ("", "invalid syntax"),
        ("()", "invalid syntax"),
        ("2 +", "invalid syntax"),
        ("2 3", "invalid syntax"),
        ("(2", "invalid syntax"),
        ("2)", "invalid syntax"),
        ("1.2.3", "invalid syntax"),
        (".", "invalid syntax"),
        ("007", "invalid syntax"),
        ("2 * * 3", "invalid syntax"),
        ("1 / 0", "division by zero"),
        ("1 // 0.0", "division by zero"),
        ("0 ** -1", "zero to a negative power"),
        ("(-8) ** 0.5", "the result is not a real number"),
        ("9 ** 9 ** 9", "int too large to convert to float"),
    ];
    for (expression, reason) in cases {
        assert_eq!(calculate(expression), Err(reason), "{expression}");
    }
    let deep = format!("{}1{}", "(".repeat(10_000), ")".repeat(10_000));
    assert_eq!(calculate(&deep), Err("too many nested parentheses"));
    assert!(calculate(&"-".repeat(100_000)).is_err());
    assert_eq!(
        calculate(&format!("1{}", "+1".repeat(50_000))),
        Ok("50001.0".to_owned())
    );
}

proptest! {
    #[test]
    fn no_text_of_its_characters_makes_it_panic(text in "[0-9+*/(). -]{0,40}") {
        let _ = calculate(&text);
    }

    #[test]
    fn sums_of_cents_are_exact(a in -1_000_000_i64..1_000_000, b in -1_000_000_i64..1_000_000) {
        let text = |cents: i64| format!("({}{}.{:02})", if cents < 0 { "-" } else { "" }, cents.abs() / 100, cents.abs() % 100);
        let shown: f64 = calculate(&format!("{} + {}", text(a), text(b))).unwrap().parse().unwrap();
        prop_assert_eq!((shown * 100.0).round() as i64, a + b);
    }
}
