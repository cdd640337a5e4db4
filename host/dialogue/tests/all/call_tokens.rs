//! The tokens of names and arguments in calls.

use rlf_dialogue::trajectory::{CallToken, MaskedTokens};
use rlf_dialogue::{Dialogue, DialogueConfig, TrainingSequence};
use serde_json::json;

use crate::support::{qwen3, small};

/// A sequence with these turns, each after something that is read.
fn sequence(dialogue: &Dialogue, turns: &[&str]) -> MaskedTokens {
    let ids = |text: &str| dialogue.tokenizer().encode_trusted(text);
    let read = ids(r#"name: {"name": "lookup", "arguments": {}}"#);
    let mut segments = vec![json!({"prompt": read})];
    for turn in turns {
        segments.push(json!({"model": {"demonstrated": {"ids": ids(turn)}}}));
        segments.push(json!({"observation": read}));
    }
    let sequence: TrainingSequence = serde_json::from_value(segments.into()).unwrap();
    sequence.masked().unwrap()
}

/// The texts of neighbouring tokens of a kind.
fn texts(dialogue: &Dialogue, tokens: &MaskedTokens, wanted: CallToken) -> Vec<String> {
    let kinds = dialogue.call_tokens(tokens);
    assert_eq!(kinds.len(), tokens.ids.len());
    let (mut texts, mut at) = (Vec::new(), 0);
    for run in kinds.chunk_by(|a, b| a == b) {
        let ids = &tokens.ids[at..at + run.len()];
        at += run.len();
        if run[0] == wanted {
            texts.push(dialogue.tokenizer().decode(ids));
        }
    }
    texts
}

#[test]
fn names_and_arguments_of_every_call_are_found_and_nothing_else() {
    for dialogue in [
        qwen3(DialogueConfig::default()),
        small(DialogueConfig::default()),
    ] {
        let tokens = sequence(
            &dialogue,
            &[
                concat!(
                    "I use \"name\". <tool_call>\n{\"name\": \"lookup\", \"arguments\": {\"x\": \"caf\u{e9} \u{1f30d}\"}}\n</tool_call>\n",
                    "<tool_call>{\"arguments\": {\"name\": \"add\", \"x\": 12}, \"name\": \"unknown\"}</tool_call>",
                ),
                "<tool_call>{\"name\": broken}</tool_call> the answer is \"lookup\"",
            ],
        );
        let names = texts(&dialogue, &tokens, CallToken::Name);
        let arguments = texts(&dialogue, &tokens, CallToken::Arguments);
        // A token can hold a part and what is beside it.
        for (found, wanted) in [
            (&names, ["lookup", "unknown"]),
            (
                &arguments,
                [
                    "{\"x\": \"caf\u{e9} \u{1f30d}\"}",
                    "{\"name\": \"add\", \"x\": 12}",
                ],
            ),
        ] {
            assert_eq!(found.len(), 2, "{found:?}");
            for (found, wanted) in found.iter().zip(wanted) {
                assert!(found.contains(wanted), "{found} {wanted}");
                assert!(found.len() <= wanted.len() + 6, "{found} {wanted}");
            }
        }
    }
}

#[test]
fn a_call_that_is_quoted_in_reasoning_is_none() {
    let dialogue = qwen3(DialogueConfig::default());
    let call = |name: &str| {
        format!("<tool_call>{{\"name\": \"{name}\", \"arguments\": {{}}}}</tool_call>")
    };
    // Some templates open the think block in the prompt.
    for open in ["<think>", ""] {
        let turn = format!(
            "{open}I could say {}.</think>{}",
            call("add"),
            call("lookup")
        );
        let tokens = sequence(&dialogue, &[&turn]);
        let names = texts(&dialogue, &tokens, CallToken::Name);
        assert_eq!(names.len(), 1, "{names:?}");
        assert!(names[0].contains("lookup"), "{names:?}");
    }
}

#[test]
fn turns_that_are_not_in_the_loss_have_no_names() {
    let dialogue = qwen3(DialogueConfig::default());
    let ids = |text: &str| dialogue.tokenizer().encode_trusted(text);
    let call = ids("<tool_call>{\"name\": \"lookup\", \"arguments\": {}}</tool_call>");
    let left_out = json!([
        {"prompt": [1, 2]},
        {"model": {"demonstrated": {"ids": call, "imitated": false}}},
    ]);
    let sequence: TrainingSequence = serde_json::from_value(left_out).unwrap();
    let kinds = dialogue.call_tokens(&sequence.masked().unwrap());
    assert!(kinds.iter().all(|kind| *kind == CallToken::Outside));
}
