//! MCP in both directions: `rlf-host serve` answers MCP clients, and policies call tools of MCP servers. The server that
//! they call here is `rlf-host serve mcp`.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rlf_tests::{Client, Experiment, Host, Service, without_times};
use rustix::process::Signal;
use serde_json::{Value, json};

/// A client with a session, in the older revision of the protocol.
struct Session {
    client: Client,
    id: String,
}

impl Session {
    fn open(client: &Client) -> Self {
        let begun = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        });
        let begun = post(client, None, &request(0, "initialize", &begun));
        assert_eq!(begun.status, 200, "{begun:?}");
        let session = begun
            .head
            .lines()
            .find_map(|line| line.strip_prefix("mcp-session-id: "));
        let id = session.expect("a session").trim().to_owned();
        let session = Self {
            client: *client,
            id,
        };
        session.tell("notifications/initialized", &json!({}));
        session
    }

    fn tell(&self, method: &str, params: &Value) {
        let told = json!({"jsonrpc": "2.0", "method": method, "params": params});
        assert_eq!(post(&self.client, Some(&self.id), &told).status, 202);
    }

    /// The whole answer to a request: it has `result` or `error`.
    fn ask(&self, id: u32, method: &str, params: &Value) -> Value {
        let answer = post(&self.client, Some(&self.id), &request(id, method, params));
        let events = answer
            .body
            .lines()
            .filter_map(|line| line.strip_prefix("data:"));
        let mut messages = events.filter_map(|data| serde_json::from_str::<Value>(data).ok());
        let own = messages.find(|message| message["id"] == id);
        own.unwrap_or_else(|| panic!("no answer: {answer:?}"))
    }

    fn call(&self, tool: &str, arguments: &Value) -> Value {
        self.ask(
            1,
            "tools/call",
            &json!({"name": tool, "arguments": arguments}),
        )
    }
}

fn request(id: u32, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn post(client: &Client, session: Option<&str>, body: &Value) -> rlf_tests::Answer {
    let mut headers = vec![
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("Connection", "close"),
    ];
    headers.extend(session.map(|session| ("Mcp-Session-Id", session)));
    client.ask("POST", "/mcp", &headers, &body.to_string())
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"]
        .as_str()
        .unwrap_or_else(|| panic!("no text: {answer}"))
}

#[test]
fn a_client_finds_the_tools_and_how_each_call_ended() {
    let service = Service::start(&Host::new(), "[plugins.python]\nenabled = false\n", &[]);
    let session = Session::open(&service);
    let listed = session.ask(1, "tools/list", &json!({}));
    let tools = listed["result"]["tools"].as_array().expect("tools");
    let calculate = tools
        .iter()
        .find(|tool| tool["name"] == "calculate")
        .expect("calculate");
    assert_eq!(calculate["inputSchema"]["type"], "object");
    assert_eq!(calculate["annotations"]["readOnlyHint"], true);
    assert_eq!(calculate["annotations"]["destructiveHint"], false);
    assert!(
        tools.iter().any(|tool| tool["name"] == "javascript"),
        "interpreters are tools: {listed}"
    );

    let right = session.call("calculate", &json!({"expression": "(2+3)*4"}));
    assert_eq!(text(&right), "20");
    assert_eq!(right["result"]["_meta"]["rlf-host/ended"], "ok");
    let wrong = session.call("calculate", &json!({"expression": 5}));
    assert_eq!(wrong["result"]["isError"], true);
    assert_eq!(
        wrong["result"]["_meta"]["rlf-host/ended"],
        "invalid-arguments"
    );
    let program = session.call("javascript", &json!({"code": "console.log(6 * 7)"}));
    assert_eq!(text(&program).trim(), "42");
    // The same call with the same seed gives the same answer.
    let draw = |seed: u32| {
        let arguments = json!({"code": "console.log(Math.random())"});
        let call =
            json!({"name": "javascript", "arguments": arguments, "_meta": {"rlf-host/seed": seed}});
        text(&session.ask(1, "tools/call", &call)).to_owned()
    };
    assert_eq!(draw(7), draw(7));
    assert_ne!(draw(7), draw(8));
    let unknown = session.call("calculat", &json!({}));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");

    // Nobody gets past the checks of the other routes.
    let begun = request(0, "initialize", &json!({}));
    let origin = [
        ("Content-Type", "application/json"),
        ("Origin", "https://evil.example"),
    ];
    assert_eq!(
        service
            .ask("POST", "/mcp", &origin, &begun.to_string())
            .status,
        403
    );
    let stranger = post(
        &service,
        Some("no-such-session"),
        &request(1, "tools/list", &json!({})),
    );
    assert_eq!(stranger.status, 404);
}

#[test]
fn a_call_that_is_cancelled_gives_back_its_guest() {
    let config = "[serve]\nmax_calls = 1\n[plugins.toy]\nprograms.time_ms = 100_000\nprograms.deadline_ms = 100_000\n";
    let service = Service::start(&Host::with_test_plugins(), config, &[]);
    let session = Session::open(&service);
    let looping: Vec<_> = [7, 8]
        .map(|number| {
            let (client, id) = (*service, session.id.clone());
            thread::spawn(move || {
                let looping = json!({"name": "toy", "arguments": {"code": "loop"}});
                post(&client, Some(&id), &request(number, "tools/call", &looping))
            })
        })
        .into();
    // One of the two has the only place, and the other waits for it.
    service.wait_for_metric("rlf_serve_requests_waiting", |calls| calls == 1);
    for number in [7, 8] {
        session.tell("notifications/cancelled", &json!({"requestId": number}));
    }
    // The place is free, long before a loop would be stopped. A call that waits longer than 15 s gets none.
    let next = session.call("toy", &json!({"code": "print done"}));
    assert!(text(&next).contains("done"), "{next}");
    drop(session);
    drop(service);
    for thread in looping {
        _ = thread.join();
    }
}

#[test]
fn an_environment_is_played_in_sessions_of_their_own() {
    let config = "[serve]\nmax_sessions = 2\n";
    let service = Service::start(&Host::with_test_plugins(), config, &[]);
    let session = Session::open(&service);
    let scenario = session.call("open_environment", &json!({"environment": "counter"}));
    let scenario: &Value = &scenario["result"]["structuredContent"];
    assert_eq!(scenario["messages"][0]["content"], "The count is 1.");
    session.call(
        "close_environment",
        &json!({"session": scenario["session"]}),
    );
    let empty = json!({"environment": "counter", "setup": {}});
    let open = || session.call("open_environment", &empty);
    let opened = open();
    let opened: &Value = &opened["result"]["structuredContent"];
    let name = opened["session"].as_str().expect("a session");
    let tools = opened["tools"].as_array().expect("tools");
    assert!(tools.iter().any(|tool| tool["name"] == "add"), "{opened}");
    let add = |session_name: &str| {
        let call = json!({"session": session_name, "tool": "add", "arguments": {"by": 3}});
        session.call("call_environment", &call)
    };
    assert!(text(&add(name)).contains('3'));
    let second = add(name);
    assert!(text(&second).contains('6'), "{second}");
    assert!(
        second["result"]["_meta"]["rlf-host/state"].is_string(),
        "{second}"
    );
    let other = open();
    let other = other["result"]["structuredContent"]["session"]
        .as_str()
        .expect("a session");
    assert!(text(&add(other)).contains('3'), "a session of its own");
    let full = open();
    assert!(text(&full).contains("serve.max_sessions"), "{full}");
    let closed = session.call("close_environment", &json!({"session": other}));
    assert_eq!(closed["result"]["structuredContent"]["closed"], true);
    let gone = add(other);
    assert_eq!(gone["result"]["isError"], true);
    assert!(text(&gone).contains("no such session"), "{gone}");
    let verdict = session.call(
        "verify_environment",
        &json!({"session": name, "reference": {"count": 6}}),
    );
    assert!(
        verdict["result"]["structuredContent"]["success"].is_boolean(),
        "{verdict}"
    );
    let wrong = session.call("open_environment", &json!({"environment": "conuter"}));
    assert!(text(&wrong).contains("there are: counter"), "{wrong}");
}

#[test]
fn a_session_that_nobody_uses_ends() {
    let config = "[serve]\nsession_ms = 3_000\n";
    let service = Service::start(&Host::with_test_plugins(), config, &[]);
    let open = json!({"environment": "counter"});
    let opened = Session::open(&service).call("open_environment", &open);
    let name = &opened["result"]["structuredContent"]["session"];
    // Time is what this is about.
    thread::sleep(Duration::from_millis(3_500));
    // The client's own session has ended, too.
    let call = json!({"session": name, "tool": "add", "arguments": {"by": 3}});
    let late = Session::open(&service).call("call_environment", &call);
    assert!(text(&late).contains("no such session"), "{late}");
}

/// `[mcp.remote]`: `rlf-host serve mcp` with a configuration.
fn remote(host: &Host, config: &Path) -> String {
    let mut text = String::new();
    let plugins = host.plugins();
    writeln!(text, "[mcp.remote]").expect("is text");
    writeln!(text, "command = {:?}", host.binary().display().to_string()).expect("is text");
    let words = [
        "serve",
        "mcp",
        &config.display().to_string(),
        "--plugins",
        &plugins.display().to_string(),
    ];
    writeln!(text, "args = {words:?}").expect("is text");
    writeln!(text, "env.XDG_CACHE_HOME = \"${{XDG_CACHE_HOME}}\"").expect("is text");
    text
}

#[test]
fn the_tools_of_a_server_are_listed_and_called_from_the_command_line() {
    let host = Host::new();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let served = folder.path().join("served.toml");
    fs::write(&served, "[plugins.python]\nenabled = false\n").expect("can be written");
    let config = folder.path().join("config.toml");
    let more = "tools = [\"calculate\"]\nrename.calculate = \"sum\"\n";
    fs::write(&config, remote(&host, &served) + more).expect("can be written");
    let config = config.to_str().expect("a plain name");
    let listed = host.run(["mcp", "list", "--config", config]);
    listed.succeeded();
    assert!(
        listed
            .stdout
            .contains("sum(expression: string) (the server's `calculate`)"),
        "{listed}"
    );
    let called = host.run([
        "mcp",
        "call",
        "sum",
        "{\"expression\": \"6*7\"}",
        "--config",
        config,
    ]);
    assert_eq!(called.succeeded().stdout, "42\n");
    let wrong = host.run(["mcp", "call", "sun", "--config", config]);
    wrong.refused_with(&["there is no tool `sun`", "did you mean `sum`?"]);
    host.run(["mcp", "list"]).refused_with(&["--config FILE"]);
    // Nothing of a server is served on, unless the operator names it.
    let service = Service::start(
        &host,
        &fs::read_to_string(config).expect("is there"),
        &["--allow", "remote"],
    );
    let answer = service.posted(
        "/v1/tools/sum",
        &json!({"arguments": {"expression": "1+1"}}),
    );
    assert_eq!(answer["observation"]["content"], json!([{"text": "2"}]));
}

#[test]
fn a_command_that_is_told_to_end_ends_the_servers_that_it_started() {
    let host = Host::new();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let pids = folder.path().join("pids");
    // Two processes. Neither says a word, nor ends when its input is closed.
    let script = format!(
        "sleep 1000 & echo $! $$ > {0}.new; mv {0}.new {0}; exec sleep 1000",
        pids.display()
    );
    let config = folder.path().join("config.toml");
    let text = format!("[mcp.mute]\ncommand = \"sh\"\nargs = [\"-c\", {script:?}]\n");
    fs::write(&config, text).expect("can be written");
    let config = config.to_str().expect("a plain name");
    let mut running = host.start(["mcp", "list", "--config", config]);
    let until = Instant::now() + Duration::from_mins(1);
    while !pids.exists() {
        assert!(Instant::now() < until, "the server does not start");
        thread::sleep(Duration::from_millis(10));
    }
    running.signal(Signal::TERM);
    assert_eq!(running.wait().code(), Some(130));
    let pids = fs::read_to_string(pids).expect("is there");
    for pid in pids.split_whitespace() {
        let is_gone = || {
            let stat = fs::read_to_string(Path::new("/proc").join(pid).join("stat"));
            stat.map_or(true, |stat| stat.contains(") Z "))
        };
        // Whoever was killed takes a moment to be gone.
        while !is_gone() {
            assert!(Instant::now() < until, "{pid} lives");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The numbers of a run, without times.
fn numbers(run: &rlf_tests::RunFolder) -> Vec<Value> {
    run.metrics().into_iter().map(without_times).collect()
}

#[test]
fn a_run_with_a_tool_of_a_server_is_the_run_with_the_plugin() {
    let native = Experiment::calling();
    let with_plugin = native.train("run", &[]);
    let table = native.path("run/data/facts.csv");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let served = folder.path().join("served.toml");
    let config: toml::Table = native.text().parse().expect("is TOML");
    let mut lookup = config["plugins"]["lookup"].clone();
    lookup["data"]["table"] = table.display().to_string().into();
    let config = json!({"plugins": {"lookup": lookup}});
    let text = toml::to_string(&config).expect("is TOML");
    fs::write(&served, text).expect("can be written");
    let server = remote(native.host(), &served) + "tools = [\"lookup\"]\n";
    let remote = Experiment::calling()
        .with_toml("[plugins.lookup]\nenabled = false\n")
        .with_toml(&server);
    let with_server = remote.train("run", &[]);
    assert_eq!(numbers(&with_plugin), numbers(&with_server));
    let trajectories = with_server.trajectories();
    let text = serde_json::to_string(&trajectories).expect("is JSON");
    assert!(
        text.contains("\"name\":\"lookup\""),
        "the policy called the tool"
    );
}
