//! The exported Python file behaves as the specification does, call by call.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rlf_random::Key;
use rlf_specification::model::Size;
use rlf_specification::{Format, Program, check, check_text, walk};
use serde_json::{Map, Value, json};

use crate::examples::programs;

/// Plays the calls that it reads as JSON lines, and compares.
const PLAYER: &str = r#"
import importlib.util, json, sys
sys.path.insert(0, sys.argv[1])
spec = importlib.util.spec_from_file_location(sys.argv[3], sys.argv[2])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
def canonical(value):
    return json.dumps(value, sort_keys=True)
calls = 0
for line in sys.stdin:
    episode = json.loads(line)
    module.load_scenario(episode["state"])
    assert canonical(module.save_scenario()) == canonical(episode["state"]), "the state does not load as it is"
    for call in episode["calls"]:
        calls += 1
        try:
            found = {"result": getattr(module, call["name"])(**call["arguments"])}
        except Exception as error:
            found = {"error": str(error)}
        expected = {key: call[key] for key in ("result", "error") if key in call}
        assert canonical(found) == canonical(expected), f"{call}: Python says {found}"
        assert canonical(module.save_scenario()) == canonical(call["state"]), f"{call}: another state"
        for arguments in call["wrong"]:
            try:
                module.mcp.call(call["name"], arguments)
            except Exception:
                continue
            raise AssertionError(f"{call['name']} accepts {arguments}")
print(calls)
"#;

fn episode(program: &Program, size: Size, seed: u64) -> Value {
    let mut state = program.open(size, seed).unwrap();
    let begin = program.state_json(&state);
    let operations = &program.specification().operations;
    let key = Key::from_value(seed).named("python");
    let calls = (0..20u64).map(|number| {
        let key = key.at(number);
        let operation = &operations[key.below(0, operations.len() as u64) as usize];
        let arguments = walk::arguments(program, &state, operation, key.at(1));
        let mut call = json!({ "name": operation.name, "arguments": arguments, "wrong": wrong(operation, &arguments) });
        for wrong in call["wrong"].as_array().unwrap() {
            let before = state.clone();
            assert!(program.call(&mut state, &operation.name, wrong.as_object().unwrap()).is_err(), "{wrong}");
            assert_eq!(before, state);
        }
        match program.call(&mut state, &operation.name, &arguments) {
            Ok(result) => call["result"] = result,
            Err(refusal) => call["error"] = refusal.to_string().into(),
        }
        call["state"] = program.state_json(&state);
        call
    });
    json!({ "calls": calls.collect::<Vec<_>>(), "state": begin })
}

/// Arguments that no state allows: one missing, one of another type, one outside of its limits.
fn wrong(
    operation: &rlf_specification::model::Operation,
    arguments: &Map<String, Value>,
) -> Vec<Value> {
    let mut all = Vec::new();
    for parameter in &operation.parameters {
        let mut with = |value: Option<Value>| {
            let mut changed = arguments.clone();
            match value {
                Some(value) => changed.insert(parameter.name.clone(), value),
                None => changed.shift_remove(&parameter.name),
            };
            all.push(Value::Object(changed));
        };
        with(Some(json!({ "no": "value" })));
        if parameter.required {
            with(None);
        }
        if let Some(minimum) = parameter
            .minimum
            .as_ref()
            .and_then(serde_json::Number::as_f64)
        {
            with(Some(json!(minimum - 1.0)));
        }
        if let Some(maximum) = parameter
            .maximum
            .as_ref()
            .and_then(serde_json::Number::as_f64)
        {
            with(Some(json!(maximum + 1.0)));
        }
    }
    all
}

/// A Python with pydantic: the one in the venv that the interpreter's build makes, or the machine's own.
fn python() -> Command {
    let tools = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/tools");
    let folders = std::fs::read_dir(tools).into_iter().flatten().flatten();
    let venv = folders.filter(|folder| {
        folder
            .file_name()
            .to_string_lossy()
            .starts_with("pydantic-")
    });
    let mut pythons = venv.map(|folder| folder.path().join("bin/python"));
    let found = pythons.find(|python| python.is_file());
    Command::new(found.unwrap_or_else(|| "python3".into()))
}

/// Plays episodes in the exported file, and asserts that Python makes so many calls and says the same.
fn assert_same_in_python(program: &Program, episodes: &[Value], calls: usize) {
    let packages = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../plugins/python/packages");
    let folder = tempfile::tempdir().unwrap();
    let name = &program.specification().name;
    let file = folder.path().join(format!("{name}.py"));
    std::fs::write(&file, program.to_python().unwrap()).unwrap();
    let lines: Vec<String> = episodes.iter().map(ToString::to_string).collect();
    let mut python = python()
        .arg("-c")
        .arg(PLAYER)
        .args([&packages, &file])
        .arg(name)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("python3 is needed to run the exported file");
    // If Python stops before it has read everything, it says why.
    let _ = python
        .stdin
        .take()
        .unwrap()
        .write_all(lines.join("\n").as_bytes());
    let output = python.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {said}");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim(),
        calls.to_string()
    );
}

#[test]
fn the_exported_file_says_and_does_the_same_in_random_walks() {
    for program in programs() {
        let mut episodes = Vec::new();
        for size in Size::ALL {
            episodes.extend((0..25).map(|seed| episode(&program, size, seed)));
        }
        assert_same_in_python(&program, &episodes, 2000);
    }
}

/// A specification with an operation that adds an entity under a key of the caller, and one that adds it under the next
/// key, for each of these entities.
fn adding(name: &str, entities: &[&str]) -> Program {
    let head = format!(
        "name = \"{name}\"\ndescription = \"Things\"\nscenarios = [{{ size = \"simple\", counts = {{ {} = 1 }} }}]\n",
        entities[0]
    );
    let parts = entities.iter().map(|entity| {
        format!(
            r#"
[[entities]]
name = "{entity}"
collection = "all_{entity}"
description = "A thing"
key = {{ name = "key", prefix = "R" }}
[[operations]]
name = "named_{entity}"
description = "Add it under this label"
parameters = [{{ name = "label", type = "text", description = "Its label" }}]
preconditions = [{{ require = "label.size() < 20000", error = "{{label}}{{label}} is too long" }}]
effects = [{{ insert = {{ entity = "{entity}", key = "label", values = {{}} }} }}]
result = {{ fields = [{{ name = "size", type = "integer", value = "all_{entity}.size()" }}] }}
[[operations]]
name = "next_one_{entity}"
description = "Add it"
effects = [{{ insert = {{ entity = "{entity}", name = "made", values = {{}} }} }}]
result = {{ fields = [{{ name = "made", type = {{ reference = "{entity}" }}, value = "made" }}] }}
"#
        )
    });
    let text = head + &parts.collect::<String>();
    let checked = check_text(&text, Format::Toml);
    let findings: Vec<String> = checked.findings.iter().map(ToString::to_string).collect();
    checked
        .program
        .unwrap_or_else(|| panic!("{}", findings.join("\n")))
}

/// The episode of these calls, and the results or messages of Rust.
fn calls(program: &Program, begin: &Value, calls: &[(&str, Value)]) -> (Value, Vec<Value>) {
    let mut state = program.load(begin).unwrap();
    let begin = program.state_json(&state);
    let mut ended = Vec::new();
    let mut played = Vec::new();
    for (name, arguments) in calls {
        let mut call = json!({ "name": name, "arguments": arguments, "wrong": [] });
        let (kind, said) = match program.call(&mut state, name, arguments.as_object().unwrap()) {
            Ok(result) => ("result", result),
            Err(refusal) => ("error", refusal.to_string().into()),
        };
        ended.push(said.clone());
        call[kind] = said;
        call["state"] = program.state_json(&state);
        assert_eq!(program.load(&call["state"]).as_ref(), Ok(&state));
        played.push(call);
    }
    (json!({ "calls": played, "state": begin }), ended)
}

#[test]
fn generated_keys_skip_keys_that_exist_in_both_languages() {
    let program = adding("Rooms", &["room"]);
    let named = |label: &str| ("named_room", json!({ "label": label }));
    let next = || ("next_one_room", json!({}));
    let begin = json!({ "all_room": { "R1": {} } });
    let (episode, ended) = calls(
        &program,
        &begin,
        &[
            named("R3"),
            next(),
            next(),
            named("R+9"),
            named("R\u{b2}"),
            named("R07"),
            named("R9223372036854775807"),
            named("R99999999999999999999"),
            named("R4"),
            next(),
            // Messages end where texts end, also inside of a character.
            named(&"\u{20ac}".repeat(20_001)),
            named(""),
            named("R\u{200b}"),
        ],
    );
    let made = |at: usize| ended[at]["made"].as_str().unwrap();
    assert_eq!((made(1), made(2), made(9)), ("R2", "R4", "R5"));
    assert!(
        ended[8]
            .as_str()
            .unwrap()
            .contains("there is a room R4 already")
    );
    assert_eq!(ended[10].as_str().unwrap().len(), 65_535);
    for refused in &ended[11..] {
        assert!(refused.as_str().unwrap().contains("a key cannot be empty"));
    }
    // Without a number, the next key is behind all numbers of at most 18 digits.
    let mut without = episode["calls"][9]["state"].clone();
    without.as_object_mut().unwrap().shift_remove("next_room");
    let (more, ended) = calls(&program, &without, &[next()]);
    assert_eq!(ended[0]["made"], "R8");
    assert_same_in_python(&program, &[episode, more], 14);
}

#[test]
fn no_name_of_an_entity_collides_with_another_class_of_the_file() {
    let entities = ["exception", "a_b", "a__b", "value_error", "base_model"];
    let program = adding("ABRecord", &entities);
    let names: Vec<String> = entities
        .iter()
        .map(|entity| format!("next_one_{entity}"))
        .collect();
    let all: Vec<(&str, Value)> = names
        .iter()
        .map(|name| (name.as_str(), json!({})))
        .collect();
    let (episode, _) = calls(&program, &json!({}), &all);
    assert_same_in_python(&program, &[episode], entities.len());
    let text = program.to_python().unwrap();
    for class in ["ExceptionRecord", "ABRecord2", "ABRecord3"] {
        assert!(
            text.contains(&format!("class {class}(BaseModel)")),
            "{class}"
        );
    }
}

#[test]
fn a_state_without_its_number_loads_alike_in_both_languages() {
    let program = adding("Rooms", &["room"]);
    let begin = json!({ "all_room": { "R5": {}, "R+9": {}, "R\u{b2}": {} } });
    let state = program.state_json(&program.load(&begin).unwrap());
    assert_eq!(state["next_room"], 6);
    let text = program.to_python().unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("Rooms.py"), text).unwrap();
    let packages = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../plugins/python/packages");
    let script = "import json, sys; sys.path[:0] = sys.argv[1:3]; import Rooms; \
                  Rooms.load_scenario(json.loads(sys.argv[3])); print(json.dumps(Rooms.save_scenario()))";
    let given = json!({ "all_room": { "R5": { "key": "R5" }, "R+9": { "key": "R+9" }, "R\u{b2}": { "key": "R\u{b2}" } } });
    let output = python()
        .args(["-c", script])
        .args([packages.as_path(), folder.path()])
        .arg(given.to_string())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let loaded: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(loaded, state);
}

#[test]
fn a_scenario_that_cannot_be_generated_is_not_exported() {
    let mut specification = programs()[0].specification().clone();
    specification
        .vocabularies
        .get_mut("patients")
        .unwrap()
        .truncate(1);
    let program = check(&specification).program.unwrap();
    let error = program.to_python().unwrap_err();
    assert!(
        error
            .to_string()
            .contains("unique value of patient.full_name"),
        "{error}"
    );
}
