//! The promises of every kept task.

use std::collections::{BTreeMap, BTreeSet};

use rlf_dialogue::split::Split;
use rlf_forge::graph::ValueType;
use rlf_forge::sampling::Strategy;
use rlf_forge::tasks::record::{Implicit, Origin, Unseen};
use rlf_forge::tasks::request::Mention;
use rlf_forge::tasks::{Maker, Statistics, TaskOptions, TaskRecord};
use serde_json::Value;

use super::{composed, examples, made, options};

fn calls(task: &TaskRecord) -> impl Iterator<Item = &rlf_forge::tasks::record::GoldCall> {
    task.turns.iter().flat_map(|turn| &turn.calls)
}

#[test]
fn kept_tasks_are_within_the_limits_and_replay_to_their_goals() {
    let suite = composed(12);
    let wanted = TaskOptions {
        max_calls: 6,
        max_turns: 3,
        max_turn_calls: 4,
        max_tools_shown: Some(7),
        scenarios: vec!["simple".into(), "medium".into()],
        ..options(150)
    };
    let made = made(&suite, &wanted);
    assert_eq!(made.tasks.len(), 150);
    for task in &made.tasks {
        assert!(
            task.measures.calls <= 6 && task.turns.len() <= 3,
            "{}",
            task.id
        );
        assert_eq!(task.measures.passes, wanted.attempts, "{}", task.id);
        assert!(
            task.servers
                .values()
                .all(|start| start.scenario == "simple" || start.scenario == "medium")
        );
        let called: BTreeSet<&String> = calls(task).map(|call| &call.tool).collect();
        assert!(called.iter().all(|tool| task.tools.contains(tool)));
        assert!(task.tools.len() <= called.len().max(7));
        let mut session = suite.playable().open(&task.servers).unwrap();
        assert_eq!(session.state().unwrap(), task.initial);
        for turn in &task.turns {
            assert!((1..=4).contains(&turn.calls.len()));
            assert_eq!(
                turn.calls.iter().filter(|call| call.requested).count(),
                turn.requests.len()
            );
            for call in &turn.calls {
                let answer = session.call(&call.tool, &call.arguments).unwrap();
                assert_eq!(answer.result, call.result, "{}", task.id);
                assert_eq!(call.origins.len(), call.arguments.len());
            }
            assert_eq!(session.state().unwrap(), turn.goal);
        }
    }
}

#[test]
fn every_origin_is_where_it_says() {
    let suite = composed(12);
    let made = made(&suite, &options(120));
    let mut kinds = BTreeMap::new();
    for task in &made.tasks {
        for (number, turn) in task.turns.iter().enumerate() {
            for (place, call) in turn.calls.iter().enumerate() {
                for (parameter, origin) in &call.origins {
                    let value = &call.arguments[parameter];
                    match origin {
                        Origin::Text { turn } => {
                            assert!(*turn <= number);
                            if let Some(text) = value.as_str() {
                                let said = task.turns[*turn].query.to_lowercase();
                                assert!(said.contains(&text.to_lowercase()), "{}", task.id);
                            }
                            *kinds.entry("text").or_insert(0) += 1;
                        }
                        Origin::Result {
                            turn,
                            call: at,
                            pointer,
                        } => {
                            assert!((*turn, *at) < (number, place));
                            let result = &task.turns[*turn].calls[*at].result;
                            assert_eq!(result.pointer(pointer), Some(value), "{}", task.id);
                            *kinds.entry("result").or_insert(0) += 1;
                        }
                        Origin::Default => *kinds.entry("default").or_insert(0) += 1,
                    }
                }
            }
        }
    }
    assert!(kinds["text"] > 100 && kinds["result"] > 100, "{kinds:?}");
}

#[test]
fn every_lookup_gives_a_later_call_something() {
    let suite = composed(12);
    let made = made(&suite, &options(150));
    let mut lookups = 0;
    for task in &made.tasks {
        let used: BTreeSet<(usize, usize)> = calls(task)
            .flat_map(|call| call.origins.values())
            .filter_map(|origin| match origin {
                Origin::Result { turn, call, .. } => Some((*turn, *call)),
                _ => None,
            })
            .collect();
        for (number, turn) in task.turns.iter().enumerate() {
            for (place, call) in turn.calls.iter().enumerate() {
                let useless = !call.requested && !used.contains(&(number, place));
                // The last result that has a value is its origin, and an earlier one may have it too.
                let gives = || {
                    let later = task.turns[number..].iter().flat_map(|turn| &turn.calls);
                    let mut values = later.flat_map(|call| call.arguments.values());
                    let text = call.result.to_string();
                    values.any(|value| text.contains(&value.to_string()))
                };
                assert!(!useless || gives(), "{}: {}", task.id, call.tool);
                lookups += usize::from(!call.requested);
            }
        }
    }
    assert!(lookups > 100);
}

#[test]
fn training_never_sees_what_is_held_out() {
    let suite = composed(20);
    let wanted = options(300);
    let made = made(&suite, &wanted);
    let maker = Maker::new(&suite, &wanted);
    let trained: BTreeSet<&str> = made
        .tasks
        .iter()
        .filter(|task| task.split == Split::Train)
        .flat_map(|task| task.tools.iter().map(String::as_str))
        .collect();
    let trained_in: BTreeSet<&str> = trained
        .iter()
        .filter_map(|tool| tool.split('-').next())
        .collect();
    let mut unseen = BTreeMap::new();
    for task in &made.tasks {
        *unseen.entry((task.split, task.unseen)).or_insert(0) += 1;
        match task.unseen {
            Unseen::Nothing => assert_eq!(task.split, Split::Train),
            Unseen::Environment => {
                assert!(
                    task.servers
                        .keys()
                        .all(|server| !trained_in.contains(server.as_str()))
                );
            }
            Unseen::Tool => {
                let mut held_out =
                    calls(task).filter(|call| maker.splits.held_out_tool(&call.tool).is_some());
                assert!(held_out.next().is_some(), "{}", task.id);
                assert!(calls(task).any(|call| !trained.contains(call.tool.as_str())));
            }
        }
        assert_eq!(task.split == Split::Train, task.unseen == Unseen::Nothing);
    }
    for split in [Split::Validation, Split::Test] {
        assert!(
            unseen.contains_key(&(split, Unseen::Environment)),
            "{unseen:?}"
        );
    }
    assert!(unseen[&(Split::Train, Unseen::Nothing)] > 150, "{unseen:?}");
}

#[test]
fn all_refinements_occur_and_plain_requests_have_none() {
    let suite = composed(20);
    let refined = made(&suite, &options(200));
    let kinds: BTreeSet<Implicit> = refined
        .tasks
        .iter()
        .flat_map(|task| {
            task.turns
                .iter()
                .flat_map(|turn| turn.implicit.iter().copied())
        })
        .collect();
    assert_eq!(kinds, BTreeSet::from(Implicit::ALL));
    let plain = made(
        &suite,
        &TaskOptions {
            refine: 0.0,
            ..options(100)
        },
    );
    let kinds: BTreeSet<Implicit> = plain
        .tasks
        .iter()
        .flat_map(|task| {
            task.turns
                .iter()
                .flat_map(|turn| turn.implicit.iter().copied())
        })
        .collect();
    assert!(
        !kinds.contains(&Implicit::Combined) && !kinds.contains(&Implicit::Omitted),
        "{kinds:?}"
    );
}

#[test]
fn no_template_repeats_within_one_percent() {
    let suite = examples();
    // Short tasks without greetings in three environments have the fewest words to vary.
    let wanted = TaskOptions {
        terse: true,
        max_calls: 2,
        max_turns: 1,
        ..options(300)
    };
    let made = made(&suite, &wanted);
    let statistics = Statistics::new(&suite, &made);
    assert!(
        statistics.most_frequent_template <= 0.01,
        "{}",
        statistics.most_frequent_template
    );
    assert!(statistics.templates > 100);
}

#[test]
fn random_walks_are_sampled_beside_topology() {
    let suite = examples();
    let walks = TaskOptions {
        sampling: Strategy::RandomWalk,
        ..options(20)
    };
    let made = made(&suite, &walks);
    assert!(made.tasks.iter().all(|task| task.strategy == "random-walk"));
    let invalid = made
        .rejected
        .iter()
        .filter(|one| one.reason.as_str() == "invalid-chain")
        .count();
    assert!(invalid > 20, "{invalid}");
}

#[test]
fn the_same_entity_is_the_last_one_that_was_named_or_made() {
    let suite = composed(40);
    let wanted = TaskOptions {
        refine: 1.0,
        ..options(400)
    };
    let mut references = 0;
    for task in &made(&suite, &wanted).tasks {
        let requests = task.turns.iter().flat_map(|turn| &turn.requests);
        let requested = calls(task).filter(|call| call.requested);
        // The key that each kind of entity was last named or made with.
        let mut last: BTreeMap<&str, &Value> = BTreeMap::new();
        for (request, call) in requests.zip(requested) {
            for (parameter, mention) in &request.arguments {
                if let Mention::Same { entity, .. } = mention {
                    references += 1;
                    let key = Some(&call.arguments[parameter]);
                    assert_eq!(last.get(entity.as_str()).copied(), key, "{}", task.id);
                }
            }
            for (parameter, value) in &call.arguments {
                let input = suite.input(&call.tool, parameter).unwrap();
                if let ValueType::Key(entity) = &input.kind {
                    last.insert(entity, value);
                }
            }
            let outputs = &suite.tool(&call.tool).unwrap().outputs;
            for output in outputs.iter().filter(|_| !suite.is_read_only(&call.tool)) {
                if let (ValueType::Key(entity), Some(key)) =
                    (&output.kind, call.result.get(&output.name))
                {
                    last.insert(entity, key);
                }
            }
        }
    }
    assert!(references > 100, "{references}");
}
