//! A schema is untrusted code too: it is refused, or checking it costs only a few steps per byte.

use rlf_dialogue::tool::{Ended, Fault};
use serde_json::{Value, json};

use crate::test_host::{Plan, TestHost, assert_ended, call, observed};
use rlf_stub_plugins::{ECHO, StubTool, tools};

/// Plugins of one tool each. The tool has its plugin's name and returns its arguments.
fn host(schemas: &[(&'static str, Value)]) -> TestHost {
    schemas
        .iter()
        .fold(Plan::new(), |plan, (name, schema)| {
            let stub = StubTool {
                name,
                schema: Box::leak(schema.to_string().into_boxed_str()),
                hints: 0,
                body: ECHO,
            };
            plan.component(name, &tools(&[stub]))
        })
        .try_open()
}

/// The same; fails the test if one of them is refused.
fn open_host(schemas: &[(&'static str, Value)]) -> TestHost {
    let host = host(schemas);
    assert_eq!(host.registry.problems(), []);
    host
}

#[allow(clippy::needless_pass_by_value)] // Written where it is used.
fn with_property(property: Value) -> Value {
    json!({"type": "object", "properties": {"a": property}})
}

/// A chain of references, `links` long.
fn chain(links: usize) -> Value {
    let defs: serde_json::Map<String, Value> = (0..links)
        .map(|link| {
            (
                link.to_string(),
                json!({"$ref": format!("#/$defs/{}", link + 1)}),
            )
        })
        .chain([(links.to_string(), json!({"type": "string"}))])
        .collect();
    json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/0"}}, "$defs": defs})
}

/// Two references to the next level on every level.
fn tree(levels: usize) -> Value {
    let defs: serde_json::Map<String, Value> = (0..levels)
        .map(|level| {
            let next = json!({"$ref": format!("#/$defs/{}", level + 1)});
            (level.to_string(), json!({"allOf": [next, next]}))
        })
        .chain([(levels.to_string(), json!({"type": "string"}))])
        .collect();
    json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/0"}}, "$defs": defs})
}

#[tokio::test]
async fn a_schema_without_measure_refuses_its_plugin_in_one_line() {
    let patterns: serde_json::Map<String, Value> = (0..400)
        .map(|n| {
            (
                format!("p{n}"),
                json!({"pattern": format!("^{n}(\\w{{5}}|\\d){{40}}$")}),
            )
        })
        .collect();
    let mut again = json!({"type": "object"});
    for _ in 0..14 {
        again = json!({"allOf": [again], "unevaluatedProperties": false});
    }
    let cases = [
        (
            "ahead",
            with_property(json!({"pattern": "(?=a)b"})),
            "not a valid JSON Schema",
        ),
        (
            "behind",
            with_property(json!({"pattern": "(a)\\1"})),
            "not a valid JSON Schema",
        ),
        (
            "brackets",
            with_property(json!({"pattern": "(".repeat(20_000)})),
            "not a valid JSON Schema",
        ),
        (
            "cycle",
            json!({"type": "object", "properties": {"a": {"$ref": "#"}}}),
            "leads back to itself",
        ),
        (
            "disguised",
            json!({"type": "object", "properties": {"const": {"$ref": "#/properties/const"}}}),
            "leads back to itself",
        ),
        (
            "file",
            with_property(json!({"$ref": "file:///etc/passwd"})),
            "is not allowed",
        ),
        (
            "http",
            with_property(json!({"$ref": "http://127.0.0.1/schema"})),
            "is not allowed",
        ),
        (
            "invalid",
            with_property(json!({"type": "strin"})),
            "not a valid JSON Schema",
        ),
        ("long", chain(1_500), "nested more than 96 deep"),
        (
            "many",
            json!({"type": "object", "properties": patterns}),
            "regular expressions need more than",
        ),
        (
            "nowhere",
            with_property(json!({"$ref": "#/$defs/x"})),
            "refers to nothing",
        ),
        ("tree", tree(28), "unfolds into more than 20000 values"),
        (
            "unevaluated",
            json!({"type": "object", "allOf": [again]}),
            "unfolds into more than 20000 values",
        ),
    ];
    let schemas: Vec<_> = cases
        .iter()
        .map(|(name, schema, _)| (*name, schema.clone()))
        .collect();
    let host = host(&schemas);
    for (name, _, said) in &cases {
        let problem = host.problem(name);
        assert!(problem.contains(said), "{name}: {problem}");
    }
    host.beside_a_neighbour(async {}).await;
}

#[tokio::test]
async fn what_would_cost_a_backtracking_engine_an_age_is_answered() {
    let host = open_host(&[
        (
            "backtrack",
            with_property(json!({"type": "string", "pattern": "^(a+)+$"})),
        ),
        ("chain", chain(20)),
    ]);
    let hostile = format!("{}!", "a".repeat(100_000));
    let outcome = host.attack_with("backtrack", json!({ "a": hostile })).await;
    assert_ended(
        &outcome,
        Ended::InvalidArguments,
        Fault::Model,
        "must match the expression ^(a+)+$",
    );
    let outcome = host.attack_with("chain", json!({"a": "x"})).await;
    assert_eq!(observed(&outcome), r#"{"a":"x"}"#);
}

#[tokio::test]
async fn unique_items_over_a_hundred_thousand_are_told_apart_in_linear_time() {
    let host = open_host(&[(
        "unique",
        with_property(json!({"type": "array", "uniqueItems": true})),
    )]);
    // The full megabyte that arguments may have. A pairwise check would need 10^10 comparisons.
    let mut items: Vec<Value> = (0..140_000).map(Value::from).collect();
    let outcome = host.attack_with("unique", json!({ "a": items })).await;
    assert_eq!(outcome.ended, Ended::Ok, "{:?}", outcome.detail);
    items[139_999] = json!(5);
    let calls = (0..4)
        .map(|_| call("unique", json!({ "a": items })))
        .collect();
    for outcome in host.attack(calls).await {
        assert_ended(
            &outcome,
            Ended::InvalidArguments,
            Fault::Model,
            "they do not fit the tool's schema",
        );
    }
    let objects: Vec<Value> = (0..50_000).map(|n| json!({"k": [n]})).collect();
    let outcome = host.attack_with("unique", json!({ "a": objects })).await;
    assert_eq!(outcome.ended, Ended::Ok, "{:?}", outcome.detail);
}

#[tokio::test]
async fn arguments_that_would_cost_too_many_steps_are_refused_unchecked() {
    let rules: Vec<Value> = (0..2_000).map(|n| json!({"not": {"const": n}})).collect();
    let host = open_host(&[
        (
            "items",
            with_property(json!({"type": "array", "items": {"allOf": rules}})),
        ),
        (
            "pattern",
            with_property(json!({"type": "string", "pattern": "(a|b)*a(a|b){2000}c"})),
        ),
        (
            "wrong",
            with_property(json!({"type": "array", "items": {"type": "string"}})),
        ),
    ]);
    let numbers: Vec<i64> = (0..100_000).map(|n| n - 200_000).collect();
    for (tool, arguments, told) in [
        (
            "items",
            json!({ "a": numbers }),
            "are too much for this tool's schema; send less",
        ),
        (
            "pattern",
            json!({"a": "ab".repeat(500_000)}),
            "are too much for this tool's schema; send less",
        ),
        (
            "wrong",
            json!({ "a": numbers }),
            "too large to say where; send less",
        ),
        (
            "wrong",
            json!({"a": "x".repeat(2 << 20)}),
            "at most 1 MiB are allowed",
        ),
    ] {
        let outcome = host.attack_with(tool, arguments).await;
        assert_ended(&outcome, Ended::InvalidArguments, Fault::Model, told);
    }
}

#[tokio::test]
async fn arguments_deeper_than_any_parser_gives_are_refused() {
    let host = open_host(&[("any", json!({"type": "object"}))]);
    let mut deep = Value::from(1);
    for _ in 0..1_000 {
        deep = Value::Array(vec![deep]);
    }
    let arguments = Value::Object([("a".to_owned(), deep)].into_iter().collect());
    let outcome = host.attack_with("any", arguments).await;
    assert_ended(
        &outcome,
        Ended::InvalidArguments,
        Fault::Model,
        "nested more than 64 deep",
    );
}
