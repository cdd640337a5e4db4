//! Running specifications: refusals change nothing, work is bounded, and nothing panics.

use proptest::prelude::*;
use rlf_random::Key;
use rlf_specification::model::Size;
use rlf_specification::{Format, Kind, Refusal, check_text, walk};
use serde_json::{Map, Value, json};

use crate::examples::{all, programs};

#[test]
fn random_walks_break_no_rule_and_a_refusal_changes_nothing() {
    for program in programs() {
        let operations = &program.specification().operations;
        let mut ended = vec![(0, 0); operations.len()];
        for size in Size::ALL {
            for seed in 0..20 {
                let mut state = program.open(size, seed).unwrap();
                let key = Key::from_value(seed).named(size.name());
                for number in 0..60u64 {
                    let key = key.at(number);
                    let index = key.below(0, operations.len() as u64) as usize;
                    let operation = &operations[index];
                    let arguments = walk::arguments(&program, &state, operation, key.at(1));
                    let before = state.clone();
                    match program.call(&mut state, &operation.name, &arguments) {
                        Ok(_) => {
                            ended[index].0 += 1;
                            assert!(
                                !operation.read_only || state == before,
                                "{}",
                                operation.name
                            );
                            assert_eq!(program.broken_rule(&state), None);
                            assert_eq!(
                                program.load(&program.state_json(&state)).as_ref(),
                                Ok(&state)
                            );
                        }
                        Err(Refusal::Undone(why)) => {
                            panic!("{} {arguments:?}: {why}", operation.name)
                        }
                        Err(_) => {
                            ended[index].1 += 1;
                            assert_eq!(state, before);
                        }
                    }
                }
            }
        }
        for (operation, (succeeded, refused)) in operations.iter().zip(ended) {
            assert!(succeeded > 0, "{} never succeeds", operation.name);
            assert!(
                refused > 0 || operation.preconditions.is_empty() && operation.bindings.is_empty(),
                "{}",
                operation.name
            );
        }
    }
}

/// A specification with one operation that computes a value of the parameters `a`, `b` and `t`.
pub(crate) fn computing(kind: &str, expression: &str) -> String {
    let expression = serde_json::to_string(expression).unwrap();
    format!(
        r#"
name = "Sums"
description = "Sums"
scenarios = [{{ size = "simple", counts = {{ thing = 3 }} }}]
entities = [{{ name = "thing", collection = "things", description = "A thing", key = {{ name = "thing_id", prefix = "T" }}, fields = [{{ name = "size", type = "integer", minimum = 1, maximum = 1 }}] }}]
[[operations]]
name = "compute"
description = "Compute"
read_only = true
parameters = [
    {{ name = "a", type = "integer", description = "a" }}, {{ name = "b", type = "integer", description = "b" }},
    {{ name = "t", type = "text", description = "t" }},
]
result = {{ fields = [{{ name = "value", type = "{kind}", value = {expression} }}] }}
"#
    )
}

pub(crate) fn value(kind: &str, expression: &str, arguments: &Value) -> Result<Value, String> {
    let checked = check_text(&computing(kind, expression), Format::Toml);
    let findings: Vec<String> = checked.findings.iter().map(ToString::to_string).collect();
    let program = checked.program.ok_or_else(|| findings.join("; "))?;
    let mut state = program.open(Size::Simple, 0).unwrap();
    let arguments: &Map<String, Value> = arguments.as_object().unwrap();
    let result = program
        .call(&mut state, "compute", arguments)
        .map_err(|error| error.to_string())?;
    Ok(result["value"].clone())
}

/// Expressions over `a`, `b` and `t`, which the interpreter of the crate `cel` can evaluate too.
const EXPRESSIONS: [(&str, &str); 24] = [
    ("integer", "a + b * 2 - 7"),
    ("integer", "a / b"),
    ("integer", "a % b"),
    ("integer", "-a - b"),
    ("integer", "(a < b ? a : b) * 3"),
    ("boolean", "a < b && t != 'x' || a == b"),
    ("boolean", "!(a >= b) || t <= 'm'"),
    ("boolean", "a in [1, 2, b]"),
    ("integer", "[a, b, 3].filter(x, x > 0).size()"),
    ("boolean", "[a, b].all(x, x > 0 && [1, 2].exists(y, y < x))"),
    ("boolean", "[a, b, a].exists_one(x, x == b)"),
    ("integer", "[a, b].map(x, x > 0, x * x)[0]"),
    ("integer", "[a, b, 5][a]"),
    ("text", "t + 'end' + string(a)"),
    ("integer", "size(t) + t.size()"),
    (
        "boolean",
        "t.contains('e') && t.startsWith('o') || t.endsWith('e')",
    ),
    ("number", "double(a) * 0.5 + 1.25"),
    ("integer", "int(double(a) / 3.0)"),
    ("boolean", "double(a) / 2.0 > double(b)"),
    ("text", "true ? t : 'no'"),
    (
        "boolean",
        "[[1, a], [2, b]].exists(pair, pair[0] == 2 && pair[1] > 0)",
    ),
    ("boolean", "a * b * 4 <= 9223372036854775807"),
    (
        "integer",
        "[a, b].map(x, [x, x + 1].filter(y, y > b).size())[1]",
    ),
    ("text", "t == '\\u00fc' ? 'umlaut' : \"plain\""),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn expressions_have_the_values_that_cel_gives_them(
        a in prop_oneof![-3i64..6, Just(i64::MAX), Just(i64::MIN)], b in prop_oneof![-3i64..6, any::<i64>()],
        t in prop_oneof!["[a-z ]{0,6}", Just("one".to_owned()), Just("\u{fc}".to_owned())],
    ) {
        for (kind, expression) in EXPRESSIONS {
            let ours = value(kind, expression, &json!({ "a": a, "b": b, "t": t }));
            let mut context = cel::Context::default();
            context.add_variable("a", a).unwrap();
            context.add_variable("b", b).unwrap();
            context.add_variable("t", t.clone()).unwrap();
            let theirs = cel::Program::compile(expression).unwrap().execute(&context);
            match (ours, theirs) {
                (Ok(ours), Ok(theirs)) => {
                    let theirs = match theirs {
                        cel::Value::Int(number) => json!(number),
                        cel::Value::Float(number) => json!(number),
                        cel::Value::Bool(truth) => json!(truth),
                        cel::Value::String(text) => json!(*text),
                        other => panic!("{expression}: {other:?}"),
                    };
                    prop_assert_eq!(ours, theirs, "{} with {} {} {:?}", expression, a, b, t);
                }
                (Err(ours), Err(_)) => prop_assert!(ours.starts_with(rlf_specification::UNDONE), "{} {}", expression, ours),
                (ours, theirs) => prop_assert!(false, "{expression} with {a} {b} {t:?}: {ours:?} and {theirs:?}"),
            }
        }
    }

    #[test]
    fn no_change_of_a_file_makes_reading_or_running_panic(which in 0usize..3, at in any::<prop::sample::Index>(), to in "[ -~\\n]{0,4}", cut in 0usize..6) {
        let (_, text) = all().swap_remove(which);
        let from = at.index(text.len());
        let until = (from + cut).min(text.len());
        let text = format!("{}{to}{}", &text[..from], &text[until..]);
        let checked = check_text(&text, Format::Toml);
        prop_assert!(checked.program.is_some() || !checked.findings.is_empty());
        if let Some(program) = checked.program {
            for operation in &program.specification().operations {
                let Ok(mut state) = program.open(Size::Boundary, 1) else { continue };
                let arguments = walk::arguments(&program, &state, operation, Key::from_value(1));
                let _ = program.call(&mut state, &operation.name, &arguments);
            }
        }
    }

    #[test]
    fn no_arguments_make_an_operation_panic(text in any::<String>(), number in any::<f64>(), whole in any::<i64>(), operation in 0usize..8) {
        for program in programs() {
            let operation = &program.specification().operations[operation.min(6)];
            for value in [json!(text), json!(number), json!(whole), json!(null), json!([text, whole]), json!({ "a": text }), json!("9999-12-31")] {
                let mut state = program.open(Size::Medium, 0).unwrap();
                let arguments = operation.parameters.iter().map(|parameter| (parameter.name.clone(), value.clone())).collect();
                let _ = program.call(&mut state, &operation.name, &arguments);
            }
        }
    }
}

#[test]
fn an_optional_value_is_used_only_after_a_test() {
    let specification = |expression: &str| {
        computing("integer", expression).replace(
            "{ name = \"a\", type = \"integer\",",
            "{ name = \"a\", required = false, type = \"integer\",",
        )
    };
    for fine in [
        "a == null ? 0 : a",
        "a != null && a > 3 ? a : 1",
        "a == null || a < 3 ? 1 : a",
        "[1, 2].filter(x, a == null || x < a).size()",
    ] {
        let checked = check_text(&specification(fine), Format::Toml);
        assert!(checked.program.is_some(), "{fine}: {:?}", checked.findings);
    }
    for wrong in [
        "a",
        "a + 1",
        "a == null ? a : 0",
        "a != null || a > 3 ? 1 : 0",
    ] {
        assert!(
            check_text(&specification(wrong), Format::Toml)
                .program
                .is_none(),
            "{wrong}"
        );
    }
}

#[test]
fn a_walk_draws_numbers_below_a_negative_maximum() {
    let text = computing("integer", "a").replace(
        "{ name = \"b\", type = \"integer\",",
        "{ name = \"b\", type = \"number\", maximum = -5.5,",
    );
    let program = check_text(&text, Format::Toml).program.unwrap();
    let state = program.open(Size::Simple, 0).unwrap();
    let operation = &program.specification().operations[0];
    let arguments = walk::arguments(&program, &state, operation, Key::from_value(0));
    assert!(arguments["b"].as_f64().unwrap() <= -5.5);
}

#[test]
fn a_new_key_that_is_empty_or_cannot_be_seen_is_refused() {
    let adding = |key: &str| {
        let text = format!(
            r#"
name = "Labels"
description = "Labels"
scenarios = [{{ size = "simple", counts = {{ label = 1 }} }}]
entities = [{{ name = "label", collection = "labels", description = "A label", key = {{ name = "label_id", prefix = "L" }} }}]
[[operations]]
name = "add_label"
description = "Add a label"
parameters = [{{ name = "text", type = "text", description = "Its text" }}]
preconditions = [{{ require = "text.size() < 99", error = "it is too long" }}]
effects = [{{ insert = {{ entity = "label", key = "{key}", values = {{}} }} }}]
result = {{ fields = [{{ name = "count", type = "integer", value = "labels.size()" }}] }}
"#
        );
        check_text(&text, Format::Toml)
    };
    let program = adding("text").program.unwrap();
    let mut state = program.open(Size::Simple, 0).unwrap();
    let before = state.clone();
    let mut add = |text: &str| {
        let arguments = json!({ "text": text });
        program.call(&mut state, "add_label", arguments.as_object().unwrap())
    };
    for text in ["", "\u{200b}", "a\0", "\u{202e}a"] {
        let why = "a key cannot be empty or have invisible characters";
        assert_eq!(add(text), Err(Refusal::Refused(why.to_owned())));
    }
    assert_eq!(add("a"), Ok(json!({ "count": 2 })));
    assert_ne!(state, before);

    let finding = &adding("''").findings[0];
    assert_eq!(finding.kind, Kind::BadEffect);
    assert_eq!(finding.place, "/operations/0/effects/0/insert/key");
}
