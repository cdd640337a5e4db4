//! The verification of `rlf-host forge rows` is verified: rows are broken in every way, and each is found.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use rlf_tests::Host;
use serde_json::{Value, json};

use crate::forge_rows::{json_lines, read, rows};

/// A deployed row, with access to what is broken in it.
#[derive(Clone)]
struct Row(Value);

impl Row {
    fn text(&self, pointer: &str) -> String {
        let value = self.0.pointer(pointer).and_then(Value::as_str);
        value
            .unwrap_or_else(|| panic!("{pointer} of {}", self.0))
            .to_owned()
    }

    /// Index of the tool that the gold call uses.
    fn tool(&self, call: usize) -> usize {
        let name = self.text(&format!("/calls/{call}/tool"));
        let tools = self.0["tools"].as_array().expect("a list");
        tools
            .iter()
            .position(|tool| tool["name"] == name.as_str())
            .expect("a tool")
    }

    fn replace(&mut self, call: usize, field: &str, from: &str, to: &str) {
        let tool = self.tool(call);
        let before = self.text(&format!("/tools/{tool}/{field}"));
        let after = before.replace(from, to);
        assert_ne!(before, after, "{from}");
        self.0["tools"][tool][field] = json!(after);
    }

    fn argument(&mut self, call: usize) -> &mut Value {
        let arguments = self.0["calls"][call]["arguments"]
            .as_object_mut()
            .expect("an object");
        arguments.values_mut().next().expect("an argument")
    }
}

/// A tool that no gold call uses. It should answer the name `x`.
fn spare(source: &str) -> Value {
    let parameters =
        json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]});
    json!({"name": "spare", "description": "Spare.", "parameters": parameters, "source": source, "examples": [{"name": "x"}]})
}

/// Number of rows that are broken in each way.
const BROKEN_ROWS: usize = 5;

/// One way to break a row: the check that finds it, a name, and what is done to a row of two calls to different tools.
type Break = (&'static str, &'static str, fn(&mut Row));

const BREAKS: [Break; 16] = [
    ("oracle", "another result", |row| {
        row.replace(0, "source", "return found", "return 'something else'");
    }),
    ("oracle", "an exception", |row| {
        row.replace(1, "source", "return found", "raise ValueError(found)");
    }),
    ("scoping", "a helper", |row| {
        row.replace(0, "source", "return found", "return helper(found)");
        row.replace(
            0,
            "source",
            "def ",
            "def helper(value):\n    return value\n\n\ndef ",
        );
    }),
    ("information-flow", "a secret argument", |row| {
        let given = row.text("/given/0").to_lowercase();
        row.replace(0, "source", &format!("\"{given}\":"), "\"secret place\":");
        *row.argument(0) = json!("Secret Place");
    }),
    ("distractor", "it knows an answer", |row| {
        let (name, answer) = (row.text("/calls/0/answer"), row.text("/calls/1/answer"));
        let source =
            format!("def spare(name):\n    return {answer:?} if name == {name:?} else 'nothing'\n");
        row.0["tools"]
            .as_array_mut()
            .expect("a list")
            .push(spare(&source));
    }),
    ("shortcut", "the second call needs no first", |row| {
        let (given, answer) = (
            row.text("/given/0").to_lowercase(),
            row.text("/calls/1/answer"),
        );
        row.replace(
            1,
            "source",
            "records = {\n",
            &format!("records = {{\n        {given:?}: {answer:?},\n"),
        );
    }),
    ("leak", "a description", |row| {
        let answer = row.text("/calls/1/answer");
        row.replace(1, "description", ".", &format!(", such as {answer}."));
    }),
    ("error-text", "a message", |row| {
        let answer = row.text("/calls/1/answer");
        row.replace(
            1,
            "source",
            "that is not empty.",
            &format!("that is not empty, such as {answer}."),
        );
    }),
    ("trivial", "a short answer", |row| {
        let answer = row.text("/calls/1/answer");
        row.replace(1, "source", &format!("{answer:?}"), "'57'");
        row.0["calls"][1]["answer"] = json!("57");
        row.0["answer"] = json!("57");
    }),
    ("trivial", "the question says it", |row| {
        let question = format!(
            "{} Is it {}?",
            row.text("/question"),
            row.text("/calls/0/answer")
        );
        row.0["question"] = json!(question);
    }),
    ("malformed", "an argument is missing", |row| {
        row.0["calls"][0]["arguments"] = json!({});
    }),
    ("malformed", "the source does not compile", |row| {
        row.replace(0, "source", "records = {", "records = (");
    }),
    ("malformed", "the function has another name", |row| {
        row.replace(0, "source", "def ", "def another_");
    }),
    ("malformed", "a distractor fails", |row| {
        let source = "def spare(name):\n    return nam\n";
        row.0["tools"]
            .as_array_mut()
            .expect("a list")
            .push(spare(source));
    }),
    ("stopped", "it loops", |row| {
        row.replace(
            0,
            "source",
            "    records = {",
            "    while True:\n        pass\n    records = {",
        );
    }),
    ("stopped", "it ends the program", |row| {
        row.replace(
            0,
            "source",
            "    records = {",
            "    import os\n    os._exit(3)\n    records = {",
        );
    }),
];

/// Rows with two calls and two answers: of different tools, or of the same one.
fn find(deployed: &[Value], same: bool) -> Vec<Row> {
    let fits = |row: &&Value| {
        let calls = row["calls"].as_array().expect("a list");
        let tools: BTreeSet<String> = calls.iter().map(|call| call["tool"].to_string()).collect();
        calls.len() == 2 && (tools.len() == 1) == same && calls[0]["answer"] != calls[1]["answer"]
    };
    let found: Vec<Row> = deployed
        .iter()
        .filter(fits)
        .take(BROKEN_ROWS)
        .cloned()
        .map(Row)
        .collect();
    assert_eq!(found.len(), BROKEN_ROWS);
    found
}

#[test]
fn each_kind_of_broken_row_is_found() {
    let host = Host::new();
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("config.toml");
    fs::write(&config, "[plugins.python.programs]\ntime_ms = 500\n").expect("can be written");
    let config = config.to_str().expect("a plain name");
    let output = folder.path().join("rows");
    let run = |further: &[&str]| {
        let options = [
            "--complexity",
            "none",
            "--max-calls",
            "2",
            "--scenario",
            "multi_hop",
            "--scenario",
            "parallel_single_hop",
            "--config",
            config,
        ];
        rows(&host, &output, &[&options[..], further].concat())
    };
    run(&["--count", "120"]).succeeded();
    let path = output.join("5-deployed.jsonl");
    let lines = read(&path);
    let deployed: Vec<Value> = lines[1..]
        .iter()
        .map(|line| line["item"].clone())
        .filter(Value::is_object)
        .collect();
    let multi: Vec<Value> = deployed
        .iter()
        .filter(|row| row["scenario"] == "multi_hop")
        .cloned()
        .collect();
    let mut expected = BTreeMap::new();
    let mut broken = vec![lines[0].clone()];
    for (number, good) in find(&multi, false).into_iter().enumerate() {
        broken.push(json!({ "item": good.0 }));
        let mut add = |how: &str, check: &str, mut row: Row| {
            let id = format!("{number}, {check}: {how}");
            row.0["id"] = json!(id);
            broken.push(json!({ "item": row.0 }));
            expected.insert(id, check.to_owned());
        };
        for (check, how, make) in BREAKS {
            let mut row = good.clone();
            make(&mut row);
            add(how, check, row);
        }
        let mut moved = good.clone();
        let is_test = good.0["split"] == "test";
        moved.0["split"] = json!(if is_test { "train" } else { "test" });
        add("the same in another split", "split", moved);
        let mut twice = find(&deployed, true).swap_remove(number);
        let (one, other) = (twice.text("/calls/0/answer"), twice.text("/calls/1/answer"));
        twice.replace(
            0,
            "source",
            &format!("{one:?}"),
            &format!("'{one} and {other}'"),
        );
        add("a result has both answers", "confusable", twice);
    }
    fs::write(&path, json_lines(&broken)).expect("can be written");

    run(&["--count", "1000", "--stage", "verify"]);
    let found: BTreeMap<String, String> = read(&output.join("rejected.jsonl"))
        .iter()
        .filter(|one| one["stage"] == "verify")
        .map(|one| {
            assert!(!one["reason"].as_str().expect("a text").is_empty(), "{one}");
            (
                one["id"].as_str().expect("a text").to_owned(),
                one["check"].as_str().expect("a text").to_owned(),
            )
        })
        .collect();
    assert_eq!(found, expected);
    assert_eq!(
        read(&output.join("rows.jsonl")).len(),
        BROKEN_ROWS,
        "the good rows stay"
    );
}
