//! Promises that need tau-bench's own data.

use std::time::{Duration, Instant};

use rlf_plugin::serde_json::json;
use rlf_plugin::testing;

use super::{call, init_published, open};
use crate::Plugin;
use crate::instruction::first_person;

#[test]
fn the_gold_actions_of_every_task_leave_the_database_with_its_gold_hash() {
    let Some(tasks) = init_published() else {
        return;
    };
    let mut without_changes = 0;
    for task in &tasks {
        let mut session = open(json!({ "instruction": task["instruction"] }));
        let mut changes = false;
        for action in task["actions"].as_array().unwrap() {
            let name = action["name"].as_str().unwrap();
            // Some gold actions are refused, because a gift card's balance is too low.
            let (_, refused) = call(&mut session, name, action["kwargs"].clone());
            changes |= !refused;
        }
        let task_name = format!("{} {}", task["split"], task["i"]);
        let verdict = session.restored().unwrap().verify(None, task).unwrap();
        assert!(verdict.success, "{task_name}: {}", verdict.reason);
        let untouched = open(json!({ "instruction": "" }));
        let verdict = untouched.verify(None, task).unwrap();
        assert_eq!(verdict.success, !changes, "{task_name}");
        without_changes += usize::from(!changes);
    }
    // In six tasks every gold action is refused, so doing nothing is correct.
    assert_eq!(without_changes, 6);
    assert_eq!(tasks.len(), 520);
}

#[test]
fn every_instruction_is_put_into_the_first_person() {
    let Some(tasks) = init_published() else {
        return;
    };
    for task in &tasks {
        let told = first_person(task["instruction"].as_str().unwrap());
        assert!(told.starts_with("My name is "), "{told}");
        let prose: String = told
            .split('{')
            .map(|part| part.rsplit('}').next().unwrap_or_default())
            .collect();
        for word in prose.split(|c: char| !c.is_alphanumeric() && c != '\'') {
            let word = word.to_lowercase();
            let second = ["you", "your", "yours", "yourself"].contains(&&*word);
            assert!(!second && !word.starts_with("you'"), "{told}");
        }
        assert!(
            !prose.contains("I are ") && !prose.contains("I were "),
            "{told}"
        );
    }
}

#[test]
fn the_scenarios_of_the_published_store_end_as_they_say() {
    if init_published().is_some() {
        assert_eq!(testing::check_scenarios::<Plugin>(), Ok(()));
    }
}

#[test]
#[ignore = "prints times: cargo test -p tau-retail times -- --ignored --nocapture"]
fn times() {
    let begin = Instant::now();
    let Some(tasks) = init_published() else {
        return;
    };
    println!("{:<21}once {:>11.1?}", "init", begin.elapsed());
    let mut times: [(&str, Vec<Duration>); 6] = [
        "open",
        "call that changes",
        "call that looks",
        "snapshot and restore",
        "state",
        "verify",
    ]
    .map(|name| (name, Vec::new()));
    let mut measure = |what: usize, begin: Instant| times[what].1.push(begin.elapsed());
    for task in &tasks {
        let begin = Instant::now();
        let mut session = open(json!({ "instruction": task["instruction"] }));
        measure(0, begin);
        for action in task["actions"].as_array().unwrap() {
            let (name, arguments) = (action["name"].as_str().unwrap(), action["kwargs"].clone());
            let begin = Instant::now();
            session.call(name, arguments).unwrap();
            measure(1, begin);
        }
        let look = json!({ "user_id": task["user_id"] });
        let begin = Instant::now();
        session.call("get_user_details", look).unwrap();
        measure(2, begin);
        let begin = Instant::now();
        session.restored().unwrap();
        measure(3, begin);
        let begin = Instant::now();
        session.state();
        measure(4, begin);
        let begin = Instant::now();
        session.verify(None, task).unwrap();
        measure(5, begin);
    }
    for (name, times) in &mut times {
        times.sort_unstable();
        let longest = times.last().copied().unwrap_or_default();
        println!(
            "{name:<21}median {:>9.1?}, longest {longest:>9.1?}",
            times[times.len() / 2]
        );
    }
}
