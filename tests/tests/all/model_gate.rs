//! Plugins that ask language models: only the models that their grants name, within budgets for a call and for all calls
//! around it; and a model that gives no answer ends the call and nothing else. An answer fits the schema of its question.

use std::fs;
use std::path::Path;

use rlf_tests::{ChatEndpoint, Ended, Host, PluginFolder, Reply};
use serde_json::{Value, json};

/// A model that repeats the last message in capitals.
fn loud() -> ChatEndpoint {
    ChatEndpoint::start(|question| {
        let messages = question.messages();
        let (_, text) = messages.last().expect("a message");
        Reply::says(text.to_uppercase())
    })
}

/// A configuration with the guest `asker`, the guest `agent`, and the model `loud` at this address.
fn configured(host: &Host, file: &Path, url: &str, model: &str) {
    let text = format!(
        "[plugins.asker]
models = ['loud']
[plugins.agent]
tools = ['ask']
[models.loud]
endpoint = {{ url = '{url}', model = 'm', retries = 0, timeout_ms = 2000, max_tokens = 50 }}
{model}"
    );
    fs::write(file, text).expect("can be written");
    let file = file.to_str().expect("a plain name");
    for (plugin, gate) in [("asker", "model"), ("agent", "tools")] {
        host.plugin(["grant", plugin, "--gate", gate, "--config", file])
            .succeeded();
    }
}

/// Calls a tool of a guest, with further keys for the model.
fn call(plugin: &str, tool: &str, arguments: &Value, url: &str, model: &str) -> Ended {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let config = folder.path().join("models.toml");
    let host = Host::with_test_plugins();
    configured(&host, &config, url, model);
    host.plugin([
        "call",
        plugin,
        tool,
        &arguments.to_string(),
        "--json",
        "--config",
        config.to_str().expect("a plain name"),
    ])
}

fn seen(ended: &Ended) -> Value {
    ended.json()["observation"]["content"][0]["structured"].clone()
}

#[test]
fn questions_are_answered_in_order_with_the_operators_settings() {
    let endpoint = loud();
    let ask = json!({"questions": ["one", "two", "three"], "max_tokens": 9000});
    let ended = call("asker", "ask", &ask, endpoint.url(), "");
    let answers = seen(ended.succeeded());
    let texts: Vec<&Value> = (0..3).map(|at| &answers[at]["text"]).collect();
    assert_eq!(texts, ["ONE", "TWO", "THREE"], "{answers}");
    assert!(answers[0]["tokens"][0].as_u64() > Some(0), "{answers}");

    let questions = endpoint.take_questions();
    let seeds: Vec<&Value> = questions.iter().map(|one| &one.body["seed"]).collect();
    assert!(seeds[0] != seeds[1] && seeds[1] != seeds[2], "{seeds:?}");
    for question in &questions {
        assert_eq!(question.body["max_tokens"], 50, "{question:?}");
        assert_eq!(question.body["model"], "m");
    }
    let listed = call("asker", "list_models", &json!({}), endpoint.url(), "");
    assert_eq!(seen(listed.succeeded()), json!([["loud", 50]]));

    // The same call has the same seeds.
    let again = call("asker", "ask", &ask, endpoint.url(), "");
    again.succeeded();
    let mut first: Vec<String> = seeds.iter().map(ToString::to_string).collect();
    let questions = endpoint.take_questions();
    let mut second: Vec<String> = questions
        .iter()
        .map(|one| one.body["seed"].to_string())
        .collect();
    first.sort();
    second.sort();
    assert_eq!(first, second);
}

#[test]
fn what_cannot_be_asked_is_refused_and_not_sent() {
    let endpoint = loud();
    let refused = |ask: Value| {
        let ended = call("asker", "ask", &ask, endpoint.url(), "");
        let answers = seen(ended.succeeded());
        answers[0]["refused"].as_str().expect("refused").to_owned()
    };
    let other = refused(json!({"questions": ["?"], "model": "judge"}));
    assert_eq!(
        other,
        "no model \"judge\" is open to this plugin; there are: loud"
    );
    let hot = refused(json!({"questions": ["?"], "temperature": 3.0}));
    assert!(hot.contains("it goes from 0 to 2"), "{hot}");
    assert_eq!(endpoint.take_questions(), []);
}

#[test]
fn a_budget_ends_questions_and_the_calls_around_count_too() {
    let endpoint = loud();
    let ask = json!({"questions": ["?"], "times": 5});
    let answers = seen(
        call(
            "asker",
            "ask",
            &ask,
            endpoint.url(),
            "call = { questions = 3 }",
        )
        .succeeded(),
    );
    assert_eq!(answers[2]["text"], "?");
    let refused = answers[3]["refused"].as_str().expect("refused");
    assert_eq!(
        refused,
        "the budget of a call is spent (models.loud.call): 3 questions are allowed, and all of them were asked"
    );
    assert_eq!(endpoint.take_questions().len(), 3);

    let tokens = "trajectory = { tokens = 60 }";
    let answers = seen(call("asker", "ask", &ask, endpoint.url(), tokens).succeeded());
    let refused = answers[4]["refused"].as_str().expect("refused");
    assert!(
        refused.contains("(models.loud.trajectory): 60 tokens are allowed"),
        "{refused}"
    );

    // Two calls of the tool, each with two questions, are made by one call of the agent.
    let twice = json!({"questions": ["?", "!"]}).to_string();
    let twice = json!({"tool": "ask", "arguments": twice});
    let delegate = json!({"calls": [twice], "times": 2});
    endpoint.take_questions();
    call(
        "agent",
        "delegate",
        &delegate,
        endpoint.url(),
        "call = { questions = 3 }",
    )
    .succeeded();
    assert_eq!(endpoint.take_questions().len(), 3);
}

#[test]
fn a_model_that_fails_ends_the_call_as_unavailable() {
    for (reply, says) in [
        (Reply::Fails(500), "status 500"),
        (Reply::Fails(401), "status 401"),
        (Reply::Is("{\"choices\": []}"), "it has no choices"),
        (
            Reply::Is("no JSON"),
            "something else than a chat completion",
        ),
        (Reply::HangsUp, "gave no answer"),
        (Reply::Stalls, "had not answered after 2000 ms"),
    ] {
        let endpoint = ChatEndpoint::start(move |_| reply);
        let ended = call(
            "asker",
            "ask",
            &json!({"questions": ["?"]}),
            endpoint.url(),
            "",
        );
        assert_eq!(ended.code(), Some(1), "{ended}");
        let outcome = ended.json();
        assert_eq!(outcome["ended"], "unavailable", "{outcome}");
        assert_eq!(outcome["fault"], "infrastructure", "{outcome}");
        let detail = outcome["detail"].as_str().expect("says what");
        assert!(
            detail.contains("model `loud`") && detail.contains(says),
            "{detail}"
        );
    }
}

#[test]
fn a_question_that_the_model_refuses_is_the_callers_doing() {
    let endpoint = ChatEndpoint::start(|_| Reply::Fails(400));
    let ended = call(
        "asker",
        "ask",
        &json!({"questions": ["?"]}),
        endpoint.url(),
        "",
    );
    let answers = seen(ended.succeeded());
    let refused = answers[0]["refused"].as_str().expect("refused");
    assert!(
        refused == "the model refused the question (status 400)",
        "{refused}"
    );
}

#[test]
fn an_answer_that_a_content_filter_removed_is_refused_and_no_empty_text() {
    let message = json!({"role": "assistant", "content": ""});
    let choice = json!({"index": 0, "message": message, "finish_reason": "content_filter"});
    let body = json!({"choices": [choice]}).to_string();
    let endpoint = ChatEndpoint::start(move |_| Reply::is(body.clone()));
    let ended = call(
        "asker",
        "ask",
        &json!({"questions": ["?"]}),
        endpoint.url(),
        "",
    );
    let answers = seen(ended.succeeded());
    assert_eq!(
        answers[0]["refused"],
        "the model refused the question (a content filter removed the answer)"
    );
}

#[test]
fn mistakes_in_the_configuration_are_named() {
    let host = Host::with_test_plugins();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("c.toml");
    let inspect = |text: &str| {
        fs::write(&file, text).expect("can be written");
        let name = file.to_str().expect("a plain name");
        host.plugin(["call", "asker", "list_models", "{}", "--config", name])
    };
    let text = "[models.loud]\nendpoint = { url = 'ftp://a', model = 'm' }\n";
    let wrong = inspect(text);
    assert!(
        wrong
            .stderr
            .contains("c.toml:2: models.loud.endpoint.url: only http and https"),
        "{wrong}"
    );
    let unknown = inspect("[models.loud]\nendpont = 3\n");
    assert!(
        unknown.stderr.contains("did you mean `endpoint`?"),
        "{unknown}"
    );

    let url = loud();
    configured(&host, &file, url.url(), "");
    let text = fs::read_to_string(&file).expect("is there");
    let other = inspect(
        &text
            .replace("models = ['loud']", "models = ['lout']")
            .replace("models = [\"loud\"]", "models = ['lout']"),
    );
    assert!(
        other
            .stderr
            .contains("[plugins.asker] `models`: there is no model `lout`; did you mean `loud`?"),
        "{other}"
    );
}

/// A tool that asks for an object with a score. `strict` lets the error of an answer that does not fit end the call.
const SCORER: &str = r#"
import rlf

SCHEMA = {"type": "object", "properties": {"score": {"type": "integer"}}, "required": ["score"]}

@rlf.tool
def score(text: str, strict: bool) -> str:
    "Scores a text."
    try:
        return rlf.ask_model(text, schema=SCHEMA).text
    except rlf.GateError as error:
        if strict:
            raise
        return f"{error.kind}: {error.message}"
"#;

/// The outcome of a call of [`SCORER`], whose model has these keys besides its endpoint.
fn scored(endpoint: &ChatEndpoint, model: &str, strict: bool) -> Value {
    let asks = ("scorer/plugin.toml", "gates = [\"model\"]\n");
    let folder = PluginFolder::new(&[("scorer/scorer.py", SCORER), asks]);
    let url = endpoint.url();
    let config = folder.write(
        "models.cfg",
        &format!(
            "[plugins.scorer]\nmodels = ['judge']\n[models.judge]\n\
             endpoint = {{ url = '{url}', model = 'm', retries = 0 }}\n{model}\n"
        ),
    );
    let config = config.to_str().expect("a plain name");
    folder
        .plugin(&["grant", "scorer", "--gate", "model", "--config", config])
        .succeeded();
    let arguments = json!({"text": "How good?", "strict": strict});
    folder.call("scorer", "score", &arguments, &["--config", config])
}

#[test]
fn a_schema_is_told_to_an_endpoint_that_takes_it_and_the_answer_is_its_json_alone() {
    let endpoint = ChatEndpoint::start(|_| Reply::Says("```json\n{\"score\": 3}\n```"));
    let schema = json!({
        "type": "object", "properties": {"score": {"type": "integer"}}, "required": ["score"],
    });
    for (model, format) in [
        ("", Value::Null),
        ("structured = 'json-object'", json!({"type": "json_object"})),
        (
            "structured = 'json-schema'",
            json!({"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}),
        ),
    ] {
        let outcome = scored(&endpoint, model, true);
        let shown = &outcome["observation"]["content"][0]["text"];
        assert_eq!(shown, "{\"score\": 3}", "{outcome}");
        let questions = endpoint.take_questions();
        assert_eq!(questions.len(), 1, "{model}");
        assert_eq!(questions[0].body["response_format"], format, "{model}");
    }
}

#[test]
fn an_answer_that_does_not_fit_is_asked_again_as_often_as_configured_and_then_unavailable() {
    let endpoint = ChatEndpoint::start(|question| {
        let (_, text) = question.messages()[0];
        Reply::Says(if text.contains("An earlier answer was refused") {
            "{\"score\": 4}"
        } else {
            "{\"score\": \"three\"}"
        })
    });
    let outcome = scored(&endpoint, "", false);
    let said = outcome["observation"]["content"][0]["text"].as_str();
    let misfit = "unavailable: the answer of model `judge` does not fit the schema of the question: at `/score`: ";
    assert!(
        said.is_some_and(|said| said.starts_with(misfit)),
        "{outcome}"
    );
    assert_eq!(endpoint.take_questions().len(), 1);

    // A tool that lets the error pass ends as after any infrastructure failure.
    let outcome = scored(&endpoint, "", true);
    assert_eq!(outcome["ended"], "unavailable", "{outcome}");
    assert_eq!(outcome["fault"], "infrastructure", "{outcome}");

    endpoint.take_questions();
    let outcome = scored(&endpoint, "schema_retries = 1", true);
    let shown = &outcome["observation"]["content"][0]["text"];
    assert_eq!(shown, "{\"score\": 4}", "{outcome}");
    let questions = endpoint.take_questions();
    assert_eq!(questions.len(), 2);
    assert_ne!(questions[0].body["seed"], questions[1].body["seed"]);
}

#[test]
fn a_file_in_python_or_javascript_asks_in_the_same_way() {
    let endpoint = loud();
    let python = "import rlf\n\n@rlf.tool\ndef shout(texts: list[str]) -> list:\n    \
        listed = [model['name'] for model in rlf.list_models()]\n    \
        answers = rlf.ask_models([rlf.Question(text, max_tokens=5) for text in texts])\n    \
        return listed + [answer.text for answer in answers]\n";
    let javascript = "import { askModels, listModels } from 'rlf';\n\
        /** @tool\n * @param {string[]} texts */\n\
        export function shout(texts) {\n  \
        const answers = askModels(texts.map((messages) => ({ messages, maxTokens: 5 })));\n  \
        return [...listModels().map(({ name }) => name), ...answers.map(({ text }) => text)];\n}\n";
    for (file, source) in [("shouter.py", python), ("shouter.js", javascript)] {
        let name = format!("shouter/{file}");
        let asks = ("shouter/plugin.toml", "gates = [\"model\"]\n");
        let folder = PluginFolder::new(&[(&name, source), asks]);
        let url = endpoint.url();
        let config = folder.write(
            "models.cfg",
            &format!(
                "[plugins.shouter]\nmodels = ['loud']\n[models.loud]\n\
                 endpoint = {{ url = '{url}', model = 'm', retries = 0 }}\n"
            ),
        );
        let config = config.to_str().expect("a plain name");
        folder
            .plugin(&["grant", "shouter", "--gate", "model", "--config", config])
            .succeeded();
        let texts = json!({"texts": ["one", "two"]});
        let outcome = folder.call("shouter", "shout", &texts, &["--config", config]);
        let shown = outcome["observation"]["content"].to_string();
        for said in ["loud", "ONE", "TWO"] {
            assert!(shown.contains(said), "{file}: {outcome}");
        }
        let questions = endpoint.take_questions();
        assert_eq!(questions.len(), 2, "{file}");
        assert_eq!(questions[0].body["max_tokens"], 5, "{file}");
    }
}
