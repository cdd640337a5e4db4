//! `rlf-host forge env new`: a scripted endpoint writes environments, well and badly.

use std::fs;
use std::path::{Path, PathBuf};

use rlf_tests::{ChatEndpoint, Ended, Host, Question, Reply};
use serde_json::{Value, json};

const SKETCH: &str = include_str!("../../fixtures/tool-library/sketch.json");
const PLAN: &str = include_str!("../../fixtures/tool-library/plan.json");
const SPECIFICATION: &str = include_str!("../../fixtures/tool-library/specification.toml");
const SCENARIOS: &str = include_str!("../../fixtures/tool-library/scenarios.toml");
const CODE: &str = include_str!("../../fixtures/tool-library/code.py");
const STATES: &str = include_str!("../../fixtures/tool-library/states.json");

const DESCRIPTION: &str = "a library that lends tools";

/// The stage of a question, by the shipped prompts, and how often it was asked within this conversation before.
fn stage(question: &Question) -> (&'static str, usize) {
    let messages = question.messages();
    let prompt = messages[1].1;
    let stages = [
        ("Sketch an environment", "sketch"),
        ("This is the sketch", "plan"),
        ("Write the environment", "source"),
        ("Write the scenarios", "scenarios"),
        ("A program", "revise"),
    ];
    let found = stages.iter().find(|(start, _)| prompt.starts_with(start));
    let (_, stage) = found.unwrap_or_else(|| panic!("no stage begins so: {prompt}"));
    (stage, (messages.len() - 2) / 2)
}

fn fenced(language: &str, text: &str) -> Reply {
    Reply::says(format!("Here it is.\n```{language}\n{text}\n```\n"))
}

/// The condition that keeps an invariant, wrong by one.
fn by_one(text: &str) -> String {
    text.replace(
        "\"held < member.max_loans\"",
        "\"held <= member.max_loans\"",
    )
}

/// A condition with a name that does not exist.
fn misspelt(text: &str) -> String {
    let good = "{ require = \"!tool.in_repair\", error = \"the {tool.title} is in repair; end";
    assert!(text.contains(good));
    text.replace(good, &good.replace("!tool.in_repair", "!tool.in_repar"))
}

fn whole(text: &str) -> String {
    format!("{text}\n{SCENARIOS}")
}

/// Runs `forge env new` into a folder, with options.
fn new(host: &Host, endpoint: &ChatEndpoint, output: &Path, options: &[&str]) -> Ended {
    let plugins = host.plugins().to_str().expect("a plain name");
    let output = output.to_str().expect("a plain name");
    let mut all = vec![
        "forge",
        "--plugins",
        plugins,
        "env",
        "new",
        DESCRIPTION,
        "--output",
        output,
        "--url",
        endpoint.url(),
        "--model",
        "scripted",
    ];
    all.extend(options);
    host.run(all)
}

/// The folder of the work beside an output folder.
fn work(output: &Path) -> PathBuf {
    let work = output.with_file_name("environments-work");
    let mut all = fs::read_dir(work).expect("a folder of work");
    let work = all.next().expect("one environment");
    work.expect("can be read").path()
}

#[test]
fn a_specification_is_written_verified_revised_and_played() {
    let endpoint = ChatEndpoint::start(|question| match stage(question) {
        ("sketch", 0) => Reply::says(SKETCH.replacen("\"name\"", "\"name\",", 1)),
        ("sketch", _) => fenced("json", SKETCH),
        ("plan", _) => Reply::says(format!("<think>Hm, {{}}.</think>{PLAN}")),
        ("source", 0) => Reply::says("name = \"ToolLibrary\"\nentities = ["),
        ("source", _) => fenced("toml", &by_one(&misspelt(SPECIFICATION))),
        ("scenarios", _) => fenced("toml", SCENARIOS),
        _ if question.messages()[1].1.contains("in_repar\"") => Reply::says(format!(
            "1: mended\n```toml\n{}\n```",
            whole(&by_one(SPECIFICATION))
        )),
        _ => Reply::says(format!("1: mended\n```toml\n{}\n```", whole(SPECIFICATION))),
    });
    let (host, folder) = (Host::new(), tempfile::tempdir().expect("a folder"));
    let output = &folder.path().join("environments");
    let dry = new(&host, &endpoint, output, &["--dry-run", "--json"])
        .succeeded()
        .json();
    assert!(endpoint.take_questions().is_empty());
    assert_eq!(
        (&dry["least"]["questions"], &dry["most"]["questions"]),
        (&json!(4), &json!(7))
    );
    assert!(
        fs::read_dir(folder.path())
            .expect("a folder")
            .next()
            .is_none()
    );

    let ended = new(
        &host,
        &endpoint,
        output,
        &["--json", "--price-prompt", "1", "--price-answer", "2"],
    );
    let report = ended.succeeded().json();
    let written = &report["written"];
    let stages: Vec<&str> = endpoint
        .take_questions()
        .iter()
        .map(|asked| stage(asked).0)
        .collect();
    let expected = [
        "sketch",
        "sketch",
        "plan",
        "source",
        "source",
        "scenarios",
        "revise",
        "revise",
    ];
    assert_eq!(stages, expected);
    assert_eq!(
        (&written["sound"], &written["best"]),
        (&json!(true), &json!(2))
    );
    assert_eq!(written["stop"], json!({"reason": "sound"}));
    let reached: Vec<&Value> = (0..3)
        .map(|round| &written["rounds"][round]["examination"]["reached"])
        .collect();
    assert_eq!(reached, ["checked", "played", "sound"]);
    let found = &written["rounds"][1]["examination"]["findings"][0];
    assert_eq!(
        (&found["kind"], &found["place"]),
        (&json!("breaks-rule"), &json!("ToolLibrary-lend_tool"))
    );
    assert!(report["cost"].as_f64() > Some(0.0), "{report}");

    let file = output.join("ToolLibrary.toml");
    let path = file.to_str().expect("a plain name");
    let plugins = host.plugins().to_str().expect("a plain name");
    // Alone, and as the folder of environments, beside which the work is.
    for whole in [path, output.to_str().expect("a plain name")] {
        let verify = ["forge", "--plugins", plugins, "env", "verify", whole];
        assert!(host.run(verify).succeeded().stdout.contains("sound"));
    }
    let before = fs::read(&file).expect("the environment");
    // The same command asks nothing and ends the same.
    let again = new(&host, &endpoint, output, &["--json"])
        .succeeded()
        .json();
    assert!(endpoint.take_questions().is_empty());
    assert_eq!(again["written"], report["written"]);
    assert_eq!(fs::read(&file).expect("the environment"), before);
    // A file of that name that differs is not overwritten.
    fs::write(&file, "name = \"Mine\"\n").expect("can be written");
    let ended = new(&host, &endpoint, output, &[]);
    assert_eq!(ended.code(), Some(1));
    assert!(ended.stderr.contains("is there and differs"), "{ended}");
    assert_eq!(
        fs::read_to_string(&file).expect("the file"),
        "name = \"Mine\"\n"
    );
}

#[test]
fn a_model_that_lies_is_stopped_and_its_best_candidate_kept() {
    let endpoint = ChatEndpoint::start(|question| match stage(question).0 {
        "sketch" => Reply::says(SKETCH),
        "plan" => Reply::says(PLAN),
        "source" => fenced("toml", &by_one(SPECIFICATION)),
        "scenarios" => fenced("toml", SCENARIOS),
        _ => Reply::says(format!(
            "1: mended\n```toml\n# Mended.\n{}\n```",
            whole(&by_one(SPECIFICATION))
        )),
    });
    let (host, folder) = (Host::new(), tempfile::tempdir().expect("a folder"));
    let output = &folder.path().join("environments");
    let ended = new(&host, &endpoint, output, &[]);
    assert_eq!(ended.code(), Some(1), "{ended}");
    assert!(
        ended
            .stdout
            .contains("not sound; the best candidate is that of round 0"),
        "{ended}"
    );
    assert!(
        ended
            .stdout
            .contains("the revision mended none of the errors"),
        "{ended}"
    );
    assert!(
        ended
            .stderr
            .contains("said that it mended ToolLibrary-lend_tool (breaks-rule), which is not so"),
        "{ended}"
    );
    assert!(!output.join("ToolLibrary.toml").exists());
    let rounds = fs::read_dir(work(output)).expect("rounds").flatten();
    let rounds = rounds.filter(|entry| entry.file_name().to_string_lossy().starts_with("round-"));
    assert_eq!(rounds.count(), 2);
}

#[test]
fn an_endpoint_that_stalls_or_fails_half_way_loses_nothing() {
    let (host, folder) = (Host::new(), tempfile::tempdir().expect("a folder"));
    let config = folder.path().join("writer.toml");
    fs::write(
        &config,
        "[writer]\nurl = \"http://127.0.0.1:1\"\nmodel = \"m\"\ntimeout_ms = 300\nretries = 0\n",
    )
    .expect("can be written");
    let options = ["--config", config.to_str().expect("a plain name")];
    let output = folder.path().join("environments");
    let stalls = ChatEndpoint::start(|question| match stage(question).0 {
        "sketch" => Reply::says(SKETCH),
        _ => Reply::Stalls,
    });
    let ended = new(&host, &stalls, &output, &options);
    assert_eq!(ended.code(), Some(1), "{ended}");
    assert!(
        ended
            .stderr
            .contains("had not answered after 300 ms; raise `timeout_ms`"),
        "{ended}"
    );
    assert!(
        ended.stderr.contains("all answers so far are kept in "),
        "{ended}"
    );
    assert!(
        ended.stderr.contains("the same command goes on from there"),
        "{ended}"
    );

    let fails = ChatEndpoint::start(|question| match stage(question).0 {
        "plan" => Reply::says(PLAN),
        "source" => fenced("toml", &by_one(SPECIFICATION)),
        "scenarios" => fenced("toml", SCENARIOS),
        _ => Reply::Fails(500),
    });
    let ended = new(&host, &fails, &output, &options);
    assert_eq!(ended.code(), Some(1), "{ended}");
    assert!(
        ended
            .stdout
            .contains("failed with status 500; the same command goes on from there"),
        "{ended}"
    );
    let stages: Vec<&str> = fails
        .take_questions()
        .iter()
        .map(|asked| stage(asked).0)
        .collect();
    assert_eq!(stages, ["plan", "source", "scenarios", "revise"]);

    let poor = new(
        &host,
        &fails,
        &output,
        &["--config", options[1], "--max-tokens-total", "20000"],
    );
    assert_eq!(poor.code(), Some(1), "{poor}");
    assert!(
        poor.stdout.contains("raise --max-tokens-total to go on"),
        "{poor}"
    );
    assert!(fails.take_questions().is_empty());

    let mends = ChatEndpoint::start(|_| fenced("toml", &whole(SPECIFICATION)));
    new(&host, &mends, &output, &options).succeeded();
    assert_eq!(mends.take_questions().len(), 1);
    assert!(output.join("ToolLibrary.toml").is_file());
}

#[test]
fn python_that_does_not_load_or_loops_is_revised_until_it_does_not() {
    let endpoint = ChatEndpoint::start(|question| {
        let open = CODE.replace(
            "load_scenario(self, scenario: dict) ->",
            "load_scenario(self, scenario: dict ->",
        );
        let head = "def find_tools(self, text: str) -> List[dict]:\n";
        let loops = CODE.replace(
            head,
            &format!("{head}        while True:\n            pass\n"),
        );
        assert!(open != CODE && loops != CODE);
        match stage(question).0 {
            "sketch" => Reply::says(SKETCH),
            "plan" => Reply::says(PLAN),
            "source" => fenced("python", &open),
            "scenarios" => fenced("json", STATES),
            _ if question.messages()[1].1.contains("scenario: dict ->") => fenced("python", &loops),
            _ => Reply::says(format!("1: mended\n```python\n{CODE}\n```")),
        }
    });
    let (host, folder) = (Host::new(), tempfile::tempdir().expect("a folder"));
    let options = ["--form", "python", "--json"];
    let output = &folder.path().join("environments");
    let ended = new(&host, &endpoint, output, &options);
    let report = ended.succeeded().json();
    let rounds = &report["written"]["rounds"];
    let found = |round: usize| &rounds[round]["examination"]["findings"][0];
    assert_eq!(found(0)["kind"], "does-not-load", "{report}");
    let message = found(0)["message"].as_str().expect("a text");
    assert!(message.contains("line 53"), "{message}");
    let broken = (&found(1)["kind"], &found(1)["place"]);
    assert_eq!(
        broken,
        (&json!("breaks"), &json!("ToolLibrary-find_tools")),
        "{report}"
    );
    assert_eq!(rounds[2]["examination"]["reached"], "sound");
    let file = output.join("ToolLibrary.py");
    let plugins = host.plugins().to_str().expect("a plain name");
    let path = file.to_str().expect("a plain name");
    let check = ["env", "--plugins", plugins, "check", path, "--inputs", "3"];
    host.run(check).succeeded();
}

#[test]
fn prompts_can_be_changed_and_wrong_settings_are_found_before_a_model_is_asked() {
    let (host, folder) = (Host::new(), tempfile::tempdir().expect("a folder"));
    let endpoint = ChatEndpoint::start(|_| Reply::Fails(500));
    let prompts = folder.path().join("prompts");
    let prompts = prompts.to_str().expect("a plain name");
    let write = ["forge", "env", "prompts", "--output", prompts];
    assert!(
        host.run(write)
            .succeeded()
            .stdout
            .contains("10 prompts written, 0 there already")
    );
    assert!(
        host.run(write)
            .succeeded()
            .stdout
            .contains("0 prompts written, 10 there already")
    );
    let sketch = folder.path().join("prompts/sketch.txt");
    fs::write(&sketch, "Invent {{ description }} by {{ schema }}\n").expect("can be written");
    let output = folder.path().join("environments");
    let dry = ["--prompts", prompts, "--dry-run"];
    let ended = new(&host, &endpoint, &output, &dry);
    ended.succeeded();
    assert!(
        ended
            .stdout
            .contains("Invent a library that lends tools by {"),
        "{ended}"
    );
    fs::write(&sketch, "Invent {{ descripton }} by {{ schema }}\n").expect("can be written");
    let ended = new(&host, &endpoint, &output, &dry);
    assert_eq!(ended.code(), Some(1));
    assert!(
        ended
            .stderr
            .contains("sketch.txt: it does not use {{ description }}"),
        "{ended}"
    );
    let unnamed = ["forge", "env", "new", DESCRIPTION, "--output", prompts];
    let ended = host.run(unnamed);
    assert!(
        ended
            .stderr
            .contains("no model is named; give --url and --model"),
        "{ended}"
    );
    let config = folder.path().join("writer.toml");
    fs::write(
        &config,
        "[writer]\nurl = \"http://127.0.0.1:1\"\nmodell = \"m\"\n",
    )
    .expect("can be written");
    let ended = new(
        &host,
        &endpoint,
        &output,
        &["--config", config.to_str().expect("a plain name")],
    );
    assert!(
        ended
            .stderr
            .contains("writer.toml:3:1: unknown key `modell`; did you mean `model`?"),
        "{ended}"
    );
    let ended = new(
        &host,
        &endpoint,
        &output,
        &["--key-env", "RLF_TEST_IS_NOT_SET"],
    );
    assert!(ended.stderr.contains("[writer] key_env"), "{ended}");
    for form in ["specification", "python"] {
        let ended = host.run([
            "forge",
            "--plugins",
            prompts,
            "env",
            "new",
            DESCRIPTION,
            "--url",
            endpoint.url(),
            "--model",
            "m",
            "--form",
            form,
        ]);
        assert_eq!(ended.code(), Some(1));
        assert!(
            ended
                .stderr
                .contains("environments of this form cannot be played here"),
            "{ended}"
        );
    }
    assert!(endpoint.take_questions().is_empty());
    assert!(!output.exists());
}
