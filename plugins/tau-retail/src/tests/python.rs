//! Golden texts are CPython 3's: `json.dumps(value)`, `str` of nested tuples, `round(value, 2)`.

use rlf_plugin::serde_json::{Value, json};

use crate::number::Number;
use crate::python::{dumps, write_float, write_tuple};

fn tuple(value: &Value) -> String {
    let mut out = String::new();
    write_tuple(&mut out, value);
    out
}

fn float(value: f64) -> String {
    let mut out = String::new();
    write_float(&mut out, value);
    out
}

#[test]
fn objects_and_lists_are_tuples_sorted_by_key() {
    let value = json!({ "b": [1], "a": [], "c": { "z": null }, "t": true, "e": {}, "l": [1, [2.0, false]] });
    assert_eq!(
        tuple(&value),
        "(('a', ()), ('b', (1,)), ('c', (('z', None),)), ('e', ()), ('l', (1, (2.0, False))), ('t', True))"
    );
}

#[test]
fn texts_are_quoted_and_escaped_as_python_does_it() {
    for (text, printed) in [
        ("plain", r"'plain'"),
        ("it's", "\"it's\""),
        ("\"so\"", "'\"so\"'"),
        ("it's \"so\"", "'it\\'s \"so\"'"),
        ("\\\n\r\t\u{0}\u{7f}", r"'\\\n\r\t\x00\x7f'"),
        (
            "é\u{a0}\u{ad}\u{200b}\u{2028}\u{e000}",
            r"'é\xa0\xad\u200b\u2028\ue000'",
        ),
        ("😀\u{301}\u{10ffff}", "'😀\u{301}\\U0010ffff'"),
    ] {
        assert_eq!(tuple(&json!(text)), printed);
    }
    assert_eq!(
        dumps(&json!({ "é\"\\\n\t\u{8}\u{c}\r\u{7f}/": ["😀", "\u{2028}"] })),
        r#"{"\u00e9\"\\\n\t\b\f\r\u007f/": ["\ud83d\ude00", "\u2028"]}"#
    );
}

#[test]
fn floats_have_the_digits_and_the_exponents_that_python_gives_them() {
    for (value, printed) in [
        (1.0, "1.0"),
        (-0.0, "-0.0"),
        (0.1, "0.1"),
        (0.0001, "0.0001"),
        (1e-5, "1e-05"),
        (1.5e-7, "1.5e-07"),
        (5e-324, "5e-324"),
        (1e15, "1000000000000000.0"),
        (1e16, "1e+16"),
        (123_456_789_012_345_680.0, "1.2345678901234568e+17"),
        (9_007_199_254_740_993.0, "9007199254740992.0"),
        (-1.5e300, "-1.5e+300"),
        (f64::INFINITY, "inf"),
        (f64::NEG_INFINITY, "-inf"),
        (f64::NAN, "nan"),
    ] {
        assert_eq!(float(value), printed);
    }
    assert_eq!(
        dumps(&json!([1, -2, 536.65, 100.0, u64::MAX])),
        "[1, -2, 536.65, 100.0, 18446744073709551615]"
    );
}

#[test]
fn cents_are_rounded_by_the_binary_value_and_ties_go_to_the_even_one() {
    for (value, rounded) in [
        (0.125, 0.12),
        (0.375, 0.38),
        (2.675, 2.67),
        (1.005, 1.0),
        (0.005, 0.01),
        (0.015, 0.01),
        (1_234_567.895, 1_234_567.9),
        (1e300, 1e300),
    ] {
        assert_eq!(
            Number::Float(value).round_cents(),
            Number::Float(rounded),
            "{value}"
        );
    }
    let tiny = Number::Float(-0.001).round_cents();
    assert_eq!(float(tiny.to_f64()), "-0.0");
    assert_eq!(Number::Whole(7).round_cents(), Number::Whole(7));
}
