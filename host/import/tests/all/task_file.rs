//! Task files of our own and of other formats, and the errors for broken ones.

use std::path::{Path, PathBuf};

use crate::data::data;
use rlf_dialogue::{Message, Role, Task};
use rlf_import::{ImportError, read_tasks};
use serde_json::{Value, json};

fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// One row, read as a line of its own file.
fn task_from_row(row: &Value, line: usize) -> Result<Task, ImportError> {
    let folder = tempfile::tempdir().unwrap();
    let path = write(
        folder.path(),
        "row.jsonl",
        &format!("{}{row}", "\n".repeat(line - 1)),
    );
    read_tasks(&path).map(|mut tasks| tasks.remove(0))
}

#[test]
fn rows_of_our_own_format_come_back_as_they_were_written() {
    let task = Task {
        id: "1".into(),
        source: "demo".into(),
        prompt: vec![Message::text(Role::User, "What?")],
        tools: Some(vec!["lookup".into()]),
        reference: json!({"answer": [1, "x"]}),
        environment: None,
        setup: Value::Null,
        extra: serde_json::from_value(json!({"kind": "hop"})).unwrap(),
    };
    let folder = tempfile::tempdir().unwrap();
    let line = serde_json::to_string(&task).unwrap();
    let path = write(folder.path(), "tasks.jsonl", &format!("{line}\n\n"));
    assert_eq!(read_tasks(&path).unwrap(), std::slice::from_ref(&task));
    assert_eq!(task.kind(), "hop");
    // Several arrays in one file.
    let other = line.replace("\"id\":\"1\"", "\"id\":\"2\"");
    let path = write(
        folder.path(),
        "arrays.json",
        &format!("[{line}]\n[]\n[{other}]\n"),
    );
    let ids: Vec<String> = read_tasks(&path)
        .unwrap()
        .into_iter()
        .map(|task| task.id)
        .collect();
    assert_eq!(ids, ["1", "2"]);
}

#[test]
fn search_r1_rows_are_read_as_they_are() {
    let row = json!({
        "data_source": "nq", "ability": "fact-reasoning",
        "prompt": [
            {"role": "user", "content": [{"type": "text", "text": "Who?"}], "name": "u"},
            {"role": "assistant", "content": "<think>\nHm.\n</think>\n\nWait.", "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{\"q\": 1}"}}
            ]},
        ],
        "reward_model": {"style": "rule", "ground_truth": {"target": ["A", "B"]}},
        "extra_info": {"split": "train", "index": 7},
    });
    let task = task_from_row(&row, 1).unwrap();
    assert_eq!((task.id.as_str(), task.source.as_str()), ("train-7", "nq"));
    assert_eq!(task.reference, json!({"target": ["A", "B"]}));
    assert_eq!(task.extra["ability"], "fact-reasoning");
    assert_eq!(task.prompt[0], Message::text(Role::User, "Who?"));
    assert_eq!(task.prompt[1].reasoning_content.as_deref(), Some("Hm."));
    assert_eq!(task.prompt[1].plain_text(), "Wait.");
    assert_eq!(task.prompt[1].tool_calls[0].arguments, json!({"q": 1}));
}

#[test]
fn question_and_answer_rows_are_read_without_their_passages() {
    let hotpot = json!({
        "_id": "5a", "question": "Q?", "answer": "yes", "type": "comparison", "level": "hard",
        "context": [["Title", ["text"]]], "supporting_facts": [["Title", 0]],
    });
    let task = task_from_row(&hotpot, 1).unwrap();
    assert_eq!((task.id.as_str(), task.kind()), ("5a", "comparison"));
    assert_eq!(
        (task.reference, task.prompt),
        (json!("yes"), vec![Message::text(Role::User, "Q?")])
    );
    assert!(!task.extra.contains_key("context") && task.extra.contains_key("supporting_facts"));
    let musique = json!({"id": "m", "question": "Q?", "answer": "a", "answer_aliases": ["b"]});
    assert_eq!(
        task_from_row(&musique, 1).unwrap().reference,
        json!(["a", "b"])
    );
    let gsm8k = json!({"question": "Q?", "answer": "1+1=<<1+1=2>>2\n#### 1,200"});
    let task = task_from_row(&gsm8k, 3).unwrap();
    assert_eq!((task.reference, task.id.as_str()), (json!("1200"), "row-3"));
}

#[test]
fn programming_problems_show_one_test_at_the_most_and_never_the_solution() {
    let mbpp = json!({
        "text": "Write a function to add.", "code": "def add(a, b): return a + b", "task_id": 11,
        "test_setup_code": "", "test_list": ["assert add(1, 2) == 3", "assert add(5, 5) == 10"],
        "challenge_test_list": [],
    });
    let task = task_from_row(&mbpp, 1).unwrap();
    assert_eq!(task.id, "11");
    let prompt = task.prompt[0].plain_text();
    assert!(
        prompt.contains("add(1, 2) == 3") && !prompt.contains("add(5, 5)"),
        "{prompt}"
    );
    assert!(!prompt.contains("return"), "{prompt}");
    assert_eq!(task.reference["test_list"][1], "assert add(5, 5) == 10");

    let human_eval = json!({
        "task_id": "HumanEval/0", "prompt": "def f(x):\n    \"\"\"Twice x.\"\"\"\n", "entry_point": "f",
        "canonical_solution": "    return 2 * x\n", "test": "def check(candidate):\n    assert candidate(2) == 4\n",
    });
    let task = task_from_row(&human_eval, 1).unwrap();
    assert_eq!(task.id, "HumanEval/0");
    let prompt = task.prompt[0].plain_text();
    assert!(
        prompt.contains("Twice x.") && !prompt.contains("== 4"),
        "{prompt}"
    );
    assert_eq!(task.reference["entry_point"], "f");
    assert!(task.reference.get("canonical_solution").is_none());
    assert_eq!(task.extra["solution"], "    return 2 * x\n");

    let error = task_from_row(&json!({"text": "x", "test_list": []}), 1).unwrap_err();
    assert!(error.to_string().contains("field `test_list`"), "{error}");
}

#[test]
fn a_device_that_never_ends_is_no_data_set() {
    let error = read_tasks(Path::new("/dev/zero")).unwrap_err().to_string();
    assert!(
        error.starts_with("cannot read /dev/zero: it is a device"),
        "{error}"
    );
}

#[test]
fn a_broken_row_is_named_by_file_line_and_field() {
    let folder = tempfile::tempdir().unwrap();
    let ours = r#"{"id":"1","source":"s","prompt":[{"role":"user","content":"x"}],"reference":1}"#;
    let good = r#"{"question": "Q?", "answer": "A"}"#;
    for (text, line, said) in [
        (format!("{good}\n{{\"question\": 1, \"answer\": 2}}"), 2, "`question`"),
        (format!("{good}\n\n{{\"question\": \"Q\"}}"), 3, "`answer`"),
        ("{\"question\": ".to_owned(), 1, "not JSON"),
        ("7".to_owned(), 1, "a row must be a JSON object"),
        ("{\"id\": \"1\"}".to_owned(), 1, "field `source` is missing"),
        (r#"{"id":"1","source":"s","prompt":[],"reference":1}"#.to_owned(), 1, "`prompt`"),
        (r#"{"id":"1","source":"s","prompt":[{"role":"user","content":"x"}],"reference":1,"tool":[]}"#.to_owned(), 1, "`tool`"),
        (r#"{"reward_model": {}, "prompt": "x", "data_source": "s"}"#.to_owned(), 1, "`reward_model.ground_truth`"),
        (r#"{"reward_model": {"ground_truth": 1}, "prompt": [{"role": "robot"}], "data_source": "s"}"#.to_owned(), 1, "`prompt[0]`"),
        (format!("{ours}\n{ours}"), 2, "stands in line 1 already"),
        (format!("[\n{good},\n\n{{\"question\": 1}}]"), 4, "`question`"),
        (format!("[\n{good},\n oops]"), 3, "not JSON"),
        (format!("[{good}"), 1, "not closed"),
        (format!("[{good}]\n,{good}"), 2, "something follows the array"),
        (
            good.replace("\"A\"", "18446744073709551616"),
            1,
            "more than 64 bits",
        ),
    ] {
        let path = write(folder.path(), "rows.jsonl", &text);
        let error = read_tasks(&path).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{}:{line}: ", path.display())), "{error}");
        assert!(error.contains(said), "{error}");
    }
    let path = write(folder.path(), "empty.jsonl", "\n");
    assert!(
        read_tasks(&path)
            .unwrap_err()
            .to_string()
            .contains("no tasks in it")
    );
    assert!(matches!(
        read_tasks(&folder.path().join("none")),
        Err(ImportError::Read { .. })
    ));
}

#[test]
fn the_real_data_sets_are_read() {
    for (file, count) in [
        ("hotpotqa/questions.json", 100),
        ("musique/questions.json", 100),
        ("gsm8k/train.jsonl", 7_473),
        ("mbpp/mbpp.jsonl", 974),
    ] {
        let Some(path) = data(file) else {
            continue;
        };
        let tasks = read_tasks(&path).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(tasks.len(), count, "{file}");
        assert!(
            tasks
                .iter()
                .all(|task| !task.prompt[0].plain_text().is_empty())
        );
    }
}
