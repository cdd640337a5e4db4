//! Rows that become tasks.

use std::collections::BTreeMap;

use rlf_dialogue::{Role, Task};
use rlf_import::{
    CustomerMode, Format, FunctionScoping, ImportError, Imported, Options, formats, read,
    read_tasks, rows, write_tasks,
};
use serde_json::{Value, json};

use crate::data::data;
use crate::support::*;

fn tasks(imported: Vec<Imported>) -> Vec<Task> {
    let task = |row| match row {
        Imported::Task(task) => task,
        Imported::Demonstration(_) => panic!("a task was expected"),
    };
    imported.into_iter().map(task).collect()
}

#[test]
fn an_ftrl_row_is_a_question_and_the_functions_it_brings() {
    let options = Options {
        scoping: FunctionScoping::Published,
        environment: Some("toolbox".into()),
        ..Options::default()
    };
    let read = task(&ftrl(), &options);
    assert_eq!(
        read.prompt[0].plain_text(),
        "How high is the hill by the lake?"
    );
    assert_eq!(read.environment.as_deref(), Some("toolbox"));
    assert_eq!(read.setup["scoping"], "published");
    assert_eq!(
        read.setup["functions"][1],
        json!({"name": "add", "description": "Adds.", "source": "def add(a, b):\n    return a + b", "parameters":
            {"type": "object", "properties": {"a": {"type": "number"}, "b": {"type": "number"}}}})
    );
    assert_eq!(
        read.reference,
        json!({"answer": "1000", "unsolved": {"lookup": ["the hill", "1,000"], "add": ["7"]}})
    );
    assert_eq!(
        (read.kind(), &read.extra["split"]),
        ("multi_hop", &json!("train"))
    );
    assert_eq!(
        task(&ftrl(), &Options::default()).environment.as_deref(),
        Some("functions")
    );
    assert_eq!(task(&ftrl(), &Options::default()).setup["scoping"], "clean");
}

#[test]
fn ftrl_functions_that_do_not_fit_are_said_by_name() {
    let with = |field: &str, value: Value| {
        let mut row = ftrl();
        row[field] = value.to_string().into();
        complaint(&row, &Options::default())
    };
    let said = with("codes", json!({"lookup": ""}));
    assert!(
        said.starts_with("1: field `codes`: the source of the tool \"add\" is missing"),
        "{said}"
    );
    let said = with("codes", json!({"lookup": "", "add": "", "sub": ""}));
    assert!(
        said.contains("field `codes`: \"sub\" is none of the row's `tools`"),
        "{said}"
    );
    let said = with("unsolved_set", json!({"sub": ["7"]}));
    assert!(said.contains("field `unsolved_set`: \"sub\""), "{said}");
    let said = with("unsolved_set", json!({"add": []}));
    assert!(said.contains("no sub-answer"), "{said}");
    let said = with("tools", json!([{"function": {"name": "a b"}}]));
    assert!(said.contains("field `tools[0].name`"), "{said}");
}

#[test]
fn a_step_level_sample_keeps_its_conversation_and_what_remains() {
    let mut row = ftrl();
    row["messages"].as_array_mut().unwrap().extend([
        json!({"role": "assistant", "content": "", "tool_calls": [
            {"id": "x", "type": "function", "function": {"name": "lookup", "arguments": "{\"key\": \"hill\"}"}}]}),
        json!({"role": "tool", "content": "by the lake: 1000", "tool_call_id": "x"}),
    ]);
    row["unsolved_set"] = json!({"lookup": ["the hill"], "add": []})
        .to_string()
        .into();
    row["solve_rate"] = json!(2.0 / 3.0);
    assert!(complaint(&row, &Options::default()).contains("--steps"));

    let options = Options {
        steps: true,
        ..Options::default()
    };
    let step = task(&row, &options);
    assert_eq!(
        step.prompt[1].tool_calls[0].arguments,
        json!({"key": "hill"})
    );
    assert_eq!(
        (step.prompt[2].role, step.prompt[2].plain_text().as_str()),
        (Role::Tool, "by the lake: 1000")
    );
    assert_eq!(
        step.reference["unsolved"],
        json!({"lookup": ["the hill"], "add": []})
    );
    assert_eq!(step.extra["solve_rate"], json!(2.0 / 3.0));
    assert_eq!(step.extra["turns"], 1);
    // If everything is solved, only the answer is left to give.
    row["unsolved_set"] = json!({"lookup": [], "add": []}).to_string().into();
    assert_eq!(task(&row, &options).reference["answer"], "1000");
}

#[test]
fn all_rows_of_the_ftrl_sample_are_read() {
    let Some(path) = data("ftrl-sample/sample.jsonl") else {
        return;
    };
    let read = tasks(read(&path, &Options::default()).unwrap());
    assert_eq!(read.len(), 40);
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for task in &read {
        *kinds.entry(task.kind()).or_default() += 1;
        assert!(
            task.setup["functions"]
                .as_array()
                .unwrap()
                .iter()
                .all(|function| {
                    function["source"]
                        .as_str()
                        .unwrap()
                        .contains(&format!("def {}(", function["name"].as_str().unwrap()))
                })
        );
    }
    let kinds: Vec<_> = kinds.into_iter().collect();
    assert_eq!(
        kinds,
        [
            ("multi_hop", 10),
            ("parallel_multi_hop", 10),
            ("parallel_single_hop", 10),
            ("single_hop", 10)
        ]
    );
    assert_eq!(
        read[0].reference,
        json!({"answer": "2007-11-7", "unsolved": {"historical_event_finder": ["2007-11-7"]}})
    );

    let folder = tempfile::tempdir().unwrap();
    let written = folder.path().join("tasks.jsonl");
    write_tasks(&written, &read).unwrap();
    assert_eq!(read_tasks(&written).unwrap(), read);
}

#[test]
fn an_envfactory_row_is_calls_to_make_in_an_environment() {
    let read = task(&envfactory(), &Options::default());
    assert_eq!(read.environment.as_deref(), Some("servers"));
    assert_eq!(
        read.setup,
        json!({"servers": {"Notes": {"notes": ["milk"]}}})
    );
    assert_eq!(
        read.reference,
        json!({
            "calls": [{"name": "Notes-list", "arguments": {"limit": 5}, "masked": ["limit"]}],
            "state": {"Notes": {"notes": ["milk"], "read": 1}},
            "initial": {"Notes": {"notes": ["milk"]}},
        })
    );
    // Calls and results in the history's text become separate messages.
    let roles: Vec<Role> = read.prompt.iter().map(|message| message.role).collect();
    assert_eq!(
        roles,
        [
            Role::User,
            Role::Assistant,
            Role::Tool,
            Role::Assistant,
            Role::User
        ]
    );
    assert_eq!(read.prompt[1].tool_calls[0].name, "Notes-add");
    assert_eq!(read.prompt[1].plain_text(), "");
    assert_eq!(read.prompt[2].plain_text(), "{\"id\": 1}");

    let mut row = envfactory();
    row["extra_info"]["mcp_factory_kwargs"]["initial_config"] = "{}".into();
    let said = complaint(&row, &Options::default());
    assert!(
        said.contains("initial_config`: the state of the server \"Notes\" is missing"),
        "{said}"
    );
    let mut row = envfactory();
    row["reward_model"]["ground_truth"] = "[{\"name\": \"Notes-list\"}]".into();
    let said = complaint(&row, &Options::default());
    assert!(
        said.contains("field `reward_model.ground_truth[0]`: `arguments` must be an object"),
        "{said}"
    );
}

#[test]
fn a_tau_bench_task_is_opened_by_its_environment() {
    let options = Options {
        user: CustomerMode::Model,
        ..Options::default()
    };
    let read = task(&tau(), &options);
    assert_eq!(
        serde_json::to_value(&read).unwrap(),
        json!({
            "id": "tau-retail-dev-3", "source": "tau-retail", "prompt": [], "tools": null,
            "environment": "tau-retail",
            "setup": {"instruction": "You are Mei. Cancel order #W1.", "user": "model"},
            "reference": {"gold_hash": "ab12", "outputs": ["12.5"],
                "actions": [{"name": "cancel_pending_order", "kwargs": {"order_id": "#W1"}}]},
            "extra": {"split": "dev", "user_id": "mei_1"},
        })
    );
    let mut row = tau();
    row.as_object_mut().unwrap().remove("gold_hash");
    assert!(complaint(&row, &Options::default()).starts_with("1: field `gold_hash` is missing"));
}

#[test]
fn all_tau_bench_tasks_are_read() {
    let Some(path) = data("tau-retail/tasks_train_dev.json") else {
        return;
    };
    let read = tasks(read(&path, &Options::default()).unwrap());
    assert_eq!(read.len(), 520);
    assert_eq!(
        read.iter()
            .filter(|task| task.id.starts_with("tau-retail-dev-"))
            .count(),
        20
    );
    assert_eq!(read[0].id, "tau-retail-train-0");
    assert_eq!(read[0].setup["user"], "solo");
    let folder = tempfile::tempdir().unwrap();
    let written = folder.path().join("tasks.jsonl");
    write_tasks(&written, &read).unwrap();
    assert_eq!(read_tasks(&written).unwrap(), read);
}

#[test]
fn verl_rows_questions_and_our_own_tasks_are_read_as_task_files_are() {
    let read = task(&verl(), &Options::default());
    assert_eq!((read.id.as_str(), read.source.as_str()), ("test-7", "nq"));
    assert_eq!(read.reference, json!({"target": ["Goethe"]}));

    let question = task(
        &json!({"question": "6 * 7?", "answer": "42"}),
        &Options::default(),
    );
    assert_eq!(
        (question.id.as_str(), question.source.as_str()),
        ("rows-1", "rows")
    );

    let own = serde_json::to_value(task(&envfactory(), &Options::default())).unwrap();
    assert_eq!(
        serde_json::to_value(task(&own, &Options::default())).unwrap(),
        own
    );
    let options = Options {
        environment: Some("search".into()),
        ..Options::default()
    };
    assert_eq!(
        task(&verl(), &options).environment.as_deref(),
        Some("search")
    );
}

#[test]
fn data_sets_that_task_files_may_be_are_the_same_tasks_here() {
    for file in [
        "hotpotqa/questions.json",
        "musique/questions.json",
        "gsm8k/train.jsonl",
        "mbpp/mbpp.jsonl",
    ] {
        let Some(path) = data(file) else { continue };
        let tasks = tasks(read(&path, &Options::default()).unwrap());
        assert!(
            tasks.len() >= 100 && tasks == read_tasks(&path).unwrap(),
            "{file}"
        );
    }
}

#[test]
fn rows_of_several_formats_may_stand_in_one_file() {
    let imported = import(
        &[ftrl(), verl(), openai(), verl(), tau()],
        &Options::default(),
    )
    .unwrap();
    let ids: Vec<&str> = imported.iter().map(Imported::id).collect();
    assert_eq!(
        ids,
        ["rows-1", "test-7", "rows-3", "test-7@4", "tau-retail-dev-3"]
    );
    assert!(matches!(imported[2], Imported::Demonstration(_)));
}

#[test]
fn tasks_of_ours_keep_their_ids_or_are_refused() {
    let own = json!({"id": "one", "source": "s", "prompt": [{"role": "user", "content": "1+1?"}], "reference": {"answer": "2"}});
    let error = import(&[own.clone(), own], &Options::default()).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("field `id`: \"one\" stands before it already"),
        "{error}"
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rows.jsonl");
    std::fs::write(&file, format!("{}\n{}\n", verl(), verl())).unwrap();
    let mut read = rows(&file, &Options::default()).unwrap();
    assert_eq!(read.by_ref().flatten().count(), 2);
    assert_eq!(read.renamed(), 1);
}

#[test]
fn an_answer_that_everything_holds_is_refused() {
    for answer in [json!(""), json!(" "), json!(["a", "b"]), json!({"a": 1})] {
        let mut row = ftrl();
        row["answer"] = answer;
        let said = complaint(&row, &Options::default());
        assert!(
            said.contains("field `answer`: it has to be a text"),
            "{said}"
        );
    }
}

#[test]
fn a_format_that_is_asked_for_is_the_one_that_is_read() {
    let from = |name: &str| Options {
        from: Some(name.parse().unwrap()),
        ..Options::default()
    };
    // An FTRL row holds messages too, but they end with the user.
    let said = complaint(&ftrl(), &from("messages"));
    assert!(
        said.contains("does not end with the model's turn (read as messages)"),
        "{said}"
    );
    let said = complaint(&openai(), &from("ftrl"));
    assert!(said.contains("(read as ftrl)"), "{said}");
    let error = "ftlr".parse::<Format>().unwrap_err().to_string();
    assert!(
        error.contains("\"ftlr\"") && error.contains("ftrl, envfactory"),
        "{error}"
    );
    for format in formats() {
        assert_eq!(format.as_str().parse::<Format>().unwrap(), *format);
        assert!(!format.about().is_empty());
    }
}

#[test]
fn what_is_wrong_is_said_with_file_line_and_field() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.jsonl");
    let mut bad = verl();
    bad["reward_model"] = json!({});
    std::fs::write(
        &path,
        format!("{}\n\n{bad}\n{{\"a\": 1}}\nnothing\n{}\n", verl(), tau()),
    )
    .unwrap();
    let read: Vec<_> = rows(&path, &Options::default()).unwrap().collect();
    let said: Vec<String> = read
        .iter()
        .map(|row| {
            row.as_ref()
                .map_or_else(ToString::to_string, |row| row.id().to_owned())
        })
        .collect();
    assert_eq!(
        (said[0].as_str(), said[4].as_str()),
        ("test-7", "tau-retail-dev-3")
    );
    let at = |line: usize| format!("{}:{line}: ", path.display());
    assert!(
        said[1].starts_with(&format!(
            "{}field `reward_model.ground_truth` is missing",
            at(3)
        )),
        "{}",
        said[1]
    );
    assert!(
        said[2].starts_with(&format!(
            "{}its fields (a) are those of no known format",
            at(4)
        )),
        "{}",
        said[2]
    );
    assert!(
        said[3].starts_with(&format!("{}not JSON", at(5))),
        "{}",
        said[3]
    );
    assert!(read[1].as_ref().is_err_and(ImportError::is_of_a_row));

    std::fs::write(&path, "[\n]\n").unwrap();
    assert!(matches!(
        rlf_import::read(&path, &Options::default()),
        Err(ImportError::Empty(_))
    ));
    let gone = rlf_import::read(&folder.path().join("none"), &Options::default()).unwrap_err();
    assert!(matches!(gone, ImportError::Read { .. }) && !gone.is_of_a_row());
    let nowhere = write_tasks(&folder.path().join("none/tasks.jsonl"), &[]);
    assert!(matches!(nowhere, Err(ImportError::Write { .. })));
}

#[cfg(not(feature = "parquet"))]
#[test]
fn a_build_without_parquet_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.parquet");
    std::fs::write(&path, "PAR1").unwrap();
    let error = read(&path, &Options::default()).unwrap_err().to_string();
    assert!(error.contains("no feature `parquet`"), "{error}");
}

#[test]
fn what_could_not_be_read_again_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("tasks.jsonl");
    let mut deep = json!(1);
    for _ in 0..126 {
        deep = json!([deep]);
    }
    let row = json!({
        "id": "1", "source": "s", "prompt": [{"role": "user", "content": "x"}], "reference": null,
    });
    let mut task: Task = serde_json::from_value(row).unwrap();
    write_tasks(&output, [&task]).unwrap();
    std::fs::remove_file(&output).unwrap();
    task.reference = json!({"state": deep});
    let error = write_tasks(&output, [&task]).unwrap_err();
    assert!(
        format!("{error:?}").contains("row 1 could not be read again"),
        "{error:?}"
    );
    assert!(!output.exists());
}
