//! Training with an agent: a program with a loop of its own, which asks the policy over HTTP, or a plugin in the sandbox.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rlf_tests::{Client, Experiment, Host, RunFolder, without_times};
use rustix::process::Signal;
use serde_json::{Value, json};

/// The functions that agents of these tests begin with. They use only what comes with Python.
const CLIENT: &str = r#"
import concurrent.futures, itertools, json, os, sys, urllib.error, urllib.request

BASE = os.environ["RLF_TRAJECTORY_URL"]
task = json.loads(sys.stdin.readline())

def post(path, body, base=BASE):
    data = json.dumps(body).encode()
    request = urllib.request.Request(base + path, data, {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(request))

def turn(messages, **more):
    body = {"model": "policy", "messages": messages, "tools": task["tools"], **more}
    return post("/v1/chat/completions", body)["choices"][0]

def call(message):
    for made in message.get("tool_calls", []):
        body = {"id": made["id"], "arguments": made["function"]["arguments"]}
        done = post("/tools/" + made["function"]["name"], body)
        yield {"role": "tool", "tool_call_id": made["id"], "content": done["content"]}

def note(line):
    with open(os.path.join(os.path.dirname(__file__), "notes.txt"), "a") as notes:
        notes.write(line + "\n")
"#;

/// A loop that does what our own loop does.
const LOOP: &str = r#"
messages = task["messages"]
while True:
    message = turn(messages)["message"]
    results = list(call(message))
    if not results:
        break
    messages += [message, *results]
"#;

/// The same loop over Anthropic's messages.
const ANTHROPIC_LOOP: &str = r#"
def blocks(message):
    if message["role"] == "tool":
        return {"type": "tool_result", "tool_use_id": message["tool_call_id"], "content": message["content"]}
    return {"type": "text", "text": message["content"]}

system = [m["content"] for m in task["messages"] if m["role"] == "system"]
messages = [{"role": "user", "content": [blocks(m)]} for m in task["messages"] if m["role"] == "user"]
tools = [{"name": t["function"]["name"], "description": t["function"]["description"],
          "input_schema": t["function"]["parameters"]} for t in task["tools"]]
while True:
    body = {"model": "policy", "max_tokens": 100000, "messages": messages, "tools": tools}
    if system:
        body["system"] = system[0]
    said = post("/v1/messages", body)
    made = [{"id": b["id"], "function": {"name": b["name"], "arguments": b["input"]}}
            for b in said["content"] if b["type"] == "tool_use"]
    if said["stop_reason"] != "tool_use":
        break
    results = [blocks(result) for result in call({"tool_calls": made})]
    messages += [{"role": "assistant", "content": said["content"]}, {"role": "user", "content": results}]
"#;

/// The tools of the task over MCP, instead of those of the form that our service describes.
const MCP: &str = r#"
numbers = itertools.count()

def send(message):
    headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
    data = json.dumps({"jsonrpc": "2.0", **message}).encode()
    with urllib.request.urlopen(urllib.request.Request(os.environ["RLF_MCP_URL"], data, headers)) as answer:
        text = answer.read().decode()
        if "text/event-stream" in answer.headers.get("Content-Type", ""):
            text = [line[5:] for line in text.splitlines() if line.startswith("data:") and line[5:].strip()][-1]
        return answer.status, text

def mcp(method, **params):
    status, text = send({"id": next(numbers), "method": method, "params": params})
    assert status == 200, (status, text)
    return json.loads(text)

begun = mcp("initialize", protocolVersion="2025-06-18", capabilities={}, clientInfo={"name": "test", "version": "1"})
assert "tools" in begun["result"]["capabilities"], begun
assert send({"method": "notifications/initialized"})[0] == 202
task["tools"] = [{"type": "function", "function": {"name": tool["name"], "description": tool["description"],
                  "parameters": tool["inputSchema"]}} for tool in mcp("tools/list")["result"]["tools"]]

def call(message):
    for made in message.get("tool_calls", []):
        function = made["function"]
        done = mcp("tools/call", name=function["name"], arguments=json.loads(function["arguments"]),
                   _meta={"rlf-host/call-id": made["id"]})
        yield {"role": "tool", "tool_call_id": made["id"], "content": done["result"]["content"][0]["text"]}
"#;

/// The calls that MCP refuses, before and after the end of the trajectory.
const MCP_REFUSALS: &str = r#"
name = task["tools"][0]["function"]["name"]
refusals = [mcp("tools/call", name="rm"), mcp("tools/call", name=name, _meta={"rlf-host/call-id": "call_9_9_9"})]
post("/finish", {})
refusals.append(mcp("tools/call", name=name))
note(" | ".join(refusal["error"]["message"] for refusal in refusals))
"#;

/// A plugin that does what our own loop does: the one that `plugin new` makes.
fn plugin_loop() -> String {
    include_str!("../../../host/cli/templates/python/agent.py").replace("NAME", "lead")
}

/// The same plugin in JavaScript.
fn javascript_loop() -> String {
    include_str!("../../../host/cli/templates/javascript/agent.js").replace("NAME", "lead")
}

/// A plugin that ends in another way in each trajectory of a group.
const PLUGIN_ENDS: &str = r#"
import rlf

@rlf.tool
def lead(id: str, source: str, messages: list, tools: list, context: rlf.Context):
    """Leads a trajectory."""
    kind = sum(map(ord, context.trajectory_id)) % 4
    if kind == 0:
        return "never asked"
    rlf.chat({"messages": messages, "tools": tools, "max_tokens": 5})
    if kind == 1:
        raise rlf.Failure("no more ideas")
    if kind == 2:
        raise RuntimeError("a bug")
    for request in [{"messages": messages, "temperature": 0.1}, {"messages": []}]:
        try:
            rlf.chat(request)
        except rlf.GateError as error:
            assert error.kind == "invalid-arguments", error
        else:
            raise AssertionError("it was accepted")
    both = rlf.ask_models([rlf.Question("hi", chat={"messages": messages})])[0]
    assert both.kind == "invalid-arguments", both
    assert [tool["name"] for tool in rlf.list_tools()] == ["lookup"], rlf.list_tools()
    own = rlf.call_tool("lookup", {"of": "nowhere", "get": "population"})
    assert own.ended in ("ok", "failed"), own
    text = rlf.ask_model("Who are you?", max_tokens=5)
    assert text.completion_tokens <= 5, text
    return {"answer": "led", "reward": 0.25}
"#;

/// An experiment whose trajectories are led in the sandbox by a plugin of this Python code. It may ask the policy, and call
/// these tools.
fn led_by_plugin(experiment: Experiment, code: &str, tools: &str) -> Experiment {
    led_by_plugin_file(experiment, "leader.py", code, tools)
}

/// An experiment whose trajectories are led by the plugin of this file, whose name says the language.
fn led_by_plugin_file(experiment: Experiment, file: &str, code: &str, tools: &str) -> Experiment {
    let folder = experiment.path("leader");
    fs::create_dir(&folder).expect("can be made");
    experiment.write(&format!("leader/{file}"), code);
    experiment.write("leader/plugin.toml", "gates = ['model', 'tools']\n");
    led_by_plugin_folder(experiment, &folder, tools)
}

/// An experiment whose trajectories are led by the plugin in this folder.
fn led_by_plugin_folder(experiment: Experiment, folder: &Path, tools: &str) -> Experiment {
    let path = folder.display();
    let entry = format!("[plugins.leader]\npath = '{path}'\n");
    let grants = experiment.write("grants.toml", entry);
    let name = grants.to_str().expect("a plain name");
    let grant = ["grant", "leader", "--gate", "model", "--gate", "tools"];
    let grant = grant.into_iter().chain(["--config", name]);
    experiment.host().plugin(grant).succeeded();
    let granted = fs::read_to_string(&grants).expect("is there");
    let granted: toml::Table = granted.parse().expect("is TOML");
    let hash = granted["plugins"]["leader"]["hash"].as_str();
    let hash = hash.expect("has a hash");
    experiment.with_toml(&format!(
        "agent.plugin = 'leader'
        [plugins.leader]
        path = '{path}'
        hash = '{hash}'
        grants = ['model', 'tools']
        models = ['policy']
        tools = {tools}
        limits.cpu_ms = 60000"
    ))
}

/// An experiment whose trajectories are led by an agent of this Python code.
fn led_by(experiment: Experiment, code: &str) -> Experiment {
    let file = experiment.write("agent.py", format!("{CLIENT}{code}"));
    let file = file.display();
    experiment.with_toml(&format!(
        "agent.command = ['python3', '{file}']\nagent.max_processes = 4"
    ))
}

/// The metrics of a run, without times.
fn numbers(run: &RunFolder) -> Vec<Value> {
    run.metrics().into_iter().map(without_times).collect()
}

/// The trajectories of the RL steps of a run.
fn of_steps(run: &RunFolder) -> Vec<Value> {
    let files = run.trajectories();
    let lines = files
        .into_iter()
        .filter(|(name, _)| name.starts_with("rl-"));
    let trajectories: Vec<Value> = lines
        .flat_map(|(_, lines)| lines)
        .map(|line| line["trajectory"].clone())
        .collect();
    assert!(!trajectories.is_empty());
    trajectories
}

#[test]
fn a_loop_over_http_trains_as_our_own_loop_to_the_last_bit() {
    let own = Experiment::calling();
    let own_run = own.train("run", &[]);
    let expected = numbers(&own_run);
    let made = |line: &Value| line["calls_per_trajectory"].as_f64() > Some(0.5);
    assert!(expected.iter().any(made));
    let over_mcp = [MCP, LOOP, MCP_REFUSALS].concat();
    for code in [LOOP, ANTHROPIC_LOOP, &over_mcp] {
        let led = led_by(Experiment::calling(), code);
        let led_run = led.train("run", &[]);
        assert_eq!(expected, numbers(&led_run));
        assert!(own_run.weights() == led_run.weights());
        if code == over_mcp {
            let notes =
                fs::read_to_string(led.path("notes.txt")).expect("an agent came to its end");
            for line in notes.lines() {
                let refusals: Vec<&str> = line.split(" | ").collect();
                assert!(
                    matches!(refusals[..], [tool, id, late]
                        if tool.contains("no tool `rm`")
                            && id.contains("call call_9_9_9: no turn")
                            && late.contains("is over: its agent has finished it")),
                    "{line}"
                );
            }
        }
    }
}

#[test]
fn a_plugin_that_leads_trajectories_trains_as_our_own_loop_to_the_last_bit() {
    let own = Experiment::calling();
    let own_run = own.train("run", &[]);
    let expected = numbers(&own_run);
    let tools = "['lookup', 'calculate']";
    for (file, code) in [
        ("leader.py", plugin_loop()),
        ("leader.js", javascript_loop()),
    ] {
        let led = led_by_plugin_file(Experiment::calling(), file, &code, tools);
        let led_run = led.train("run", &[]);
        assert_eq!(expected, numbers(&led_run), "{file}");
        assert!(own_run.weights() == led_run.weights(), "{file}");
    }
    // The template in Rust, as a component.
    let component = Host::with_test_plugins().plugins().join("leader");
    let led = led_by_plugin_folder(Experiment::calling(), &component, tools);
    let led_run = led.train("run", &[]);
    assert_eq!(expected, numbers(&led_run));
    assert!(own_run.weights() == led_run.weights());
}

/// An environment in Python.
const BUTTON: &str = "
from mcp.server.fastmcp import FastMCP


class Button:
    def load_scenario(self, scenario):
        self.pressed = scenario['pressed']

    def save_scenario(self):
        return {'pressed': self.pressed}


api = Button()
mcp = FastMCP(name='Button')


@mcp.tool()
def press() -> str:
    api.pressed += 1
    return f'pressed {api.pressed}'
";

/// An experiment whose policy learns to press the button once. The first of its two tasks asks for that.
fn pressing() -> Experiment {
    let user = json!({"role": "user", "content": "Press it."});
    let press = json!({"name": "Button-press", "parameters": {"type": "object", "properties": {}}});
    let function = json!({"name": "Button-press", "arguments": "{}"});
    let call = json!({"id": "c", "type": "function", "function": function});
    let taught = json!({
        "messages": [
            user,
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": "pressed 1"},
            {"role": "assistant", "content": "Done."},
        ],
        "tools": [{"type": "function", "function": press}],
    });
    let task = |id: &str, pressed: u32| {
        json!({
            "id": id, "source": "button", "prompt": [user], "environment": "button",
            "setup": {"servers": {"Button": {"pressed": 0}}},
            "reference": {"state": {"Button": {"pressed": pressed}}},
        })
    };
    let experiment = Experiment::tiny()
        .without("tasks")
        .without("plugins")
        .without("rewards");
    let button = experiment.write("Button.py", BUTTON);
    experiment.write("taught.jsonl", format!("{taught}\n"));
    let tasks = format!("{}\n{}\n", task("once", 1), task("twice", 2));
    experiment.write("train.jsonl", &tasks);
    experiment.write("test.jsonl", &tasks);
    experiment.with_toml(&format!(
        "tasks = {{train = 'train.jsonl', validation = 'train.jsonl', test = 'test.jsonl', demonstrations = 'taught.jsonl'}}
        model.init.max_position_embeddings = 512
        dialogue = {{answer = 'final-turn', context = 512, max_observation_tokens = 200}}
        sft.steps = 150
        sft.optimizer = {{learning_rate = 5e-3, warmup_steps = 5}}
        rl.steps = 2
        rl.max_dropped_share = 1.0
        rewards.success = 'reward-verdict.success >= 1'
        rewards.stack = [{{plugin = 'reward-verdict'}}]
        eval = {{tasks = 2, samples = 1, every = 0}}
        plugins.button = {{plugin = 'python', environment.servers = '{}'}}",
        button.display()
    ))
}

#[test]
fn a_plugin_leads_in_an_environment_as_our_own_loop_does() {
    let own = pressing();
    let own_run = own.train("run", &[]);
    let code = javascript_loop();
    let led = led_by_plugin_file(pressing(), "leader.js", &code, "['Button-press']");
    let led_run = led.train("run", &[]);
    assert_eq!(numbers(&own_run), numbers(&led_run));
    assert!(own_run.weights() == led_run.weights());
    let mut pressed_once = 0;
    for trajectory in of_steps(&led_run) {
        let pressed = trajectory["final_state"]["Button"]["pressed"].as_u64();
        let wanted = if trajectory["task"] == "once" { 1 } else { 2 };
        let success = &trajectory["verdict"]["success"];
        assert_eq!(*success, pressed == Some(wanted), "{trajectory}");
        pressed_once += usize::from(pressed == Some(1));
    }
    assert!(pressed_once > 0, "no call has reached the session");
}

#[test]
fn every_way_out_of_a_plugin_that_leads_has_its_ending() {
    let experiment = led_by_plugin(Experiment::tiny(), PLUGIN_ENDS, "['lookup']")
        .with("dialogue.max_turns", 40)
        // Two trajectories of each group are graded.
        .with("rl.group_size", 8)
        .with("tools.max_trap_share", 1.0)
        .with("rl.max_dropped_share", 1.0)
        .with("rl.guards.max_excluded_share", 1.0);
    let run = experiment.train("run", &[]);
    let reasons = ["never asked for a turn", "no more ideas", "a bug"];
    let mut seen = [0; 4];
    for trajectory in of_steps(&run) {
        let Some(why) = trajectory["excluded"].as_str() else {
            assert_eq!(trajectory["answer"], "led", "{trajectory}");
            assert_eq!(trajectory["verdict"]["score"], 0.25);
            seen[3] += 1;
            continue;
        };
        let reason = reasons.iter().position(|reason| why.contains(reason));
        seen[reason.unwrap_or_else(|| panic!("{why}"))] += 1;
    }
    assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
}

#[test]
fn a_plugin_that_cannot_lead_is_refused_before_training() {
    let refused = |settings: &str, parts: &[&str]| {
        let ended = Experiment::tiny().with_toml(settings).try_train("run", &[]);
        ended.refused_with(parts);
    };
    refused(
        "agent.command = ['a']\nagent.plugin = 'b'",
        &["agent.plugin", "keep one of"],
    );
    refused(
        "agent.listen = '127.0.0.1:1'\nagent.plugin = 'b'",
        &["agent.plugin", "keep one of"],
    );
    refused(
        "agent.plugin = 'nobody'",
        &["agent.plugin", "there is no plugin `nobody`"],
    );
    refused(
        "agent.plugin = 'exact-match'",
        &["agent.plugin", "is a reward"],
    );
    refused(
        "agent.plugin = 'calculator'",
        &["agent.plugin", "may not ask the policy", "plugin grant"],
    );
    refused(
        "agent.plugin = 'calculator'\nmodels.policy.replay = 'x'",
        &["models.policy", "another name"],
    );
    let two =
        plugin_loop() + "\n@rlf.tool\ndef other() -> str:\n    'Another tool.'\n    return 'x'\n";
    let experiment = led_by_plugin(Experiment::tiny(), &two, "['lookup']");
    let ended = experiment.try_train("run", &[]);
    ended.refused_with(&["agent.plugin", "has 2 tools (lead, other)"]);
    let other = "import rlf\n\n@rlf.tool\ndef lead(question: str) -> str:\n    'Answers.'\n    return question\n";
    let experiment = led_by_plugin(Experiment::tiny(), other, "['lookup']");
    let ended = experiment.try_train("run", &[]);
    ended.refused_with(&["does not take a task"]);
}

#[test]
fn every_way_out_of_an_agent_has_its_ending() {
    let experiment = led_by(
        Experiment::tiny(),
        r#"
messages = task["messages"]
kind = sum(map(ord, task["id"])) % 3
if kind == 0:
    # It never stops asking, so it meets the limit of turns.
    while True:
        messages = messages + [turn(messages)["message"], {"role": "user", "content": "again"}]
turn(messages)
if kind == 1:
    sys.exit("no more ideas")
# Conversations at once, and one whose history was edited.
asked = [[{"role": "user", "content": word}] for word in "abcd"]
with concurrent.futures.ThreadPoolExecutor() as threads:
    first = list(threads.map(lambda one: turn(one, max_tokens=5), asked))[0]
turn([{"role": "user", "content": "e"}, first["message"], {"role": "user", "content": "f"}], max_tokens=5)
print("thinking ..")
print(json.dumps({"answer": "led", "reward": 0.25}))
"#,
    );
    let experiment = experiment
        .with("dialogue.max_turns", 40)
        .with("engine.slots", 2)
        .with("rl.max_dropped_share", 1.0)
        .with("rl.guards.max_excluded_share", 1.0);
    let run = experiment.train("run", &[]);
    let mut seen = [0; 3];
    for trajectory in of_steps(&run) {
        let sequences = trajectory["sequences"].as_array().expect("a list").len();
        if let Some(why) = trajectory["excluded"].as_str() {
            assert!(
                why.contains("exit status: 1") && why.contains("no more ideas"),
                "{why}"
            );
            seen[1] += 1;
        } else if trajectory["answer"] == "led" {
            assert_eq!(sequences, 6, "{trajectory}");
            assert_eq!(trajectory["verdict"]["score"], 0.25);
            seen[2] += 1;
        } else {
            let finish = trajectory["finish"].as_str();
            assert!(
                matches!(finish, Some("max-turns" | "length")),
                "{trajectory}"
            );
            seen[0] += 1;
        }
    }
    assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
}

#[test]
fn what_an_agent_must_not_do_is_refused_and_costs_nobody_else() {
    let experiment = led_by(
        Experiment::tiny(),
        r#"
def refused(status, part, path, body, base=BASE):
    try:
        post(path, body, base)
    except urllib.error.HTTPError as error:
        text = error.read().decode()
        assert error.code == status and part in text, (path, error.code, text)
    else:
        raise AssertionError(f"{path} was accepted")

note("begun")
messages = task["messages"]
ask = "/v1/chat/completions"
refused(400, "`temperature`", ask, {"messages": messages, "temperature": 0.1})
refused(400, "`stop`", ask, {"messages": messages, "stop": ["x"]})
refused(400, "expected a JSON object", ask, [messages])
refused(400, "messages[0]: ", ask, {"messages": [["user", "hi"]]})
refused(400, "tools[0]: ", ask, {"messages": messages, "tools": [["function", {"name": "a"}]]})
refused(400, "content[0]: ", "/v1/messages", {"messages": [{"role": "user", "content": [["text", "hi"]]}]})
refused(400, "expected a JSON object", "/tools/lookup", [None, {}])
refused(400, "messages", ask, {"messages": []})
refused(400, "context", ask, {"messages": [{"role": "user", "content": "long " * 4000}]})
refused(404, "no trajectory", ask, {"messages": messages}, BASE[:-4] + "0000")
refused(404, "no such route", "/v1/embeddings", {})
refused(404, "POST /tools/NAME", "/v1/embeddings", {})
refused(405, "GET /task", "/task", {})
refused(404, "no tool", "/tools/rm", {})
refused(400, "no turn of the policy", "/tools/lookup", {"id": "call_9_9_9", "arguments": {}})
refused(400, "two tools", ask, {"messages": messages, "tools": task["tools"] * 2})
refused(404, "no such route", "/agents/next", {}, BASE.split("/t/")[0])
turn(messages)
done = post("/tools/lookup", {"arguments": {"of": "nowhere", "get": "population"}})
assert set(done) == {"ended", "failed", "content", "terminated"}, done
post("/finish", {"answer": "done"})
refused(410, "over", ask, {"messages": messages})
refused(410, "over", "/tools/lookup", {"arguments": {}})
refused(410, "ended before", "/finish", {"answer": "again"})
note("refused")
"#,
    );
    let run = experiment.train("run", &[]);
    for trajectory in of_steps(&run) {
        assert_eq!(trajectory["excluded"], Value::Null, "{trajectory}");
        assert_eq!(trajectory["answer"], "done");
    }
    // The report over HTTP counts, so a mistake after it shows only here.
    let notes = fs::read_to_string(experiment.path("notes.txt")).expect("an agent came to its end");
    let count = |note: &str| notes.lines().filter(|line| *line == note).count();
    assert_eq!(count("begun"), count("refused"));
}

/// Begins a process that leaves the agent's group and session, loses its parent, and keeps the streams open.
const STRAY: &str = r#"
STRAY = __file__ + ".stray"

def strays():
    found = 0
    for number in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{number}/cmdline") as line:
                found += STRAY in line.read()
        except OSError:
            pass
    return found

note(f"{strays()} of others")
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(1000)", STRAY])
    os._exit(0)
os.wait()
while strays() == 0:
    pass
"#;

/// Number of processes whose command line names this file.
fn processes_with(file: &Path) -> usize {
    let file = file.display().to_string();
    let processes = fs::read_dir("/proc").expect("Linux has it").flatten();
    let lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    let lines = lines.map(|line| String::from_utf8_lossy(&line).into_owned());
    lines.filter(|line| line.contains(&file)).count()
}

/// Waits until something holds.
fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_mins(1);
    while !holds() {
        assert!(Instant::now() < deadline, "{what}: not within a minute");
        thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn nothing_that_an_agent_started_outlives_its_trajectory() {
    let code = format!("{STRAY}\nturn(task['messages'])\n");
    let experiment = led_by(Experiment::tiny(), &code)
        .with("agent.max_processes", 1)
        .with("rl.steps", 1);
    let run = experiment.train("run", &[]);
    for trajectory in of_steps(&run) {
        assert_eq!(trajectory["excluded"], Value::Null, "{trajectory}");
    }
    let notes = fs::read_to_string(experiment.path("notes.txt")).expect("agents were started");
    assert!(notes.lines().count() > 1, "{notes}");
    assert!(notes.lines().all(|line| line == "0 of others"), "{notes}");
    assert_eq!(processes_with(&experiment.path("agent.py.stray")), 0);
}

#[test]
fn nothing_that_an_agent_started_outlives_the_program_even_if_it_is_killed() {
    let code = format!("{STRAY}\nnote('begun')\nimport time\ntime.sleep(1000)\n");
    let experiment = led_by(Experiment::tiny(), &code);
    let mut running = experiment.start("run", &[]);
    let notes = experiment.path("notes.txt");
    wait_until("an agent begins", || {
        fs::read_to_string(&notes).is_ok_and(|notes| notes.contains("begun"))
    });
    let agent = experiment.path("agent.py");
    assert!(processes_with(&agent) > 2, "supervisor, agent and stray");
    running.signal(Signal::KILL);
    let signal = running.wait().signal();
    assert_eq!(signal, Some(Signal::KILL.as_raw()));
    wait_until("all processes of the agent end", || {
        processes_with(&agent) == 0
    });
}

#[test]
fn remote_agents_fetch_their_tasks() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = port.local_addr().expect("has an address");
    drop(port);
    let experiment = Experiment::tiny().with_toml(&format!("agent.listen = '{address}'"));
    let script = experiment.write(
        "worker.py",
        r#"
import json, sys, threading, time, urllib.error, urllib.request

def post(url, body):
    request = urllib.request.Request(url, json.dumps(body).encode())
    answer = urllib.request.urlopen(request).read()
    return json.loads(answer) if answer else None

def work():
    while True:
        try:
            fetched = post(sys.argv[1] + "/agents/next", {})
        except urllib.error.URLError:
            time.sleep(0.05)
            continue
        if fetched:
            ask = {"messages": fetched["task"]["messages"], "tools": fetched["task"]["tools"]}
            post(fetched["openai_base_url"] + "/chat/completions", ask)
            post(fetched["url"] + "/finish", {"answer": "fetched"})

for _ in range(4):
    threading.Thread(target=work, daemon=True).start()
sys.stdin.read()
"#,
    );
    let mut worker = Command::new("python3")
        .arg(script)
        .arg(format!("http://{address}"))
        .stdin(Stdio::piped())
        .spawn()
        .expect("python3 is there");
    let run = experiment.train("run", &[]);
    // The worker ends with its input.
    drop(worker.stdin.take());
    assert!(worker.wait().expect("it ends").success());
    let trajectories = of_steps(&run);
    assert!(!trajectories.is_empty());
    assert!(trajectories.iter().all(|one| one["answer"] == "fetched"));
}

#[test]
fn an_agent_that_cannot_work_is_refused_before_training() {
    let refused = |settings: &str, part: &str| {
        let ended = Experiment::tiny().with_toml(settings).try_train("run", &[]);
        ended.refused_with(&[part]);
    };
    refused("agent.max_processes = 3", "agent.command");
    refused(
        "agent.command = ['a']\nagent.listen = '127.0.0.1:1'",
        "agent.listen",
    );
    refused("agent.listen = '0.0.0.0:8700'", "agent.token_env");
    refused(
        "agent.command = ['sh', '-c', 'echo no model here >&2; exit 3']",
        "no trajectory could be graded; the first was excluded: agent: it ended with exit status: 3; it wrote: no model here",
    );
    refused(
        "agent.command = ['no-such-program']",
        "agent.command: no folder of PATH has a program `no-such-program`",
    );
}

#[test]
fn the_policy_of_a_run_answers_anybody_who_shows_the_token() {
    let experiment = Experiment::tiny();
    let run = experiment.train("run", &[]);
    let host = experiment.host();
    let plugins = host.plugins().display().to_string();
    let serve = ["serve", "policy", run.as_str(), "--plugins", &plugins];
    // Any variable that is long enough can hold the token.
    let more = ["--listen", "127.0.0.1:0", "--token-env", "PATH"];
    let mut running = host.start(serve.iter().chain(&more));
    let client = Client::of(&running.rest_of_line("listening on http://"));
    let token = std::env::var("PATH").expect("is set");
    let bearer = format!("Bearer {token}");
    let ask = |path: &str, header: (&str, &str), more: Value| {
        let messages = json!([{ "role": "user", "content": "What is the area of lebanon?" }]);
        let mut body = json!({ "model": "policy", "messages": messages, "max_tokens": 24 });
        let more = more.as_object().expect("an object").clone();
        body.as_object_mut().expect("an object").extend(more);
        client.ask("POST", path, &[header], &body.to_string())
    };
    let openai = |more: Value| {
        let answer = ask("/v1/chat/completions", ("authorization", &bearer), more);
        (answer.status, answer.json())
    };
    let said = |seed: u64| {
        let (status, answer) = openai(json!({ "seed": seed, "temperature": 0.9, "top_p": 0.95 }));
        assert_eq!(status, 200, "{answer}");
        answer["choices"][0]["message"]["content"].clone()
    };
    assert_eq!(said(1), said(1));
    assert_ne!(said(1), said(2));
    let (status, refusal) = openai(json!({ "n": 2 }));
    assert_eq!(status, 400);
    assert!(
        refusal["error"]["message"].to_string().contains("`n` = 2"),
        "{refusal}"
    );
    assert_eq!(openai(json!({ "temperature": -1.0 })).0, 400);
    let anthropic = ask("/v1/messages", ("x-api-key", &token), json!({ "top_k": 5 }));
    assert_eq!(anthropic.json()["type"], "message", "{anthropic:?}");
    let refused = ask("/v1/messages", ("x-api-key", "guess"), json!({}));
    assert_eq!(refused.status, 401);
    let wrong_method = client.ask("GET", "/v1/messages", &[], "");
    assert_eq!(wrong_method.status, 405);
    assert_eq!(wrong_method.json()["type"], "error");
    running.signal(Signal::TERM);
    running.wait().succeeded();

    let open = ["--listen", "0.0.0.0:0"];
    let ended = host.run(serve.iter().chain(&open));
    ended.refused_with(&["--token-env"]);
}
