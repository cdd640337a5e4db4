//! OpenEnv in both directions: our service to a client of the protocol, and training in environments behind a URL.

mod changing_server;

use futures_util::{SinkExt as _, StreamExt as _};
use rlf_tests::{Experiment, Host, Service};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

fn service(config: &str) -> Service {
    Service::start(&Host::with_test_plugins(), config, &[])
}

async fn open(service: &Service, path: &str) -> Socket {
    let url = format!("ws://{}/openenv/{path}", service.address());
    connect_async(url).await.expect("it listens").0
}

/// Sends a text and reads the answer; `None` if the service closes the connection.
async fn say(socket: &mut Socket, text: &str) -> Option<Value> {
    socket.send(Message::text(text)).await.ok()?;
    match socket.next().await?.ok()? {
        Message::Text(text) => Some(serde_json::from_str(&text).expect("an answer is JSON")),
        _ => None,
    }
}

async fn ask(socket: &mut Socket, message: Value) -> Value {
    let answer = say(socket, &message.to_string()).await;
    answer.expect("it answers")
}

fn call(name: &str, arguments: &Value) -> Value {
    let data = json!({"type": "call_tool", "tool_name": name, "arguments": arguments});
    json!({"type": "step", "data": data})
}

#[tokio::test]
async fn an_episode_goes_from_its_reset_to_the_verdict_on_the_answer() {
    let service = service("");
    let mut socket = open(&service, "counter/ws").await;
    let setup = json!({"start": 1, "episode_id": "e", "seed": 4, "reference": {"count": 3}});
    let begun = ask(&mut socket, json!({"type": "reset", "data": setup})).await;
    let messages = &begun["data"]["observation"]["metadata"]["messages"];
    assert_eq!(
        *messages,
        json!([{"role": "user", "content": "The count is 1."}])
    );
    let listed = ask(
        &mut socket,
        json!({"type": "step", "data": {"type": "list_tools"}}),
    )
    .await;
    let tools = listed["data"]["observation"]["tools"].as_array();
    let has_add = |tools: &Vec<Value>| tools.iter().any(|tool| tool["name"] == "add");
    assert!(tools.is_some_and(has_add), "{listed}");
    let added = ask(&mut socket, call("add", &json!({"by": 2}))).await;
    assert_eq!(
        added["data"]["observation"]["result"]["data"], "3",
        "{added}"
    );
    assert_eq!(
        (&added["data"]["reward"], &added["data"]["done"]),
        (&json!(2.0), &json!(false))
    );
    for (name, arguments, kind) in [
        ("nothing", json!({}), "tool_not_found"),
        ("add", json!({"by": "two"}), "invalid_args"),
        ("trap", json!({}), "execution_error"),
    ] {
        let failed = ask(&mut socket, call(name, &arguments)).await;
        let error = &failed["data"]["observation"]["error"]["error_type"];
        assert_eq!(*error, kind, "{failed}");
    }
    let said = ask(
        &mut socket,
        json!({"type": "step", "data": {"type": "say", "text": "Hello."}}),
    )
    .await;
    assert_eq!(
        said["data"]["observation"]["reply"], "you said: Hello.",
        "{said}"
    );
    let state = ask(&mut socket, json!({"type": "state"})).await;
    assert_eq!(state["data"]["episode_id"], "e");
    assert_eq!(state["data"]["state"]["count"], 3, "{state}");
    let rpc =
        json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "show"}});
    let shown = ask(&mut socket, json!({"type": "mcp", "data": rpc})).await;
    assert_eq!(shown["data"]["id"], 9, "{shown}");
    assert_eq!(shown["data"]["result"]["is_error"], false, "{shown}");
    let answer = json!({"type": "step", "data": {"type": "answer"}});
    let judged = ask(&mut socket, answer.clone()).await;
    assert_eq!(
        (&judged["data"]["reward"], &judged["data"]["done"]),
        (&json!(1.0), &json!(true)),
        "{judged}"
    );
    let late = ask(&mut socket, answer).await;
    assert!(
        late["data"]["message"]
            .as_str()
            .is_some_and(|why| why.contains("is over")),
        "{late}"
    );
    let again = ask(&mut socket, json!({"type": "reset", "data": {"start": 5}})).await;
    assert_eq!(again["data"]["done"], false, "{again}");
}

#[tokio::test]
async fn what_is_no_message_is_refused_and_the_session_goes_on() {
    let service = service("serve.max_sessions = 1");
    let mut socket = open(&service, "counter/ws").await;
    for (text, code) in [
        ("{]", "INVALID_JSON"),
        ("[]", "UNKNOWN_TYPE"),
        (r#"{"type": "jump"}"#, "UNKNOWN_TYPE"),
        (r#"{"type": "step"}"#, "VALIDATION_ERROR"),
        (
            r#"{"type": "step", "data": {"type": "jump"}}"#,
            "VALIDATION_ERROR",
        ),
        (
            r#"{"type": "reset", "data": {"seed": -1}}"#,
            "VALIDATION_ERROR",
        ),
        (
            r#"{"type": "reset", "data": {"start": "one"}}"#,
            "VALIDATION_ERROR",
        ),
    ] {
        let answer = say(&mut socket, text).await.expect("it answers");
        assert_eq!(answer["data"]["code"], code, "{text}: {answer}");
    }
    let lost = ask(&mut socket, call("add", &json!({"by": 1}))).await;
    assert_eq!(
        lost["data"]["code"], "SESSION_ERROR",
        "no other task begins after a refused reset: {lost}"
    );
    let begun = ask(&mut socket, json!({"type": "reset"})).await;
    assert_eq!(begun["type"], "observation", "{begun}");

    let mut second = open(&service, "counter/ws").await;
    let full = ask(&mut second, json!({"type": "reset"})).await;
    assert_eq!(full["data"]["code"], "CAPACITY_REACHED", "{full}");
    drop(second);
    assert!(say(&mut socket, r#"{"type": "close"}"#).await.is_none());
    drop(socket);

    let mut third = open(&service, "counter/ws").await;
    let begun = ask(&mut third, json!({"type": "reset"})).await;
    assert_eq!(
        begun["type"], "observation",
        "a closed session holds no place"
    );
    let flood = "x".repeat(5 << 20);
    assert!(
        say(&mut third, &flood).await.is_none(),
        "5 MiB are too much"
    );
}

#[test]
fn over_http_a_session_is_named_or_fresh() {
    let service = service("plugins.counter = {}\nplugins.twin.plugin = \"counter\"");
    let get = |path: &str| service.ask("GET", &format!("/openenv/{path}"), &[], "");
    let post = |path: &str, body: Value| {
        service.ask(
            "POST",
            &format!("/openenv/counter/{path}"),
            &[],
            &body.to_string(),
        )
    };
    let json = |body: &str| serde_json::from_str::<Value>(body).expect("JSON");
    assert_eq!(
        json(&get("counter/health").body),
        json!({"status": "healthy"})
    );
    let schema = json(&get("counter/schema").body);
    assert!(schema["action"]["oneOf"].is_array(), "{schema}");
    let metadata = json(&get("counter/metadata").body);
    assert_eq!(metadata["name"], "counter");
    let unknown = get("countr/health");
    assert_eq!(unknown.status, 404);
    assert!(
        unknown.body.contains("did you mean `counter`?"),
        "{}",
        unknown.body
    );

    let begun = json(&post("reset", json!({"start": 7})).body);
    let messages = &begun["observation"]["metadata"]["messages"];
    assert_eq!(messages[0]["content"], "The count is 7.");
    let action = json!({"type": "call_tool", "tool_name": "add", "arguments": {"by": 2}});
    let stepped = json(&post("step", json!({"action": action})).body);
    assert_eq!(stepped["observation"]["error"], Value::Null, "{stepped}");
    assert_eq!(
        post("step", json!({"action": {"type": "jump"}})).status,
        422
    );

    let rpc = |method: &str, params: Value| {
        json(
            &post(
                "mcp",
                json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}),
            )
            .body,
        )
    };
    let created = rpc("openenv/session/create", json!({"setup": {"start": 40}}));
    let session = &created["result"]["session_id"];
    let add = json!({"session_id": session, "name": "add", "arguments": {"by": 1}});
    let added = rpc("tools/call", add.clone());
    assert_eq!(added["result"]["data"], "41");
    assert_eq!(
        added["result"]["_meta"],
        json!({"rlf-host/reward": 1.0, "rlf-host/done": false})
    );
    assert_eq!(rpc("tools/call", add.clone())["result"]["data"], "42");
    let listed = rpc("tools/list", json!({"session_id": session}));
    assert!(listed["result"]["tools"].is_array(), "{listed}");
    let closed = rpc("openenv/session/close", json!({"session_id": session}));
    assert_eq!(closed["result"]["closed"], true, "{closed}");
    let gone = rpc("tools/call", add);
    assert_eq!(gone["error"]["message"], "Unknown session_id", "{gone}");

    // The environment ends this episode, and judges it by the reference.
    let begins = json!({"setup": {"start": 0}, "reference": {"count": 0}, "seed": 3});
    let created = rpc("openenv/session/create", begins);
    let session = &created["result"]["session_id"];
    let act = |name: &str| rpc("tools/call", json!({"session_id": session, "name": name}));
    assert_eq!(act("open_door")["result"]["_meta"]["rlf-host/done"], false);
    assert_eq!(
        act("secret")["result"]["_meta"],
        json!({"rlf-host/reward": 1.0, "rlf-host/done": true})
    );
    let ended = rpc("openenv/session/close", json!({"session_id": session}));
    assert_eq!(ended["result"]["_meta"]["rlf-host/reward"], 1.0, "{ended}");
    let begins = json!({"setup": {"start": 0}, "reference": {"count": 0}});
    let created = rpc("openenv/session/create", begins);
    let session = &created["result"]["session_id"];
    let act = |name: &str| rpc("tools/call", json!({"session_id": session, "name": name}));
    act("open_door");
    act("secret");
    let over = act("show");
    assert!(
        over["error"]["message"]
            .as_str()
            .is_some_and(|why| why.contains("is over")),
        "{over}"
    );
    for wrong in [
        json!({"seed": "one"}),
        json!({"setup": []}),
        json!({"setups": {}}),
    ] {
        let refused = rpc("openenv/session/create", wrong);
        assert_eq!(refused["error"]["code"], -32_602, "{refused}");
    }
    let judged = rpc(
        "openenv/session/create",
        json!({"reference": {"count": 5}, "setup": {"start": 5}}),
    );
    let judged = &judged["result"];
    assert_eq!(
        judged["_meta"]["rlf-host/messages"][0]["content"],
        "The count is 5."
    );
    let wrong = json!({"session_id": judged["session_id"], "answer": 5});
    assert_eq!(
        rpc("openenv/session/close", wrong)["error"]["code"],
        -32_602
    );
    let end = json!({"session_id": judged["session_id"], "answer": "five"});
    let closed = rpc("openenv/session/close", end);
    let meta = &closed["result"]["_meta"];
    assert_eq!(
        *meta,
        json!({"rlf-host/reward": 1.0, "rlf-host/reason": "1 of 1 are right"})
    );
    // Each would otherwise act in a task of its own, or in another environment.
    let named = json!({"session_id": [session], "name": "show"});
    assert_eq!(rpc("tools/call", named)["error"]["code"], -32_602);
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"session_id": session}});
    let elsewhere = service.posted("/openenv/twin/mcp", &request);
    assert_eq!(
        elsewhere["error"]["message"], "Unknown session_id",
        "{elsewhere}"
    );
    assert_eq!(rpc("tools/call", json!({}))["error"]["code"], -32_602);
    assert_eq!(rpc("tools/fly", json!({}))["error"]["code"], -32_601);
}

#[test]
fn a_client_that_leaves_during_a_call_leaves_the_session_as_it_was() {
    let service = service(
        "serve.queue_ms = 300\nserve.session_ms = 1000\nserve.max_calls = 1\n\
         [plugins.counter.limits]\ncpu_ms = 1500",
    );
    let path = "/openenv/counter/mcp";
    let body = |method: &str, params: Value| json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
    let created = service.posted(
        path,
        &body("openenv/session/create", json!({"setup": {"start": 4}})),
    );
    let session = &created["result"]["session_id"];
    let act = |name: &str| {
        let params = json!({"session_id": session, "name": name, "arguments": {"by": 1}});
        body("tools/call", params)
    };
    // The connection of a call that spins, and what others are told once it has the only place.
    let spin = || {
        let turns = "rlf_serve_queue_duration_seconds_count";
        let before = service.metric(turns);
        let request = service.request("POST", path, &[], &act("spin").to_string());
        let connection = service.send(request.as_bytes());
        service.wait_for_metric(turns, |now| now > before);
        let busy = service.post("/openenv/counter/reset", &json!({}));
        assert_eq!(busy.status, 504, "{busy:?}");
        (connection, busy)
    };
    drop(spin());
    let added = service.posted(path, &act("add"));
    assert_eq!(added["result"]["data"], "5", "{added}");

    // While it spins, others are told to come again, which is neither their mistake nor the environment's.
    let (spins, busy) = spin();
    assert!(busy.head.contains("retry-after"), "{busy:?}");
    let close = body("openenv/session/close", json!({"session_id": session}));
    for busy in [act("add"), close] {
        let busy = service.posted(path, &busy);
        assert_eq!(busy["error"]["code"], -32_000, "{busy}");
    }
    // It takes longer than a session may be idle.
    let stopped = rlf_tests::Answer::read(spins).json();
    assert!(stopped["error"]["message"].is_string(), "{stopped}");
    let added = service.posted(path, &act("add"));
    assert_eq!(added["result"]["data"], "6", "{added}");
}

#[test]
fn a_policy_trains_in_an_environment_behind_a_url() {
    let service = service("");
    let url = format!("http://{}/openenv/counter", service.address());
    let rows = (0..8).map(|number| {
        json!({
            "id": format!("t{number}"), "source": "openenv", "environment": "counting",
            "prompt": [{"role": "user", "content": "Add one."}], "tools": ["add"], "setup": {"start": number},
            "reference": {"calls": [{"name": "add", "arguments": {"by": 1}}]},
        })
        .to_string()
    });
    let rows: Vec<String> = rows.collect();
    let experiment = Experiment::tiny()
        .without("tasks")
        .without("rewards")
        .with("sft.steps", 40)
        .with("sft.optimizer.warmup_steps", 5)
        .with("sft.optimizer.learning_rate", 5e-3)
        .with_toml(&format!(
            "tasks.train = 'rows.jsonl'
            tasks.validation = 'rows.jsonl'
            dialogue.answer = 'final-turn'
            openenv.counting.url = '{url}'
            rewards.success = 'reward-verdict.success >= 1'
            rewards.stack = [{{plugin = 'reward-verdict', weights = {{score = 1.0}}}}]"
        ));
    experiment.write("rows.jsonl", rows.join("\n"));
    let run = experiment.train("run", &[]);
    let trajectories: Vec<Value> = run.trajectories().into_values().flatten().collect();
    let excluded = |played: &&Value| !played["trajectory"]["excluded"].is_null();
    assert_eq!(trajectories.iter().filter(excluded).count(), 0);
    let solved = |played: &Value| played["trajectory"]["verdict"]["score"] == 1.0;
    assert!(
        trajectories.iter().any(solved),
        "no reward of the environment has arrived"
    );
    let hashes = std::fs::read_to_string(run.path().join("plugins.json")).expect("is there");
    assert!(hashes.contains("openenv.counting"), "{hashes}");

    let url = "openenv.counting.url = 'http://127.0.0.1:1'";
    let unreachable = experiment.with_toml(url).try_train("other", &[]);
    unreachable.refused_with(&["[openenv.counting]", "http://127.0.0.1:1/schema"]);
}

#[test]
fn a_server_that_begins_a_task_in_another_way_than_before_takes_its_trajectories_out() {
    // Each with the tools that the task wants, and the reason why it is excluded.
    let ways: [(&str, &[&str], &[&str]); 5] = [
        ("well", &["add"], &[]),
        (
            "long",
            &["add"],
            &["task long: the prompt has", "dialogue.context is 2048"],
        ),
        (
            "with a plugin's tool",
            &["add", "calculate"],
            &["environment `counting` and a plugin both offer a tool `calculate`; rename one"],
        ),
        (
            "with fewer tools",
            &["add", "undo"],
            &["its `tools` are add, undo, and there is no `undo`; its environment has add"],
        ),
        (
            "with other tools",
            &["add"],
            &["its `tools` are add, and there is none of these; its environment has show"],
        ),
    ];
    let row = |later: &str, tools: &[&str]| {
        json!({
            "id": later, "source": "openenv", "environment": "counting", "setup": {"later": later},
            "prompt": [{"role": "user", "content": "Add one."}], "tools": tools, "reference": {},
        })
        .to_string()
    };
    let experiment = Experiment::tiny()
        .without("tasks")
        .without("plugins")
        .without("rewards")
        .without("sft")
        .with_toml(&format!(
            "tasks = {{train = 'rows.jsonl', validation = 'rows.jsonl'}}
            model.init.max_position_embeddings = 2048
            dialogue = {{answer = 'final-turn', context = 2048}}
            openenv.counting.url = '{}'
            rewards.success = 'reward-verdict.success >= 1'
            rewards.stack = [{{plugin = 'reward-verdict', weights = {{score = 1.0}}}}]
            rl.steps = 1
            rl.prompts_per_step = 5
            rl.group_size = 2
            rl.mini_batches = 1
            rl.max_dropped_share = 0.8
            rl.guards.max_excluded_share = 0.9
            eval.every = 0",
            changing_server::start()
        ));
    let rows = ways.map(|(later, tools, _)| row(later, tools));
    experiment.write("rows.jsonl", rows.join("\n"));
    let run = experiment.train("run", &[]);
    let played = &run.trajectories()["rl-000001.jsonl"];
    assert_eq!(played.len(), 10);
    for (later, _, reasons) in ways {
        let is_of_task = |record: &&Value| record["trajectory"]["task"] == later;
        let of_task: Vec<&Value> = played.iter().filter(is_of_task).collect();
        assert_eq!(of_task.len(), 2, "{later}");
        for record in of_task {
            if reasons.is_empty() {
                assert!(record["excluded"].is_null(), "{record}");
                continue;
            }
            assert!(record["score"].is_null(), "{record}");
            let excluded = record["excluded"].as_str().unwrap_or_default();
            let server = "the server of environment `counting` gave what the task cannot use: ";
            for reason in reasons.iter().chain([&server]) {
                assert!(excluded.contains(reason), "{later}: {record}");
            }
        }
    }

    // A mistake that is there before the run ends the command. Of several, the first row's is reported.
    let wrong = row("wrong", &["add", "double"]);
    experiment.write("rows.jsonl", format!("{wrong}\n{}", rows.join("\n")));
    experiment.try_train("other", &[]).refused_with(&[
        "the row with id \"wrong\": task wrong: its `tools` are add, double, and there is no `double`",
    ]);
}
