//! Measuring a model behind an endpoint, with `eval CONFIG --endpoint URL`. A scripted model plays tasks of the
//! quickstart: it solves them, makes mistakes, or is out of order.

use std::collections::BTreeSet;
use std::fs;
use std::sync::OnceLock;

use rlf_tests::{ChatEndpoint, Ended, Experiment, Question, Reply};
use serde_json::{Value, json};

use crate::users::{LEAVES, shop, task};

/// More room than a policy of the quickstart needs, because its tokenizer cuts the words of others into short pieces.
const ROOM: [&str; 6] = [
    "--set",
    "dialogue.context=4000",
    "--set",
    "dialogue.max_tokens_per_turn=500",
    "--set",
    "dialogue.max_observation_tokens=200",
];

/// The quickstart with four questions like `What is the area of "lebanon"?`.
fn lookups() -> Experiment {
    Experiment::tiny().with_toml("tasks.facts.eval = {lookup = 1.0}")
}

/// Evaluates on the tasks of a configuration or of a run.
fn eval(experiment: &Experiment, of: &str, endpoint: &ChatEndpoint, more: &[&str]) -> Ended {
    let plugins = experiment.host().plugins().to_str().expect("a plain name");
    let own = [
        "eval",
        of,
        "--plugins",
        plugins,
        "--endpoint",
        endpoint.url(),
    ];
    experiment.host().run(own.iter().chain(&ROOM).chain(more))
}

/// Measures the model `m` on the tasks of an experiment's configuration.
fn measure(experiment: &Experiment, endpoint: &ChatEndpoint, more: &[&str]) -> Ended {
    let config = experiment.write("config.toml", experiment.text());
    let config = config.to_str().expect("a plain name");
    let more: Vec<&str> = ["--model", "m"].iter().chain(more).copied().collect();
    eval(experiment, config, endpoint, &more)
}

fn messages(question: &Question) -> &[Value] {
    let messages = question.body["messages"].as_array();
    messages.expect("a question has messages")
}

/// Number of turns that the model has taken.
fn turns(question: &Question) -> usize {
    let of_model = |message: &&Value| message["role"] == "assistant";
    messages(question).iter().filter(of_model).count()
}

/// The arguments of `lookup` that a task asks for.
fn fact(question: &Question) -> Value {
    let user = messages(question)
        .iter()
        .find(|message| message["role"] == "user")
        .expect("a user asks");
    let text = user["content"].as_str().expect("a text");
    let asked = text
        .strip_prefix("What is the ")
        .and_then(|text| text.strip_suffix("\"?"))
        .and_then(|text| text.split_once(" of \""));
    let (column, name) = asked.unwrap_or_else(|| panic!("another question: {text}"));
    json!({"of": name, "get": column})
}

/// A turn with these calls: the names of tools, with arguments as the model writes them.
fn calls(calls: &[(&str, &str)]) -> Reply {
    let calls = calls.iter().enumerate().map(|(place, (name, arguments))| {
        let function = json!({"name": name, "arguments": arguments});
        json!({"id": format!("c{place}"), "type": "function", "function": function})
    });
    let calls: Vec<Value> = calls.collect();
    let message = json!({"role": "assistant", "content": null, "tool_calls": calls});
    let choice = json!({"index": 0, "message": message, "finish_reason": "tool_calls"});
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 5});
    Reply::is(json!({"choices": [choice], "usage": usage}).to_string())
}

/// Looks up what is asked, then answers with what it has read.
fn solve(question: &Question) -> Reply {
    let last = messages(question).last().expect("the question is there");
    if last["role"] == "tool" {
        let value = last["content"].as_str().expect("a text");
        return Reply::says(format!("<answer>{value}</answer>"));
    }
    calls(&[("lookup", &fact(question).to_string())])
}

#[test]
fn a_model_that_calls_tools_solves_every_task_and_one_that_talks_solves_none() {
    let experiment = lookups();
    let solver = ChatEndpoint::start(solve);
    let solved = measure(&experiment, &solver, &["--json"]);
    let evaluation = solved.succeeded().json();
    for how in ["greedy", "sampled"] {
        assert_eq!(evaluation[how]["mean"], 1.0, "{evaluation}");
        assert_eq!(evaluation[how]["tasks"], 4);
    }
    assert_eq!(evaluation["excluded"], 0.0);
    assert_eq!(evaluation["calls"], 1.0);
    let named = json!({"url": solver.url(), "model": "m"});
    assert_eq!(evaluation["endpoint"], named);
    // Four tasks, once greedily and twice by sampling, with two turns each.
    let questions = solver.take_questions();
    assert_eq!(questions.len(), 24);
    assert_eq!(evaluation["spent"]["answers"], 24);
    let prompt_tokens = evaluation["spent"]["prompt_tokens"].as_u64();
    assert!(prompt_tokens > Some(120), "{evaluation}");
    questions_carry_what_they_should(&questions);

    let shown = measure(&experiment, &solver, &[]);
    let shown = &shown.succeeded().stdout;
    let head = format!("endpoint {}\nmodel m\n", solver.url());
    assert!(shown.starts_with(&head), "{shown}");
    assert!(shown.contains("\ntokens "), "{shown}");
    assert!(shown.contains("in 24 answers\n"), "{shown}");

    let talker = ChatEndpoint::start(|_| Reply::Says("It is large, I believe."));
    let talked = measure(&experiment, &talker, &["--json"]);
    let evaluation = talked.succeeded().json();
    assert_eq!(evaluation["greedy"]["mean"], 0.0, "{evaluation}");
    assert_eq!(evaluation["sampled"]["mean"], 0.0);
    assert_eq!(evaluation["excluded"], 0.0);
}

fn questions_carry_what_they_should(questions: &[Question]) {
    let mut seeds = BTreeSet::new();
    let mut greedy = 0;
    for question in questions {
        let body = &question.body;
        assert_eq!(question.line, "POST /v1/chat/completions HTTP/1.1");
        assert_eq!(body["model"], "m");
        assert!(body["tools"].to_string().contains("\"lookup\""), "{body}");
        assert!(body["max_tokens"].as_u64() <= Some(500), "{body}");
        assert!(seeds.insert(body["seed"].as_u64()), "a seed came twice");
        greedy += usize::from(body["temperature"] == 0.0);
        if turns(question) == 1 {
            let [_, said, read] = messages(question) else {
                panic!("{body}")
            };
            let function = &said["tool_calls"][0]["function"];
            let arguments = function["arguments"].as_str().expect("a text");
            let arguments: Value = serde_json::from_str(arguments).expect("JSON");
            assert_eq!(arguments, fact(question));
            assert_eq!(said["content"], Value::Null);
            assert_eq!(said["tool_calls"][0]["id"], read["tool_call_id"]);
        }
    }
    assert_eq!(greedy, 8);
}

#[test]
fn malformed_calls_are_answered_with_what_is_wrong_and_can_be_mended() {
    let endpoint = ChatEndpoint::start(|question| {
        let right = fact(question).to_string();
        match turns(question) {
            0 => calls(&[
                ("lookup", &right[..right.len() - 1]),
                ("lookup", right.as_str()),
            ]),
            1 => calls(&[("look_up", right.as_str())]),
            2 => calls(&[("lookup", right.as_str())]),
            _ => solve(question),
        }
    });
    let measured = measure(&lookups(), &endpoint, &["--json"]);
    let evaluation = measured.succeeded().json();
    assert_eq!(evaluation["greedy"]["mean"], 1.0, "{evaluation}");
    assert_eq!(evaluation["sampled"]["mean"], 1.0);
    assert_eq!(evaluation["excluded"], 0.0);
    let questions = endpoint.take_questions();
    let after = |count: usize| {
        let question = questions.iter().find(|question| turns(question) == count);
        messages(question.expect("such a turn was taken"))
    };
    let [_, said, first, second] = after(1) else {
        panic!("{:?}", after(1))
    };
    // Every endpoint accepts the call in the history, whatever the model wrote.
    let sent = said["tool_calls"][0]["function"]["arguments"].as_str();
    let sent: Value = serde_json::from_str(sent.expect("a text")).expect("JSON");
    assert!(sent.is_object(), "{sent}");
    assert_eq!(
        [&first["tool_call_id"], &second["tool_call_id"]],
        ["c0", "c1"]
    );
    let wrong = first["content"].as_str().expect("a text");
    assert!(wrong.contains("must be a JSON object"), "{wrong}");
    let right = second["content"].as_str().expect("a text");
    assert!(!right.contains("Error"), "{right}");
    let unknown = after(2).last().expect("not empty");
    assert!(
        unknown.to_string().contains("there is no tool"),
        "{unknown}"
    );
}

#[test]
fn a_failing_endpoint_takes_out_what_it_fails_and_nothing_else() {
    let unlucky = OnceLock::new();
    let endpoint = ChatEndpoint::start(move |question| {
        let fact = fact(question);
        if unlucky.get_or_init(|| fact.clone()) == &fact {
            return Reply::Fails(500);
        }
        solve(question)
    });
    let quick = [
        "--json",
        "--set",
        "endpoint.retries=1",
        "--set",
        "endpoint.backoff_ms=0",
    ];
    let measured = measure(&lookups(), &endpoint, &quick);
    let evaluation = measured.succeeded().json();
    assert_eq!(evaluation["excluded"], 0.25, "{evaluation}");
    assert_eq!(evaluation["greedy"]["mean"], 1.0);
    assert_eq!(evaluation["sampled"]["mean"], 1.0);
    assert_eq!(evaluation["sampled"]["tasks"], 3);
    let told = "failed 2 times, the last with status 500";
    assert!(measured.stderr.contains(told), "{measured}");

    let broken = ChatEndpoint::start(|_| Reply::Fails(503));
    measure(&lookups(), &broken, &quick).refused_with(&["no trajectory could be graded", "503"]);
}

#[test]
fn an_answer_that_a_content_filter_removed_excludes_its_trajectory_and_scores_nothing() {
    let filtered = ChatEndpoint::start(|_| {
        let message = json!({"role": "assistant", "content": ""});
        let choice = json!({"index": 0, "message": message, "finish_reason": "content_filter"});
        Reply::is(json!({"choices": [choice]}).to_string())
    });
    measure(&lookups(), &filtered, &[])
        .refused_with(&["no trajectory could be graded", "content filter"]);
}

#[test]
fn what_every_question_would_meet_ends_the_measurement_and_the_key_is_not_shown() {
    let experiment = lookups();
    let refusing = ChatEndpoint::start(|_| Reply::Fails(401));
    // Any variable that is long enough can hold the key.
    let ended = measure(&experiment, &refusing, &["--key-env", "PATH"]);
    ended.refused_with(&["status 401", "correct the key", "--key-env"]);
    let key = std::env::var("PATH").expect("is set");
    assert!(!ended.stdout.contains(&key) && !ended.stderr.contains(&key));
    let missing = ChatEndpoint::start(|_| Reply::Fails(404));
    measure(&experiment, &missing, &[]).refused_with(&["status 404", "the model's name"]);

    // Nothing is asked before the settings are right.
    let solver = ChatEndpoint::start(solve);
    let refused = |more: &[&str], parts: &[&str]| {
        measure(&experiment, &solver, more).refused_with(parts);
    };
    let unset = "RLF_TEST_IS_NOT_SET";
    refused(&["--key-env", unset], &["endpoint.key_env", unset]);
    refused(&["--max-concurrent", "0"], &["endpoint.max_concurrent: 0"]);
    refused(
        &["--set", "dialogue.max_turn=3"],
        &["--set dialogue.max_turn=3", "`max_turns`"],
    );
    let config = experiment.path("config.toml");
    let config = config.to_str().expect("a plain name");
    eval(&experiment, config, &solver, &[]).refused_with(&["endpoint.model", "--model"]);
    assert_eq!(solver.take_questions(), []);
}

#[test]
fn a_run_needs_no_checkpoint_to_measure_another_model() {
    let experiment = lookups().without("rl");
    let run = experiment.train("run", &[]);
    fs::remove_dir_all(run.path().join("checkpoints")).expect("is there");
    let solver = ChatEndpoint::start(solve);
    let more = ["--model", "m", "--tasks", "2", "--samples", "1", "--json"];
    let measured = eval(&experiment, run.as_str(), &solver, &more);
    let evaluation = measured.succeeded().json();
    assert_eq!(evaluation["greedy"]["mean"], 1.0, "{evaluation}");
    assert_eq!(evaluation["sampled"]["tasks"], 2);
}

#[test]
fn a_measured_model_serves_users_that_another_model_plays() {
    let users = ChatEndpoint::start(|question| match turns(question) {
        0 => Reply::Says("Where is my order?"),
        1 => Reply::Says("Number one."),
        _ => Reply::Says(LEAVES),
    });
    let agent = ChatEndpoint::start(|question| match turns(question) {
        0 => Reply::Says("Which one is it?"),
        1 => calls(&[("get_order_details", r##"{"order_id": "#1"}"##)]),
        _ => Reply::Says("It is on its way."),
    });
    let asker = [task("asker", Some("on its way"))];
    let shop = shop(&users, &asker, &asker);
    let measured = measure(&shop, &agent, &["--json"]);
    let evaluation = measured.succeeded().json();
    assert_eq!(
        evaluation["users"],
        json!({"mode": "model", "model": "player"})
    );
    assert_eq!(evaluation["greedy"]["mean"], 1.0, "{evaluation}");
    assert_eq!(evaluation["excluded"], 0.0, "{evaluation}");
}
