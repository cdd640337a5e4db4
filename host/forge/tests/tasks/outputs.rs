//! Rows of all formats: they can be imported again, and their calls lead to the goal.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rlf_dialogue::message::{Message, Role};
use rlf_dialogue::task::Task;
use rlf_forge::tasks::environment::{TaskEnvironment, TaskSession};
use rlf_forge::tasks::output::{Format, Naming, Practised, write};
use rlf_forge::tasks::record::Start;
use rlf_forge::tasks::{Suite, TaskOptions, TaskRecord};
use rlf_import::{Demonstration, Imported, Options, read};
use serde_json::{Map, Value};

use super::{composed, made, options};

/// Writes a format and reads it again.
fn imported(suite: &Suite, tasks: &[TaskRecord], format: Format) -> Vec<Imported> {
    let folder = tempfile::tempdir().unwrap();
    let written = write(
        suite,
        tasks,
        format,
        &Naming::default(),
        &Practised::default(),
        folder.path(),
    )
    .unwrap();
    assert!(!written.is_empty());
    let mut all = Vec::new();
    for file in written {
        let rows = read(Path::new(&file.path), &Options::default()).unwrap();
        assert_eq!(rows.len(), file.rows);
        all.extend(rows);
    }
    all
}

/// A session in the state that a task's setup has.
fn begun<'a>(suite: &'a Suite, states: &Map<String, Value>) -> Box<dyn TaskSession + 'a> {
    let start = |name: &String| {
        let start = Start {
            scenario: "simple".into(),
            seed: 0,
        };
        (name.clone(), start)
    };
    let starts: BTreeMap<String, Start> = states.keys().map(start).collect();
    let playable: &dyn TaskEnvironment = suite.playable();
    let mut session = playable.open(&starts).unwrap();
    session.load(states).unwrap();
    session
}

/// Makes the calls of a task's reference from its setup. The end is the state that the reference wants.
fn replays(suite: &Suite, task: &Task) {
    let mut session = begun(suite, task.setup["servers"].as_object().unwrap());
    for call in task.reference["calls"].as_array().unwrap() {
        let arguments = call["arguments"].as_object().unwrap();
        session
            .call(call["name"].as_str().unwrap(), arguments)
            .unwrap();
    }
    let state = Value::Object(session.state().unwrap());
    assert_eq!(state, task.reference["state"], "{}", task.id);
    assert!(!task.prompt.is_empty());
    assert_eq!(task.prompt.last().unwrap().role, Role::User);
}

fn tasks_of(imported: Vec<Imported>) -> Vec<Task> {
    let task = |one| match one {
        Imported::Task(task) => task,
        Imported::Demonstration(other) => panic!("{} is a demonstration", other.id),
    };
    imported.into_iter().map(task).collect()
}

fn demonstrations_of(imported: Vec<Imported>) -> Vec<Demonstration> {
    let demonstration = |one| match one {
        Imported::Demonstration(one) => one,
        Imported::Task(other) => panic!("{} is a task", other.id),
    };
    imported.into_iter().map(demonstration).collect()
}

#[test]
fn tasks_and_verl_rows_replay_to_their_goals() {
    let suite = composed(12);
    let tasks = made(&suite, &options(100)).tasks;
    // Turns that are only context are in conversations, and have no rows.
    let turns = tasks.iter().flat_map(|task| &task.turns);
    let (context, practised): (Vec<_>, Vec<_>) = turns.partition(|turn| turn.context_only);
    assert!(!context.is_empty());
    for format in [Format::Tasks, Format::Verl] {
        let rows = tasks_of(imported(&suite, &tasks, format));
        assert_eq!(rows.len(), practised.len());
        for row in &rows {
            replays(&suite, row);
        }
        let later = rows.iter().filter(|row| row.prompt.len() > 1);
        assert!(
            later.count() > 20,
            "turns after the first have a conversation before them"
        );
    }
}

#[test]
fn verl_rows_say_the_same_as_ours() {
    let suite = composed(6);
    let tasks = made(&suite, &options(30)).tasks;
    let ours = tasks_of(imported(&suite, &tasks, Format::Tasks));
    let theirs = tasks_of(imported(&suite, &tasks, Format::Verl));
    let words = |messages: &[Message]| -> Vec<(Role, String, Vec<Value>)> {
        let said = messages.iter().map(|message| {
            let calls = message.tool_calls.iter();
            let calls = calls.map(|call| serde_json::json!([call.name, call.arguments]));
            (message.role, message.plain_text(), calls.collect())
        });
        said.collect()
    };
    for (our, their) in ours.iter().zip(&theirs) {
        assert_eq!(words(&our.prompt), words(&their.prompt));
        assert_eq!(our.setup, their.setup);
        assert_eq!(our.reference["calls"], their.reference["calls"]);
        assert_eq!(our.reference["state"], their.reference["state"]);
    }
}

#[test]
fn demonstrations_have_the_results_that_the_environment_gives() {
    let suite = composed(12);
    let tasks = made(&suite, &options(80)).tasks;
    let rows = demonstrations_of(imported(&suite, &tasks, Format::Demonstrations));
    assert_eq!(rows.len(), tasks.len());
    for row in &rows {
        row.check().unwrap();
        let task = tasks.iter().find(|task| task.id == row.id).unwrap();
        let mut session = begun(&suite, &task.initial);
        let mut calls = 0;
        for pair in row.messages.windows(2) {
            if let ([call], Role::Tool) = (&pair[0].tool_calls[..], pair[1].role) {
                let arguments = call.arguments.as_object().unwrap();
                let result = session.call(&call.name, arguments).unwrap();
                assert_eq!(result.result.to_string(), pair[1].plain_text());
                calls += 1;
            }
        }
        assert_eq!(calls, task.measures.calls);
        assert_eq!(session.state().unwrap(), task.turns.last().unwrap().goal);
        let names: Vec<&str> = row.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, task.tools);
    }
}

#[test]
fn alpaca_rows_teach_every_turn_of_the_model() {
    let suite = composed(6);
    let tasks = made(&suite, &options(40)).tasks;
    let rows = demonstrations_of(imported(&suite, &tasks, Format::Alpaca));
    let turns: usize = tasks
        .iter()
        .map(|task| task.measures.calls + task.turns.len())
        .sum();
    assert_eq!(rows.len(), turns);
    let whole = demonstrations_of(imported(&suite, &tasks, Format::Demonstrations));
    let last = |texts: &[Message]| {
        let said = texts
            .iter()
            .map(|message| (message.role, message.plain_text()));
        said.collect::<Vec<_>>()
    };
    // The last row of a task has its whole conversation.
    for demonstration in &whole {
        let said = last(&demonstration.messages);
        assert!(
            rows.iter().any(|row| last(&row.messages) == said),
            "{}",
            demonstration.id
        );
    }
    for row in &rows {
        row.check().unwrap();
        assert_eq!(
            row.given + 1,
            row.messages.len(),
            "only the last turn is imitated"
        );
        assert!(!row.tools.is_empty());
    }
}

#[test]
fn mistakes_are_in_the_history_and_never_taught() {
    let suite = composed(8);
    let wanted = TaskOptions {
        mistakes: 0.5,
        ..options(60)
    };
    let tasks = made(&suite, &wanted).tasks;
    let mistakes = |task: &TaskRecord| {
        let calls = task.turns.iter().flat_map(|turn| &turn.calls);
        calls.filter(|call| call.mistake.is_some()).count()
    };
    assert!(tasks.iter().map(mistakes).sum::<usize>() > 30);
    let steps = |task: &TaskRecord| task.measures.calls + task.turns.len();
    let refusals: Vec<&String> = tasks
        .iter()
        .flat_map(|task| task.turns.iter().flat_map(|turn| &turn.calls))
        .filter_map(|call| Some(&call.mistake.as_ref()?.refusal))
        .collect();
    for format in [Format::Demonstrations, Format::Alpaca] {
        let rows = demonstrations_of(imported(&suite, &tasks, format));
        let mut taught = 0;
        let mut seen = 0;
        for row in &rows {
            row.check().unwrap();
            let (given, behind) = row.messages.split_at(row.given);
            taught += behind
                .iter()
                .filter(|one| one.role == Role::Assistant)
                .count();
            let refused = |one: &&Message| refusals.contains(&&one.plain_text());
            seen += given.iter().filter(refused).count();
            assert_eq!(behind.iter().filter(refused).count(), 0, "{}", row.id);
        }
        assert_eq!(taught, tasks.iter().map(steps).sum::<usize>());
        assert!(seen >= refusals.len());
    }
}

#[test]
fn tools_lose_the_name_of_their_environment_unless_two_would_be_the_same() {
    let suite = composed(12);
    let mut options = options(100);
    options.inventory.bare_names = true;
    let tasks = made(&suite, &options).tasks;
    let bare = |tool: &str| tool.split_once('-').unwrap().1.to_owned();
    // The names that the model has to see.
    let shown = |tools: &[String]| -> BTreeMap<String, String> {
        let is_alone = |tool: &str| tools.iter().filter(|one| bare(one) == bare(tool)).count() == 1;
        let name = |tool: &String| {
            let shown = if is_alone(tool) {
                bare(tool)
            } else {
                tool.clone()
            };
            (tool.clone(), shown)
        };
        tools.iter().map(name).collect()
    };
    let kept = tasks.iter().flat_map(|task| shown(&task.tools));
    assert!(
        kept.filter(|(own, shown)| own == shown).count() > 0,
        "no two tools clash"
    );

    let rows = tasks_of(imported(&suite, &tasks, Format::Tasks));
    for row in &rows {
        // References and the list of allowed tools have the authors' names.
        replays(&suite, row);
        let tools = row.tools.as_ref().unwrap();
        let mut expected = shown(tools);
        let said = row.prompt.iter().flat_map(|message| &message.tool_calls);
        for call in said {
            assert!(
                expected.values().any(|name| *name == call.name),
                "{}",
                call.name
            );
        }
        expected.retain(|own, shown| own != shown);
        let rename = row.extra["shown_tools"]["rename"].clone();
        assert_eq!(rename, serde_json::to_value(expected).unwrap());
    }
    let rows = demonstrations_of(imported(&suite, &tasks, Format::Demonstrations));
    for row in &rows {
        row.check().unwrap();
        let task = tasks.iter().find(|task| task.id == row.id).unwrap();
        let expected = shown(&task.tools);
        let names: Vec<&String> = row.tools.iter().map(|tool| &tool.name).collect();
        assert_eq!(
            names,
            task.tools
                .iter()
                .map(|own| &expected[own])
                .collect::<Vec<_>>()
        );
        let calls = task.turns.iter().flat_map(|turn| &turn.calls);
        let called = row.messages.iter().flat_map(|message| &message.tool_calls);
        let called: Vec<&String> = called.map(|call| &call.name).collect();
        assert_eq!(
            called,
            calls.map(|call| &expected[&call.tool]).collect::<Vec<_>>()
        );
    }
    let plain = |format| {
        let rows = tasks_of(imported(&suite, &tasks, format));
        serde_json::to_value(rows).unwrap()
    };
    let verl = tasks_of(imported(&suite, &tasks, Format::Verl));
    assert_eq!(serde_json::to_value(verl).unwrap(), plain(Format::Verl));
}

#[test]
fn demonstrations_show_no_environment_of_practice() {
    let suite = composed(20);
    let tasks = made(&suite, &options(100)).tasks;
    let practised = Practised::draw(&tasks, 0.4);
    let folder = tempfile::tempdir().unwrap();
    let naming = Naming::default();
    let server = |tool: &str| tool.split('-').next().unwrap().to_owned();
    let environments_of = |format: Format, part: &str| -> BTreeSet<String> {
        let path = folder.path().join(format.as_str()).join(part);
        let rows = read(&path, &Options::default()).unwrap().into_iter();
        let tools = rows.flat_map(|row| match row {
            Imported::Task(task) => task.tools.unwrap(),
            Imported::Demonstration(row) => row.tools.into_iter().map(|tool| tool.name).collect(),
        });
        tools.map(|tool| server(&tool)).collect()
    };
    for format in [Format::Tasks, Format::Demonstrations] {
        write(&suite, &tasks, format, &naming, &practised, folder.path()).unwrap();
    }
    let shown = environments_of(Format::Demonstrations, "train.jsonl");
    let practice = environments_of(Format::Tasks, "practice.jsonl");
    assert!(shown.len() >= 4 && practice.len() >= 4);
    let drawn = tasks.iter().filter(|task| practised.has(task));
    for task in drawn {
        assert!(!task.servers.keys().all(|name| shown.contains(name)));
    }
    // A later export without practice leaves no file of the earlier one.
    let none = Practised::default();
    write(&suite, &tasks, Format::Tasks, &naming, &none, folder.path()).unwrap();
    assert!(!folder.path().join("tasks/practice.jsonl").exists());
}
