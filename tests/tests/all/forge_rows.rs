//! `rlf-host forge rows`: rows are made and verified, an interrupted run continues, and each kind of broken row is found.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use rlf_tests::{Ended, Host};
use rustix::process::Signal;
use serde_json::{Value, json};

/// Everything that a finished run leaves.
const FILES: [&str; 14] = [
    "0-facts.jsonl",
    "1-decomposed.jsonl",
    "2-documented.jsonl",
    "3-integrated.jsonl",
    "4-scaled.jsonl",
    "5-deployed.jsonl",
    "6-verified.jsonl",
    "rows.jsonl",
    "tasks-train.jsonl",
    "tasks-validation.jsonl",
    "tasks-test.jsonl",
    "demonstrations.jsonl",
    "rejected.jsonl",
    "rows.json",
];

fn arguments<'a>(host: &'a Host, output: &'a Path, further: &[&'a str]) -> Vec<&'a str> {
    let plugins = host.plugins().to_str().expect("a plain name");
    let output = output.to_str().expect("a plain name");
    let mut all = vec!["forge", "rows", "--plugins", plugins, "--output", output];
    all.extend(further);
    all
}

fn rows(host: &Host, output: &Path, further: &[&str]) -> Ended {
    host.run(arguments(host, output, further))
}

fn read(path: &Path) -> Vec<Value> {
    let text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

fn json_lines(values: &[Value]) -> String {
    let lines: Vec<String> = values.iter().map(Value::to_string).collect();
    lines.join("\n") + "\n"
}

fn files(folder: &Path) -> BTreeMap<&'static str, Vec<u8>> {
    let file = |name| (name, fs::read(folder.join(name)).expect("it was written"));
    FILES.into_iter().map(file).collect()
}

#[test]
fn an_interrupted_run_ends_like_one_that_was_not() {
    let host = Host::new();
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let options = ["--count", "24", "--seed", "7", "--complexity", "low"];
    let whole = at("whole");
    rows(&host, &whole, &options).succeeded();
    let expected = files(&whole);

    let killed = at("killed");
    let mut running = host.start(arguments(&host, &killed, &options));
    running.until("made 5-deployed.jsonl").signal(Signal::KILL);
    assert_eq!(running.wait().signal(), Some(Signal::KILL.as_raw()));
    rows(&host, &killed, &options).succeeded();
    assert!(files(&killed) == expected);

    // A machine that lost power in the middle of a line.
    let verified = whole.join("6-verified.jsonl");
    let text = fs::read(&verified).expect("it was written");
    fs::write(&verified, &text[..text.len() / 2]).expect("can be written");
    fs::remove_file(whole.join("rows.jsonl")).expect("can be removed");
    let again = rows(&host, &whole, &options);
    assert!(
        again.succeeded().stdout.contains("kept 4-scaled.jsonl"),
        "{again}"
    );
    assert!(
        again.stdout.contains(" verdicts in 6-verified.jsonl"),
        "{again}"
    );
    assert!(files(&whole) == expected);

    // A stage whose artefact was edited is kept, and the later ones follow it.
    let scaled = whole.join("4-scaled.jsonl");
    let text = fs::read_to_string(&scaled).expect("it was written");
    fs::write(
        &scaled,
        text.replace("Optional", "Possible")
            .replace("Whether", "If"),
    )
    .expect("can be written");
    let edited = rows(&host, &whole, &options);
    assert!(
        edited
            .succeeded()
            .stdout
            .contains("kept 4-scaled.jsonl\nmade 5-deployed.jsonl"),
        "{edited}"
    );
    rows(
        &host,
        &whole,
        &[&options[..], &["--stage", "scale"]].concat(),
    )
    .succeeded();
    assert!(fs::read(&scaled).expect("it was written") == expected["4-scaled.jsonl"]);
}

#[test]
fn rows_and_demonstrations_are_imported_as_they_are() {
    let host = Host::new();
    let folder = tempfile::tempdir().expect("a folder");
    let made = rows(&host, folder.path(), &["--count", "12", "--json"]);
    let report = made.succeeded().json();
    assert_eq!(
        (&report["rows"], &report["wanted"]),
        (&json!(12), &json!(12))
    );
    let import = |name: &str| {
        let file = folder.path().join(name).display().to_string();
        let output = folder.path().join(format!("imported-{name}"));
        let ended = host.run([
            "data",
            "import",
            &file,
            "--output",
            &output.display().to_string(),
        ]);
        ended.succeeded();
        (ended, read(&output))
    };
    let (_, tasks) = import("rows.jsonl");
    assert_eq!(tasks.len(), 12);
    let own: Vec<Value> = ["train", "validation", "test"]
        .iter()
        .flat_map(|split| read(&folder.path().join(format!("tasks-{split}.jsonl"))))
        .collect();
    assert_eq!(own.len(), 12);
    for task in &tasks {
        let same = own
            .iter()
            .find(|own| own["prompt"] == task["prompt"])
            .expect("the same task");
        assert_eq!(same["setup"], task["setup"]);
        assert_eq!(same["reference"]["unsolved"], task["reference"]["unsolved"]);
        assert_eq!(same["extra"]["kind"], task["extra"]["kind"]);
    }
    let (told, demonstrations) = import("demonstrations.jsonl");
    assert!(told.stdout.contains("demonstrations with"), "{told}");
    assert_eq!(
        demonstrations.len(),
        read(&folder.path().join("tasks-train.jsonl")).len()
    );
}

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
            "--config",
            config,
        ];
        rows(&host, &output, &[&options[..], further].concat())
    };
    run(&[
        "--count",
        "120",
        "--scenario",
        "multi_hop",
        "--scenario",
        "parallel_single_hop",
    ])
    .succeeded();
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

    run(&[
        "--count",
        "1000",
        "--scenario",
        "multi_hop",
        "--stage",
        "verify",
    ]);
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

/// People and cities: everybody was born somewhere, and every city has a mayor.
fn facts() -> String {
    let mut lines = vec![json!({
        "relation": "born_in", "noun": "the town where {} came into the world", "ask": ["Where did {} come into the world?"],
    })];
    for number in 0..80 {
        let name = |what: &str, number: usize| format!("{what} Number{}x", number % 80);
        lines.push(json!({
            "subject": name("Person", number), "subject_kind": "person", "relation": "born_in",
            "object": name("Town", number * 7 + 1), "object_kind": "town",
        }));
        lines.push(json!({
            "subject": name("Town", number), "subject_kind": "town", "relation": "mayor",
            "object": name("Person", number * 3 + 2), "object_kind": "person",
        }));
    }
    json_lines(&lines)
}

#[test]
fn facts_and_questions_of_a_file_become_rows() {
    let host = Host::new();
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("can be written");
        path.display().to_string()
    };
    let file = write("facts.jsonl", &facts());
    let output = folder.path().join("from-facts");
    let options = [
        "--facts",
        &file,
        "--count",
        "20",
        "--complexity",
        "low",
        "--scenario",
        "single_hop",
        "--scenario",
        "multi_hop",
    ];
    rows(&host, &output, &options).succeeded();
    let made = read(&output.join("rows.jsonl"));
    assert_eq!(made.len(), 20);
    let text = fs::read_to_string(output.join("rows.jsonl")).expect("it was written");
    assert!(text.contains("the town where"), "{text}");
    assert!(
        text.contains("Who is") || text.contains("the mayor of"),
        "{text}"
    );

    let questions = [
        json!({"id": "faust", "question": "In which year was the author of Faust born?", "answer": 1749, "steps": [
            {"question": "Who wrote Faust?", "answer": "Johann Wolfgang von Goethe", "subject": "Faust", "kind": "work", "relation": "author"},
            {"question": "In which year was #1 born?", "answer": 1749, "kind": "person"},
        ]}),
        json!({"question": "What is the sum of the heights of Mount Elbrus and Mont Blanc in metres?", "answer": "10448", "steps": [
            {"question": "How high is Mount Elbrus?", "answer": "5642", "subject": "Mount Elbrus", "kind": "mountain", "relation": "height"},
            {"question": "How high is Mont Blanc?", "answer": "4806", "subject": "Mont Blanc", "kind": "mountain", "relation": "height"},
            {"question": "What is #1 plus #2?", "answer": "10448", "operation": "sum"},
        ]}),
        json!({"question": "How many legs has a spider?", "answer": 8, "steps": [
            {"question": "How many legs has a spider?", "answer": 8, "subject": "spider"},
        ]}),
    ];
    let text = json_lines(&questions);
    let file = write("questions.jsonl", &text);
    let output = folder.path().join("from-questions");
    let made = rows(&host, &output, &["--questions", &file, "--json"]);
    assert_eq!(made.succeeded().json()["rows"], 2, "{made}");
    let rejected = read(&output.join("rejected.jsonl"));
    assert_eq!(
        (&rejected[0]["check"], &rejected[0]["id"]),
        (&json!("trivial"), &json!("000003"))
    );
    let rows = read(&output.join("rows.jsonl"));
    let scenarios: Vec<&str> = rows
        .iter()
        .filter_map(|row| row["data_source"].as_str())
        .collect();
    assert_eq!(scenarios, ["self/multi_hop", "self/parallel_single_hop"]);
    let unsolved = rows[1]["unsolved_set"].as_str().expect("a text");
    assert!(
        unsolved.contains("[\"5642\", \"4806\"]") && unsolved.contains("[\"10448\"]"),
        "{unsolved}"
    );
}

#[test]
fn bad_input_is_said_with_its_place_and_loses_nothing() {
    let host = Host::new();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("input.jsonl");
    let path = file.display().to_string();
    let output = folder.path().join("out");
    let with = |text: &str, options: &[&str]| {
        fs::write(&file, text).expect("can be written");
        rows(&host, &output, options)
    };
    for (text, says) in [
        ("", "no facts in it"),
        ("{\n", "input.jsonl:1: EOF"),
        (
            "{\"subject\": \"a\", \"relation\": \"r\", \"object\": 5}\n",
            "a fact needs `subject_kind`",
        ),
        (
            "{\"subject\": \"a\", \"subject_kind\": \"k\", \"relation\": \"r\", \"object\": \"soon\", \"object_kind\": \"date\"}\n",
            "the object \"soon\" is no date",
        ),
        (
            "{\"relation\": \"r\", \"noun\": \"the r\"}\n",
            "lacks {} for the subject",
        ),
    ] {
        with(text, &["--facts", &path]).refused_with(&[says]);
    }
    for (text, says) in [
        ("", "no questions in it"),
        (
            "\n{\"question\": \"?\"}\n",
            "input.jsonl:2: missing field `answer`",
        ),
    ] {
        with(text, &["--questions", &path]).refused_with(&[says]);
    }
    with("", &["--complexity", "high"]).refused_with(&["--complexity", "none, low, published"]);
    with("", &["--scenario", "hop"]).refused_with(&["--scenario", "single_hop"]);
    with(
        "",
        &["--scenario", "parallel_multi_hop", "--max-calls", "3"],
    )
    .refused_with(&["at least 5 sub-answers"]);
    with("", &["--stage", "scale"])
        .refused_with(&["which is not there; run the command without --stage first"]);
    let dry = host.run(["forge", "rows", "--dry-run", "--count", "500"]);
    assert!(
        dry.succeeded().stdout.starts_with("would make 500 rows"),
        "{dry}"
    );
}
