//! The parser is total, and classifies every turn.

use proptest::prelude::*;
use rlf_dialogue::parser::{self, Diagnostic, ParsedTurn};
use rlf_dialogue::turn::TurnOutcome;
use rlf_dialogue::{AnswerRule, Protocol};
use serde_json::json;

pub(crate) const TOOLS: [&str; 2] = ["f", "g"];

fn hermes(text: &str) -> ParsedTurn<'_> {
    parser::parse(text, false, Protocol::Hermes.spec(), &TOOLS)
}

fn llama(text: &str) -> ParsedTurn<'_> {
    parser::parse(text, false, Protocol::Llama31.spec(), &TOOLS)
}

fn calls(parsed: &ParsedTurn) -> Vec<(String, serde_json::Value)> {
    parsed
        .attempts()
        .filter_map(|(_, call)| call.clone().ok())
        .collect()
}

fn diagnostics(parsed: &ParsedTurn) -> Vec<&'static str> {
    parsed
        .diagnostics()
        .map(|(_, diagnostic)| diagnostic.as_str())
        .collect()
}

#[test]
fn well_formed_calls_are_read_in_order_with_their_keys_in_order() {
    let parsed = hermes(
        "So: <tool_call>\n{\"name\": \"f\", \"arguments\": {\"b\": 1, \"a\": [null]}}\n</tool_call>\n\
         <tool_call>{\"arguments\":{},\"name\":\"g\"}</tool_call> done",
    );
    let read = calls(&parsed);
    assert_eq!(
        read,
        [
            ("f".into(), json!({"b": 1, "a": [null]})),
            ("g".into(), json!({}))
        ]
    );
    assert_eq!(read[0].1.to_string(), r#"{"b":1,"a":[null]}"#);
    assert_eq!(parsed.visible(), "So: \n done");
    assert_eq!(parsed.reasoning(), None);
    assert!(diagnostics(&parsed).is_empty());
}

#[test]
fn what_is_wrong_with_a_call_has_a_name() {
    for (text, expected) in [
        ("<tool_call></tool_call>", "empty"),
        ("<tool_call> \n </tool_call>", "empty"),
        ("<tool_call>{\"name\": \"f\"</tool_call>", "bad-json"),
        ("<tool_call>[1]</tool_call>", "bad-json"),
        (
            "<tool_call>{\"name\":\"f\",\"arguments\":{}} {}</tool_call>",
            "bad-json",
        ),
        ("<tool_call>{'name': 'f'}</tool_call>", "bad-json"),
        (
            "<tool_call>{\"name\":\"f\",\"arguments\":{\"x\":1e999}}</tool_call>",
            "bad-json",
        ),
        ("<tool_call>{\"arguments\":{}}</tool_call>", "missing-field"),
        (
            "<tool_call>{\"name\":7,\"arguments\":{}}</tool_call>",
            "missing-field",
        ),
        ("<tool_call>{\"name\":\"f\"}</tool_call>", "missing-field"),
        (
            "<tool_call>{\"name\":\"f\",\"arguments\":\"{}\"}</tool_call>",
            "bad-arguments",
        ),
        (
            "<tool_call>{\"name\":\"f\",\"arguments\":[1]}</tool_call>",
            "bad-arguments",
        ),
        ("<tool_call>{\"name\":\"f\",\"arguments\":{}}", "unclosed"),
        ("<tool_call>{\"name\":\"f\",", "unclosed"),
        ("<tool_call>", "unclosed"),
        ("<think>I wonder", "unclosed-think"),
        ("so</think>", "stray-close"),
        (
            "{\"name\":\"f\",\"arguments\":{}}</tool_call>",
            "stray-close",
        ),
        (
            "<tool_call>{\"name\":\"ff\",\"arguments\":{}}</tool_call>",
            "unknown-tool",
        ),
        (
            "<tool_call>{\"name\":\"\",\"arguments\":{}}</tool_call>",
            "unknown-tool",
        ),
    ] {
        let parsed = hermes(text);
        assert_eq!(diagnostics(&parsed), [expected], "{text}");
        assert!(calls(&parsed).is_empty(), "{text}");
    }
    let names = Diagnostic::ALL.map(Diagnostic::as_str);
    assert_eq!(names.len(), 8);
}

#[test]
fn an_integer_that_would_be_rounded_is_named_where_arguments_are_a_text() {
    let detail = |arguments: &str| {
        let call = json!({"name": "f", "arguments": arguments});
        let text = format!("<tool_call>{call}</tool_call>");
        let parsed = hermes(&text);
        let (_, call) = parsed.attempts().next().unwrap();
        call.clone().unwrap_err().detail
    };
    assert_eq!(
        detail(r#"{"x": 18446744073709551616}"#),
        "\"arguments\": the integer 18446744073709551616 has more than 64 bits and would be rounded (write it as a text) at \
         line 1 column 7"
    );
    for other in [
        r#"{"x": 1}"#,
        "18446744073709551616",
        r#"{"x": 18446744073709551616"#,
    ] {
        assert_eq!(detail(other), "\"arguments\" must be a JSON object");
    }
}

#[test]
fn one_malformed_call_does_not_hide_the_others() {
    let good = "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>";
    for bad in [
        "<tool_call>{</tool_call>",
        "<tool_call>{\"name\":",
        "<tool_call>",
        "</tool_call>",
    ] {
        let text = format!("{good}{bad}{good}");
        let parsed = hermes(&text);
        assert_eq!(calls(&parsed).len(), 2, "{bad}");
        assert_eq!(diagnostics(&parsed).len(), 1, "{bad}");
        let order: Vec<bool> = parsed.attempts().map(|(_, call)| call.is_ok()).collect();
        assert_eq!(order, [true, false, true], "{bad}");
    }
}

#[test]
fn tags_inside_a_json_string_are_part_of_it() {
    let text = "<tool_call>{\"name\":\"f\",\"arguments\":{\"x\":\"</tool_call><think><tool_call>\"}}</tool_call>";
    assert_eq!(
        calls(&hermes(text))[0].1,
        json!({"x": "</tool_call><think><tool_call>"})
    );
}

#[test]
fn nothing_inside_think_counts() {
    let call = "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>";
    let answer = "<answer>1</answer>";
    for (text, in_think) in [
        (format!("<think>{call}{answer}"), false),
        (format!("<think>{call}{answer}</think>"), false),
        (format!("{call}{answer}"), true),
        (format!("{call}{answer}</think>"), true),
        (format!("<tool_call><think>{call}</think>"), false),
    ] {
        let parsed = parser::parse(&text, in_think, Protocol::Hermes.spec(), &TOOLS);
        assert!(calls(&parsed).is_empty(), "{text}");
        assert!(parsed.reasoning().unwrap().contains(call), "{text}");
        for rule in [AnswerRule::Tag, AnswerRule::FinalTurn, AnswerRule::Boxed] {
            assert!(
                !matches!(
                    TurnOutcome::from_parsed(&parsed, rule, true),
                    TurnOutcome::Answer(_)
                ),
                "{text}"
            );
        }
    }
    // Text after a closed block counts, from either starting state.
    for (text, in_think) in [
        (format!("<think>no</think>{call}"), false),
        (format!("no</think>{call}"), true),
    ] {
        let parsed = parser::parse(&text, in_think, Protocol::Hermes.spec(), &TOOLS);
        assert_eq!(calls(&parsed).len(), 1);
        assert_eq!(parsed.reasoning().as_deref(), Some("no"));
        assert!(diagnostics(&parsed).is_empty());
    }
}

#[test]
fn llama_calls_follow_the_python_tag_or_stand_alone() {
    let one = "{\"name\": \"f\", \"parameters\": {\"x\": 1}}";
    for (text, count) in [
        (format!("<|python_tag|>{one}"), 1),
        (format!("<|python_tag|>{one}; {one}"), 2),
        (format!("  {one}\n"), 1),
        (format!("I call <|python_tag|>{one}"), 1),
    ] {
        let parsed = llama(&text);
        assert_eq!(calls(&parsed).len(), count, "{text}");
        assert!(diagnostics(&parsed).is_empty(), "{text}");
    }
    assert_eq!(diagnostics(&llama("<|python_tag|>")), ["empty"]);
    assert_eq!(
        diagnostics(&llama("<|python_tag|>search.call(query=1)")),
        ["bad-json"]
    );
    assert_eq!(
        diagnostics(&llama("{\"name\": \"f\", \"parameters\":")),
        ["bad-json"]
    );
    assert_eq!(
        diagnostics(&llama("{\"name\": \"h\", \"parameters\": {}}")),
        ["unknown-tool"]
    );
    // JSON that is not a call is an answer like any other text.
    assert_eq!(llama("{\"result\": 1}").visible(), "{\"result\": 1}");
    assert_eq!(llama("{1, 2}").attempts().count(), 0);
}

#[test]
fn a_turn_is_an_action_before_it_is_an_answer() {
    let of = |text: &str, rule, finished| TurnOutcome::from_parsed(&hermes(text), rule, finished);
    let answer = |text: &str| TurnOutcome::Answer(text.into());
    let call = "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>";
    for action in [
        format!("<answer>1</answer>{call}"),
        "<answer>1</answer><tool_call>{".into(),
    ] {
        assert_eq!(of(&action, AnswerRule::Tag, true), TurnOutcome::Action);
        assert_eq!(
            of(&action, AnswerRule::FinalTurn, true),
            TurnOutcome::Action
        );
    }
    assert_eq!(
        of(
            "<think>x</think> <answer> 7 </answer>",
            AnswerRule::Tag,
            true
        ),
        answer("7")
    );
    assert_eq!(of("<answer></answer>", AnswerRule::Tag, true), answer(""));
    assert_eq!(of("7", AnswerRule::Tag, true), TurnOutcome::Nothing);
    assert_eq!(
        of(" It is 7.\n", AnswerRule::FinalTurn, true),
        answer("It is 7.")
    );
    assert_eq!(of(" \n", AnswerRule::FinalTurn, true), TurnOutcome::Nothing);
    assert_eq!(
        of(r"so \boxed{x^{2}}", AnswerRule::Boxed, true),
        answer("x^{2}")
    );
    // A turn that was cut is not final, but the text between its tags counts as said.
    assert_eq!(
        of("It is", AnswerRule::FinalTurn, false),
        TurnOutcome::Nothing
    );
    assert_eq!(
        of("<answer>7</answer> because", AnswerRule::Tag, false),
        answer("7")
    );
}

#[test]
fn neither_depth_nor_size_breaks_it() {
    let deep = 1_000_000;
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let text = format!(
            "<tool_call>{{\"name\":\"f\",\"arguments\":{}{}}}</tool_call>",
            open.repeat(deep),
            close.repeat(deep)
        );
        assert_eq!(diagnostics(&hermes(&text)), ["bad-json"]);
        assert_eq!(
            diagnostics(&llama(&format!("<|python_tag|>{}", open.repeat(deep)))),
            ["bad-json"]
        );
    }
    let long = "a".repeat(parser::MAX_CALL_BYTES);
    let text =
        format!("<tool_call>{{\"name\":\"f\",\"arguments\":{{\"x\":\"{long}\"}}}}</tool_call>");
    assert_eq!(diagnostics(&hermes(&text)), ["bad-json"]);
    // Many openings, each followed by all the remaining text: the parser is linear, or this takes minutes.
    for unit in [
        "<tool_call>",
        "<think>",
        "</think>",
        "<tool_call>\"",
        "<tool_call>{\"a\":\"",
        "<answer>",
        "\\boxed{",
    ] {
        let text = unit.repeat(200_000);
        let parsed = hermes(&text);
        for rule in [AnswerRule::Tag, AnswerRule::FinalTurn, AnswerRule::Boxed] {
            let _ = TurnOutcome::from_parsed(&parsed, rule, true);
        }
        let _ = llama(&text);
    }
}

pub(crate) fn pieces() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any::<String>(),
        prop::sample::select(vec![
            "<tool_call>",
            "</tool_call>",
            "<think>",
            "</think>",
            "<|python_tag|>",
            "<answer>",
            "</answer>",
            "\\boxed{",
            "}",
            "{",
            "{\"name\":\"f\",\"arguments\":{}}",
            "\"",
            "[",
            " ",
            "\n",
            "{\"name\":\"f\",\"parameters\":{}}",
            ";",
            "é",
            "<tool_",
            "call>",
            "\\",
        ])
        .prop_map(str::to_owned),
    ];
    prop::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_text_gives_a_turn_that_is_whole(text in pieces(), in_think: bool) {
        for protocol in Protocol::ALL {
            let parsed = parser::parse(&text, in_think, protocol.spec(), &TOOLS);
            // The parts make up the text, in order, except the tags of think blocks and white space.
            let parts: usize = parsed.parts.iter().map(|part| match part {
                parser::Part::Think { text, .. }
                | parser::Part::Text(text)
                | parser::Part::StrayThinkClose(text)
                | parser::Part::Attempt { text, .. } => text.len(),
            }).sum();
            let blocks = parsed.parts.iter().filter(|p| matches!(p, parser::Part::Think { .. })).count();
            prop_assert!(parts <= text.len());
            let space = text.chars().filter(|c| c.is_whitespace()).map(char::len_utf8).sum::<usize>();
            prop_assert!(parts + blocks * 15 + space + text.matches(';').count() >= text.len());
            for (_, call) in parsed.attempts() {
                if let Ok((name, arguments)) = call {
                    prop_assert!(TOOLS.contains(&name.as_str()) && arguments.is_object());
                }
            }
            for rule in [AnswerRule::Tag, AnswerRule::FinalTurn, AnswerRule::Boxed] {
                if let TurnOutcome::Answer(answer) = TurnOutcome::from_parsed(&parsed, rule, true) {
                    prop_assert!(parsed.visible().contains(&answer));
                    prop_assert!(parsed.attempts().next().is_none());
                }
            }
        }
    }

    #[test]
    fn any_bytes_are_a_turn(bytes in prop::collection::vec(any::<u8>(), 0..200), in_think: bool) {
        let text = String::from_utf8_lossy(&bytes);
        for protocol in Protocol::ALL {
            let _ = parser::parse(&text, in_think, protocol.spec(), &TOOLS).visible();
        }
    }
}
