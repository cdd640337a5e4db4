//! No content of a file crashes an import.

use proptest::prelude::*;
use rlf_dialogue::DialogueConfig;
use rlf_import::{ImportError, Imported, Options, formats, play, steps};
use serde_json::{Map, Value, json};

use crate::support::*;

fn any_json() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        ".{0,12}",
        Just("assistant".to_owned()),
        Just("tool".to_owned()),
        Just("<think>".to_owned()),
        Just("<tool_call>\n{\"name\": \"lookup\", \"arguments\": {}}\n</tool_call>".to_owned()),
        Just("<tool_response>\n</tool_response>".to_owned()),
        Just("[{\"name\": 1}]".to_owned()),
        Just("{}".to_owned()),
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        text.prop_map(Value::from),
    ];
    let key = prop_oneof![
        "[a-z]{1,4}",
        prop::sample::select(vec![
            "messages",
            "role",
            "content",
            "tool_calls",
            "function",
            "name",
            "arguments",
            "id",
            "prompt",
            "tools",
            "conversations",
            "from",
            "value",
            "instruction",
            "output",
            "history",
            "reward_model",
            "ground_truth",
            "extra_info",
            "mcp_factory_kwargs",
            "codes",
            "unsolved_set",
            "actions",
            "question",
            "answer",
            "given",
        ])
        .prop_map(str::to_owned),
    ];
    leaf.prop_recursive(4, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// The number of values in a row.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(members) => members.values().map(count).sum(),
        _ => 0,
    }
}

/// Replaces value number `at` by `other`.
fn put(value: &mut Value, at: &mut usize, other: &Value) {
    if *at == 0 {
        value.clone_from(other);
    }
    *at = at.wrapping_sub(1);
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| put(item, at, other)),
        Value::Object(members) => members
            .values_mut()
            .for_each(|member| put(member, at, other)),
        _ => {}
    }
}

fn rows() -> Vec<Value> {
    vec![
        ftrl(),
        envfactory(),
        tau(),
        verl(),
        openai(),
        alpaca(),
        sharegpt(),
    ]
}

/// Imports a file of one row in each format and with detection, and uses the results.
fn try_all(row: &Value) {
    let all = formats().iter().copied().map(Some).chain([None]);
    for from in all {
        let options = Options {
            from,
            steps: true,
            ..Options::default()
        };
        match import(&[json!([row])], &options) {
            Ok(imported) => match &imported[0] {
                Imported::Task(task) => {
                    let written = serde_json::to_value(task).unwrap();
                    assert_eq!(
                        &serde_json::from_value::<rlf_dialogue::Task>(written).unwrap(),
                        task
                    );
                }
                Imported::Demonstration(shown) => {
                    shown.check().unwrap();
                    let dialogue = qwen3(DialogueConfig {
                        enable_thinking: true,
                        ..DialogueConfig::default()
                    });
                    if let Ok(trajectory) = play(&dialogue, shown) {
                        assert_eq!(trajectory.excluded, None);
                        assert!(trajectory.model_tokens() > 0);
                        let question = task(&ftrl(), &Options::default());
                        assert!(steps(&question, &trajectory).is_ok());
                    }
                }
            },
            Err(ImportError::Row { line, source, .. }) => {
                assert_eq!(line, 1);
                let message = source.to_string();
                let named = ["field `", "no known format", "must be a JSON object"];
                assert!(named.iter().any(|name| message.contains(name)), "{message}");
            }
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn each_row_is_of_the_format_it_was_made_for() {
    let imported = import(&rows(), &Options::default()).unwrap();
    let tasks: Vec<bool> = imported
        .iter()
        .map(|row| matches!(row, Imported::Task(_)))
        .collect();
    assert_eq!(tasks, [true, true, true, true, false, false, false]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn any_json_is_read_or_refused(row in any_json()) {
        try_all(&row);
    }

    #[test]
    fn any_change_to_a_good_row_is_read_or_refused(
        which in 0..7_usize, place in any::<prop::sample::Index>(), other in any_json(),
    ) {
        let mut row = rows()[which].clone();
        let mut at = place.index(count(&row));
        put(&mut row, &mut at, &other);
        try_all(&row);
    }

    #[test]
    fn any_text_of_a_turn_is_taken_apart_or_refused(text in "(<think>|</think>|<tool_call>|</tool_call>|\\{\"name\": \"add\", \"arguments\": \\{\\}\\}|a|\n){0,9}") {
        let mut row = openai();
        row["messages"][7] = json!({"role": "assistant", "content": text});
        try_all(&row);
    }
}
