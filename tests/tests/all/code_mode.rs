//! Programs of a model call tools: `from tools import NAME`, if the operator opens them to programs.

use std::fs;

use rlf_tests::{Host, Service};
use serde_json::{Value, json};

/// Runs a program with the interpreter's tool, and returns how the call ended.
fn run(config: &str, code: &str) -> Value {
    let host = Host::new();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("config.toml");
    fs::write(&file, config).expect("can be written");
    let file = file.to_str().expect("a plain name");
    let arguments = json!({ "code": code }).to_string();
    let call = [
        "call", "python", "python", &arguments, "--config", file, "--json",
    ];
    host.plugin(call).json()
}

fn printed(outcome: &Value) -> &str {
    let text = outcome["observation"]["content"][0]["text"].as_str();
    text.unwrap_or_else(|| panic!("nothing printed: {outcome}"))
}

const OPEN: &str = "[plugins.python]\nprograms.tools = [\"calculate\"]\n";

#[test]
fn a_program_calls_open_tools_as_functions_and_each_call_is_recorded() {
    let code = "\
import tools
from tools import calculate
print(tools.__all__, calculate('6*7'), calculate(expression='1+1'))
for wrong in (lambda: calculate(5), lambda: calculate('1', '2'), lambda: calculate('1', expression='2')):
    try:
        wrong()
    except (tools.ToolError, TypeError) as error:
        print(type(error).__name__, error)
print(calculate.__doc__.splitlines()[0], hasattr(tools, '__path__'))
print(hasattr(tools, 'search'))
try:
    tools.search
except AttributeError as error:
    print(error)
";
    let outcome = run(OPEN, code);
    assert_eq!(
        printed(&outcome),
        "['calculate'] 42 2\n\
         ToolError error: invalid arguments: `expression` must be a string, got 5\n\
         TypeError calculate() takes 1 positional arguments but 2 were given\n\
         TypeError calculate() got multiple values for argument 'expression'\n\
         calculate(expression) False\n\
         False\n\
         there is no tool 'search' here; there are: calculate"
    );
    let failed = run(OPEN, "from tools import search").to_string();
    assert!(failed.contains("The tools are: calculate."), "{failed}");
    let nested = outcome["nested"].as_array().expect("calls are recorded");
    let ends: Vec<_> = nested
        .iter()
        .map(|call| {
            let outcome = &call["outcome"];
            (
                &call["arguments"]["expression"],
                &outcome["call-id"],
                &outcome["ended"],
            )
        })
        .collect();
    assert_eq!(
        ends,
        [
            (&json!("6*7"), &json!("command-line/0/0/0"), &json!("ok")),
            (&json!("1+1"), &json!("command-line/0/0/1"), &json!("ok")),
            (
                &json!(5),
                &json!("command-line/0/0/2"),
                &json!("invalid-arguments")
            ),
        ]
    );
}

#[test]
fn nothing_but_open_tools_can_be_called_and_no_more_often_than_allowed() {
    let code = "\
import sys
ask = sys.modules['rlf_driver.run'].host().ask
print(ask('tools.invoke', '[{\"name\": \"python\", \"arguments\": \"{}\"}]'))
print(ask('execute.run', '[]'))
";
    let outcome = run(OPEN, code);
    let mut lines = printed(&outcome).lines();
    assert!(
        lines
            .next()
            .expect("a line")
            .contains("no tool \\\"python\\\" is open"),
        "{outcome}"
    );
    assert!(
        lines
            .next()
            .expect("a line")
            .contains("`execute` is not open"),
        "{outcome}"
    );

    let limited = format!("{OPEN}limits.nested_calls = 2\n");
    let code = "from tools import calculate\nfor n in range(3): print(calculate(str(n)))\n";
    let outcome = run(&limited, code);
    let said = printed(&outcome);
    assert!(
        said.contains("ToolError: exhausted: a call makes 2 others at the most (nested_calls)"),
        "{said}"
    );
    assert_eq!(
        outcome["nested"].as_array().map(Vec::len),
        Some(2),
        "{outcome}"
    );

    let closed = run("", "from tools import calculate\n");
    assert!(
        printed(&closed).contains("ModuleNotFoundError: No module named 'tools'"),
        "{closed}"
    );
    assert_eq!(closed["nested"], Value::Null);
}

#[test]
fn programs_that_nobody_called_as_a_tool_have_no_tools() {
    let service = Service::start(&Host::new(), OPEN, &[]);
    let request = json!({"language": "python", "code": "import tools"});
    let answer = service.posted("/run_code", &request);
    let stderr = answer["run_result"]["stderr"].as_str().expect("is text");
    assert!(stderr.contains("No module named 'tools'"), "{answer}");
    let call =
        json!({"arguments": {"code": "from tools import calculate; print(calculate('2*3'))"}});
    let answer = service.posted("/v1/tools/python", &call);
    assert_eq!(printed(&answer), "6");
    assert_eq!(answer["nested"][0]["outcome"]["name"], "calculate");
}

#[test]
fn grants_that_make_no_sense_are_refused() {
    let host = Host::new();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("config.toml");
    let text = "[plugins.javascript]\nprograms.tools = [\"calculate\"]\n";
    fs::write(&file, text).expect("can be written");
    let file = file.to_str().expect("a plain name");
    let call = [
        "call",
        "javascript",
        "javascript",
        "{\"code\": \"1\"}",
        "--config",
        file,
    ];
    host.plugin(call)
        .refused_with(&["`programs.tools` are for programs in Python"]);
    let call = [
        "call",
        "python",
        "python",
        "{\"code\": \"1\"}",
        "--config",
        file,
    ];
    fs::write(file, OPEN.replace("calculate", "python")).expect("can be written");
    host.plugin(call).refused_with(&["`python` runs programs"]);
    fs::write(file, OPEN.replace("calculate", "class")).expect("can be written");
    host.plugin(call)
        .refused_with(&["no function in Python can be called `class`"]);
    fs::write(file, OPEN.replace("calculate", "calculat")).expect("can be written");
    let call = [
        "call",
        "python",
        "python",
        "{\"code\": \"1\"}",
        "--config",
        file,
    ];
    host.plugin(call)
        .refused_with(&["there is no tool `calculat`", "did you mean `calculate`?"]);
}
