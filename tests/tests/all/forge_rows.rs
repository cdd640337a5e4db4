//! `rlf-host forge rows`: rows are made of a seed, a file or a model's answers, verified and imported. An interrupted run
//! continues, and so does a larger count.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rlf_tests::{ChatEndpoint, Ended, Host, Reply};
use rustix::process::Signal;
use serde_json::{Value, json};

/// Everything that a finished run leaves.
const FILES: [&str; 14] = [
    "0-facts.jsonl",
    "1-decomposed.jsonl",
    "2-documented.jsonl",
    "3-integrated.jsonl",
    "4-scaled.jsonl",
    "5-deployed.jsonl",
    "6-verified.jsonl",
    "rows.jsonl",
    "tasks-train.jsonl",
    "tasks-validation.jsonl",
    "tasks-test.jsonl",
    "demonstrations.jsonl",
    "rejected.jsonl",
    "rows.json",
];

fn arguments<'a>(host: &'a Host, output: &'a Path, further: &[&'a str]) -> Vec<&'a str> {
    let plugins = host.plugins().to_str().expect("a plain name");
    let output = output.to_str().expect("a plain name");
    let mut all = vec!["forge", "rows", "--plugins", plugins, "--output", output];
    all.extend(further);
    all
}

pub(crate) fn rows(host: &Host, output: &Path, further: &[&str]) -> Ended {
    host.run(arguments(host, output, further))
}

pub(crate) fn read(path: &Path) -> Vec<Value> {
    let text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    text.lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect()
}

pub(crate) fn json_lines(values: &[Value]) -> String {
    let lines: Vec<String> = values.iter().map(Value::to_string).collect();
    lines.join("\n") + "\n"
}

fn files(folder: &Path) -> BTreeMap<&'static str, Vec<u8>> {
    let file = |name| (name, fs::read(folder.join(name)).expect("it was written"));
    FILES.into_iter().map(file).collect()
}

#[test]
fn an_interrupted_run_ends_like_one_that_was_not() {
    let host = Host::new();
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    let options = ["--count", "24", "--seed", "7", "--complexity", "low"];
    let whole = at("whole");
    rows(&host, &whole, &options).succeeded();
    let expected = files(&whole);

    let killed = at("killed");
    let mut running = host.start(arguments(&host, &killed, &options));
    running.until("made 5-deployed.jsonl").signal(Signal::KILL);
    assert_eq!(running.wait().signal(), Some(Signal::KILL.as_raw()));
    rows(&host, &killed, &options).succeeded();
    assert!(files(&killed) == expected);

    // A machine that lost power in the middle of a line.
    let verified = whole.join("6-verified.jsonl");
    let text = fs::read(&verified).expect("it was written");
    fs::write(&verified, &text[..text.len() / 2]).expect("can be written");
    fs::remove_file(whole.join("rows.jsonl")).expect("can be removed");
    let again = rows(&host, &whole, &options);
    assert!(
        again.succeeded().stdout.contains("kept 4-scaled.jsonl"),
        "{again}"
    );
    assert!(
        again.stdout.contains(" verdicts in 6-verified.jsonl"),
        "{again}"
    );
    assert!(files(&whole) == expected);

    // A stage whose artefact was edited is kept, and the later ones follow it.
    let scaled = whole.join("4-scaled.jsonl");
    let text = fs::read_to_string(&scaled).expect("it was written");
    fs::write(
        &scaled,
        text.replace("Optional", "Possible")
            .replace("Whether", "If"),
    )
    .expect("can be written");
    let edited = rows(&host, &whole, &options);
    assert!(
        edited
            .succeeded()
            .stdout
            .contains("kept 4-scaled.jsonl\nmade 5-deployed.jsonl"),
        "{edited}"
    );
    let scaling = [&options[..], &["--stage", "scale"]].concat();
    let again = rows(&host, &whole, &scaling);
    let told = "made 4-scaled.jsonl\nthe stages after scale are older now; the same command without --stage makes them again\n";
    assert_eq!(again.succeeded().stdout, told);
    assert!(fs::read(&scaled).expect("it was written") == expected["4-scaled.jsonl"]);
}

#[test]
fn ctrl_c_says_how_to_continue() {
    let host = Host::new();
    let folder = tempfile::tempdir().expect("a folder");
    let options = ["--count", "24", "--complexity", "low"];
    let mut running = host.start(arguments(&host, folder.path(), &options));
    running.until("made 5-deployed.jsonl").signal(Signal::INT);
    let stopped = running.wait();
    assert_eq!(stopped.code(), Some(130), "{stopped}");
    assert!(
        stopped
            .stderr
            .contains("stopped; the same command continues"),
        "{stopped}"
    );
    rows(&host, folder.path(), &options).succeeded();
}

#[test]
fn rows_and_demonstrations_are_imported_as_they_are() {
    let host = Host::new();
    let folder = tempfile::tempdir().expect("a folder");
    let made = rows(&host, folder.path(), &["--count", "12", "--json"]);
    let report = made.succeeded().json();
    assert_eq!(
        (&report["rows"], &report["wanted"]),
        (&json!(12), &json!(12))
    );
    let import = |name: &str| {
        let file = folder.path().join(name).display().to_string();
        let output = folder.path().join(format!("imported-{name}"));
        let ended = host.run([
            "data",
            "import",
            &file,
            "--output",
            &output.display().to_string(),
        ]);
        ended.succeeded();
        (ended, read(&output))
    };
    let (_, tasks) = import("rows.jsonl");
    assert_eq!(tasks.len(), 12);
    let own: Vec<Value> = ["train", "validation", "test"]
        .iter()
        .flat_map(|split| read(&folder.path().join(format!("tasks-{split}.jsonl"))))
        .collect();
    assert_eq!(own.len(), 12);
    for task in &tasks {
        let same = own
            .iter()
            .find(|own| own["prompt"] == task["prompt"])
            .expect("the same task");
        assert_eq!(same["setup"], task["setup"]);
        assert_eq!(same["reference"]["unsolved"], task["reference"]["unsolved"]);
        assert_eq!(same["extra"]["kind"], task["extra"]["kind"]);
    }
    let (told, demonstrations) = import("demonstrations.jsonl");
    assert!(told.stdout.contains("demonstrations with"), "{told}");
    assert_eq!(
        demonstrations.len(),
        read(&folder.path().join("tasks-train.jsonl")).len()
    );
}

/// People and cities: everybody was born somewhere, and every city has a mayor.
fn facts() -> String {
    let mut lines = vec![json!({
        "relation": "born_in", "noun": "the town where {} came into the world", "ask": ["Where did {} come into the world?"],
    })];
    for number in 0..80 {
        let name = |what: &str, number: usize| format!("{what} Number{}x", number % 80);
        lines.push(json!({
            "subject": name("Person", number), "subject_kind": "person", "relation": "born_in",
            "object": name("Town", number * 7 + 1), "object_kind": "town",
        }));
        lines.push(json!({
            "subject": name("Town", number), "subject_kind": "town", "relation": "mayor",
            "object": name("Person", number * 3 + 2), "object_kind": "person",
        }));
    }
    json_lines(&lines)
}

#[test]
fn facts_and_questions_of_a_file_become_rows() {
    let host = Host::new();
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("can be written");
        path.display().to_string()
    };
    let file = write("facts.jsonl", &facts());
    let output = folder.path().join("from-facts");
    let options = [
        "--facts",
        &file,
        "--count",
        "20",
        "--complexity",
        "low",
        "--scenario",
        "single_hop",
        "--scenario",
        "multi_hop",
    ];
    rows(&host, &output, &options).succeeded();
    let made = read(&output.join("rows.jsonl"));
    assert_eq!(made.len(), 20);
    let text = fs::read_to_string(output.join("rows.jsonl")).expect("it was written");
    assert!(text.contains("the town where"), "{text}");
    assert!(text.contains("the mayor of"), "{text}");

    // The facts are too few, so the exit code says that rows are missing. The stages are listed once.
    let few = folder.path().join("few");
    let options = [
        "--facts",
        &file,
        "--count",
        "2000",
        "--complexity",
        "none",
        "--scenario",
        "single_hop",
    ];
    let short = rows(&host, &few, &options);
    assert_eq!(short.code(), Some(1), "{short}");
    assert!(
        short
            .stderr
            .contains(" of 2000 rows are missing: the facts give no more"),
        "{short}"
    );
    assert_eq!(short.stdout.matches("0-facts.jsonl").count(), 1, "{short}");
    assert!(
        short
            .stdout
            .contains("too few rows passed: more candidates are drawn\n"),
        "{short}"
    );
    assert!(!read(&few.join("rows.jsonl")).is_empty(), "{short}");

    let questions = [
        json!({"id": "faust", "question": "In which year was the author of Faust born?", "answer": 1749, "steps": [
            {"question": "Who wrote Faust?", "answer": "Johann Wolfgang von Goethe", "subject": "Faust", "kind": "work", "relation": "author"},
            {"question": "In which year was #1 born?", "answer": 1749, "kind": "person"},
        ]}),
        json!({"question": "What is the sum of the heights of Mount Elbrus and Mont Blanc in metres?", "answer": "10448", "steps": [
            {"question": "How high is Mount Elbrus?", "answer": "5642", "subject": "Mount Elbrus", "kind": "mountain", "relation": "height"},
            {"question": "How high is Mont Blanc?", "answer": "4806", "subject": "Mont Blanc", "kind": "mountain", "relation": "height"},
            {"question": "What is #1 plus #2?", "answer": "10448", "operation": "sum"},
        ]}),
        json!({"question": "How many legs has a spider?", "answer": 8, "steps": [
            {"question": "How many legs has a spider?", "answer": 8, "subject": "spider"},
        ]}),
    ];
    let text = json_lines(&questions);
    let file = write("questions.jsonl", &text);
    let output = folder.path().join("from-questions");
    let made = rows(&host, &output, &["--questions", &file, "--json"]);
    assert_eq!(made.succeeded().json()["rows"], 2, "{made}");
    let rejected = read(&output.join("rejected.jsonl"));
    assert_eq!(
        (&rejected[0]["check"], &rejected[0]["id"]),
        (&json!("trivial"), &json!("000003"))
    );
    let rows = read(&output.join("rows.jsonl"));
    let scenarios: Vec<&str> = rows
        .iter()
        .filter_map(|row| row["data_source"].as_str())
        .collect();
    assert_eq!(scenarios, ["self/multi_hop", "self/parallel_single_hop"]);
    let unsolved = rows[1]["unsolved_set"].as_str().expect("a text");
    assert!(
        unsolved.contains("[\"5642\", \"4806\"]") && unsolved.contains("[\"10448\"]"),
        "{unsolved}"
    );
}

#[test]
fn bad_input_is_said_with_its_place_and_loses_nothing() {
    let host = Host::new();
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("input.jsonl");
    let path = file.display().to_string();
    let output = folder.path().join("out");
    let with = |text: &str, options: &[&str]| {
        fs::write(&file, text).expect("can be written");
        rows(&host, &output, options)
    };
    for (text, says) in [
        ("", "no facts in it"),
        ("{\n", "input.jsonl:1: EOF"),
        (
            "{\"subject\": \"a\", \"relation\": \"r\", \"object\": 5}\n",
            "a fact needs `subject_kind`",
        ),
        (
            "{\"subject\": \"a\", \"subject_kind\": \"k\", \"relation\": \"r\", \"object\": \"soon\", \"object_kind\": \"date\"}\n",
            "the object \"soon\" is no date",
        ),
        (
            "{\"relation\": \"r\", \"noun\": \"the r\"}\n",
            "lacks {} for the subject",
        ),
    ] {
        with(text, &["--facts", &path]).refused_with(&[says]);
    }
    for (text, says) in [
        ("", "no questions in it"),
        (
            "\n{\"question\": \"?\"}\n",
            "input.jsonl:2: missing field `answer`",
        ),
    ] {
        with(text, &["--questions", &path]).refused_with(&[says]);
    }
    for (option, name, known) in [
        ("--complexity", "high", "none, low, published"),
        ("--scenario", "hop", "single_hop, multi_hop, "),
        ("--stage", "scal", "facts, decompose, "),
    ] {
        let misused = with("", &[option, name]);
        assert_eq!(misused.code(), Some(2), "{misused}");
        assert!(
            misused.stderr.contains(option) && misused.stderr.contains(known),
            "{misused}"
        );
    }
    with(
        "",
        &["--scenario", "parallel_multi_hop", "--max-calls", "3"],
    )
    .refused_with(&["at least 5 sub-answers"]);
    with("", &["--stage", "scale"])
        .refused_with(&["which is not there; run the command without --stage first"]);
    let dry = host.run(["forge", "rows", "--dry-run", "--count", "500"]);
    assert!(
        dry.succeeded().stdout.starts_with("would make 500 rows"),
        "{dry}"
    );
}

#[test]
fn a_larger_count_keeps_the_rows_that_are_there() {
    let host = Host::new();
    let folder = tempfile::tempdir().expect("a folder");
    let (grown, whole) = (folder.path().join("grown"), folder.path().join("whole"));
    let make = |output: &Path, count: &str| {
        let options = ["--count", count, "--seed", "3", "--complexity", "none"];
        rows(&host, output, &options)
    };
    make(&grown, "8").succeeded();
    let verdicts = read(&grown.join("6-verified.jsonl")).len() - 1;
    let first = fs::read(grown.join("rows.jsonl")).expect("it was written");
    let more = make(&grown, "20");
    let kept = format!("kept {verdicts} verdicts in 6-verified.jsonl");
    assert!(more.succeeded().stdout.contains(&kept), "{more}");
    assert!(
        fs::read(grown.join("rows.jsonl")).is_ok_and(|rows| rows.starts_with(&first)),
        "{more}"
    );
    make(&whole, "20").succeeded();
    assert!(files(&grown) == files(&whole));
}

#[test]
fn a_model_takes_questions_apart_and_execution_has_the_last_word() {
    let author = json!({"steps": [
        {"question": "Who wrote Faust?", "answer": "Johann Wolfgang von Goethe", "subject": "Faust", "kind": "work", "relation": "author"},
        {"question": "In which year was #1 born?", "answer": "1749", "kind": "person"},
    ]});
    let lie = author.to_string().replace("1749", "1751");
    // The same sub-question twice, with two answers: no check but execution finds it.
    let twice = json!({"steps": [
        {"question": "Who wrote Emma?", "answer": "Jane Austen", "subject": "Emma", "kind": "work", "relation": "author"},
        {"question": "Who wrote Emma again?", "answer": "Jane Fairfax", "subject": "Emma", "kind": "work", "relation": "author"},
        {"question": "Where was #1 born?", "answer": "Steventon", "kind": "person"},
        {"question": "Where was #2 born?", "answer": "Highbury", "kind": "person"},
    ]});
    let (author, twice) = (author.to_string(), twice.to_string());
    let endpoint = ChatEndpoint::start(move |question| {
        let messages = question.messages();
        match (
            messages[1].1.contains("author of Faust born?\n"),
            messages.len(),
        ) {
            (true, 2) => Reply::says("{\"steps\": ["),
            // It is told what was wrong with its last answer.
            (true, _) if !messages[2].1.contains("1751") => Reply::says(&lie),
            (true, _) => Reply::says(format!("<think>..</think>\n```json\n{author}\n```")),
            (false, _) => Reply::says(&twice),
        }
    });
    let (host, folder) = (Host::new(), tempfile::tempdir().expect("a folder"));
    let questions = [
        json!({"id": "faust", "question": "In which year was the author of Faust born?", "answer": 1749}),
        json!({"id": "emma", "question": "Where was the author of Emma born?", "answer": "Steventon"}),
    ];
    let file = folder.path().join("questions.jsonl");
    fs::write(&file, json_lines(&questions)).expect("can be written");
    let path = file.display().to_string();
    let output = folder.path().join("rows");
    let with = |further: &[&str]| {
        let options = ["--questions", &path, "--complexity", "none"];
        rows(&host, &output, &[&options[..], further].concat())
    };
    with(&[]).refused_with(&["no model is named; give --url and --model", "`steps`"]);
    let url = endpoint.url();
    let model = ["--url", url, "--model", "scripted", "--json"];
    let dry = with(&[&model[..], &["--dry-run"]].concat());
    let dry = dry.succeeded().json();
    assert_eq!(
        (&dry["least"]["questions"], &dry["most"]["questions"]),
        (&json!(2), &json!(6))
    );
    assert!(endpoint.take_questions().is_empty() && !output.exists());

    let made = with(&model);
    let report = made.succeeded().json();
    assert_eq!(
        (&report["rows"], &report["rejected"]),
        (&json!(1), &json!(1)),
        "{:?}",
        read(&output.join("rejected.jsonl"))
    );
    assert_eq!(report["asked"]["spent"]["answers"], 4, "{report}");
    assert_eq!(endpoint.take_questions().len(), 4);
    let row = &read(&output.join("rows.jsonl"))[0];
    assert_eq!(row["data_source"], "self/multi_hop");
    let unsolved = row["unsolved_set"].as_str().expect("a text");
    assert!(
        unsolved.contains("Johann Wolfgang von Goethe") && unsolved.contains("1749"),
        "{unsolved}"
    );
    let rejected = &read(&output.join("rejected.jsonl"))[0];
    assert_eq!(
        (&rejected["id"], &rejected["stage"]),
        (&json!("emma"), &json!("verify"))
    );
    let before = files(&output);
    with(&model).succeeded();
    assert!(endpoint.take_questions().is_empty());
    assert!(files(&output) == before);
}

#[test]
fn an_endpoint_that_stalls_loses_no_answer_and_prompts_can_be_changed() {
    let (host, folder) = (Host::new(), tempfile::tempdir().expect("a folder"));
    let at = |name: &str| folder.path().join(name).display().to_string();
    let config =
        "[writer]\nurl = \"http://127.0.0.1:1\"\nmodel = \"m\"\ntimeout_ms = 300\nretries = 0\n";
    fs::write(at("writer.toml"), config).expect("can be written");
    let question = json!({"question": "Who composed Fidelio?", "answer": "Ludwig van Beethoven"});
    fs::write(at("questions.jsonl"), json_lines(&[question])).expect("can be written");
    let (questions, config, prompts) = (at("questions.jsonl"), at("writer.toml"), at("prompts"));
    let written = host.run(["forge", "rows", "--write-prompts", &prompts]);
    assert!(
        written
            .succeeded()
            .stdout
            .contains("2 prompts written, 0 there already"),
        "{written}"
    );
    fs::write(
        at("prompts/decompose.txt"),
        "Take apart: {{ question }} ({{ answer }}) {{ schema }}\n",
    )
    .expect("can be written");
    let output = folder.path().join("rows");
    let run = |endpoint: &ChatEndpoint| {
        let options = [
            "--questions",
            &questions,
            "--config",
            &config,
            "--prompts",
            &prompts,
            "--url",
            endpoint.url(),
            "--complexity",
            "none",
        ];
        rows(&host, &output, &options)
    };
    let stalls = ChatEndpoint::start(|_| Reply::Stalls);
    run(&stalls).refused_with(&[
        "had not answered after 300 ms",
        "all answers so far are kept, and the same command goes on from there",
    ]);
    assert!(!output.join("1-decomposed.jsonl").exists());
    let answers = ChatEndpoint::start(|_| {
        Reply::says(
            r#"{"steps": [{"question": "Who composed Fidelio?", "answer": "Ludwig van Beethoven", "subject": "Fidelio"}]}"#,
        )
    });
    let made = run(&answers);
    assert!(
        made.succeeded().stdout.contains("asked: 1 answers, ")
            && made.stdout.contains("verified now: 1 row, "),
        "{made}"
    );
    let asked = answers.take_questions();
    assert!(
        asked[0].messages()[1]
            .1
            .starts_with("Take apart: Who composed Fidelio?")
    );
    assert_eq!(read(&output.join("rows.jsonl")).len(), 1);
}

#[test]
fn rows_of_other_options_and_files_of_others_are_not_replaced() {
    let host = Host::new();
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("rows");
    let small = ["--count", "4", "--complexity", "none", "--max-calls", "2"];
    rows(&host, &output, &small).succeeded();
    let before = fs::read(output.join("rows.jsonl")).unwrap();

    let other = [&small[..], &["--seed", "9"]].concat();
    let refused = rows(&host, &output, &other);
    assert_eq!(refused.code(), Some(1));
    assert!(
        refused.stderr.contains("another value of --seed"),
        "{}",
        refused.stderr
    );
    assert!(refused.stderr.contains("--restart"), "{}", refused.stderr);
    assert!(fs::read(output.join("rows.jsonl")).unwrap() == before);

    let replaced = [&other[..], &["--restart"]].concat();
    rows(&host, &output, &replaced).succeeded();
    assert!(fs::read(output.join("rows.jsonl")).unwrap() != before);

    let theirs = folder.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    fs::write(theirs.join("rows.jsonl"), "mine\n").unwrap();
    let refused = rows(&host, &theirs, &replaced);
    assert_eq!(refused.code(), Some(1));
    assert!(
        refused.stderr.contains("not made here"),
        "{}",
        refused.stderr
    );
    assert_eq!(
        fs::read_to_string(theirs.join("rows.jsonl")).unwrap(),
        "mine\n"
    );
}
