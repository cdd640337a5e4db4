//! The shipped tools that ask language models: `summarise`, `extract` and `research`, called as an operator would.

use std::fs;

use rlf_tests::{ChatEndpoint, Ended, Host, Question, Reply};
use serde_json::{Value, json};

/// Calls a tool, with this model behind its gate.
fn call(plugin: &str, gates: &[&str], grants: &str, arguments: &Value, url: &str) -> Ended {
    let host = Host::new();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("models.toml");
    let text = format!(
        "[plugins.{plugin}]\nmodels = ['m']\nlimits.wall_ms = 60000\n{grants}
        [models.m]\nendpoint = {{ url = '{url}', model = 'm', retries = 0 }}\n"
    );
    fs::write(&file, text).expect("can be written");
    let file = file.to_str().expect("a plain name");
    for gate in gates {
        host.plugin(["grant", plugin, "--gate", gate, "--config", file])
            .succeeded();
    }
    let arguments = arguments.to_string();
    host.plugin([
        "call", plugin, plugin, &arguments, "--json", "--config", file,
    ])
}

fn text(ended: &Ended) -> String {
    let outcome = ended.json();
    let shown = &outcome["observation"]["content"][0]["text"];
    shown
        .as_str()
        .unwrap_or_else(|| panic!("no text: {outcome}"))
        .to_owned()
}

fn last(question: &Question) -> &str {
    question.messages().last().expect("a message").1
}

#[test]
fn a_long_text_is_summarised_in_parts() {
    let endpoint = ChatEndpoint::start(|question| {
        let letters = last(question).matches("lorem").count();
        Reply::says(format!("{letters} times lorem"))
    });
    let text_of = |repeats: usize| json!({"text": "lorem ipsum. ".repeat(repeats)});
    let short = call("summarise", &["model"], "", &text_of(3), endpoint.url());
    assert_eq!(text(short.succeeded()), "3 times lorem");
    assert_eq!(endpoint.take_questions().len(), 1);
    let long = call(
        "summarise",
        &["model"],
        "",
        &text_of(10_000),
        endpoint.url(),
    );
    text(long.succeeded());
    // Three parts of at most 48,000 characters, and one question about their summaries.
    assert_eq!(endpoint.take_questions().len(), 4);
}

#[test]
fn a_value_that_the_text_does_not_say_is_not_extracted() {
    let endpoint = ChatEndpoint::start(|_| Reply::says(r#"{"name": "Ada", "city": "Paris"}"#));
    let arguments = json!({
        "text": "Ada has moved.",
        "fields": {"name": "who", "city": "where she lives"},
    });
    let ended = call("extract", &["model"], "", &arguments, endpoint.url());
    let outcome = ended.succeeded().json();
    let found = &outcome["observation"]["content"][0]["structured"];
    assert_eq!(
        *found,
        json!({"name": "Ada", "city": null, "not_found_in_text": ["city"]})
    );
}

#[test]
fn research_calls_tools_and_answers_from_what_they_say() {
    let endpoint = ChatEndpoint::start(|question| {
        let seen: Vec<&str> = question.messages().iter().map(|(_, text)| *text).collect();
        let seen = seen.join("\n");
        Reply::says(if seen.contains("42") {
            json!({"answer": "It is 42.", "sources": ["calculate"]}).to_string()
        } else {
            let call = json!({"tool": "calculate", "arguments": {"expression": "6*7"}});
            json!({"calls": [call], "note": "multiplying"}).to_string()
        })
    });
    let question = json!({"question": "What is six times seven?"});
    let gates = ["model", "tools"];
    let grants = "tools = ['calculate']";
    let ended = call("research", &gates, grants, &question, endpoint.url());
    let answer = text(ended.succeeded());
    assert_eq!(answer, "It is 42.\n\nsources: calculate");
    assert_eq!(endpoint.take_questions().len(), 2);

    // A model that never answers is asked for the last time, and then fails in words that its caller reads.
    let lost = ChatEndpoint::start(|_| Reply::says("hm"));
    let ended = call("research", &gates, grants, &question, lost.url());
    let outcome = ended.json();
    assert_eq!(outcome["ended"], "failed", "{outcome}");
    assert_eq!(lost.take_questions().len(), 7);
}
