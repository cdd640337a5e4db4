//! Environments in which no task can be made, one for each reason that making gives.

use rlf_forge::tasks::{Folder, Manifest};
use rlf_forge::tasks::{Made, Maker, PipelineError, Reason, Suite, TaskOptions, make};

use super::{composed, examples, made, options, program};

const BEGINNING: &str = r#"
name = "Doors"
description = "A house with doors."
scenarios = [{ size = "simple", counts = { door = 4 } }]

[[entities]]
name = "door"
collection = "doors"
description = "A door"
key = { name = "door_id", prefix = "D" }
fields = [
    { name = "open", type = "boolean", generate = { constant = true } },
    { name = "marked", type = "boolean", generate = { constant = false } },
]

[[operations]]
name = "list_open_doors"
description = "List the doors that are open."
read_only = true
[operations.result]
each = { name = "d", of = "doors.filter(d, doors[d].open)" }
fields = [{ name = "door_id", type = { reference = "door" }, value = "d" }]
"#;

const MARK: &str = r#"
[[operations]]
name = "mark_door"
description = "Mark a door."
parameters = [{ name = "door_id", type = { reference = "door" }, description = "The door" }]
bindings = [{ find = { name = "door", entity = "door", key = "door_id", error = "no door {door_id}" } }]
preconditions = [{ require = "!door.marked", error = "it is marked" }]
effects = [{ set = { entity = "door", key = "door_id", values = { marked = "true" } } }]
result = { fields = [{ name = "done", type = "boolean", value = "true" }] }
"#;

const SHOW: &str = r#"
[[operations]]
name = "show_door"
description = "Show whether a door is marked."
read_only = true
parameters = [{ name = "door_id", type = { reference = "door" }, description = "The door" }]
bindings = [{ find = { name = "door", entity = "door", key = "door_id", error = "no door {door_id}" } }]
result = { fields = [{ name = "marked", type = "boolean", value = "door.marked" }] }
"#;

const CLOSE_ALL: &str = r#"
[[operations]]
name = "close_all_doors"
description = "Close all doors."
preconditions = [{ require = "doors.exists(d, doors[d].open)", error = "all are closed" }]
effects = [{ set = { entity = "door", key = "d", values = { open = "false" }, each = { name = "d", of = "doors.filter(d, doors[d].open)" } } }]
result = { fields = [{ name = "left", type = "integer", value = "doors.filter(d, doors[d].open).size()" }] }
"#;

/// Reasons for which the first candidates of a suite are rejected before they are checked.
fn reasons(suite: &Suite, options: &TaskOptions, candidates: u64) -> Vec<Reason> {
    let maker = Maker::new(suite, options);
    let mut reasons = Vec::new();
    for number in 0..candidates {
        let candidate = match maker.candidate(number).unwrap() {
            Ok(candidate) => candidate,
            Err(rejection) => {
                reasons.push(rejection.reason);
                continue;
            }
        };
        match maker.trajectory(&candidate).unwrap() {
            Ok(trajectory) => {
                let templates = rlf_forge::tasks::text::Templates::default();
                let query =
                    rlf_forge::tasks::text::query(&maker, &candidate, &trajectory, &templates);
                reasons.extend(query.err().map(|rejection| rejection.reason));
            }
            Err(rejection) => reasons.push(rejection.reason),
        }
    }
    reasons
}

fn doors(operations: &[&str]) -> Suite {
    let text = BEGINNING.to_owned() + &operations.concat();
    Suite::from_programs(vec![(program(&text), "other".into())]).unwrap()
}

#[test]
fn items_that_nothing_tells_apart_are_ambiguous() {
    let found = reasons(&doors(&[MARK]), &options(10), 20);
    assert!(found.contains(&Reason::Ambiguous), "{found:?}");
}

#[test]
fn a_lookup_that_gives_something_else_after_a_change_is_found() {
    let wanted = TaskOptions {
        chain: 6,
        ..options(10)
    };
    let found = reasons(&doors(&[MARK, SHOW, CLOSE_ALL]), &wanted, 200);
    assert!(found.contains(&Reason::OrderMatters), "{found:?}");
}

#[test]
fn a_scenario_that_is_not_there_is_found() {
    let wanted = TaskOptions {
        scenarios: vec!["gigantic".into()],
        ..options(10)
    };
    assert_eq!(reasons(&examples(), &wanted, 5), [Reason::NoScenario; 5]);
}

#[test]
fn a_request_that_needs_more_calls_than_allowed_is_too_long() {
    let wanted = TaskOptions {
        max_turn_calls: 1,
        ..options(10)
    };
    let found = reasons(&doors(&[MARK]), &wanted, 20);
    assert!(found.contains(&Reason::TooLong), "{found:?}");
}

#[test]
fn a_chain_of_which_nothing_succeeds_is_found() {
    let closed = BEGINNING.replace("constant = true", "constant = false");
    let suite = Suite::from_programs(vec![(program(&closed), "other".into())]).unwrap();
    assert_eq!(reasons(&suite, &options(10), 5), [Reason::NothingDone; 5]);
}

#[test]
fn words_that_cannot_vary_enough_are_rejected_as_templates_and_what_was_kept_is_written() {
    let suite = doors(&[]);
    let wanted = TaskOptions {
        terse: true,
        keep_trivial: true,
        count: 150,
        ..options(150)
    };
    let folder = tempfile::tempdir().unwrap();
    let folder = Folder::new(folder.path());
    folder
        .begin(&Manifest::new(&suite, &wanted, false))
        .unwrap();
    let error = make(&Maker::new(&suite, &wanted), &folder, None, |_| {}).unwrap_err();
    let PipelineError::Fruitless { kept, .. } = error else {
        panic!("{error}");
    };
    let tasks = folder.read_tasks().unwrap();
    assert!(kept > 0 && tasks.len() == kept, "{kept}");
    let told = "most were rejected as template: texts differ too little";
    assert!(error.to_string().contains(told), "{error}");
}

#[test]
fn every_rejected_candidate_has_its_stage_and_reason() {
    let made = made(&composed(10), &options(120));
    assert!(made.rejected.len() > 10);
    let kept = made.tasks.len() as u64;
    assert_eq!(kept + made.rejected.len() as u64, made.candidates);
    for one in &made.rejected {
        assert!(!one.detail.is_empty());
        assert!(
            made.tasks
                .iter()
                .all(|task| task.candidate != one.candidate)
        );
    }
}

#[test]
fn without_checks_the_rejected_candidates_become_tasks() {
    let checked = options(40);
    let unchecked = TaskOptions {
        unchecked: true,
        ..options(40)
    };
    let suite = composed(10);
    let (with, without) = (made(&suite, &checked), made(&suite, &unchecked));
    let by_checks = |made: &Made| {
        let mut reasons: Vec<Reason> = made.rejected.iter().map(|one| one.reason).collect();
        reasons.retain(|reason| matches!(reason, Reason::Trivial | Reason::Impossible));
        reasons.len()
    };
    assert!(by_checks(&with) > 0);
    assert_eq!(by_checks(&without), 0);
    let numbers = |made: &Made| {
        made.tasks
            .iter()
            .map(|task| task.candidate)
            .collect::<Vec<_>>()
    };
    let last = *numbers(&without).last().unwrap();
    let kept = numbers(&with).into_iter().filter(|number| *number <= last);
    assert!(kept.clone().count() < 40);
    assert!(
        kept.clone()
            .all(|number| numbers(&without).contains(&number))
    );
}
