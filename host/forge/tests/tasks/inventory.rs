//! Inventories that differ from task to task, and turns that go on where the last one was.

use std::collections::{BTreeMap, BTreeSet};

use rlf_dialogue::task::Task;
use rlf_dialogue::tool::ToolDefinition;
use rlf_forge::tasks::make::ArgumentSource;
use rlf_forge::tasks::options::InventoryOptions;
use rlf_forge::tasks::output::{Format, Naming, task_rows};
use rlf_forge::tasks::{Maker, Suite, TaskOptions, TaskRecord};
use serde_json::{Value, json};

use super::{composed, made, options};

fn called(task: &TaskRecord) -> BTreeSet<&str> {
    let calls = task.turns.iter().flat_map(|turn| &turn.calls);
    calls.map(|call| call.tool.as_str()).collect()
}

fn server(tool: &str) -> &str {
    tool.split_once('-').map_or(tool, |(server, _)| server)
}

#[test]
fn tasks_offer_tools_of_environments_that_they_do_not_need_and_that_can_be_called() {
    let suite = composed(16);
    let wanted = TaskOptions {
        max_tools_shown: Some(12),
        inventory: InventoryOptions {
            other_environments: 2,
            ..InventoryOptions::default()
        },
        ..options(120)
    };
    let maker = Maker::new(&suite, &wanted);
    let mut counts = [0; 3];
    let mut inventories = BTreeSet::new();
    for task in &made(&suite, &wanted).tasks {
        let needed: BTreeSet<&str> = called(task).into_iter().map(server).collect();
        let others = task
            .servers
            .keys()
            .filter(|name| !needed.contains(name.as_str()));
        let others: Vec<&String> = others.collect();
        counts[others.len()] += 1;
        assert!(
            called(task)
                .iter()
                .all(|tool| task.tools.iter().any(|own| own == tool))
        );
        assert!(task.tools.len() <= called(task).len().max(12));
        inventories.insert(task.tools.clone());
        let split = maker.splits.environment(needed.iter().next().unwrap());
        let mut session = suite.playable().open(&task.servers).unwrap();
        assert_eq!(session.state().unwrap(), task.initial);
        for other in &others {
            assert_eq!(maker.splits.environment(other), split, "{}", task.id);
            // Nothing that solves the task changes it, and a lookup in it answers.
            let goal = &task.turns.last().unwrap().goal;
            assert_eq!(goal[other.as_str()], task.initial[other.as_str()]);
            let lookup = suite.environment(other).unwrap().tools.iter().find(|tool| {
                suite.is_read_only(&tool.full_name())
                    && tool.inputs.iter().all(|input| !input.required)
            });
            if let Some(lookup) = lookup {
                let answer = session.call(&lookup.full_name(), &serde_json::Map::new());
                assert!(answer.is_ok(), "{}: {answer:?}", task.id);
            }
        }
    }
    assert!(counts.iter().all(|count| *count > 20), "{counts:?}");
    assert!(inventories.len() > 100, "{}", inventories.len());
}

/// Options with which every tool, every described parameter and every order is the task's own.
fn renaming(count: usize) -> TaskOptions {
    TaskOptions {
        max_tools_shown: Some(8),
        mistakes: 0.3,
        inventory: InventoryOptions {
            rename_tools: 1.0,
            rename_parameters: 1.0,
            permute_parameters: true,
            ..InventoryOptions::default()
        },
        ..options(count)
    }
}

/// Every name of a tool or parameter in calls and definitions.
fn names_in(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                match (key.as_str(), value) {
                    ("name", Value::String(name)) => {
                        names.insert(name.clone());
                    }
                    ("properties" | "arguments", Value::Object(inner)) => {
                        names.extend(inner.keys().cloned());
                    }
                    _ => {}
                }
                names_in(value, names);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| names_in(item, names)),
        _ => {}
    }
}

#[test]
fn rows_show_the_drawn_names_and_calls_lead_back_to_the_authors() {
    let suite = composed(12);
    let naming = Naming::default();
    let mut renamed = 0;
    let mut names_of_one_tool = BTreeSet::new();
    let tasks = made(&suite, &renaming(60)).tasks;
    for task in &tasks {
        let shown = &task.shown;
        assert!(task.tools.iter().all(|tool| shown.name(tool) != tool));
        let all: BTreeSet<&String> = shown.rename.values().collect();
        assert_eq!(
            all.len(),
            shown.rename.len(),
            "names differ from each other"
        );
        renamed += shown
            .rename_parameters
            .values()
            .map(BTreeMap::len)
            .sum::<usize>();
        let tool = tasks[0].tools[0].as_str();
        names_of_one_tool.extend(shown.rename.get(tool));

        let mut names = BTreeSet::new();
        for row in Format::Demonstrations.rows(&suite, task, &naming) {
            names_in(&row, &mut names);
        }
        assert!(all.iter().all(|name| names.contains(*name)), "{}", task.id);
        assert!(
            !task.tools.iter().any(|tool| names.contains(tool)),
            "{}",
            task.id
        );
        check_calls(&suite, task);
        for row in task_rows(&suite, task, &naming) {
            assert_eq!(row.extra["shown_tools"], json!(shown));
            assert_eq!(
                row.tools.as_ref(),
                Some(&task.tools),
                "rewards read the authors' names"
            );
            check_prompt(task, &row);
        }
    }
    assert!(renamed > 200, "{renamed}");
    assert!(
        names_of_one_tool.len() > 2,
        "a name of its own in each task"
    );
}

/// The shown form of every gold call is one of a shown definition, whose own form is the gold call.
fn check_calls(suite: &Suite, task: &TaskRecord) {
    for call in task.turns.iter().flat_map(|turn| &turn.calls) {
        let own = suite.definition(&call.tool).unwrap();
        let shown: ToolDefinition = task.shown.definition(own.clone(), &task.id);
        let properties = shown.input_schema["properties"].as_object().unwrap();
        let arguments = task.shown.arguments(&call.tool, &call.arguments);
        assert!(arguments.keys().all(|name| properties.contains_key(name)));
        let required = shown.input_schema["required"].as_array();
        for name in required.into_iter().flatten() {
            assert!(
                arguments.contains_key(name.as_str().unwrap()),
                "{}",
                task.id
            );
        }
        // A described parameter has another name, and the description is all that is left of it.
        let names = task.shown.rename_parameters.get(&call.tool);
        for (own_name, shown_name) in names.into_iter().flatten() {
            assert!(!own.input_schema["properties"][own_name].is_null());
            let described = properties[shown_name]["description"].as_str().unwrap();
            let word = own_name.split('_').next().unwrap();
            assert!(
                described.to_lowercase().contains(word),
                "{own_name}: {described}"
            );
        }
    }
}

/// Calls of earlier turns in a prompt have the shown names, too.
fn check_prompt(task: &TaskRecord, row: &Task) {
    for call in row.prompt.iter().flat_map(|message| &message.tool_calls) {
        assert!(task.shown.rename.values().any(|name| *name == call.name));
    }
}

#[test]
fn without_the_options_nothing_about_inventories_is_written() {
    let suite = composed(6);
    let wanted = options(20);
    let written = serde_json::to_string(&wanted).unwrap();
    assert!(
        !written.contains("inventory") && !written.contains("linked"),
        "{written}"
    );
    for task in &made(&suite, &wanted).tasks {
        let written = serde_json::to_value(task).unwrap();
        assert!(written.get("shown").is_none());
        for (row, turn) in task_rows(&suite, task, &Naming::default())
            .iter()
            .zip(task.turns.iter().filter(|turn| !turn.context_only))
        {
            assert!(row.extra.get("shown_tools").is_none());
            assert_eq!(
                row.extra["level"],
                json!(turn.calls.len() + turn.implicit.len())
            );
        }
    }
}

#[test]
fn every_linked_turn_uses_a_result_of_the_turn_before_it() {
    let suite = composed(12);
    let wanted = TaskOptions {
        linked_turns: true,
        ..options(80)
    };
    let maker = Maker::new(&suite, &wanted);
    let tasks = made(&suite, &wanted).tasks;
    for task in &tasks {
        assert!(task.turns.len() >= 2, "{}", task.id);
        let candidate = maker.candidate(task.candidate).unwrap().unwrap();
        let trajectory = maker.trajectory(&candidate).unwrap().unwrap();
        let ranges: Vec<_> = trajectory.ranges().collect();
        for pair in ranges.windows(2) {
            let mut sources = trajectory.calls[pair[1].clone()]
                .iter()
                .flat_map(|call| call.sources.values());
            assert!(
                sources.any(|source| matches!(
                    source,
                    ArgumentSource::Call { call, .. } if pair[0].contains(call)
                )),
                "{}",
                task.id
            );
        }
    }
    assert!(tasks.iter().any(|task| task.turns.len() > 2));
    // Without the option, turns often have nothing to do with each other.
    let free = made(&suite, &options(80)).tasks;
    assert!(free.iter().any(|task| task.turns.len() == 1));
}
