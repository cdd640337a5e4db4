//! A specification that the checks call sound can be played: nothing panics, and every state can be loaded again.

use std::cell::RefCell;
use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::{TestCaseError, TestRunner};
use rlf_random::Key;
use rlf_specification::model::Size;
use rlf_specification::{
    Checked, Finding, Format, Kind, Program, Specification, check, check_text, walk,
};
use serde_json::{Value, json};

use crate::examples::programs;

/// Two doors, with some text instead of the fields and the operation's conditions and effects.
fn doors(fields: &str, rest: &str) -> Checked {
    let text = format!(
        r#"
name = "Doors"
description = "A house with doors"
scenarios = [{{ size = "simple", counts = {{ room = 2, door = 2 }} }}]
[[entities]]
name = "room"
collection = "rooms"
description = "A room"
key = {{ name = "room_id", prefix = "R" }}
[[entities]]
name = "door"
collection = "doors"
description = "A door"
key = {{ name = "door_id", prefix = "D" }}
fields = [{fields}]
[[operations]]
name = "change"
description = "Change a door"
parameters = [{{ name = "k", type = {{ reference = "door" }}, from_user = true, description = "The door" }}]
{rest}
result = {{ fields = [{{ name = "k", type = {{ reference = "door" }}, value = "k" }}] }}
"#
    );
    check_text(&text, Format::Toml)
}

#[test]
fn two_fields_can_have_the_same_generator() {
    let count = |name: &str| {
        format!(
            "{{ name = \"{name}\", type = \"integer\", generate = {{ expression = \"rooms.filter(r, true).size()\" }} }}"
        )
    };
    let fields = format!(
        "{}, {{ name = \"label\", type = \"text\", generate = {{ constant = \"x\" }} }}, {}",
        count("one"),
        count("other")
    );
    let checked = doors(
        &fields,
        "effects = [{ delete = { entity = \"door\", key = \"k\" } }]",
    );
    let program = checked
        .program
        .unwrap_or_else(|| panic!("{:?}", checked.findings));
    let state = program.open(Size::Simple, 0).unwrap();
    let door = json!({ "door_id": "D1", "label": "x", "one": 2, "other": 2 });
    assert_eq!(program.state_json(&state)["doors"]["D1"], door);
}

#[test]
fn an_effect_ends_what_is_known_about_the_state() {
    let fields = "{ name = \"due\", type = \"text\", optional = true }, { name = \"made\", type = \"text\", generate = { constant = \"x\" } }";
    let require = "k in doors && doors[k].due != null";
    let found = |effects: &str| {
        let checked = doors(
            fields,
            &format!(
                "bindings = [{{ find = {{ name = \"door\", entity = \"door\", key = \"k\", error = \"no\" }} }}]\n\
                 preconditions = [{{ require = \"{require} && door.due != null\", error = \"no\" }}]\neffects = [{effects}]"
            ),
        );
        let errors = checked.findings.into_iter().filter(Finding::is_error);
        errors.map(|one| (one.kind, one.place)).collect::<Vec<_>>()
    };
    let set = |rest: &str| format!("{{ set = {{ entity = \"door\", {rest} }} }}");
    let forget = set("key = \"k\", values = { due = \"null\" }");
    let copy = |of: &str| set(&format!("key = \"k\", values = {{ made = \"{of}\" }}"));
    assert_eq!(found(&copy("doors[k].due")), []);
    // The door as it was found does not change.
    assert_eq!(found(&format!("{forget}, {}", copy("door.due"))), []);
    assert_eq!(
        found(&format!("{forget}, {}", copy("doors[k].due"))),
        [(
            Kind::TypeMismatch,
            "/operations/0/effects/1/set/values/made".to_owned()
        )]
    );
    let each = set(
        "key = \"d\", each = { name = \"d\", of = \"doors\" }, values = { due = \"null\", made = \"doors[k].due\" }",
    );
    assert_eq!(
        found(&each),
        [(
            Kind::TypeMismatch,
            "/operations/0/effects/0/set/values/made".to_owned()
        )]
    );
}

/// The places of a specification, as JSON pointers.
#[derive(Default)]
struct Places {
    expressions: Vec<String>,
    effects: Vec<String>,
    operations_effects: Vec<String>,
    fields: Vec<String>,
}

impl Places {
    fn of(specification: &Value) -> Self {
        let mut places = Self::default();
        places.look(specification, "", "");
        places
    }

    fn look(&mut self, value: &Value, place: &str, parent: &str) {
        match value {
            Value::Object(fields) => {
                if fields.contains_key("type") && !place.contains("/operations") {
                    self.fields.push(place.to_owned());
                }
                for (name, inner) in fields {
                    let is_expression = parent == "values"
                        || ["require", "value", "of", "when", "key", "expression"]
                            .contains(&name.as_str());
                    let place = format!("{place}/{name}");
                    if is_expression && inner.is_string() {
                        self.expressions.push(place);
                    } else {
                        self.look(inner, &place, name);
                    }
                }
            }
            Value::Array(items) => {
                if parent == "effects" {
                    self.operations_effects.push(place.to_owned());
                }
                for (index, item) in items.iter().enumerate() {
                    let place = format!("{place}/{index}");
                    if parent == "effects" {
                        self.effects.push(place.clone());
                    }
                    self.look(item, &place, "");
                }
            }
            _ => {}
        }
    }
}

/// Texts in expressions, and what they become.
const TURNS: [(&str, &str); 16] = [
    ("==", "!="),
    ("!=", "=="),
    ("<=", ">"),
    (" < ", " <= "),
    (" > ", " >= "),
    (" + ", " - "),
    (" - ", " + "),
    (" - ", " / "),
    ("&&", "||"),
    ("||", "&&"),
    ("!", ""),
    ("true", "false"),
    ("0", "1"),
    ("1", "9223372036854775807"),
    (".size()", ".map(x, [x, x]).size()"),
    (".filter(", ".map("),
];

/// Makes one change. Returns its kind.
fn change(
    specification: &mut Value,
    (kind, at, from): (usize, Index, Index),
) -> Option<&'static str> {
    let places = Places::of(specification);
    let chosen = |index: Index, places: &[String]| {
        (!places.is_empty()).then(|| places[index.index(places.len())].clone())
    };
    let at_expression = at.index(places.expressions.len());
    // Near expressions see the same names.
    let near = (at_expression + from.index(12)).saturating_sub(6);
    let near = places.expressions[near.min(places.expressions.len() - 1)].clone();
    let expression = places.expressions[at_expression].clone();
    let expression_text = specification.pointer(&expression)?.as_str()?.to_owned();
    let near_text = specification.pointer(&near)?.clone();
    match kind {
        0 => {
            *specification.pointer_mut(&expression)? = near_text;
            Some("expression copied")
        }
        1 => {
            let turns: Vec<_> = TURNS
                .iter()
                .filter(|(text, _)| expression_text.contains(text))
                .collect();
            let (text, to) = turns.get(from.index(turns.len().max(1)))?;
            let turned = expression_text.replacen(text, to, 1);
            *specification.pointer_mut(&expression)? = turned.into();
            Some("expression turned")
        }
        2 => {
            let wrapped = [
                "null".to_owned(),
                format!("[{expression_text}, {expression_text}][1]"),
                format!("[{expression_text}].map(each_one, each_one)[0]"),
                format!("{expression_text} == null ? {expression_text} : {expression_text}"),
            ];
            let wrapped = wrapped[from.index(wrapped.len())].clone();
            *specification.pointer_mut(&expression)? = wrapped.into();
            Some("expression wrapped")
        }
        3 => {
            let effect = chosen(at, &places.effects)?;
            let (list, number) = effect.rsplit_once('/')?;
            let list = specification.pointer_mut(list)?.as_array_mut()?;
            list.remove(number.parse().ok()?);
            Some("effect dropped")
        }
        4 => {
            let copied = specification
                .pointer(&chosen(from, &places.effects)?)?
                .clone();
            let list = specification.pointer_mut(&chosen(at, &places.operations_effects)?)?;
            let list = list.as_array_mut()?;
            list.insert(from.index(list.len() + 1), copied);
            Some("effect copied")
        }
        5 => {
            // A key of the model's choice, or a generated one.
            let effect = specification.pointer_mut(&chosen(at, &places.effects)?)?;
            let insert = effect.get_mut("insert")?.as_object_mut()?;
            if insert.shift_remove("key").is_none() {
                let key = ["string(1 + 2)", "'L' + string(3)", "'L03'"][from.index(3)];
                insert.insert("key".to_owned(), key.into());
            }
            Some("key changed")
        }
        _ => {
            let field = chosen(at, &places.fields)?;
            let other = chosen(from, &places.fields)?;
            let generator = match kind {
                6 => specification.pointer(&other)?.get("generate").cloned(),
                _ => Some(json!({ "expression": near_text })),
            };
            let field = specification.pointer_mut(&field)?.as_object_mut()?;
            match generator {
                Some(generator) => field.insert("generate".to_owned(), generator),
                None => field.shift_remove("generate"),
            };
            Some("generator changed")
        }
    }
}

/// Plays a few calls from every scenario. Every state must load again, and be the same.
fn play(program: &Program, seed: u64) -> Result<(), TestCaseError> {
    let operations = &program.specification().operations;
    for size in Size::ALL {
        // A changed generator may contradict a rule.
        let Ok(mut state) = program.open(size, seed) else {
            continue;
        };
        let key = Key::from_value(seed).named(size.name());
        for call in 0..16u64 {
            let loaded = program.load(&program.state_json(&state));
            prop_assert_eq!(loaded.as_ref(), Ok(&state));
            let key = key.at(call);
            let operation = &operations[key.below(0, operations.len() as u64) as usize];
            let arguments = walk::arguments(program, &state, operation, key.at(1));
            let _ = program.call(&mut state, &operation.name, &arguments);
        }
    }
    Ok(())
}

#[test]
fn changed_specifications_that_are_sound_can_be_played_and_their_states_loaded() {
    let originals: Vec<Value> = programs()
        .iter()
        .map(|program| serde_json::to_value(program.specification()).unwrap())
        .collect();
    let kept = RefCell::new(BTreeMap::<&str, u32>::new());
    let changes = prop::collection::vec((0usize..8, any::<Index>(), any::<Index>()), 1..12);
    let config = ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(CASES)
    };
    let outcome = TestRunner::new(config).run(
        &(0..originals.len(), changes, any::<u64>()),
        |(which, changes, seed)| {
            let mut specification = originals[which].clone();
            let mut sound = None;
            for one in changes {
                let mut changed = specification.clone();
                let Some(kind) = change(&mut changed, one) else {
                    continue;
                };
                let Ok(read) = serde_json::from_value::<Specification>(changed.clone()) else {
                    continue;
                };
                if changed != specification
                    && let Some(program) = check(&read).program
                {
                    *kept.borrow_mut().entry(kind).or_default() += 1;
                    specification = changed;
                    sound = Some(program);
                }
            }
            sound.map_or(Ok(()), |program| play(&program, seed))
        },
    );
    let kept = kept.into_inner();
    println!("{kept:?}");
    outcome.unwrap();
    assert!(kept.values().sum::<u32>() >= CASES, "{kept:?}");
}

/// Changed specifications.
const CASES: u32 = 60;
