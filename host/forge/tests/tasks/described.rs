//! Descriptions of entities that a lookup shows only in part: each fits one entity of all that there are.

use rlf_forge::tasks::request::{Fact, Mention};
use rlf_forge::tasks::{Reason, Suite, TaskOptions, TaskRecord};
use serde_json::Value;

use super::{checked, made, options, program};

const LOANS: &str = r#"
name = "Volumes"
description = "A library that lends volumes."
scenarios = [{ size = "simple", counts = { loan = 6 } }]
values = [{ name = "today", type = "date", generate = { constant = "2024-06-15" } }]

[[entities]]
name = "loan"
collection = "loans"
description = "A volume that is out"
key = { name = "loan_id", prefix = "LN-" }
fields = [
    { name = "due", type = "date", unique = true, generate = { dates = { from = "2024-05-01", to = "2024-07-30" } } },
]

[[operations]]
name = "list_overdue_loans"
description = "List the loans that are overdue."
read_only = true
[operations.result]
each = { name = "l", of = "loans.filter(l, loans[l].due < today)" }
fields = [
    { name = "loan_id", type = { reference = "loan" }, value = "l" },
    { name = "due", type = "date", value = "loans[l].due" },
]

[[operations]]
name = "take_back"
description = "Take back a volume that was lent."
parameters = [{ name = "loan_id", type = { reference = "loan" }, description = "The loan" }]
bindings = [{ find = { name = "loan", entity = "loan", key = "loan_id", error = "no loan {loan_id}" } }]
effects = [{ delete = { entity = "loan", key = "loan_id" } }]
postconditions = [{ require = "!(loan_id in loans)" }]
result = { fields = [{ name = "left", type = "integer", value = "loans.size()" }] }
"#;

const ROOMS: &str = r#"
name = "Hotel"
description = "A hotel with rooms."
scenarios = [{ size = "simple", counts = { room = 8 } }]

[[entities]]
name = "room"
collection = "rooms"
description = "A room"
key = { name = "room_id", prefix = "R-" }
fields = [
    { name = "category", type = { enumeration = ["single", "double", "suite"] } },
    { name = "price", type = "integer", unique = true, generate = { range = { minimum = 40, maximum = 900 } } },
    { name = "free", type = "boolean", generate = { choice = [true, false] } },
]

[[operations]]
name = "list_free_rooms"
description = "List the rooms that are free."
read_only = true
[operations.result]
each = { name = "r", of = "rooms.filter(r, rooms[r].free)" }
fields = [
    { name = "room_id", type = { reference = "room" }, value = "r" },
    { name = "category", type = { enumeration = ["single", "double", "suite"] }, value = "rooms[r].category" },
    { name = "price", type = "integer", value = "rooms[r].price" },
]

[[operations]]
name = "reserve_room"
description = "Reserve a room."
parameters = [{ name = "room_id", type = { reference = "room" }, description = "The room" }]
bindings = [{ find = { name = "room", entity = "room", key = "room_id", error = "no room {room_id}" } }]
preconditions = [{ require = "room.free", error = "it is taken" }]
effects = [{ set = { entity = "room", key = "room_id", values = { free = "false" } } }]
postconditions = [{ require = "!rooms[room_id].free" }]
result = { fields = [{ name = "reserved", type = "boolean", value = "true" }] }
"#;

fn suite(text: &str) -> Suite {
    Suite::from_programs(vec![(program(text), "other".into())]).unwrap()
}

/// Tasks of one turn, each with one request about an entity that is described.
fn tasks(suite: &Suite) -> Vec<TaskRecord> {
    let wanted = TaskOptions {
        max_turns: 1,
        max_calls: 2,
        ask: 0.0,
        refine: 1.0,
        ..options(30)
    };
    let tasks = made(suite, &wanted).tasks;
    for task in &tasks {
        assert!(checked(suite, task).is_ok(), "{}", task.id);
    }
    tasks
}

/// The key that a task means, and the values of a field: those that its lookup shows, and those of the state.
fn values(task: &TaskRecord, collection: &str, field: &str) -> (Value, Vec<Value>, Vec<Value>) {
    let [lookup, gold] = &task.turns[0].calls[..] else {
        panic!("{}: {:#?}", task.id, task.turns);
    };
    let key = gold.arguments.values().next().unwrap();
    let of = |items: Vec<&Value>| items.iter().map(|item| item[field].clone()).collect();
    let shown = lookup.result.as_array().unwrap().iter();
    let state = task.initial.values().next().unwrap();
    let all = &state[collection];
    let value = all[key.as_str().unwrap()][field].clone();
    let all = all.as_object().unwrap().values();
    (value, of(shown.collect()), of(all.collect()))
}

/// The task with another description of its entity, and words that say a value of it.
fn described(task: &TaskRecord, fact: &Fact, words: &str) -> TaskRecord {
    let mut task = task.clone();
    let turn = &mut task.turns[0];
    turn.query.push_str(words);
    for mention in turn.requests[0].arguments.values_mut() {
        if let Mention::Described(description) = mention {
            description.facts = vec![fact.clone()];
        }
    }
    task
}

/// A key by which texts and whole numbers are ordered.
fn order(value: &Value) -> (Option<i64>, Option<String>) {
    (value.as_i64(), value.as_str().map(str::to_owned))
}

/// The largest of some values that are texts or whole numbers.
fn largest(values: &[Value]) -> &Value {
    values.iter().max_by_key(|value| order(value)).unwrap()
}

#[test]
fn the_latest_of_what_a_lookup_shows_is_not_the_latest_of_all() {
    let suite = suite(LOANS);
    let latest = Fact::Extreme {
        field: "due".into(),
        highest: true,
    };
    let (mut ambiguous, mut clear) = (0, 0);
    for task in tasks(&suite) {
        let (value, shown, all) = values(&task, "loans", "due");
        if value != *largest(&shown) {
            continue;
        }
        // The solver is shown no later one.
        let task = described(&task, &latest, " It is the loan with the latest due date.");
        if value == *largest(&all) {
            assert!(checked(&suite, &task).is_ok());
            clear += 1;
        } else {
            let rejection = checked(&suite, &task).unwrap_err();
            assert_eq!(rejection.reason, Reason::Ambiguous, "{rejection}");
            ambiguous += 1;
        }
    }
    assert!(ambiguous > 0, "{ambiguous}, {clear}");
}

#[test]
fn a_category_that_one_shown_entity_has_can_be_that_of_others() {
    let suite = suite(ROOMS);
    let mut ambiguous = 0;
    for task in tasks(&suite) {
        let (value, shown, all) = values(&task, "rooms", "category");
        let count = |values: &[Value]| values.iter().filter(|one| **one == value).count();
        if count(&shown) > 1 {
            continue;
        }
        let fact = Fact::Is {
            field: "category".into(),
            value: value.clone(),
        };
        let words = format!(" Its category is {}.", value.as_str().unwrap());
        let outcome = checked(&suite, &described(&task, &fact, &words));
        if count(&all) == 1 {
            assert!(outcome.is_ok());
        } else {
            assert_eq!(outcome.unwrap_err().reason, Reason::Ambiguous);
            ambiguous += 1;
        }
    }
    assert!(ambiguous > 0);
}

#[test]
fn what_is_written_fits_one_entity_of_all() {
    let mut extremes = 0;
    for (text, collection) in [(LOANS, "loans"), (ROOMS, "rooms")] {
        let suite = suite(text);
        for task in tasks(&suite) {
            let mention = task.turns[0].requests[0].arguments.values().next();
            let Some(Mention::Described(description)) = mention else {
                panic!("{}: {mention:?}", task.id);
            };
            let state = &task.initial.values().next().unwrap()[collection];
            let rows = state.as_object().unwrap().values();
            let fits = |row: &&Value| {
                description.facts.iter().all(|fact| match fact {
                    Fact::Is { field, value } => row[field] == *value,
                    _ => true,
                })
            };
            let fit: Vec<&Value> = rows.filter(fits).collect();
            let extreme = description.facts.iter().find_map(|fact| match fact {
                Fact::Extreme { field, highest } => Some((field, *highest)),
                _ => None,
            });
            let Some((field, highest)) = extreme else {
                assert_eq!(fit.len(), 1, "{}: {description:?}", task.id);
                continue;
            };
            extremes += 1;
            let gold = task.turns[0].calls[1].arguments.values().next().unwrap();
            let meant = &state[gold.as_str().unwrap()][field];
            let all: Vec<Value> = fit.iter().map(|row| row[field].clone()).collect();
            if highest {
                assert_eq!(meant, largest(&all));
            } else {
                assert_eq!(all.iter().map(order).min(), Some(order(meant)));
            }
        }
    }
    assert!(extremes > 0, "{extremes}");
}
