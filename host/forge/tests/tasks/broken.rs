//! Broken tasks, each made from a good one: every kind of finding is found.

use std::collections::BTreeMap;

use rlf_forge::tasks::check::Seen;
use rlf_forge::tasks::record::Origin;
use rlf_forge::tasks::request::{Fact, Mention};
use rlf_forge::tasks::{Reason, Suite, TaskOptions, TaskRecord};
use serde_json::{Value, json};

use super::{checked, checked_with, composed, examples, made, options};

/// Good tasks of the examples.
fn good(suite: &Suite) -> Vec<TaskRecord> {
    let tasks = made(suite, &options(40)).tasks;
    for task in &tasks {
        assert!(checked(suite, task).is_ok());
    }
    tasks
}

/// The reason for which a task is rejected.
fn reason(suite: &Suite, task: &TaskRecord) -> Reason {
    match checked(suite, task) {
        Ok(_) => panic!("{} is kept: {:#?}", task.id, task.turns),
        Err(rejection) => {
            assert!(!rejection.detail.is_empty());
            rejection.reason
        }
    }
}

/// A value that a request of the first turn says.
fn said(task: &TaskRecord) -> Option<String> {
    let arguments = task.turns[0]
        .requests
        .iter()
        .flat_map(|request| request.arguments.values());
    let texts = arguments
        .flat_map(Mention::values)
        .filter_map(Value::as_str);
    texts
        .filter(|text| text.len() > 4)
        .map(str::to_owned)
        .next()
}

#[test]
fn a_value_that_the_text_does_not_say_is_found() {
    let suite = examples();
    let mut found = 0;
    for mut task in good(&suite) {
        let Some(text) = said(&task) else { continue };
        task.turns[0].query = task.turns[0].query.replace(&text, "something");
        assert_eq!(reason(&suite, &task), Reason::Unsaid);
        found += 1;
    }
    assert!(found > 10);
}

#[test]
fn an_argument_that_nothing_gives_is_found() {
    let suite = examples();
    let mut found = 0;
    for mut task in good(&suite) {
        let Some(call) = task.turns[0]
            .calls
            .iter_mut()
            .find(|call| !call.arguments.is_empty())
        else {
            continue;
        };
        let name = call.arguments.keys().next().unwrap().clone();
        call.arguments.insert(name, json!("Zebulon 77"));
        assert_eq!(reason(&suite, &task), Reason::UnknownArgument);
        found += 1;
    }
    assert!(found > 10);
}

#[test]
fn a_key_that_the_text_says_is_found() {
    let suite = examples();
    let mut found = 0;
    for mut task in good(&suite) {
        let keys = task.turns[0]
            .calls
            .iter()
            .flat_map(|call| call.arguments.iter());
        let key = keys
            .filter(|(name, _)| name.ends_with("_id"))
            .find_map(|(_, value)| value.as_str().map(str::to_owned));
        let Some(key) = key else { continue };
        task.turns[0].query.push_str(" It is ");
        task.turns[0].query.push_str(&key);
        task.turns[0].query.push('.');
        assert_eq!(reason(&suite, &task), Reason::Leak);
        found += 1;
    }
    assert!(found > 10);
}

#[test]
fn a_text_that_says_the_whole_result_is_found() {
    let suite = examples();
    let mut found = 0;
    for mut task in good(&suite) {
        let asked = task.turns[0]
            .calls
            .iter()
            .find(|call| call.requested && suite.is_read_only(&call.tool));
        let Some(asked) = asked else { continue };
        let known = format!(" I know it already: {}", asked.result);
        task.turns[0].query += &known;
        assert_eq!(reason(&suite, &task), Reason::Leak);
        found += 1;
    }
    assert!(found > 0);
}

#[test]
fn one_call_with_copied_arguments_is_trivial() {
    let suite = examples();
    let wanted = TaskOptions {
        keep_trivial: true,
        max_calls: 1,
        ..options(20)
    };
    let tasks = made(&suite, &wanted).tasks;
    assert!(tasks.iter().all(|task| task.measures.calls == 1));
    for task in &tasks {
        assert_eq!(reason(&suite, task), Reason::Trivial);
    }
}

#[test]
fn a_goal_that_is_reached_by_doing_nothing_is_found() {
    let suite = examples();
    let mut found = 0;
    for mut task in good(&suite) {
        // Only lookups are left, and nobody asks for them.
        for turn in &mut task.turns {
            turn.calls.retain(|call| {
                let mut origins = call.origins.values();
                !call.requested && origins.all(|origin| matches!(origin, Origin::Text { .. }))
            });
            turn.requests.clear();
            turn.goal = task.initial.clone();
        }
        if task
            .turns
            .iter()
            .map(|turn| turn.calls.len())
            .sum::<usize>()
            < 2
        {
            continue;
        }
        assert_eq!(reason(&suite, &task), Reason::NothingToDo);
        found += 1;
    }
    assert!(found > 0);
}

#[test]
fn a_turn_that_alone_is_not_worth_doing_is_only_context() {
    let suite = composed(12);
    let tasks = made(&suite, &options(120)).tasks;
    let (mut context, mut questions) = (0, 0);
    for task in &tasks {
        assert!(task.turns.iter().any(|turn| !turn.context_only));
        let mut before = &task.initial;
        for (number, turn) in task.turns.iter().enumerate() {
            let mut requested = turn.calls.iter().filter(|call| call.requested);
            let asks = requested.any(|call| suite.is_read_only(&call.tool));
            let mut origins = turn.calls.iter().flat_map(|call| call.origins.values());
            let is_copied = origins.all(|origin| match origin {
                Origin::Text { turn } => *turn == number,
                other => *other == Origin::Default,
            });
            let is_trivial = turn.calls.len() == 1 && is_copied;
            let does_nothing = turn.goal == *before && !asks;
            assert_eq!(turn.context_only, is_trivial || does_nothing, "{}", task.id);
            context += usize::from(turn.context_only);
            // A question changes nothing, and its answer has to be looked up.
            questions += usize::from(turn.goal == *before && !turn.context_only);
            before = &turn.goal;
        }
    }
    assert!(context > 0 && questions > 0, "{context}, {questions}");

    let trivial = TaskOptions {
        keep_trivial: true,
        ..options(1)
    };
    for task in &tasks {
        // The state is no longer the first one, and this turn does not change it.
        let mut idle = task.clone();
        let mut last = idle.turns[task.turns.len() - 1].clone();
        last.query = "Thank you.".into();
        last.requests.clear();
        last.calls.clear();
        idle.turns.push(last);
        for kept in [
            checked_with(&suite, &idle, &options(1)),
            checked_with(&suite, &idle, &trivial),
        ] {
            let context = kept.unwrap().context_only;
            assert_eq!(context.last(), Some(&task.turns.len()), "{}", task.id);
        }
    }
}

#[test]
fn a_repeated_task_is_found() {
    let suite = examples();
    let mut seen = Seen::default();
    for task in good(&suite) {
        seen.add(&task).unwrap();
        assert_eq!(seen.add(&task).unwrap_err().reason, Reason::Duplicate);
        let mut reworded = task.clone();
        reworded.turns[0].query += " Please.";
        let again = seen.add(&reworded).unwrap_err();
        assert_eq!(again.reason, Reason::Duplicate);
        assert!(again.detail.contains("calls"), "{again}");
    }
}

#[test]
fn a_description_that_fits_nothing_or_another_entity_is_impossible() {
    let suite = examples();
    let mut found = 0;
    for mut task in good(&suite) {
        let arguments = task.turns[0]
            .requests
            .iter_mut()
            .flat_map(|request| request.arguments.values_mut());
        let described = arguments.into_iter().find_map(|mention| match mention {
            Mention::Described(description) => {
                description.facts.iter_mut().find_map(|fact| match fact {
                    Fact::Is { value, .. } if value.is_string() => Some(value),
                    _ => None,
                })
            }
            _ => None,
        });
        let Some(value) = described else { continue };
        *value = json!("Zebulon");
        // The text says it, so that only acting finds it.
        task.turns[0].query += " Zebulon.";
        assert_eq!(reason(&suite, &task), Reason::Impossible);
        found += 1;
    }
    assert!(found > 5);
}

/// The task with each of its descriptions emptied: nothing tells the entity from others of its kind.
fn vague(task: &TaskRecord) -> Vec<TaskRecord> {
    let mut all = Vec::new();
    for (turn, gold) in task.turns.iter().enumerate() {
        for (request, whole) in gold.requests.iter().enumerate() {
            for parameter in whole.arguments.keys() {
                let mut vague = task.clone();
                let arguments = &mut vague.turns[turn].requests[request].arguments;
                if let Some(Mention::Described(description)) = arguments.get_mut(parameter) {
                    description.facts.clear();
                    all.push(vague);
                }
            }
        }
    }
    all
}

#[test]
fn a_task_that_only_a_guess_solves_is_kept_only_if_fewer_passes_are_asked_for() {
    let suite = examples();
    let lucky = TaskOptions {
        attempts: 64,
        min_passes: 1,
        ..options(1)
    };
    let mut found = 0;
    for task in good(&suite) {
        for vague in vague(&task) {
            let Ok(kept) = checked_with(&suite, &vague, &lucky) else {
                continue;
            };
            // Without other entities of its kind, it is still clear which one is meant.
            if kept.measures.passes < lucky.attempts {
                assert!(kept.measures.difficulty > 0.0);
                assert_eq!(reason(&suite, &vague), Reason::Impossible);
                found += 1;
            }
        }
    }
    assert!(found > 0);
}

#[test]
fn gold_calls_that_do_something_else_are_found() {
    let suite = examples();
    for task in good(&suite) {
        let mut mutant = task.clone();
        mutant.turns[0].goal.clear();
        assert_eq!(reason(&suite, &mutant), Reason::Diverged);
        let mut mutant = task.clone();
        // The result of the last call is the origin of no argument.
        let last = mutant.turns.last_mut().unwrap().calls.last_mut().unwrap();
        last.result = json!("nothing");
        assert_eq!(reason(&suite, &mutant), Reason::Diverged);
        let mut mutant = task.clone();
        mutant.turns[0].requests.pop();
        assert_eq!(reason(&suite, &mutant), Reason::Diverged);
    }
}

/// Ways to break a task.
fn mutants(task: &TaskRecord) -> Vec<(&'static str, TaskRecord)> {
    let mut all = Vec::new();
    for turn in 0..task.turns.len() {
        for call in 0..task.turns[turn].calls.len() {
            let gold = &task.turns[turn].calls[call];
            for (parameter, value) in &gold.arguments {
                let other = match value {
                    Value::Number(_) => json!(987),
                    Value::Bool(truth) => json!(!truth),
                    _ => json!("Zebulon"),
                };
                let mut mutant = task.clone();
                mutant.turns[turn].calls[call]
                    .arguments
                    .insert(parameter.clone(), other);
                all.push(("another argument", mutant));
            }
        }
        for request in 0..task.turns[turn].requests.len() {
            let mut mutant = task.clone();
            mutant.turns[turn].requests.remove(request);
            all.push(("a request that is not said", mutant));
            for parameter in task.turns[turn].requests[request].arguments.keys() {
                let mut mutant = task.clone();
                mutant.turns[turn].requests[request]
                    .arguments
                    .remove(parameter);
                all.push(("an argument that is not said", mutant));
            }
        }
        let mut mutant = task.clone();
        mutant.turns[turn].goal.clear();
        all.push(("another goal", mutant));
        let mut mutant = task.clone();
        mutant.turns[turn].query = "Good morning.".into();
        all.push(("no words", mutant));
    }
    all
}

#[test]
fn mutants_of_good_tasks_are_found() {
    let suite = composed(10);
    let tasks = made(&suite, &options(60)).tasks;
    let (mut all, mut survived) = (0, BTreeMap::<&str, Vec<String>>::new());
    for task in &tasks {
        for (what, mutant) in mutants(task) {
            all += 1;
            if checked(&suite, &mutant).is_ok() {
                survived.entry(what).or_default().push(mutant.id);
            }
        }
    }
    let missed: usize = survived.values().map(Vec::len).sum();
    let share = 1.0 - missed as f64 / f64::from(all);
    println!(
        "{all} mutants, {:.1} % found; not found: {survived:?}",
        100.0 * share
    );
    assert!(all > 500 && share >= 0.95, "{survived:?}");
}
