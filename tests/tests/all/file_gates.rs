//! Plugins in Python and JavaScript reach other tools, interpreters and servers through gates, as components do.

use std::fs;

use rlf_tests::{Ended, PluginFolder};
use serde_json::{Value, json};

use crate::http_gate::echo;

const PYTHON: &str = r#"
import rlf


@rlf.tool
def compute(expressions: list[str]) -> list:
    calls = [("calculate", {"expression": expression}) for expression in expressions]
    return [[one.ended, one.text] if isinstance(one, rlf.ToolResult) else one.kind for one in rlf.call_tools(calls)]


@rlf.tool
def other() -> str:
    return rlf.call_tool("lookup", {}).text


@rlf.tool
def names() -> list[str]:
    return [tool["name"] for tool in rlf.list_tools()]


@rlf.tool
def run(code: str) -> dict:
    report = rlf.run_program(code, stdin="abc", files={"in.txt": b"\xffx"}, fetch=["out.txt"], time_ms=1_000)
    files = {path: list(data) for path, data in report.files.items()}
    return {"ended": report.ended, "outcome": report.outcome, "stdout": report.stdout, "files": files}


@rlf.tool
def get(url: str) -> str:
    return rlf.fetch(url, headers={"authorization": rlf.Secret("key"), "x-a": "b"}).text
"#;

const JAVASCRIPT: &str = r"
import { callTool, callTools, fetch, GateError, listTools, runProgram } from 'rlf';

/** @tool
 * @param {string[]} expressions */
export function compute(expressions) {
  const calls = expressions.map((expression) => ['calculate', { expression }]);
  return callTools(calls).map((one) => (one instanceof GateError ? one.kind : [one.ended, one.text]));
}

/** @tool */
export function other() {
  return callTool('lookup').text;
}

/** @tool */
export function names() {
  return listTools().map(({ name }) => name);
}

/** @tool
 * @param {string} code */
export function run(code) {
  const files = { 'in.txt': new Uint8Array([255, 120]) };
  const report = runProgram(code, { stdin: 'abc', files, fetch: ['out.txt'], timeMs: 1000 });
  const left = Object.entries(report.files).map(([path, data]) => [path, [...data]]);
  return { ended: report.ended, outcome: report.outcome, stdout: report.stdout, files: Object.fromEntries(left) };
}

/** @tool
 * @param {string} url */
export function get(url) {
  return fetch(url, { headers: { authorization: { secret: 'key' }, 'x-a': 'b' } }).text();
}
";

const RUNS: &str = r#"
import rlf


@rlf.reward
def runs(trajectory: rlf.Trajectory) -> float:
    language = "ruby" if trajectory.answer == "ruby" else "python"
    return float(rlf.run_program(trajectory.answer, language).completed)
"#;

/// The plugin `reach` in both languages, with the same grants.
fn folders(grants: &str) -> [PluginFolder; 2] {
    [("reach/reach.py", PYTHON), ("reach/reach.js", JAVASCRIPT)].map(|source| {
        let manifest = (
            "reach/plugin.toml",
            "gates = ['tools', 'execute', 'http']\n",
        );
        let plugins = PluginFolder::new(&[source, manifest]);
        plugins.write("key", "open-sesame-42\n");
        let config = plugins.write("grants.toml", &format!("[plugins.reach]\n{grants}"));
        let config = config.to_str().expect("a plain name");
        let grant = [
            "grant", "reach", "--gate", "tools", "--gate", "execute", "--gate", "http",
        ];
        plugins
            .plugin(&[&grant[..], &["--config", config]].concat())
            .succeeded();
        plugins
    })
}

const GRANTS: &str = "tools = ['calculate']\nexecute = ['python']\nhttp.hosts.localhost = {}\n";

/// A call with the grants.
fn call(plugins: &PluginFolder, tool: &str, arguments: &Value) -> Ended {
    let config = plugins.path().join("grants.toml");
    let (config, arguments) = (
        config.to_str().expect("a plain name"),
        arguments.to_string(),
    );
    plugins.plugin(&[
        "call", "reach", tool, &arguments, "--json", "--config", config,
    ])
}

/// What a model reads of a call.
fn shown(plugins: &PluginFolder, tool: &str, arguments: &Value) -> Value {
    let outcome = call(plugins, tool, arguments).json();
    let content = &outcome["observation"]["content"][0];
    match &content["structured"] {
        Value::Null => content["text"].clone(),
        structured => structured.clone(),
    }
}

#[test]
fn a_file_calls_the_tools_that_are_open_to_it_and_no_others() {
    for plugins in folders(GRANTS) {
        assert_eq!(shown(&plugins, "names", &json!({})), json!(["calculate"]));
        let computed = shown(&plugins, "compute", &json!({"expressions": ["6*7", "1+"]}));
        assert_eq!(computed[0], json!(["ok", "42"]));
        assert_eq!(computed[1][0], json!("failed"), "{computed}");
        let refused = shown(&plugins, "other", &json!({}));
        // What is open to a plugin is not the model's business.
        let expected = "error: the tool broke on this call and gave no result";
        assert_eq!(refused, json!(expected));
        let many = json!({"expressions": vec!["1"; 65]});
        let stopped = call(&plugins, "compute", &many).json();
        let detail = stopped["detail"].as_str().unwrap_or_default();
        assert!(detail.contains("nested_calls = 64"), "{stopped}");
    }
}

#[test]
fn a_file_runs_programs_in_instances_of_their_own() {
    let code = "print(input(), open('in.txt', 'rb').read())\nopen('out.txt', 'wb').write(b'\\xfe')";
    for plugins in folders(GRANTS) {
        let report = shown(&plugins, "run", &json!({ "code": code }));
        let expected = json!({
            "ended": "ok", "outcome": "completed", "stdout": "abc b'\\xffx'\n", "files": {"out.txt": [254]},
        });
        assert_eq!(report, expected);
        let looping = shown(&plugins, "run", &json!({"code": "while True: pass"}));
        assert_eq!(
            (&looping["ended"], &looping["outcome"]),
            (&json!("timeout"), &Value::Null)
        );
    }
}

#[test]
fn a_file_reaches_the_servers_that_are_open_to_it_and_never_sees_a_secret() {
    let port = echo(2);
    let grants = format!(
        "tools = ['calculate']\nexecute = ['python']\n[plugins.reach.http]\n\
         hosts.localhost = {{ scheme = 'http', ports = [{port}], allow_private_addresses = true }}\n\
         secrets.key = {{ file = 'key', host = 'localhost', prefix = 'Bearer ' }}\n"
    );
    for plugins in folders(&grants) {
        let url = format!("http://localhost:{port}/a");
        let echoed = shown(&plugins, "get", &json!({ "url": url }));
        let text = echoed.as_str().expect("is text");
        assert!(text.starts_with("GET /a HTTP/1.1"), "{text}");
        assert!(
            text.contains("x-a: b") && text.contains("[secret key]"),
            "{text}"
        );
        assert!(!text.contains("open-sesame-42"), "{text}");
        let refused = call(&plugins, "get", &json!({"url": "http://example.com/"}));
        let outcome = refused.json();
        assert_eq!(outcome["ended"], json!("trap"), "{outcome}");
    }
}

#[test]
fn a_program_that_finds_the_interpreters_way_to_gates_reaches_none() {
    let code = "\
import sys
ask = sys.modules['rlf_driver.run'].host().ask
print(ask('http.fetch', '[{\"method\": \"GET\", \"url\": \"http://localhost/\"}]'))
print(ask('tools.invoke', '[]'))
print(ask('execute.run', '[]'))
print(ask('tools.list', '[]'))
";
    let [plugins, _] = folders(GRANTS);
    let report = shown(&plugins, "run", &json!({ "code": code }));
    let stdout = report["stdout"].as_str().expect("is text");
    let lines: Vec<&str> = stdout.lines().collect();
    for (line, gate) in lines.iter().zip(["http", "tools", "execute"]) {
        let refused = format!("the gate `{gate}` is not open");
        assert!(line.contains(&refused), "{report}");
    }
    assert_eq!(lines[3..], ["[]"], "{report}");
}

#[test]
fn a_changed_file_loses_its_gates() {
    for plugins in folders(GRANTS) {
        for file in ["reach/reach.py", "reach/reach.js"] {
            let path = plugins.path().join(file);
            if let Ok(source) = fs::read_to_string(&path) {
                fs::write(path, source + "\n").expect("can be written");
            }
        }
        call(&plugins, "names", &json!({})).refused_with(&["its hash is", "grants are withdrawn"]);
    }
}

#[test]
fn a_reward_in_a_file_runs_the_answer_and_excludes_what_it_may_not_run() {
    let plugins = PluginFolder::new(&[
        ("runs/runs.py", RUNS),
        ("runs/plugin.toml", "gates = ['execute']\n"),
    ]);
    let config = plugins.write("grants.toml", "[plugins.runs]\nexecute = ['python']\n");
    let config = config.to_str().expect("a plain name");
    plugins
        .plugin(&["grant", "runs", "--gate", "execute", "--config", config])
        .succeeded();
    let grade = |answer: &str| {
        let answer = format!("--answer={answer}");
        let grade = ["grade", "runs", &answer, "--reference=1", "--json"];
        plugins.plugin(&[&grade[..], &["--config", config]].concat())
    };
    for (answer, runs) in [("print(1)", 1.0), ("1 / 0", 0.0)] {
        let graded = grade(answer).succeeded().json();
        assert_eq!(graded["terms"], json!({ "runs": runs }));
    }
    // A language that is not open to the reward.
    let excluded = grade("ruby");
    assert_ne!(excluded.code(), Some(0), "{excluded}");
    let said = format!("{excluded}");
    assert!(
        said.contains("no interpreter that is open to this plugin"),
        "{said}"
    );
}
