//! Programs that need too much: too deep, too long, or too much work.

use rlf_specification::model::Size;
use rlf_specification::{Format, StateError, check_text};
use serde_json::json;

use crate::running::{computing, value};

#[test]
fn work_texts_and_lists_are_bounded() {
    let none = json!({ "a": 1, "b": 1, "t": "" });
    let mut nested = "a".to_owned();
    let many = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]";
    for depth in 0..6 {
        nested = format!("{many}.map(x{depth}, {nested}).size()");
    }
    assert!(
        value("integer", &nested, &none)
            .unwrap_err()
            .contains("too many steps")
    );
    let mut text = "t + 'x'".to_owned();
    for _ in 0..7 {
        text = format!("[{text}].map(x, x + x)[0]");
    }
    let arguments = json!({ "a": 1, "b": 1, "t": "y".repeat(1_000) });
    assert!(
        value("text", &text, &arguments)
            .unwrap_err()
            .contains("too large")
    );
}

#[test]
fn expressions_that_are_too_deep_or_too_long_are_refused() {
    let none = json!({ "a": 1, "b": 1, "t": "" });
    let deep = [
        format!("{}a{}", "(".repeat(2_000), ")".repeat(2_000)),
        "[".repeat(2_000),
        "(".repeat(4_000),
        "a+".repeat(2_000) + "a",
        "!".repeat(3_000) + "true",
        "-".repeat(3_000) + "a",
        "a?a:".repeat(1_000) + "a",
        "a".to_owned() + &".b".repeat(2_000),
        "a == ".repeat(500) + "a",
        "a in ".repeat(700) + "[a]",
        "'".repeat(4_001),
        "a+".repeat(3_000),
        "\\".repeat(3_000),
        "((a))+".repeat(81),
        "a in ".repeat(81),
        "f(".repeat(24),
    ];
    for expression in deep {
        assert!(
            value("integer", &expression, &none).is_err(),
            "{expression}"
        );
    }
    // The longest chains that are allowed.
    assert_eq!(
        value("integer", &("a".to_owned() + &"+a".repeat(80)), &none),
        Ok(json!(81))
    );
    assert_eq!(
        value(
            "integer",
            &format!("{}a{}", "(".repeat(8), ")".repeat(8)),
            &none
        ),
        Ok(json!(1))
    );
    let chain = value("boolean", &("!".repeat(80) + "true"), &none);
    assert!(chain.is_ok() || chain.unwrap_err().contains("recursion"));
}

/// A specification that doubles a list so many times, without a copy: each one has the one before it twice.
fn doubling(times: usize, kind: &str, expression: &str) -> String {
    let mut bindings = vec!["{ compute = { name = \"l0\", value = \"[a]\" } }".to_owned()];
    for number in 1..=times {
        let before = number - 1;
        bindings.push(format!(
            "{{ compute = {{ name = \"l{number}\", value = \"[l{before}, l{before}]\" }} }}"
        ));
    }
    computing("integer", expression)
        .replace(
            "result =",
            &format!("bindings = [{}]\nresult =", bindings.join(", ")),
        )
        .replace("fields = [{ name = \"value\", type = \"integer\"", &{
            format!("fields = [{{ name = \"value\", type = {kind}")
        })
}

fn doubled(times: usize, kind: &str, expression: &str) -> Result<serde_json::Value, String> {
    let checked = check_text(&doubling(times, kind, expression), Format::Toml);
    let program = checked
        .program
        .unwrap_or_else(|| panic!("{:?}", checked.findings));
    let mut state = program.open(Size::Simple, 0).unwrap();
    let arguments = json!({ "a": 1, "b": 1, "t": "" });
    let result = program.call(&mut state, "compute", arguments.as_object().unwrap());
    result.map_err(|refusal| refusal.to_string())
}

#[test]
fn lists_that_share_their_items_are_bounded_where_something_goes_through_them() {
    let boolean = "\"boolean\"";
    for expression in ["l33 == l33", "l33 != l33", "l33 in [l33]"] {
        let refused = doubled(33, boolean, expression).unwrap_err();
        assert!(refused.contains("too many steps"), "{refused}");
    }
    let found = doubled(10, boolean, "l10 == l10 && l10 in [l10]").unwrap();
    assert_eq!(found["value"], true);
    let nested = |times: usize| {
        let (open, close) = ("{ list = ".repeat(times + 1), " }".repeat(times + 1));
        format!("{open}\"integer\"{close}")
    };
    // 180 times the same list, which has 180 times a list of 180 items.
    let many =
        ["[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20]"; 9].join(" + ");
    let shared = format!("[{many}].map(l, [l.map(x, l)].map(m, l.map(x, m))[0])[0]");
    let refused = doubled(0, &nested(2), &shared).unwrap_err();
    assert!(refused.contains("too many steps"), "{refused}");
    let written = doubled(2, &nested(2), "l2").unwrap();
    assert_eq!(written["value"].to_string(), "[[[1],[1]],[[1],[1]]]");
}

#[test]
fn types_and_files_that_are_nested_too_deeply_are_refused() {
    let (open, close) = ("{ list = ".repeat(30), " }".repeat(30));
    let text = computing("integer", "a + b + t.size()").replace(
        "{ name = \"t\", type = \"text\"",
        &format!("{{ name = \"t\", type = {open}\"text\"{close}"),
    );
    let checked = check_text(&text, Format::Toml);
    assert!(checked.program.is_none());
    let finding = checked.findings[0].to_string();
    assert!(
        finding
            .ends_with("/operations/0/parameters/2/type: lists are nested 30 deep; nest at most 3"),
        "{finding}"
    );
    // Far deeper than any stack bears: keys of 70 parts in 70 inline tables, whole and cut off.
    let keys = ["list"; 70].join(".");
    let deep = format!("{}1{}", format!("{{ {keys} = ").repeat(70), " }".repeat(70));
    for text in [format!("name = {deep}\n"), format!("name = {deep}\n[[")] {
        let finding = &check_text(&text, Format::Toml).findings[0];
        assert_eq!(
            finding.to_string(),
            "/: tables and lists are nested more than 64 deep; nest fewer"
        );
    }
    let lists = "{\"list\":".repeat(100_000);
    let text = format!("{{\"values\": [{{\"name\": \"a\", \"type\": {lists}");
    let finding = &check_text(&text, Format::Json).findings[0];
    assert_eq!(finding.kind, rlf_specification::Kind::Unreadable);
}

#[test]
fn a_message_ends_where_texts_end() {
    let text = computing("integer", "a + b").replace(
        "result =",
        "preconditions = [{ require = \"t.size() < 9\", error = \"{t}{t}{t}\" }]\nresult =",
    );
    let program = check_text(&text, Format::Toml).program.unwrap();
    let mut state = program.open(Size::Simple, 0).unwrap();
    // 20,001 characters of three bytes. 65,536 bytes end inside of a character.
    let arguments = json!({ "a": 1, "b": 1, "t": "\u{20ac}".repeat(20_001) });
    let refused = program
        .call(&mut state, "compute", arguments.as_object().unwrap())
        .unwrap_err();
    assert_eq!(refused.to_string(), "\u{20ac}".repeat(21_845));
}

#[test]
fn a_word_that_is_longer_than_texts_is_not_generated() {
    let word = "w".repeat(40_000);
    let text = computing("integer", "a + b + t.size()").replace(
        "{ name = \"size\", type = \"integer\", minimum = 1, maximum = 1 }",
        "{ name = \"label\", type = \"text\", generate = { template = \"{words}{words}\" } }",
    );
    let text = format!("vocabularies = {{ words = [\"{word}\"] }}\n{text}");
    let program = check_text(&text, Format::Toml).program.unwrap();
    let error = program.open(Size::Simple, 0).unwrap_err();
    assert!(matches!(error, StateError::NoValue { .. }), "{error}");
    assert!(error.to_string().contains("80000 bytes"), "{error}");
}

#[test]
fn operators_cannot_hide_behind_a_text_or_a_comment() {
    let none = json!({ "a": 1, "b": 1, "t": "" });
    let long = "a+".repeat(100) + "a";
    let hiding = [
        format!("a // '\n + {long}"),
        format!("r'\\' == t ? {long} : a"),
        format!("b'\\'.size() + {long}"),
        format!("''' ' ''' == t ? {long} : a"),
        format!("'\n' == t ? {long} : a"),
    ];
    for expression in hiding {
        let message = value("integer", &expression, &none).unwrap_err();
        assert!(
            message.contains("which no expression may have"),
            "{message}"
        );
    }
    // What only looks like one of them is allowed.
    let harmless = [
        "a / b",
        "t == '//' ? a : b",
        "t == 'r' ? a : b",
        "'' == t ? a : b",
    ];
    for expression in harmless {
        assert_eq!(
            value("integer", expression, &none).unwrap(),
            json!(1),
            "{expression}"
        );
    }
}
