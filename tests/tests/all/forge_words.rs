//! `rlf-host forge tasks` with a scripted model that writes the words, and `forge graph` with scripted embeddings.

use std::fs;
use std::path::Path;

use rlf_tests::{ChatEndpoint, Ended, Host, Question, Reply};
use serde_json::{Value, json};

use crate::forge_tasks::copy_servers;

const EXAMPLES: &str = "plugins/specified/examples";

/// The words of the grammar for each turn of a question, after a change.
fn words(question: &Question, change: impl Fn(&str) -> String) -> Reply {
    let messages = question.messages();
    let lines = messages[1].1.lines();
    let plain = lines.filter_map(|line| line.strip_prefix("Plain words: "));
    let turns: Vec<String> = plain.map(change).collect();
    Reply::says(format!(
        "Here:\n```json\n{}\n```",
        json!({ "turns": turns })
    ))
}

fn good(question: &Question) -> Reply {
    words(question, |text| {
        format!("Well then: {text} So much for now.")
    })
}

/// A number that differs from task to task.
fn draw(question: &Question) -> usize {
    question.messages()[1].1.len() % 5
}

fn make(host: &Host, endpoint: &ChatEndpoint, output: &Path, more: &[&str]) -> Ended {
    let output = output.to_str().expect("a plain name");
    let mut all = vec![
        "forge",
        "tasks",
        EXAMPLES,
        "--seed",
        "3",
        "--count",
        "20",
        "--no-replay",
        "--output",
        output,
        "--url",
        endpoint.url(),
        "--model",
        "scripted",
    ];
    all.extend(more);
    host.run(all)
}

fn tasks(folder: &Path) -> Vec<Value> {
    let text = fs::read_to_string(folder.join("tasks.jsonl")).expect("tasks");
    text.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

#[test]
fn a_model_writes_the_words_and_what_it_gets_wrong_keeps_those_of_the_grammar() {
    // Some tasks get words that leak, lie or are no JSON, always or at first.
    let endpoint =
        ChatEndpoint::start(
            |question| match (draw(question), question.messages().len()) {
                (0, _) => words(question, |text| format!("{text} And 77 more.")),
                (1, 2) => Reply::Says("{\"turns\": ["),
                (2, _) => words(question, |_| "Do what I want.".to_owned()),
                (3, 2) => words(question, |text| format!("{text} Call find_books.")),
                _ => good(question),
            },
        );
    let (host, folder) = (Host::new(), tempfile::tempdir().expect("a folder"));
    let output = &folder.path().join("tasks");
    let dry = make(&host, &endpoint, output, &["--dry-run", "--json"]);
    let dry = dry.succeeded().json();
    assert_eq!(dry["words"]["estimate"]["questions"], 20);
    assert!(endpoint.take_questions().is_empty() && !output.exists());

    let price = ["--json", "--price-prompt", "1", "--price-answer", "2"];
    let report = make(&host, &endpoint, output, &price).succeeded().json();
    let asked = endpoint.take_questions();
    assert!(
        asked
            .iter()
            .all(|asked| asked.line.starts_with("POST /v1/chat/completions "))
    );
    let found = &report["words"]["report"];
    let written = found["written"].as_u64().expect("a number");
    let refused: u64 = ["invented", "unsaid"]
        .iter()
        .filter_map(|kind| found["refused"][kind].as_u64())
        .sum();
    assert!(
        written > 0 && refused > 0 && written + refused == 20,
        "{report}"
    );
    assert!(report["words"]["cost"].as_f64() > Some(0.0), "{report}");
    let counts = json!({"model": written, "refused": refused});
    assert_eq!(report["statistics"]["by_author"], counts);
    for task in tasks(output) {
        let text = task["turns"][0]["query"].as_str().expect("a text");
        assert_eq!(
            text.starts_with("Well then: "),
            task["author"] == "model",
            "{task}"
        );
    }
    // Rows have the words of the model too.
    let rows = fs::read_to_string(output.join("tasks/train.jsonl")).expect("rows");
    assert!(rows.contains("Well then: "));
    let stats = [
        "forge",
        "stats",
        output.to_str().expect("a plain name"),
        "--json",
    ];
    assert_eq!(host.run(stats).succeeded().json()["by_author"], counts);

    // The same command asks nothing, and writes the same bytes.
    let before = fs::read(output.join("tasks.jsonl")).expect("tasks");
    make(&host, &endpoint, output, &[]).succeeded();
    assert!(endpoint.take_questions().is_empty());
    assert_eq!(fs::read(output.join("tasks.jsonl")).expect("tasks"), before);
    // Without a model, its words are not replaced.
    let path = output.to_str().expect("a plain name");
    let mut plain = vec!["forge", "tasks", EXAMPLES, "--seed", "3", "--count", "20"];
    plain.extend(["--no-replay", "--output", path]);
    host.run(plain)
        .refused_with(&["--url and --model", "--words grammar"]);
    assert_eq!(fs::read(output.join("tasks.jsonl")).expect("tasks"), before);
    // The grammar's words are a choice.
    make(&host, &endpoint, output, &["--words", "grammar"]).succeeded();
    assert!(
        tasks(output)
            .iter()
            .all(|task| task.get("author").is_none())
    );
    assert!(endpoint.take_questions().is_empty());
}

#[test]
fn a_model_writes_the_words_of_tasks_in_environments_written_in_python() {
    let endpoint = ChatEndpoint::start(good);
    let (host, folder) = (Host::new(), tempfile::tempdir().expect("a folder"));
    let servers = folder.path().join("servers");
    copy_servers(&host, &["Library"], &servers);
    let path = |path: &Path| path.to_str().expect("a plain name").to_owned();
    let output = folder.path().join("tasks");
    let all = [
        "forge",
        "--plugins",
        &path(host.plugins()),
        "tasks",
        &path(&servers),
        "--count",
        "4",
        "--no-replay",
        "--output",
        &path(&output),
        "--url",
        endpoint.url(),
        "--model",
        "scripted",
    ];
    host.run(all).succeeded();
    for task in tasks(&output) {
        assert_eq!(task["author"], "model", "{task}");
    }
}

#[test]
fn a_model_that_stalls_or_fails_loses_nothing_and_is_asked_for_the_rest() {
    let (host, folder) = (Host::new(), tempfile::tempdir().expect("a folder"));
    let config = folder.path().join("writer.toml");
    let text = "[writer]\nurl = \"http://127.0.0.1:1\"\nmodel = \"m\"\ntimeout_ms = 2000\nretries = 0\nmax_concurrent = 8\n";
    fs::write(&config, text).expect("can be written");
    let config = ["--config", config.to_str().expect("a plain name")];
    let output = folder.path().join("tasks");
    let bad = ChatEndpoint::start(|question| match draw(question) {
        0 => Reply::Stalls,
        1 => Reply::Fails(500),
        2 => Reply::HangsUp,
        _ => good(question),
    });
    let ended = make(&host, &bad, &output, &config);
    assert_eq!(ended.code(), Some(1), "{ended}");
    assert!(
        ended.stderr.contains("the same command goes on from there"),
        "{ended}"
    );
    let first = tasks(&output);
    let written = first
        .iter()
        .filter(|task| task["author"] == "model")
        .count();
    assert!(written > 0 && written < 20 && first.len() == 20, "{ended}");

    let fine = ChatEndpoint::start(good);
    make(&host, &fine, &output, &config).succeeded();
    assert_eq!(fine.take_questions().len(), 20 - written);
    assert!(tasks(&output).iter().all(|task| task["author"] == "model"));
}

#[test]
fn prompts_of_tasks_can_be_changed_and_a_wrong_one_is_found_before_a_model_is_asked() {
    let (host, folder) = (Host::new(), tempfile::tempdir().expect("a folder"));
    let endpoint = ChatEndpoint::start(good);
    let prompts = folder.path().join("prompts");
    let prompts = prompts.to_str().expect("a plain name");
    let write = ["forge", "prompts", "--output", prompts];
    assert!(
        host.run(write)
            .succeeded()
            .stdout
            .contains("4 prompts written")
    );
    fs::write(Path::new(prompts).join("text.txt"), "Say {{ turn }}").expect("can be written");
    let output = folder.path().join("tasks");
    let ended = make(&host, &endpoint, &output, &["--prompts", prompts]);
    assert_eq!(ended.code(), Some(1), "{ended}");
    assert!(
        ended
            .stderr
            .contains("text.txt: it does not use {{ turns }}"),
        "{ended}"
    );
    assert!(endpoint.take_questions().is_empty() && !output.exists());
    let unnamed = [
        "forge", "tasks", EXAMPLES, "--words", "model", "--output", prompts,
    ];
    let ended = host.run(unnamed);
    assert!(
        ended
            .stderr
            .contains("no model is named; give --url and --model"),
        "{ended}"
    );
}

/// An embedding of each text: its letters.
fn embeddings(question: &Question, change: impl Fn(&mut Vec<Value>)) -> Reply {
    let texts = question.body["input"].as_array().expect("texts");
    let mut rows: Vec<Value> = texts
        .iter()
        .enumerate()
        .map(|(index, text)| {
            let text = text.as_str().expect("a text");
            let letters = ('a'..='z').map(|letter| text.matches(letter).count());
            json!({"index": index, "embedding": letters.collect::<Vec<_>>()})
        })
        .collect();
    change(&mut rows);
    Reply::is(json!({ "data": rows }).to_string())
}

fn graph(host: &Host, endpoint: &ChatEndpoint, cache: &Path, more: &[&str]) -> Ended {
    let files = ["Clinic", "LendingLibrary"].map(|name| format!("{EXAMPLES}/{name}.toml"));
    let cache = cache.to_str().expect("a plain name");
    let mut all = vec![
        "forge",
        "graph",
        &files[0],
        &files[1],
        "--embeddings",
        "--cache",
        cache,
        "--url",
        endpoint.url(),
        "--model",
        "letters",
    ];
    all.extend(more);
    host.run(all)
}

#[test]
fn a_graph_of_embeddings_says_so_and_is_made_again_without_asking() {
    let (host, folder) = (Host::new(), tempfile::tempdir().expect("a folder"));
    let endpoint = ChatEndpoint::start(|question| embeddings(question, |_| {}));
    let dry = graph(&host, &endpoint, folder.path(), &["--dry-run", "--json"])
        .succeeded()
        .json();
    assert_eq!(dry["texts"], dry["missing"]);
    assert!(endpoint.take_questions().is_empty());
    let page = folder.path().join("graph.html");
    let html = ["--output", page.to_str().expect("a plain name")];
    let ended = graph(&host, &endpoint, folder.path(), &html);
    assert!(
        ended
            .succeeded()
            .stdout
            .contains("by embeddings (at least 0.85)"),
        "{ended}"
    );
    let asked = endpoint.take_questions();
    assert!(
        asked
            .iter()
            .all(|asked| asked.line.starts_with("POST /v1/embeddings "))
    );
    assert_eq!(Some(asked.len() as u64), dry["requests"].as_u64());
    let page = fs::read_to_string(page).expect("a page");
    assert!(page.contains("Similarity: embeddings, at least 0.85."));
    let first = graph(&host, &endpoint, folder.path(), &["--json"])
        .succeeded()
        .json();
    assert_eq!(first["graph"]["similarity"], json!(["embeddings", 0.85]));
    assert_eq!(first["graph"]["similarity_details"]["model"], "letters");
    assert!(endpoint.take_questions().is_empty());
    // Fewer edges with a higher threshold; the vectors are the same.
    let strict = graph(
        &host,
        &endpoint,
        folder.path(),
        &["--json", "--threshold", "0.999"],
    )
    .succeeded()
    .json();
    assert!(strict["counts"]["by_similarity"].as_u64() < first["counts"]["by_similarity"].as_u64());
    assert_eq!(
        strict["graph"]["similarity_details"],
        first["graph"]["similarity_details"]
    );
}

/// A change of the rows of an answer.
type Change = fn(&mut Vec<Value>);

#[test]
fn embeddings_of_the_wrong_form_are_errors_that_say_what_is_wrong() {
    let (host, folder) = (Host::new(), tempfile::tempdir().expect("a folder"));
    let changes: [(Change, &str); 4] = [
        (|rows| drop(rows.pop()), "it has 31 vectors for 32 texts"),
        (
            |rows| rows[3]["embedding"] = json!([1, 2]),
            "text 3 has 2 numbers, and an earlier one has 26",
        ),
        (
            |rows| rows[2]["embedding"] = json!([0, 0]),
            "the vector of text 2 is zero or empty",
        ),
        (
            |rows| rows[1]["index"] = json!(0),
            "it has two vectors for text 0",
        ),
    ];
    for (change, why) in changes {
        let endpoint = ChatEndpoint::start(move |question| embeddings(question, change));
        let ended = graph(&host, &endpoint, folder.path(), &[]);
        assert_eq!(ended.code(), Some(1), "{ended}");
        assert!(ended.stderr.contains(why), "{why}: {ended}");
        assert!(
            ended.stderr.contains("the same command goes on from there"),
            "{ended}"
        );
    }
    let endpoint =
        ChatEndpoint::start(|_| Reply::Is("{\"data\": [{\"index\": 0, \"embedding\": [NaN]}]}"));
    let ended = graph(&host, &endpoint, folder.path(), &[]);
    assert!(ended.stderr.contains("[NaN]"), "{ended}");
    // The first batch stays, the second fails.
    let fails = ChatEndpoint::start(|question| {
        let size = question.body["input"].as_array().map_or(0, Vec::len);
        if size == 32 {
            embeddings(question, |_| {})
        } else {
            Reply::Fails(400)
        }
    });
    let ended = graph(&host, &fails, folder.path(), &[]);
    assert!(ended.stderr.contains("refused: status 400"), "{ended}");
    let whole = fails.take_questions().len();
    assert!(whole > 1, "{ended}");
    let fine = ChatEndpoint::start(|question| embeddings(question, |_| {}));
    graph(&host, &fine, folder.path(), &[]).succeeded();
    assert_eq!(fine.take_questions().len(), 1);
    let poor = tempfile::tempdir().expect("a folder");
    let ended = graph(&host, &fine, poor.path(), &["--max-tokens-total", "10"]);
    assert!(ended.stderr.contains("raise --max-tokens-total"), "{ended}");
    assert!(fine.take_questions().is_empty());
}
