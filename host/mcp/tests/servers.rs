//! Servers that do what servers do: they hang, die, say too much, or say today what they did not say yesterday.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use rlf_dialogue::message::{Content, plain_text};
use rlf_dialogue::tool::{CallOutcome, Ended, Fault, ToolCall};
use rlf_mcp::{McpConfig, McpError, Servers};
use rlf_plugins::registry::Registry;
use rlf_plugins::turn::TurnContext;
use rlf_tools::tool_manager::{Outside, ToolManager, ToolManagerConfig};
use serde_json::{Value, json};
use tempfile::TempDir;

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/server.py");

/// A server of the test, and the folder in which it notes what happened.
struct Bad {
    folder: TempDir,
    web: Option<(Child, u16)>,
}

impl Bad {
    fn process() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder, web: None }
    }

    fn web(token: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut child = Command::new("python3")
            .arg(SERVER)
            .arg(folder.path())
            .arg("http")
            .args(token)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        BufReader::new(child.stdout.take().unwrap())
            .read_line(&mut port)
            .unwrap();
        let web = Some((child, port.trim().parse().unwrap()));
        Self { folder, web }
    }

    fn config(&self, more: &str) -> BTreeMap<String, McpConfig> {
        let way = match &self.web {
            Some((_, port)) => format!("url = \"http://127.0.0.1:{port}/mcp\""),
            None => format!(
                "command = \"python3\"\nargs = [{SERVER:?}, \"{}\"]",
                self.folder.path().display()
            ),
        };
        rlf_config::parse(&format!("[bad]\n{way}\n{more}"), "test.toml").unwrap()
    }

    fn tools(&self, more: &str) -> ToolManager {
        let servers = Servers::connect(&self.config(more), &|_| {}).unwrap();
        manager(&servers)
    }

    fn notes(&self, file: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.path().join(file)).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

impl Drop for Bad {
    fn drop(&mut self) {
        if let Some((child, _)) = &mut self.web {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }
}

fn manager(servers: &Servers) -> ToolManager {
    let outside = Outside {
        servers: servers.tool_servers(),
        ..Outside::default()
    };
    ToolManager::with_outside(&Registry::default(), &ToolManagerConfig::default(), outside).unwrap()
}

async fn call(tools: &ToolManager, name: &str, arguments: Value) -> CallOutcome {
    let call = ToolCall {
        call_id: "t/0/0".into(),
        name: name.into(),
        arguments,
    };
    let context = TurnContext {
        trajectory_id: "t".into(),
        turn: 0,
        seed: 0,
    };
    tools.invoke(vec![call], &context).await.pop().unwrap()
}

fn seen(outcome: &CallOutcome) -> String {
    let seen = outcome.observation.as_ref();
    seen.map(|seen| plain_text(&seen.content))
        .unwrap_or_default()
}

fn end(outcome: &CallOutcome) -> (Ended, Fault) {
    (outcome.ended, outcome.fault)
}

const BY_SERVER: (Ended, Fault) = (Ended::Trap, Fault::Plugin);
const LOST: (Ended, Fault) = (Ended::Unavailable, Fault::Infrastructure);
const LATE: (Ended, Fault) = (Ended::Timeout, Fault::Infrastructure);

#[tokio::test]
async fn each_end_has_its_fault_and_a_server_that_dies_costs_its_own_calls() {
    let bad = Bad::process();
    let tools = bad.tools("result_bytes = 4000");
    let echo = || call(&tools, "echo", json!({"text": "hello"}));
    let first = echo().await;
    assert_eq!(
        (end(&first), &*seen(&first)),
        ((Ended::Ok, Fault::None), "hello")
    );
    assert_eq!(first.component.len(), 64);

    let wrong = call(&tools, "echo", json!({"text": 5})).await;
    assert_eq!(end(&wrong), (Ended::InvalidArguments, Fault::Model));
    assert_eq!(
        bad.notes("calls"),
        ["echo"],
        "wrong arguments do not reach the server"
    );

    let failed = call(&tools, "fail", json!({})).await;
    assert_eq!(
        (end(&failed), &*seen(&failed)),
        ((Ended::Failed, Fault::Model), "that did not work")
    );
    let picky = call(&tools, "picky", json!({})).await;
    assert_eq!(end(&picky), (Ended::InvalidArguments, Fault::Model));
    assert!(seen(&picky).contains("not these arguments"));
    let broken = call(&tools, "broken", json!({})).await;
    assert_eq!(end(&broken), BY_SERVER);
    assert!(!seen(&broken).contains("a bug") && broken.detail.unwrap().contains("a bug"));
    let lie = call(&tools, "lie", json!({})).await;
    assert_eq!(end(&lie), BY_SERVER);
    assert!(lie.detail.unwrap().contains("output schema"));
    let large = call(&tools, "large", json!({})).await;
    assert_eq!(end(&large), (Ended::OutputLimit, Fault::Model));
    let picture = call(&tools, "picture", json!({})).await;
    let content = &picture.observation.unwrap().content;
    assert!(
        matches!(content.as_slice(), [Content::Image(image)] if image.media_type == "image/png")
    );
    let asked = call(&tools, "ask", json!({})).await;
    assert_eq!(
        seen(&asked),
        "asked",
        "a question to the user is refused, and nothing waits for it"
    );

    let pinged = call(&tools, "ping", json!({})).await;
    assert_eq!(
        end(&pinged),
        LOST,
        "a server that asks without end loses its connection"
    );
    assert_eq!(end(&echo().await), (Ended::Ok, Fault::None));

    let died = call(&tools, "die", json!({})).await;
    assert_eq!(end(&died), LOST);
    assert_eq!(
        bad.notes("calls")
            .iter()
            .filter(|name| *name == "die")
            .count(),
        1,
        "it might have had an effect"
    );
    assert_eq!(end(&echo().await), (Ended::Ok, Fault::None));
    assert_eq!(bad.notes("started").len(), 3);
    let died = call(&tools, "die_twice", json!({})).await;
    assert_eq!(end(&died), LOST);
    assert_eq!(
        bad.notes("calls")
            .iter()
            .filter(|name| *name == "die_twice")
            .count(),
        2,
        "it says that it may be repeated"
    );
}

#[tokio::test]
async fn a_server_that_hangs_or_floods_is_left_at_the_deadline_and_in_the_end_replaced() {
    let bad = Bad::process();
    let tools = bad.tools("deadline_ms = 700");
    let began = Instant::now();
    let late = call(&tools, "flood", json!({})).await;
    assert_eq!(end(&late), LATE);
    let hung = call(&tools, "hang", json!({})).await;
    assert_eq!(end(&hung), LATE);
    assert!(began.elapsed() < Duration::from_secs(10));
    assert_eq!(
        end(&call(&tools, "echo", json!({"text": "x"})).await),
        (Ended::Ok, Fault::None)
    );
    for _ in 0..3 {
        call(&tools, "hang", json!({})).await;
    }
    assert_eq!(
        end(&call(&tools, "echo", json!({"text": "x"})).await),
        (Ended::Ok, Fault::None)
    );
    assert_eq!(
        bad.notes("started").len(),
        2,
        "after three silent calls the process is replaced"
    );
    assert!(!bad.notes("cancelled").is_empty(), "the server is told");
}

#[tokio::test]
async fn a_broken_message_ends_its_connection_at_once_and_noise_does_not() {
    let bad = Bad::process();
    let tools = bad.tools("");
    let began = Instant::now();
    assert_eq!(seen(&call(&tools, "noise", json!({})).await), "heard");
    assert_eq!(bad.notes("started").len(), 1);
    for (tool, says) in [
        ("garble", "the server sent a message that is not JSON"),
        ("giant", "the server sent a message of more than 16 MiB"),
    ] {
        let broken = call(&tools, tool, json!({})).await;
        assert_eq!(end(&broken), LOST);
        let detail = broken.detail.unwrap();
        assert!(detail.contains(says), "{detail}");
        let echo = call(&tools, "echo", json!({"text": "x"})).await;
        assert_eq!(end(&echo), (Ended::Ok, Fault::None));
    }
    assert_eq!(bad.notes("started").len(), 3, "the process is replaced");
    assert!(
        began.elapsed() < Duration::from_secs(30),
        "no call waits for its deadline"
    );
}

#[tokio::test]
async fn a_tool_that_changed_is_not_called_any_more() {
    let bad = Bad::process();
    let tools = bad.tools("retries = 0");
    assert_eq!(seen(&call(&tools, "change", json!({})).await), "changed");
    let echo = call(&tools, "echo", json!({"text": "x"})).await;
    assert_eq!(end(&echo), LOST);
    assert!(echo.detail.unwrap().contains("`echo`"));
    assert_eq!(
        end(&call(&tools, "fail", json!({})).await),
        (Ended::Failed, Fault::Model)
    );
}

#[tokio::test]
async fn a_tool_that_vanished_without_a_word_is_no_fault_of_the_model() {
    let bad = Bad::process();
    let tools = bad.tools("retries = 0");
    for _ in 0..2 {
        let vanished = call(&tools, "vanish", json!({})).await;
        assert_eq!(end(&vanished), LOST);
        assert!(vanished.detail.unwrap().contains("no longer has the tool"));
    }
    assert_eq!(bad.notes("calls"), ["vanish"], "it is asked once");
    assert_eq!(bad.notes("started").len(), 1, "the connection is good");
}

#[tokio::test]
async fn calls_that_wait_for_a_silent_one_do_not_count_as_silent() {
    let bad = Bad::process();
    let tools = bad.tools("deadline_ms = 700\nmax_concurrency = 1");
    let calls = ["hang", "echo", "echo", "echo"].map(|name| {
        let arguments = json!({"text": "x"});
        call(&tools, name, arguments)
    });
    // Those that waited may have a moment left when their turn comes.
    let ended = futures_util::future::join_all(calls).await;
    assert_eq!(end(&ended[0]), LATE);
    assert_eq!(
        end(&call(&tools, "echo", json!({"text": "x"})).await),
        (Ended::Ok, Fault::None)
    );
    assert_eq!(bad.notes("started").len(), 1);
}

#[test]
fn tools_are_chosen_and_renamed_and_one_that_cannot_be_offered_is_left_out() {
    let bad = Bad::process();
    let warnings = Mutex::new(Vec::new());
    let warn = |text: &str| warnings.lock().unwrap().push(text.to_owned());
    let servers = Servers::connect(&bad.config(""), &warn).unwrap();
    let tools = manager(&servers);
    assert!(tools.has("fs_read") && !tools.has("remote"));
    let warned = warnings.lock().unwrap().join("\n");
    assert!(
        warned.starts_with("[mcp.bad] its tool `remote` cannot be offered: "),
        "{warned}"
    );

    let some = bad.tools("tools = [\"echo\", \"fs.read\"]\nrename.\"fs.read\" = \"read\"");
    let names: Vec<String> = some
        .definitions(None)
        .unwrap()
        .into_iter()
        .map(|tool| tool.name)
        .collect();
    assert_eq!(names, ["echo", "read"]);
    assert!(some.definitions(None).unwrap()[0].hints.open_world);

    let refused = |more: &str| {
        Servers::connect(&bad.config(more), &|_| {})
            .unwrap_err()
            .to_string()
    };
    let said = refused("tools = [\"ecko\"]");
    assert_eq!(
        said,
        "[mcp.bad] the server offers no tool `ecko`; did you mean `echo`?"
    );
    let said = refused("tools = [\"remote\"]");
    assert!(said.contains("`remote` cannot be offered"), "{said}");
    let said = refused("rename.fail = \"echo\"\ntools = [\"echo\", \"fail\"]");
    assert!(
        said.contains("another tool of the server is called `echo`"),
        "{said}"
    );
    let said = refused("rename.nothing = \"x\"");
    assert!(
        said.contains("`rename` is about a tool `nothing`"),
        "{said}"
    );
}

#[test]
fn a_definition_that_cannot_be_read_costs_its_own_tool_and_no_other() {
    for bad in [Bad::process(), Bad::web(&[])] {
        std::fs::write(bad.folder.path().join("malformed"), "").unwrap();
        let warnings = Mutex::new(Vec::new());
        let warn = |text: &str| warnings.lock().unwrap().push(text.to_owned());
        let servers = Servers::connect(&bad.config(""), &warn).unwrap();
        assert!(manager(&servers).has("echo"));
        let warned = warnings.lock().unwrap();
        assert_eq!(
            warned[0],
            "[mcp.bad] its tool `shapeless` cannot be offered: its definition cannot be read: missing field `inputSchema`"
        );
        let says = "[mcp.bad] tool 2 of its list cannot be offered: ";
        assert!(warned[1].starts_with(says), "{warned:?}");

        // Only what the operator named must be there.
        assert!(Servers::connect(&bad.config("tools = [\"echo\"]"), &|_| {}).is_ok());
        let wanted = bad.config("tools = [\"echo\", \"shapeless\"]");
        let said = Servers::connect(&wanted, &|_| {}).unwrap_err().to_string();
        assert!(
            said.starts_with("[mcp.bad] its tool `shapeless` cannot be offered: "),
            "{said}"
        );
    }
}

#[test]
fn a_server_that_cannot_be_used_says_why() {
    let refused = |text: &str| {
        let configs = rlf_config::parse(text, "test.toml").unwrap();
        Servers::connect(&configs, &|_| {}).unwrap_err()
    };
    let said = refused("[x]\ncommand = \"no-such-program\"").to_string();
    assert!(
        said.starts_with("[mcp.x] cannot start `no-such-program`: "),
        "{said}"
    );
    let said = refused("[x]\ncommand = \"sh\"\nargs = [\"-c\", \"echo no licence >&2; exit 1\"]")
        .to_string();
    assert!(said.contains("it wrote: no licence"), "{said}");
    let said = refused("[x]\ncommand = \"sleep\"\nargs = [\"60\"]\nconnect_ms = 300").to_string();
    assert!(said.contains("not connected within 300 ms"), "{said}");
    let said = refused("[x]\ncommand = \"yes\"\nconnect_ms = 1000").to_string();
    assert!(said.starts_with("[mcp.x] "), "{said}");
    let error = refused("[x]\ncommand = \"cat\"\nenv.KEY = \"${RLF_NOT_SET}\"");
    assert!(
        error.to_string().contains("`RLF_NOT_SET` is not set"),
        "{error}"
    );
    let error = refused("[x]\nurl = \"http://127.0.0.1:1/\"\nheaders.K = \"${RLF_NOT_SET}\"");
    assert!(
        matches!(&error, McpError::Config { key, .. } if key == "headers.K"),
        "{error}"
    );
    let said = refused("[x]\nurl = \"http://127.0.0.1:1/\"\nconnect_ms = 2000").to_string();
    assert!(said.starts_with("[mcp.x] "), "{said}");
}

#[tokio::test]
async fn a_process_gets_the_variables_that_it_is_given_and_ends_with_its_servers() {
    let folder = tempfile::tempdir().unwrap();
    let script: PathBuf = folder.path().join("start.sh");
    // Two processes: what a server starts ends with it.
    let text = format!(
        "env > {0}/env\necho $$ >> {0}/pids\nsleep 1000 & echo $! >> {0}/pids\nexec python3 {SERVER} {0}\n",
        folder.path().display()
    );
    std::fs::write(&script, text).unwrap();
    let config = format!("[x]\ncommand = \"sh\"\nargs = [{script:?}]\nenv.GIVEN = \"${{HOME}}/x\"");
    let servers =
        Servers::connect(&rlf_config::parse(&config, "test.toml").unwrap(), &|_| {}).unwrap();
    let tools = manager(&servers);
    assert_eq!(seen(&call(&tools, "echo", json!({"text": "x"})).await), "x");
    let env = std::fs::read_to_string(folder.path().join("env")).unwrap();
    assert!(env.contains(&format!("GIVEN={}/x\n", std::env::var("HOME").unwrap())));
    assert!(!env.contains("CARGO_"), "{env}");
    drop((servers, tools));
    let pids = std::fs::read_to_string(folder.path().join("pids")).unwrap();
    for pid in pids.lines() {
        let is_gone = || {
            let stat = std::fs::read_to_string(Path::new("/proc").join(pid).join("stat"));
            stat.map_or(true, |stat| stat.contains(") Z "))
        };
        // Whoever was killed takes a moment to be gone.
        let until = Instant::now() + Duration::from_secs(10);
        while !is_gone() {
            assert!(Instant::now() < until, "{pid} lives");
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

#[tokio::test]
async fn a_service_behind_a_url_works_alike() {
    let bad = Bad::web(&[]);
    let tools = bad.tools("deadline_ms = 1500\nretries = 0");
    let echo = || call(&tools, "echo", json!({"text": "hello"}));
    let first = echo().await;
    assert_eq!(
        (end(&first), &*seen(&first)),
        ((Ended::Ok, Fault::None), "hello")
    );
    assert_eq!(end(&call(&tools, "broken", json!({})).await), BY_SERVER);
    let garbled = call(&tools, "garble", json!({})).await;
    assert_eq!(end(&garbled), LOST);
    assert_eq!(end(&call(&tools, "hang", json!({})).await), LATE);
    let nobodys = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32000, "message": "no"}});
    for answer in [
        json!([429, {"error": "not now"}]),
        json!([503, nobodys]),
        json!([200, nobodys]),
        json!([202, ""]),
    ] {
        let busy = call(&tools, "busy", json!({"answer": answer})).await;
        assert_eq!(end(&busy), LOST, "{answer}");
        let status = answer[0].to_string();
        assert!(busy.detail.unwrap().contains(&status), "{answer}");
        assert_eq!(seen(&echo().await), "hello");
    }
    assert_eq!(
        bad.notes("started"),
        ["1"],
        "a request that was refused costs no other its session"
    );
    // A service that knows its session no more may say so in this way.
    let forgot = call(&tools, "busy", json!({"answer": [400, nobodys]})).await;
    assert_eq!(end(&forgot), LOST);
    assert_eq!(seen(&echo().await), "hello");
    assert_eq!(bad.notes("started"), ["1", "2"], "it is connected again");
    // The service forgets its sessions, as one does that is started again.
    assert_eq!(end(&call(&tools, "die", json!({})).await), LOST);
    assert_eq!(seen(&echo().await), "hello");
    drop(tools);
    assert!(
        bad.notes("cancelled").contains(&"session".to_owned()),
        "its session is ended"
    );
}

#[tokio::test]
async fn a_token_comes_from_the_environment_and_is_in_no_error() {
    // PATH stands for a secret, because a test cannot set a variable of its own process.
    let secret = std::env::var("PATH").unwrap();
    let bad = Bad::web(&[&format!("a-{secret}")]);
    let tools = bad.tools("headers.Authorization = \"Bearer a-${PATH}\"");
    assert_eq!(
        seen(&call(&tools, "echo", json!({"text": "hello"})).await),
        "hello"
    );
    // This server repeats what it was sent.
    let wrong = bad.config("headers.Authorization = \"Bearer b-${PATH}\"");
    let said = Servers::connect(&wrong, &|_| {}).unwrap_err().to_string();
    assert!(
        said.contains("401") && said.contains("no token, Bearer b-"),
        "{said}"
    );
    assert!(!said.contains(&secret), "{said}");
}
