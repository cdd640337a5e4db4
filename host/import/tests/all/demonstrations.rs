//! Rows that become demonstrations.

use rlf_dialogue::Role;
use rlf_import::{Imported, Options, Reasoning, read, write_demonstrations};
use serde_json::{Value, json};

use crate::support::*;

#[test]
fn openai_messages_keep_their_calls_and_results_in_order() {
    let read = demonstration(&openai(), &Options::default());
    assert_eq!(
        (read.given, read.tools.len(), read.messages.len()),
        (2, 2, 10)
    );
    let called = &read.messages[2];
    assert_eq!(called.reasoning_content.as_deref(), Some("I need both."));
    let keys: Vec<&Value> = called
        .tool_calls
        .iter()
        .map(|call| &call.arguments["key"])
        .collect();
    assert_eq!(keys, ["one", "two"]);
    // The results were in the opposite order.
    assert_eq!(read.messages[3].plain_text(), "7");
    assert_eq!(read.messages[4].plain_text(), "35");
    assert_eq!(read.messages[6].plain_text(), "42");

    let plain = demonstration(
        &openai(),
        &Options {
            reasoning: Reasoning::Drop,
            ..Options::default()
        },
    );
    assert!(
        plain
            .messages
            .iter()
            .all(|message| message.reasoning_content.is_none())
    );
}

#[test]
fn turns_without_weight_are_read_only_wherever_they_are() {
    let mut row = openai();
    let whole = demonstration(&row, &Options::default());
    row["messages"][5]["weight"] = 0.into();
    let read = demonstration(&row, &Options::default());
    assert_eq!((read.given, &read.left_out[..]), (whole.given, &[5][..]));
    // Before the first turn to imitate there is only the prompt.
    row["messages"][2]["weight"] = 0.into();
    let read = demonstration(&row, &Options::default());
    assert_eq!((read.given, read.left_out.len()), (7, 0));
    for at in [7, 9] {
        row["messages"][at]["weight"] = 0.into();
    }
    assert!(complaint(&row, &Options::default()).contains("none of the model's turns is left"));
    let mut row = serde_json::to_value(&whole).unwrap();
    for at in [1, whole.given] {
        row["left_out"] = json!([at]);
        let why = complaint(&row, &Options::default());
        assert!(
            why.contains("is none of the model's turns after `given`"),
            "{why}"
        );
    }
}

#[test]
fn an_alpaca_row_teaches_its_output_and_reads_its_history() {
    let read = demonstration(&alpaca(), &Options::default());
    let roles: Vec<Role> = read.messages.iter().map(|message| message.role).collect();
    assert_eq!(
        roles,
        [
            Role::System,
            Role::User,
            Role::Assistant,
            Role::Tool,
            Role::Assistant
        ]
    );
    assert_eq!(read.given, 4);
    // The template writes the tools that the system text lists.
    assert_eq!(read.messages[0].plain_text(), "Be short.");
    assert_eq!(read.tools[0].name, "lookup");
    assert_eq!(
        read.messages[2].tool_calls[0].arguments,
        json!({"key": "one"})
    );
    assert_eq!(read.messages[3].plain_text(), "7");
    assert_eq!(
        read.messages[4].reasoning_content.as_deref(),
        Some("Seven.")
    );
    assert_eq!(read.messages[4].plain_text(), "It is 7.");

    let plain = json!({"instruction": "Add.", "input": "1 and 2", "output": "3"});
    let read = demonstration(&plain, &Options::default());
    assert_eq!(
        (read.messages[0].plain_text().as_str(), read.given),
        ("Add.\n1 and 2", 1)
    );
}

#[test]
fn sharegpt_says_the_same_in_other_words() {
    let read = demonstration(&sharegpt(), &Options::default());
    let roles: Vec<Role> = read.messages.iter().map(|message| message.role).collect();
    assert_eq!(
        roles,
        [
            Role::System,
            Role::User,
            Role::Assistant,
            Role::Tool,
            Role::Assistant
        ]
    );
    assert_eq!(read.messages[2].tool_calls[0].name, "lookup");
    assert_eq!(read.given, 2);
}

#[test]
fn a_conversation_that_cannot_be_played_is_refused_with_its_place() {
    let said = |change: fn(&mut Vec<Value>)| {
        let mut row = openai();
        change(row["messages"].as_array_mut().unwrap());
        complaint(&row, &Options::default())
    };
    let user = || json!({"role": "user", "content": "Well?"});
    for (said, place, what) in [
        (
            said(|all| drop(all.remove(5))),
            5,
            "no call that it answers",
        ),
        (
            said(|all| all[4]["tool_call_id"] = "c9".into()),
            4,
            "is that of no call",
        ),
        (
            said(|all| all[4]["tool_call_id"] = "c2".into()),
            4,
            "was answered before",
        ),
        (
            said(|all| drop(all.remove(4))),
            4,
            "calls before it have no result",
        ),
        (
            said(|all| all[2]["tool_calls"][0]["function"]["name"] = "sub".into()),
            2,
            "\"sub\", which is not on offer",
        ),
        (
            said(|all| all[2]["tool_calls"][1]["function"]["arguments"] = "[1]".into()),
            2,
            "`tool_calls[1]`",
        ),
        (
            said(|all| all[1]["role"] = "assistant".into()),
            1,
            "speaks before it is asked",
        ),
        (
            said(|all| all[8]["role"] = "assistant".into()),
            8,
            "two of the model's messages",
        ),
        (
            said(|all| all[8]["role"] = "system".into()),
            8,
            "can only stand first",
        ),
        (
            said(|all| all[8]["role"] = "critic".into()),
            8,
            "role \"critic\"",
        ),
        (
            said(|all| all[7]["content"] = " ".into()),
            7,
            "neither speaks nor calls",
        ),
        (
            said(|all| all[7]["content"] = "<think>so".into()),
            7,
            "is not closed",
        ),
        (
            said(|all| drop(all.pop())),
            8,
            "does not end with the model's turn",
        ),
    ] {
        assert!(
            said.starts_with(&format!("1: field `messages[{place}]`: ")) && said.contains(what),
            "{said}"
        );
    }
    let mut row = openai();
    row["messages"].as_array_mut().unwrap().insert(2, user());
    assert!(complaint(&row, &Options::default()).contains("messages[2]`: two users' messages"));
    let mut row = openai();
    row["messages"].as_array_mut().unwrap().insert(7, user());
    assert!(complaint(&row, &Options::default()).contains("messages[7]`: a user speaks before"));
    let mut row = openai();
    row.as_object_mut().unwrap().remove("tools");
    assert!(complaint(&row, &Options::default()).contains("the row lists no tools"));
    let mut row = alpaca();
    row["history"] = json!([["q"]]);
    assert!(complaint(&row, &Options::default()).contains("field `history[0]`"));
}

#[test]
fn demonstrations_are_read_back_as_they_were_written() {
    let imported = import(&[openai(), alpaca(), sharegpt()], &Options::default()).unwrap();
    let demonstrations: Vec<_> = imported
        .iter()
        .map(|row| {
            if let Imported::Demonstration(row) = row {
                row.clone()
            } else {
                panic!()
            }
        })
        .collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("demonstrations.jsonl");
    write_demonstrations(&path, &demonstrations).unwrap();
    assert_eq!(read(&path, &Options::default()).unwrap(), imported);
}
