//! The exported Python file behaves as the specification does, call by call.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use rlf_random::Key;
use rlf_specification::model::Size;
use rlf_specification::{Program, walk};
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

#[test]
fn the_exported_file_says_and_does_the_same_in_random_walks() {
    let packages =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../plugins/python/environments");
    let folder = tempfile::tempdir().unwrap();
    for program in programs() {
        let name = &program.specification().name;
        let file = folder.path().join(format!("{name}.py"));
        std::fs::write(&file, program.to_python()).unwrap();
        let mut lines = String::new();
        for size in Size::ALL {
            for seed in 0..25 {
                lines += &(episode(&program, size, seed).to_string() + "\n");
            }
        }
        let mut python = Command::new("python3")
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
        let _ = python.stdin.take().unwrap().write_all(lines.as_bytes());
        let output = python.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {said}");
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "2000");
    }
}
