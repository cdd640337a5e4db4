//! Turns of demonstrations are written as the template writes them, and those of endpoints in the protocol. Both parse
//! back to the same content.

use std::sync::Arc;

use proptest::prelude::*;
use rlf_dialogue::episode::Unwritable;
use rlf_dialogue::*;
use serde_json::{Value, json};

use crate::support::*;

fn thinking(enable_thinking: bool) -> DialogueConfig {
    DialogueConfig {
        context: 1_000_000,
        enable_thinking,
        ..DialogueConfig::default()
    }
}

fn bare(config: DialogueConfig) -> Arc<Dialogue> {
    let template = ChatTemplate::load(&fixture("bare-calls.jinja")).unwrap();
    let protocol = Some(Protocol::Llama31);
    let config = DialogueConfig { protocol, ..config };
    Arc::new(Dialogue::new(Arc::clone(&SMALL), template, config, &[]).unwrap())
}

fn calling(calls: &[(String, Value)]) -> Message {
    let call = |(name, arguments): &(String, Value)| ToolCall {
        call_id: String::new(),
        name: name.clone(),
        arguments: arguments.clone(),
    };
    Message {
        tool_calls: calls.iter().map(call).collect(),
        ..Message::text(Role::Assistant, "")
    }
}

#[test]
fn calls_are_written_as_each_template_writes_them() {
    let two = [
        ("lookup".to_owned(), json!({"x": 1, "a": "\"é\" <b>"})),
        ("add".to_owned(), json!({})),
    ];
    let write =
        |dialogue: &Arc<Dialogue>, calls| start(dialogue).write_turn(&calling(calls)).unwrap();
    let spaced = "<tool_call>\n{\"name\": \"lookup\", \"arguments\": {\"x\": 1, \"a\": \"\\\"é\\\" <b>\"}}\n</tool_call>\n\
                  <tool_call>\n{\"name\": \"add\", \"arguments\": {}}\n</tool_call>";
    assert_eq!(write(&qwen3(thinking(false)), &two), spaced);
    // An empty think block where reasoning is possible.
    let none = format!("<think>\n\n</think>\n\n{spaced}");
    assert_eq!(write(&qwen3(thinking(true)), &two), none);
    let ended = format!("</think>\n\n{spaced}");
    assert_eq!(write(&qwq(thinking(true)), &two), ended);
    assert_eq!(
        write(&small(thinking(false)), &two),
        "<tool_call>{\"name\":\"lookup\",\"arguments\":{\"x\":1,\"a\":\"\\\"é\\\" <b>\"}}</tool_call>\
         <tool_call>{\"name\":\"add\",\"arguments\":{}}</tool_call>"
    );
    assert_eq!(
        write(&bare(thinking(false)), &two[..1]),
        "{\"name\": \"lookup\", \"parameters\": {\"x\": 1, \"a\": \"\\\"é\\\" <b>\"}}"
    );
    let refused = start(&bare(thinking(false))).write_turn(&calling(&two));
    assert!(
        matches!(refused, Err(Unwritable::Template(_))),
        "{refused:?}"
    );
}

#[test]
fn calls_of_an_endpoint_are_read_back_in_every_protocol() {
    let two = [
        (
            "lookup".to_owned(),
            json!({"x": 1, "a": "</tool_call> \"é\""}),
        ),
        ("add".to_owned(), json!({})),
    ];
    for thinks in [false, true] {
        let thinking = || thinking(thinks);
        for dialogue in [
            qwen3(thinking()),
            qwq(thinking()),
            small(thinking()),
            bare(thinking()),
        ] {
            for text in ["", "I look."] {
                let turn = Message {
                    tool_calls: calling(&two).tool_calls,
                    ..Message::text(Role::Assistant, text)
                };
                let step = start(&dialogue).push_message(&turn, true);
                let Step::Act(calls) = step else {
                    panic!("{step:?}")
                };
                let read = calls.into_iter().map(|call| (call.name, call.arguments));
                assert_eq!(read.collect::<Vec<_>>(), two);
            }
        }
    }
}

/// The small template with a replacement.
fn changed(from: &str, to: &str) -> Arc<Dialogue> {
    assert_eq!(template::small::SOURCE.matches(from).count(), 1);
    let source = template::small::SOURCE.replace(from, to);
    let template = ChatTemplate::from_source(&source, "changed.jinja").unwrap();
    let dialogue = Dialogue::new(Arc::clone(&SMALL), template, thinking(false), &[]);
    Arc::new(dialogue.unwrap())
}

#[test]
fn a_template_that_refuses_a_conversation_is_followed_turn_by_turn() {
    let dialogue = changed(
        "{%- for message in messages %}",
        "{%- if messages | length > 3 %}{{- raise_exception('too long') }}{%- endif %}\
         {%- for message in messages %}",
    );
    let mut episode = start(&dialogue);
    let call = calling(&[("lookup".to_owned(), json!({"x": 1}))]);
    for turn in 0..3 {
        let text = episode.write_turn(&call).unwrap();
        assert!(text.starts_with("<tool_call>"), "{turn}: {text}");
        let step = episode.push_demonstrated(&text);
        answer_calls(&mut episode, step, "7");
    }
}

#[test]
fn what_no_model_could_have_written_says_why() {
    let call = |name: &str| calling(&[(name.to_owned(), json!({}))]);
    let thought = Message {
        reasoning_content: Some("Hm.".into()),
        ..Message::text(Role::Assistant, "Seven.")
    };
    let unended = changed(
        "{{- '<|end|>' }}\n    {%- elif message.role == 'tool'",
        "{{- '' if message.tool_calls else '<|end|>' }}\n    {%- elif message.role == 'tool'",
    );
    let elsewhere = changed(
        "{{- '<|assistant|>' + message.content }}",
        "{{- '<|user|>' + message.content }}",
    );
    let off = qwen3(thinking(false));
    for (dialogue, turn, says) in [
        (&off, thought, "dialogue.enable_thinking = true"),
        (&off, call("gone"), "no tool \"gone\""),
        (
            &off,
            Message::text(Role::Assistant, "a </think> b"),
            "</think>",
        ),
        (
            &off,
            Message::text(Role::Assistant, "a<|im_end|>"),
            "control token",
        ),
        (&elsewhere, call("add"), "behind the prompt"),
        (&unended, call("add"), "does not end the turn"),
    ] {
        let error = start(dialogue).write_turn(&turn).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

/// Names and arguments as in data sets, with the texts that are hardest to write.
fn written_calls() -> impl Strategy<Value = Vec<(String, Value)>> {
    let text = prop_oneof![
        any::<String>(),
        prop::sample::select(vec![
            "\"",
            "\\",
            "\\u003c",
            "{\"name\": \"g\"}",
            ";",
            "\u{2028}",
            "Zoë 東京 🚋",
            "<|im_end|>",
            "<|eot_id|>",
            "</tool_call>",
            "[INST]",
            "\n\t\0",
        ])
        .prop_map(String::from),
    ];
    let leaf = prop_oneof![
        Just(json!(null)),
        any::<bool>().prop_map(|value| json!(value)),
        any::<i64>().prop_map(|value| json!(value)),
        (-1e9..1e9).prop_map(|value: f64| json!((value * 8.0).round() / 8.0)),
        text.clone().prop_map(|value| json!(value)),
    ];
    let key = text.clone();
    let value = leaf.prop_recursive(4, 24, 4, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|items| json!(items)),
            prop::collection::btree_map(key.clone(), inner, 0..4)
                .prop_map(|members| json!(members)),
        ]
    });
    let arguments =
        prop::collection::btree_map(text, value, 0..4).prop_map(|members| json!(members));
    prop::collection::vec(("[a-zA-Z0-9_-]{1,12}", arguments), 1..4)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_written_turn_makes_the_calls_that_were_meant(given in written_calls()) {
        for dialogue in [
            qwen3(thinking(false)),
            qwen3(thinking(true)),
            qwq(thinking(true)),
            small(thinking(false)),
            bare(thinking(false)),
        ] {
            // Some templates write only one call a turn.
            let most = match dialogue.protocol() {
                Protocol::Hermes => given.len(),
                Protocol::Llama31 => 1,
            };
            let given = given[..most].to_vec();
            let turn = calling(&given);
            let offered = |(name, _): &(String, Value)| ToolDefinition {
                name: name.clone(),
                ..tools().remove(0)
            };
            let offered = given.iter().map(offered).collect();
            let mut episode =
                Episode::start(&dialogue, "run/0".into(), &ask(), offered).unwrap();
            let text = match episode.write_turn(&turn) {
                Ok(text) => text,
                Err(Unwritable::Control { token }) => {
                    let is_in = |(_, with): &(String, Value)| with.to_string().contains(&token);
                    prop_assert!(given.iter().any(is_in), "{}", token);
                    continue;
                }
                Err(error) => {
                    // Qwen's tokenizer composes characters, which changes some texts.
                    let decoded = |text: &str| {
                        let tokenizer = dialogue.tokenizer();
                        tokenizer.decode(&tokenizer.encode_trusted(text))
                    };
                    let changes = |(_, with): &(String, Value)| {
                        let text = with.to_string();
                        decoded(&text) != text
                    };
                    prop_assert!(given.iter().any(changes), "{}", error);
                    continue;
                }
            };
            let Step::Act(calls) = episode.push_demonstrated(&text) else {
                return Err(TestCaseError::fail(text));
            };
            let made: Vec<_> = calls
                .into_iter()
                .map(|call| (call.name, call.arguments))
                .collect();
            prop_assert_eq!(&made, &given, "{}", text);
        }
    }
}
