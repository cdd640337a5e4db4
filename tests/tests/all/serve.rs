//! `rlf-host serve`: clients of SandboxFusion find the interface that they know, and clients without access find
//! nothing.

use std::io::{Read, Write};
use std::thread;

use rlf_tests::{Answer, Client, Host, Service};
use rustix::process::Signal;
use serde_json::{Value, json};

/// `python` names the toy language of the tests, in which every ending can be produced exactly.
const TOY: &str = "[serve]\nlanguages = { python = \"toy\" }\n";

fn service(config: &str) -> Service {
    Service::start(&Host::with_test_plugins(), config, &[])
}

fn program(code: &str) -> Value {
    json!({
        "compile_timeout": 10, "run_timeout": 10, "code": code, "stdin": null, "memory_limit_MB": 1024,
        "language": "python", "files": {}, "fetch_files": []
    })
}

fn with(mut request: Value, key: &str, value: Value) -> Value {
    request[key] = value;
    request
}

#[test]
fn a_program_that_ends_well_is_answered_with_every_field_in_its_place() {
    let service = service(TOY);
    let answer = service.post("/run_code", &program("print hello\nwarn careful"));
    assert_eq!(answer.status, 200, "{answer:?}");
    let time = answer.json()["run_result"]["execution_time"].to_string();
    assert_eq!(
        answer.body,
        format!(
            r#"{{"status":"Success","message":"","compile_result":null,"run_result":{{"status":"Finished","execution_time":{time},"return_code":0,"stdout":"hello\n","stderr":"careful\n"}},"executor_pod_name":null,"files":{{}}}}"#
        )
    );
    assert!(
        answer.head.contains("content-type: application/json"),
        "{}",
        answer.head
    );
    let least = json!({"code": "print 1", "language": "python", "unknown": [1]});
    assert_eq!(
        service.posted("/run_code", &least)["run_result"]["stdout"],
        "1\n"
    );
}

#[test]
fn every_other_end_has_the_status_that_the_protocol_gives_it() {
    let service = service(&format!(
        "{TOY}[plugins.toy]\nprograms.memory_bytes = 67_108_864\n"
    ));
    let ended = |request: &Value| {
        let answer = service.posted("/run_code", request);
        let run = &answer["run_result"];
        assert_eq!(answer["message"], "", "{answer}");
        (
            answer["status"].as_str().unwrap_or_default().to_owned(),
            run["status"].as_str().unwrap_or_default().to_owned(),
            run["return_code"].clone(),
            run["stdout"].as_str().unwrap_or_default().to_owned(),
        )
    };
    let row = |status: &str, run: &str, code: Value, stdout: &str| {
        (status.to_owned(), run.to_owned(), code, stdout.to_owned())
    };
    let finished = |code: i32, stdout: &str| row("Failed", "Finished", json!(code), stdout);
    let late = |stdout: &str| row("Failed", "TimeLimitExceeded", Value::Null, stdout);
    assert_eq!(
        ended(&program("print a\nexit 3\nprint b")),
        finished(3, "a\n")
    );
    assert_eq!(ended(&program("leave 7")), finished(7, ""));
    assert_eq!(ended(&program("print a\nraise no")), finished(1, "a\n"));
    assert_eq!(ended(&program("print a\ntrap")), finished(-6, "a\n"));
    assert_eq!(ended(&program("print a\ngrow 200")).0, "Failed");
    // Output before a limit is kept; sleeping takes virtual time only, computing takes CPU time.
    let brief = |code: &str| with(program(code), "run_timeout", json!(0.2));
    assert_eq!(ended(&brief("print a\nsleep 100000")), late("a\n"));
    assert_eq!(ended(&brief("print a\nloop")), late("a\n"));
    assert_eq!(
        ended(&brief("sleep 100")),
        row("Success", "Finished", json!(0), "")
    );
    for none in [json!(0), json!(-3)] {
        assert_eq!(
            ended(&with(program("print a"), "run_timeout", none)),
            late("")
        );
    }
    // A request gets at most the available time, however much it asks for.
    for huge in [json!(1e300), json!("10"), json!(100_000)] {
        assert_eq!(
            ended(&with(program("print a"), "run_timeout", huge)).0,
            "Success"
        );
    }
    for all in [-1, 0, 1_i64 << 40] {
        assert_eq!(
            ended(&with(program("print a"), "memory_limit_MB", json!(all))).0,
            "Success"
        );
    }
    let slept = service.posted("/run_code", &brief("sleep 100000"));
    let time = slept["run_result"]["execution_time"]
        .as_f64()
        .unwrap_or_default();
    assert!((0.2..10.0).contains(&time), "{slept}");
}

#[test]
fn input_and_files_go_in_and_files_come_out_and_none_leads_elsewhere() {
    let service = service(TOY);
    let mut request = program("stdin\nread a.txt\nwrite b.txt out\nwrite /c.txt root");
    request["stdin"] = json!("in\n");
    request["files"] = json!({"a.txt": "aGVsbG8=", "gone": null});
    request["fetch_files"] = json!(["b.txt", "/c.txt", "missing", "x/../b.txt"]);
    let answer = service.posted("/run_code", &request);
    assert_eq!(answer["run_result"]["stdout"], "in\nhello\n", "{answer}");
    assert_eq!(
        answer["files"],
        json!({"b.txt": "b3V0", "/c.txt": "cm9vdA==", "x/../b.txt": "b3V0"})
    );
    for (key, value) in [
        ("fetch_files", json!(["../etc/passwd"])),
        ("fetch_files", json!(["/../etc/passwd"])),
        ("fetch_files", json!(["a\u{0}b"])),
        ("files", json!({"../a": ""})),
        ("files", json!({"a": "not base64"})),
    ] {
        let answer = service.post("/run_code", &with(program("print a"), key, value.clone()));
        assert_eq!(answer.status, 422, "{value}: {answer:?}");
        assert_eq!(answer.json()["detail"][0]["loc"][1], key, "{answer:?}");
    }
    // Folders of given files exist, and so do folders of absolute paths to fetch; the program must create all others.
    let mut request = program("read /srv/in/a\nwrite /mnt/data/x kept\nwrite own/y lost");
    request["files"] = json!({"/srv/in/a": "aGVsbG8="});
    request["fetch_files"] = json!(["/mnt/data/x", "own/y", "/mnt/data", "/mnt"]);
    let answer = service.posted("/run_code", &request);
    assert!(
        answer["run_result"]["stdout"]
            .as_str()
            .is_some_and(|text| text.starts_with("hello\n") && text.lines().count() == 2),
        "{answer}"
    );
    assert_eq!(answer["files"], json!({"/mnt/data/x": "a2VwdA=="}));
    // An absolute path is in the program's own root, which holds nothing of the machine.
    let fetched = service.posted(
        "/run_code",
        &with(program("print a"), "fetch_files", json!(["/etc/passwd"])),
    );
    assert_eq!(fetched["files"], json!({}));
}

#[test]
fn of_what_is_printed_the_first_mebibyte_is_whole_unless_the_operator_says_otherwise() {
    let printed = |service: &Service, code: &str| {
        let answer = service.posted("/run_code", &program(code));
        let printed = answer["run_result"]["stdout"].as_str().unwrap_or_default();
        printed.to_owned()
    };
    let unsaid = service(TOY);
    assert_eq!(printed(&unsaid, "flood 1024").len(), 1 << 20);
    let more = printed(&unsaid, "flood 1025");
    assert!(more.contains("\n[... 1024 bytes left out ...]\n"));
    drop(unsaid);
    let said = service(&format!(
        "{TOY}[plugins.toy]\nprograms.output_bytes = 100\n"
    ));
    assert!(printed(&said, "flood 1").contains("[... 924 bytes left out ...]"));
}

#[test]
fn a_language_that_is_not_installed_is_told_from_one_that_is_none() {
    let service = service("");
    let in_language = |language: &str| with(program("print a"), "language", json!(language));
    let known = service.posted("/run_code", &in_language("cpp"));
    assert_eq!(known["status"], "SandboxError");
    assert_eq!(known["run_result"], Value::Null);
    assert_eq!(
        known["message"],
        "no interpreter of `cpp` is installed here; installed: toy"
    );
    assert_eq!(
        service.posted("/run_code", &in_language("toy"))["status"],
        "Success"
    );
    // The service does not guess that the installed language is Python.
    assert_eq!(
        service.posted("/run_code", &in_language("python"))["status"],
        "SandboxError"
    );
    assert_eq!(
        service.posted("/run_jupyter", &json!({"cells": []}))["status"],
        "SandboxError"
    );
    let unknown = service.post("/run_code", &in_language("klingon"));
    assert_eq!(unknown.status, 422);
    assert_eq!(
        unknown.json()["detail"][0]["loc"],
        json!(["body", "language"])
    );
    assert_eq!(unknown.json()["detail"][0]["type"], "literal_error");
}

#[test]
fn a_notebook_keeps_its_names_goes_on_after_an_exception_and_ends_at_a_limit() {
    let service = service(TOY);
    let answer = service.posted(
        "/run_jupyter",
        &json!({
            "cells": ["set a 1\nprint x", "get a", "raise no", "get a\nshow picture", "write f.txt kept"],
            "cell_timeout": 0, "total_timeout": 45, "memory_limit_MB": -1, "kernel": "python3",
            "files": {}, "fetch_files": ["f.txt"]
        }),
    );
    assert_eq!(answer["status"], "Success", "{answer}");
    assert_eq!(answer["driver"]["status"], "Finished");
    assert_eq!(
        answer["cells"][0],
        json!({"stdout": "x\n", "stderr": "", "display": [], "error": []})
    );
    assert_eq!(answer["cells"][1]["display"], json!([{"text/plain": "1"}]));
    let error = &answer["cells"][2]["error"][0];
    assert_eq!(
        (&error["ename"], &error["evalue"]),
        (&json!("Error"), &json!("no"))
    );
    assert_eq!(error["traceback"], json!(["Error: no"]));
    assert_eq!(
        answer["cells"][3]["display"],
        json!([{"text/plain": "picture"}, {"text/plain": "1"}])
    );
    assert_eq!(answer["files"], json!({"f.txt": "a2VwdA=="}));
    // Nothing remains for the next request.
    let next = service.posted("/run_jupyter", &json!({"cells": ["get a"]}));
    assert_eq!(next["cells"][0]["display"], json!([]));

    let late = service.posted(
        "/run_jupyter",
        &json!({"cells": ["print a", "print b\nsleep 1000000", "print c"], "cell_timeout": 0.5}),
    );
    assert_eq!(late["status"], "Failed", "{late}");
    assert_eq!(late["driver"]["status"], "TimeLimitExceeded");
    assert_eq!(late["driver"]["return_code"], Value::Null);
    let total = |seconds: u64| {
        let cells = [
            "sleep 9000\nprint a",
            "sleep 9000\nprint b",
            "sleep 9000\nprint c",
        ];
        service.posted(
            "/run_jupyter",
            &json!({"cells": cells, "total_timeout": seconds}),
        )
    };
    // Only the cells' own time counts, however long the service takes.
    assert_eq!(total(28)["status"], "Success");
    let over = total(20);
    assert_eq!(over["driver"]["status"], "TimeLimitExceeded", "{over}");
    assert_eq!(over["cells"][1]["stdout"], "b\n");
    assert_eq!(over["cells"][2]["stdout"], "");
    let stdout: Vec<&Value> = late["cells"]
        .as_array()
        .expect("cells")
        .iter()
        .map(|cell| &cell["stdout"])
        .collect();
    assert_eq!(stdout, ["a\n", "b\n"]);
}

#[test]
fn bodies_that_do_not_fit_are_named_by_their_place_and_nothing_is_run() {
    let service = service(TOY);
    let missing = service.post("/run_code", &json!({"language": "python"}));
    assert_eq!(missing.status, 422);
    assert_eq!(
        missing.json(),
        json!({"detail": [{"type": "missing", "loc": ["body", "code"], "msg": "Field required"}]})
    );
    for body in [
        "{",
        "[]",
        "null",
        "{\"code\": 1, \"language\": \"python\"}",
        "{\"code\": \"\", \"language\": \"python\", \"run_timeout\": NaN}",
    ] {
        assert_eq!(
            service.ask("POST", "/run_code", &[], body).status,
            422,
            "{body}"
        );
    }
    assert_eq!(
        service
            .post("/run_jupyter", &json!({"cells": ["a"], "kernel": "ir"}))
            .status,
        422
    );
    assert_eq!(service.get("/run_code").status, 405);
    assert_eq!(service.get("/nowhere").status, 404);
}

#[test]
fn who_comes_by_another_name_from_a_page_or_without_json_is_refused() {
    let service = service(TOY);
    let body = program("print a").to_string();
    let asked = |headers: &[(&str, &str)]| service.ask("POST", "/run_code", headers, &body).status;
    assert_eq!(asked(&[]), 200);
    assert_eq!(asked(&[("host", "localhost:80")]), 200);
    assert_eq!(asked(&[("host", "rebound.example.com")]), 403);
    assert_eq!(asked(&[("origin", "https://evil.example.com")]), 403);
    assert_eq!(asked(&[("origin", "null")]), 403);
    assert_eq!(asked(&[("content-type", "text/plain")]), 415);
    assert_eq!(
        service
            .ask(
                "OPTIONS",
                "/run_code",
                &[("origin", "https://evil.example.com")],
                ""
            )
            .status,
        403
    );
    // Probes do not bypass the check.
    assert_eq!(
        service
            .ask("GET", "/health", &[("host", "rebound.example.com")], "")
            .status,
        403
    );
}

#[test]
fn another_address_than_loopback_needs_a_token_and_the_token_opens() {
    let host = Host::with_test_plugins();
    let plugins = host.plugins().display().to_string();
    let refused = host.run(["serve", "--plugins", &plugins, "--listen", "0.0.0.0:0"]);
    refused.refused_with(&[
        "0.0.0.0:0 can be reached from other machines",
        "--token-file",
    ]);

    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("token");
    std::fs::write(&file, "open-sesame-for-the-tests\n").expect("can be written");
    let mut service = Service::start(&host, TOY, &["--token-file", &file.display().to_string()]);
    let body = program("print a").to_string();
    let asked = |shown: &str| {
        service
            .ask("POST", "/run_code", &[("authorization", shown)], &body)
            .status
    };
    assert_eq!(asked("Bearer open-sesame-for-the-tests"), 200);
    // `http://any:open-sesame-for-the-tests@..`, for clients that accept only a URL.
    assert_eq!(asked("Basic YW55Om9wZW4tc2VzYW1lLWZvci10aGUtdGVzdHM="), 200);
    assert_eq!(asked("Bearer open-sesame-for-the-test"), 401);
    for (path, status) in [
        ("/metrics", 401),
        ("/openapi.json", 401),
        ("/v1/tools", 401),
        ("/nowhere", 401),
        ("/health", 200),
        ("/v1/ping", 200),
    ] {
        assert_eq!(service.get(path).status, status, "{path}");
    }
    service.process().signal(Signal::TERM);
    let ended = service.wait();
    assert!(!ended.succeeded().stderr.contains("open-sesame"), "{ended}");
}

#[test]
fn what_is_too_large_or_too_slow_is_refused_before_it_costs_anything() {
    let service = service(&format!(
        "{TOY}max_body_bytes = 2048\nbody_budget_bytes = 2048\nclient_ms = 300\nmax_files = 2\n"
    ));
    let large = program(&"x".repeat(4096)).to_string();
    assert_eq!(service.ask("POST", "/run_code", &[], &large).status, 413);
    // Without a length the body is read up to the limit.
    let chunk = format!("1000\r\n{}\r\n0\r\n\r\n", "x".repeat(4096));
    let chunked = [("transfer-encoding", "chunked"), ("content-length", "")];
    let head = service
        .request("POST", "/run_code", &chunked, "x")
        .replace("content-length: \r\n", "");
    let answer =
        Answer::read(service.send((head[..head.len() - 1].to_owned() + &chunk).as_bytes()));
    assert_eq!(answer.status, 413, "{answer:?}");
    // A body that does not arrive, and a head that does not end.
    let begun = service.request("POST", "/run_code", &[("content-length", "100")], "{");
    assert_eq!(Answer::read(service.send(begun.as_bytes())).status, 408);
    let mut silent = service.send(b"POST /run_code HTTP/1.1\r\nhost: local");
    let mut rest = Vec::new();
    let _ = silent.read_to_end(&mut rest);
    assert!(
        rest.is_empty() || rest.starts_with(b"HTTP/1.1 408"),
        "{}",
        String::from_utf8_lossy(&rest)
    );
    let files = json!({"a": "", "b": "", "c": ""});
    assert_eq!(
        service
            .post("/run_code", &with(program(""), "files", files))
            .status,
        422
    );
    assert_eq!(
        service.posted("/run_code", &program("print a"))["status"],
        "Success"
    );
}

/// Sends the head of a request that announces `body`, and the first `sent` bytes of it.
fn begun(service: &Service, body: &str, sent: usize) -> std::net::TcpStream {
    let length = body.len().to_string();
    let head = service.request(
        "POST",
        "/run_code",
        &[("content-length", &length)],
        &body[..sent],
    );
    service.send(head.as_bytes())
}

#[test]
fn who_announces_and_does_not_send_keeps_nobody_waiting() {
    let service = service(&format!(
        "{TOY}max_body_bytes = 1_048_576\nbody_budget_bytes = 1_048_576\nqueue_ms = 10_000\n"
    ));
    let large = program(&format!("print a{}", "\n".repeat(500_000))).to_string();
    assert!(large.len() > 1_000_000, "escaped");
    let mut idle: Vec<_> = (0..4).map(|_| begun(&service, &large, 1)).collect();
    assert_eq!(
        service.posted("/run_code", &program("print b"))["run_result"]["stdout"],
        "b\n"
    );
    // A client that continues to send is still read, once the others have given up.
    let mut slow = idle.remove(0);
    drop(idle);
    slow.write_all(&large.as_bytes()[1..]).expect("it reads");
    assert_eq!(Answer::read(slow).json()["run_result"]["stdout"], "a\n");
}

#[test]
fn what_has_come_of_bodies_never_sums_to_more_than_the_budget() {
    let service = service(&format!(
        "{TOY}max_body_bytes = 1_048_576\nbody_budget_bytes = 1_048_576\nqueue_ms = 100\n\
         [plugins.bad-reward]\nconfig.mode = \"error\"\n"
    ));
    let large = program(&"x".repeat(1_000_000)).to_string();
    let other = program(&format!("print a{}", " ".repeat(200_000)));
    let is_refused = |_| {
        let answer = service.post("/run_code", &other);
        answer.status == 504 && answer.body.contains("serve.body_budget_bytes")
    };
    // On a busy machine this request may itself wait too long for the memory that other requests hold, and be
    // refused.
    let held = (0..20).find_map(|_| {
        let held = begun(&service, &large, large.len() - 1);
        (0..50).any(is_refused).then_some(held)
    });
    assert!(held.is_some());
    assert_eq!(
        service.posted("/run_code", &program("print b"))["status"],
        "Success"
    );
    drop(held);
    let again = (0..100).find(|_| service.post("/run_code", &other).status == 200);
    assert!(again.is_some(), "its room was not given back");
    // A list of many zeros takes more memory than its text.
    let zeros = json!({"task": {"reference": vec![0; 400_000]}, "messages": []});
    let answer = service.post("/v1/rewards/bad-reward", &zeros);
    assert_eq!(answer.status, 413, "{answer:?}");
}

#[test]
fn heads_that_are_too_large_or_say_two_things_are_refused() {
    let service = service(TOY);
    let body = program("print a").to_string();
    let many: Vec<String> = (0..70).map(|number| format!("x-{number}")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|name| (name.as_str(), "1")).collect();
    assert_eq!(service.ask("POST", "/run_code", &many, &body).status, 431);
    let long = "x".repeat(300 << 10);
    let request = service.request("POST", "/run_code", &[("x-long", &long)], &body);
    let mut connection = service.connect();
    // The connection may be closed while most of the request is unsent, and then the answer is lost.
    let _ = connection.write_all(request.as_bytes());
    let mut answer = Vec::new();
    let _ = connection.read_to_end(&mut answer);
    assert!(
        answer.is_empty() || answer.starts_with(b"HTTP/1.1 431"),
        "{}",
        String::from_utf8_lossy(&answer)
    );
    let longer = (body.len() + 1).to_string();
    let length = body.len().to_string();
    let twice = [
        ("content-length", length.as_str()),
        ("Content-Length", &longer),
    ];
    assert_eq!(service.ask("POST", "/run_code", &twice, &body).status, 400);
    assert_eq!(
        service
            .ask("POST", "/run_code", &[("content-length", "+5")], &body)
            .status,
        400
    );
    // With chunks the stated length is ignored, and the bytes after them are not read as a request.
    let chunked = [("transfer-encoding", "chunked"), ("content-length", "3")];
    let text = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let hidden = service.request("GET", "/hidden", &[], "");
    let head = service.request("POST", "/run_code", &chunked, "x");
    let both = format!("{}{text}{hidden}", &head[..head.len() - 1]);
    let answer = Answer::read(service.send(both.as_bytes()));
    assert!(matches!(answer.status, 200 | 400), "{answer:?}");
    assert!(!answer.body.contains("no such path"), "{answer:?}");
}

#[test]
fn who_waits_too_long_is_told_to_come_again_and_who_leaves_gives_up_the_place() {
    let service = service(&format!("{TOY}max_runs = 1\nqueue_ms = 300\n"));
    let endless = service.request("POST", "/run_code", &[], &program("loop").to_string());
    let first = service.send(endless.as_bytes());
    // It gets a first turn, and then the only place for long programs.
    service.wait_for_metric("rlf_serve_queue_duration_seconds_count", |turns| turns == 2);
    // A second program that loops finds the place taken, after its own first turn.
    let late = service.post("/run_code", &program("loop"));
    assert_eq!(late.status, 504, "{late:?}");
    // The program before it has up to 10 seconds.
    assert!(late.head.contains("retry-after: 10"), "{}", late.head);
    assert!(
        late.json()["detail"]
            .as_str()
            .unwrap_or_default()
            .contains("serve.queue_ms = 300")
    );
    // A program that ends at once waits for neither.
    assert_eq!(
        service.posted("/run_code", &program("print a"))["run_result"]["stdout"],
        "a\n"
    );
    drop(first);
    let soon = with(program("loop"), "run_timeout", json!(0.2));
    let again = (0..100).find(|_| service.post("/run_code", &soon).status == 200);
    assert!(
        again.is_some(),
        "the place of a client that left was not given back"
    );
}

#[test]
fn programs_that_end_are_answered_while_many_others_loop() {
    let service = service(&format!("{TOY}max_runs = 1\n"));
    let endless = service.request("POST", "/run_code", &[], &program("loop").to_string());
    let looping: Vec<_> = (0..10).map(|_| service.send(endless.as_bytes())).collect();
    for number in 0..10 {
        let answer = service.posted("/run_code", &program(&format!("print {number}")));
        assert_eq!(answer["run_result"]["stdout"], format!("{number}\n"));
    }
    drop(looping);
}

#[test]
fn a_hundred_programs_at_once_have_each_their_own_answer() {
    let service = service(TOY);
    thread::scope(|scope| {
        for number in 0..100 {
            let client: Client = *service;
            scope.spawn(move || {
                let answer = client.posted(
                    "/run_code",
                    &program(&format!("print {number}\nexit {number}")),
                );
                assert_eq!(answer["run_result"]["stdout"], format!("{number}\n"));
                assert_eq!(answer["run_result"]["return_code"], number);
            });
        }
    });
}

#[test]
fn a_connection_serves_one_request_after_the_other() {
    let service = service(TOY);
    let one = service
        .request("POST", "/run_code", &[], &program("print a").to_string())
        .replace("connection: close\r\n", "");
    let last = service.request("GET", "/v1/ping", &[], "");
    let mut stream = service.connect();
    stream
        .write_all((one.clone() + &one + &last).as_bytes())
        .expect("it reads");
    let answer = Answer::read(stream);
    assert_eq!(
        answer.body.matches("\"stdout\":\"a\\n\"").count(),
        2,
        "{answer:?}"
    );
    assert!(answer.body.ends_with("\"pong\""), "{answer:?}");
}

#[test]
fn who_asks_it_to_stop_is_obeyed_after_the_last_answer() {
    let mut service = service(TOY);
    let slow = with(program("print a\nloop"), "run_timeout", json!(1));
    let slow = service.request("POST", "/run_code", &[], &slow.to_string());
    let under_way = service.send(slow.as_bytes());
    service.wait_for_metric("rlf_serve_requests_under_way", |requests| requests == 2);
    service.process().signal(Signal::TERM);
    let answer = Answer::read(under_way);
    assert_eq!(
        answer.json()["run_result"]["status"],
        "TimeLimitExceeded",
        "{answer:?}"
    );
    let ended = service.wait();
    assert!(
        ended
            .succeeded()
            .stderr
            .contains("stopping: 1 requests are under way"),
        "{ended}"
    );
    assert!(
        ended.stdout.contains("1 of them after being asked to stop"),
        "{ended}"
    );
}

#[test]
fn a_connection_without_a_request_does_not_keep_the_service_from_stopping() {
    let mut service = service(&format!("{TOY}client_ms = 3_600_000\n"));
    let half = service.send(b"POST /run_code HTTP/1.1\r\nhost: local");
    let whole = service.request("GET", "/v1/ping", &[], "");
    let kept = service.send(whole.replace("connection: close\r\n", "").as_bytes());
    let fresh = service.connect();
    service.wait_for_metric("rlf_serve_connections", |connections| connections == 4);
    service.process().signal(Signal::TERM);
    let ended = service.wait();
    assert!(ended.succeeded().stdout.contains("0 of them"), "{ended}");
    for (mut stream, expected) in [(half, ""), (fresh, ""), (kept, "HTTP/1.1 200")] {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        let rest = String::from_utf8_lossy(&rest).into_owned();
        assert!(
            rest.starts_with(expected) && rest.is_empty() == expected.is_empty(),
            "{rest}"
        );
    }
}

#[test]
fn an_answer_that_is_being_delivered_is_delivered_whole_before_the_service_stops() {
    let mut service = service(TOY);
    // More data than the system buffers for a connection.
    let data = "AAAA".repeat(3 << 20);
    let mut request = with(program(""), "files", json!({ "a": data }));
    request["fetch_files"] = json!(["a"]);
    let request = service.request("POST", "/run_code", &[], &request.to_string());
    let slow = service.send(request.as_bytes());
    while !service
        .get("/metrics")
        .body
        .contains("rlf_serve_requests_total{route=\"/run_code\",status=\"200\"} 1")
    {}
    service.process().signal(Signal::TERM);
    let answer = Answer::read(slow);
    assert_eq!(
        answer.json()["files"]["a"].as_str().map(str::len),
        Some(data.len())
    );
    service.wait().succeeded();
}

#[test]
fn the_log_has_a_line_for_each_request_and_neither_code_nor_output() {
    let mut service = service(TOY);
    let body = program("print secret-output\nexit 3").to_string();
    let named = [("x-request-id", "from-the-client.1")];
    let answer = service.ask("POST", "/run_code?secret-query", &named, &body);
    assert!(
        answer.head.contains("x-request-id: from-the-client.1"),
        "{}",
        answer.head
    );
    let forged = [("x-request-id", "forged line")];
    assert!(
        !service
            .ask("GET", "/health", &forged, "")
            .head
            .contains("forged")
    );
    service.process().signal(Signal::TERM);
    let ended = service.wait();
    let log = &ended.succeeded().stderr;
    let line = log
        .lines()
        .find(|line| line.contains("from-the-client.1"))
        .unwrap_or_else(|| panic!("{ended}"));
    for part in [
        "method=POST",
        "route=\"/run_code\"",
        "status=200",
        "what=\"toy\"",
        "ended=\"failed\"",
        "queued_ms=",
        "took_ms=",
    ] {
        assert!(line.contains(part), "no {part} in {line}");
    }
    for kept in ["secret", "forged"] {
        assert!(!log.contains(kept), "{ended}");
    }
}

#[test]
fn everything_is_counted_and_described() {
    let service = service(TOY);
    service.posted("/run_code", &program("print a"));
    service.posted("/run_code", &program("exit 1"));
    let metrics = service.get("/metrics");
    for line in [
        "rlf_serve_requests_total{route=\"/run_code\",status=\"200\"} 2",
        "rlf_serve_runs_total{language=\"toy\",ended=\"ok\"} 1",
        "rlf_serve_runs_total{language=\"toy\",ended=\"failed\"} 1",
    ] {
        assert!(
            metrics.body.lines().any(|l| l == line),
            "no `{line}` in:\n{}",
            metrics.body
        );
    }
    assert_eq!(service.get("/v1/ping").body, "\"pong\"");
    let health = service.get("/health").json();
    assert_eq!(
        (&health["status"], &health["languages"]),
        (&json!("ok"), &json!({"toy": "1"}))
    );
    let described = service.get("/openapi.json").json();
    let paths = described["paths"].as_object().expect("paths");
    assert!(paths.len() >= 9, "{paths:?}");
    for (path, methods) in paths {
        let path = path.replace("{name}", "nobody");
        for method in methods.as_object().expect("methods").keys() {
            let answer = service.ask(
                &method.to_uppercase(),
                &path,
                &[],
                if method == "post" { "{}" } else { "" },
            );
            let is_there = !matches!(answer.status, 404 | 405) || answer.body.contains("`nobody`");
            assert!(is_there, "{method} {path}: {answer:?}");
        }
    }
}
