//! Output is bounded, whatever its content, and is never treated as instructions.

use rlf_dialogue::tool::{Ended, Fault};
use serde_json::json;

use crate::test_host::{Plan, assert_ended, assert_limit, call, observed};
use rlf_stub_plugins::{Beside, ECHO};

#[tokio::test]
async fn ten_gigabytes_of_output_end_at_the_limit() {
    let host = Plan::new().guest("misbehave").open();
    let calls = (0..4)
        .map(|_| call("flood_output", json!({"bytes": 10_000_000_000_u64})))
        .collect();
    for outcome in host.attack(calls).await {
        assert_ended(
            &outcome,
            Ended::OutputLimit,
            Fault::Model,
            "larger than the 16 MiB it may have",
        );
        assert_limit(&outcome, "output_stop_bytes", 16 << 20);
    }
}

#[tokio::test]
async fn a_flood_of_the_log_is_no_more_than_a_flood_of_the_log() {
    let host = Plan::new().guest("misbehave").open();
    let outcome = host
        .attack_with("flood_log", json!({"lines": 200_000}))
        .await;
    assert_eq!(
        (outcome.ended, observed(&outcome).as_str()),
        (Ended::Ok, "logged it all")
    );
}

#[tokio::test]
async fn output_that_is_no_text_harms_nobody() {
    let host = Plan::new().guest("misbehave").open();
    let outcome = host
        .attack_with(
            "print_bytes",
            json!({"bytes": [255, 254, 0, 27, 91, 0xc3, 0x28, 0xed, 0xa0, 0x80]}),
        )
        .await;
    assert_eq!(
        (outcome.ended, observed(&outcome).as_str()),
        (Ended::Ok, "printed")
    );
}

#[tokio::test]
async fn a_result_that_is_no_text_or_no_json_is_the_plugins_fault() {
    let tools = [
        // A byte that is not valid in UTF-8, and half of a character.
        (
            "bytes",
            "(i32.store8 (i32.const 3072) (i32.const 255)) (call $text (i32.const 3072) (i32.const 1))",
        ),
        (
            "half",
            "(i32.store16 (i32.const 3072) (i32.const 0x9fe6)) (call $text (i32.const 3072) (i32.const 2))",
        ),
    ];
    let host = Plan::new()
        .guest("misbehave")
        .stub("garbles", &Beside::default(), &tools)
        .open();
    for (tool, arguments) in [
        ("bytes", json!({})),
        ("half", json!({})),
        ("deep_result", json!({"depth": 10_000})),
        ("deep_result", json!({"depth": 400_000})),
        ("invalid_result", json!({})),
        ("invalid_metric", json!({})),
    ] {
        let outcome = host.attack_with(tool, arguments).await;
        assert_ended(
            &outcome,
            Ended::Trap,
            Fault::Plugin,
            "the tool broke on this call",
        );
    }
    let outcome = host.attack_with("deep_result", json!({"depth": 50})).await;
    assert_eq!(outcome.ended, Ended::Ok);
}

#[tokio::test]
async fn a_guest_without_any_stream_is_as_good_as_another() {
    let host = Plan::new()
        .stub("quiet", &Beside::default(), &[("echo", ECHO)])
        .open();
    let plugin = host.registry.plugin("quiet").unwrap();
    assert!(plugin.template().info().imports.is_empty());
    let outcome = host.attack_with("echo", json!({"a": 1})).await;
    assert_eq!(observed(&outcome), r#"{"a":1}"#);
}

#[tokio::test]
async fn no_text_of_a_guest_is_obeyed_by_a_terminal() {
    let host = Plan::new().guest("misbehave").open();
    let evil = "\u{1b}[2J\u{1b}]0;title\u{7}\u{9b}31m\u{202e}\u{2066}\r\u{8}\u{0}\u{feff}\u{e0041}";
    for tool in ["say", "refuse"] {
        let outcome = host.attack_with(tool, json!({ "text": evil })).await;
        assert_ne!(outcome.ended, Ended::Trap, "{outcome:?}");
        let seen = observed(&outcome);
        let obeyed = |c: &char| {
            c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
        };
        assert_eq!(seen.chars().find(obeyed), None, "{seen:?}");
        assert!(seen.contains("\u{241b}[2J"), "{seen:?}");
    }
}
