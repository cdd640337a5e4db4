//! FTRL's step-level samples from our own trajectories.

use rlf_dialogue::{Role, Task, Trajectory};
use rlf_import::{ImportError, Options, play, steps, steps_of_run};
use serde_json::{Value, json};

use crate::support::*;

/// A trajectory of the FTRL row: a lookup that finds one sub-answer, two calls that find two, and an answer.
fn tried(last: &str) -> (Task, Trajectory) {
    let question = task(&ftrl(), &Options::default());
    let call = |id: &str, name: &str, arguments: Value| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments.to_string()}});
    let row = json!({"id": "run", "tools": tools(), "messages": [
        {"role": "user", "content": question.prompt[0].plain_text()},
        {"role": "assistant", "content": "", "tool_calls": [call("1", "lookup", json!({"key": "hill"}))]},
        {"role": "tool", "tool_call_id": "1", "content": "1000 m"},
        {"role": "assistant", "content": "More.", "tool_calls": [
            call("2", "lookup", json!({"key": "hill"})), call("3", "add", json!({"a": 3, "b": 4}))]},
        {"role": "tool", "tool_call_id": "2", "content": "The Hill"},
        {"role": "tool", "tool_call_id": "3", "content": "7"},
        {"role": "assistant", "content": last},
    ]});
    let mut trajectory = play(
        &qwen3(rlf_dialogue::DialogueConfig::default()),
        &demonstration(&row, &Options::default()),
    )
    .unwrap();
    trajectory.task.clone_from(&question.id);
    (question, trajectory)
}

#[test]
fn every_prefix_that_ends_with_results_is_a_task_with_what_remains() {
    let (question, trajectory) = tried("1000");
    let mut question = question;
    question.reference["calls"] = json!([{"name": "add", "arguments": {"a": 3, "b": 4}}]);
    let samples = steps(&question, &trajectory).unwrap();
    assert_eq!(samples.len(), 2);
    assert_eq!(samples[0].prompt.len(), 3);
    assert_eq!(
        samples[0].reference["unsolved"],
        json!({"lookup": ["the hill"], "add": ["7"]})
    );
    assert_eq!(samples[0].extra["solve_rate"], json!(1.0 / 3.0));
    let roles: Vec<Role> = samples[1]
        .prompt
        .iter()
        .map(|message| message.role)
        .collect();
    assert_eq!(
        roles,
        [
            Role::User,
            Role::Assistant,
            Role::Tool,
            Role::Assistant,
            Role::Tool,
            Role::Tool
        ]
    );
    assert_eq!(samples[1].prompt[3].tool_calls.len(), 2);
    assert_eq!(
        samples[1].reference,
        json!({"answer": "1000", "unsolved": {"lookup": [], "add": []}})
    );
    assert_eq!(
        (&samples[1].extra["solve_rate"], &samples[1].extra["turns"]),
        (&json!(1.0), &json!(2))
    );
    assert_eq!(samples[1].setup, question.setup);
    assert!(steps(&task(&verl(), &Options::default()), &trajectory).is_err());
}

#[test]
fn a_run_gives_each_question_once_and_no_prefix_twice() {
    let (question, first) = tried("1000");
    let (_, mut second) = tried("1");
    second.id = "other".into();
    let mut lost = second.clone();
    lost.excluded = Some("a tool was unavailable".into());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rl-3.jsonl");
    let line =
        |trajectory: &Trajectory| format!("{}\n", json!({"step": 3, "trajectory": trajectory}));
    std::fs::write(&path, [line(&first), line(&second), line(&lost)].concat()).unwrap();
    let samples = steps_of_run(std::slice::from_ref(&question), &path).unwrap();
    let turns: Vec<usize> = samples.iter().map(|sample| sample.prompt.len()).collect();
    assert_eq!(turns, [1, 3, 6]);
    // For a run's folder, or its trajectories' folder, all of its files are read in order.
    let run = folder.path().join("run");
    let kept = run.join("trajectories");
    std::fs::create_dir_all(&kept).unwrap();
    assert!(matches!(
        steps_of_run(std::slice::from_ref(&question), &run),
        Err(ImportError::NoTrajectories(_))
    ));
    std::fs::write(kept.join("rl-000002.jsonl"), line(&second)).unwrap();
    std::fs::write(kept.join("rl-000001.jsonl"), line(&first)).unwrap();
    std::fs::write(kept.join("note.txt"), "no trajectory").unwrap();
    for given in [&run, &kept] {
        let of_run = steps_of_run(std::slice::from_ref(&question), given).unwrap();
        let ids: Vec<&str> = of_run.iter().map(|sample| sample.id.as_str()).collect();
        let expected: Vec<&str> = samples.iter().map(|sample| sample.id.as_str()).collect();
        assert_eq!(ids, expected);
    }

    let error = steps_of_run(&[], &path).unwrap_err().to_string();
    assert!(
        error.contains(":1: its task \"rows-1\" is none of the tasks given"),
        "{error}"
    );
    std::fs::write(&path, "{\"a\": 1}\n").unwrap();
    assert!(matches!(
        steps_of_run(&[question], &path),
        Err(ImportError::Row { line: 1, .. })
    ));
}
