//! Simulated users: an agent that a training run has taught to speak serves users, which a scripted endpoint plays,
//! in a store of `tau-retail` with one order. The agent's greedy turns are those that it was taught, so the whole
//! conversation is known word for word.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use rlf_dialogue::{Tokenizer, TrainingSequence};
use rlf_tests::{ChatEndpoint, Ended, Experiment, Host, Question, Reply, RunFolder};
use serde_json::{Value, json};

/// The text that users must write to leave. Environments receive `###STOP###` instead.
pub(crate) const LEAVES: &str = "Thank you! GOODBYE";

/// The replies of each user in turn; after these the user must not be asked again.
const USERS: &[(&str, &[Reply])] = &[
    (
        "asker",
        &[
            Reply::Says("Where is my order?"),
            Reply::Says("Number one."),
            Reply::Says(LEAVES),
        ],
    ),
    (
        "tester",
        &[
            Reply::Says("Are you a robot?"),
            Reply::Says("I am still here."),
            Reply::Says("So am I."),
            Reply::Says(LEAVES),
        ],
    ),
    // These users fail at once.
    ("gone", &[Reply::HangsUp]),
    ("ill", &[Reply::Fails(500)]),
    ("blank", &[Reply::Says(" ")]),
    ("shy", &[Reply::Says(LEAVES)]),
    // These users fail after the first reply.
    (
        "later-gone",
        &[Reply::Says("Where is my order?"), Reply::HangsUp],
    ),
    (
        "later-ill",
        &[Reply::Says("Where is my order?"), Reply::Fails(500)],
    ),
    (
        "later-blank",
        &[Reply::Says("Where is my order?"), Reply::Says("")],
    ),
];

fn users() -> ChatEndpoint {
    ChatEndpoint::start(|question| {
        let messages = question.messages();
        let is_told = |name: &str| messages[0].1.contains(&format!("You are {name}."));
        let user = USERS.iter().find(|(name, _)| is_told(name));
        let (_, replies) = user.expect("the instruction comes first");
        let said = messages.iter().filter(|(role, _)| *role == "assistant");
        let reply = replies.get(said.count());
        reply.copied().unwrap_or(Reply::Fails(410))
    })
}

/// The file with the prompt of the users.
const PROMPT: &str = "user.txt";

/// The store's instructions to its agent.
const POLICY: &str = "POLICY: be kind.";

/// tau-bench's hash of [`lay_out`]'s database, by CPython 3: SHA-256 of the `str` of its `to_hashable`.
const UNCHANGED: &str = "f78c76db21049b3b103fc10cbd99e7e512b2c4b139342c1367b61b4a8d031f42";

/// The order, as the store shows it.
const ORDER: &str = "{\"order_id\": \"#1\", \"user_id\": \"zoe\", \"status\": \"pending\", \"items\": [], \
                     \"payment_history\": [], \"carrier\": \"PIGEON\"}";

fn tools() -> Value {
    json!([{"type": "function", "function": {
        "name": "get_order_details", "description": "An order.",
        "parameters": {"type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]},
    }}])
}

/// Writes the store's data files.
fn lay_out(folder: &Path) {
    let zoe = json!({
        "name": {"first_name": "Zoe", "last_name": "Ray"}, "address": {"zip": "1"}, "email": "z@x.org",
        "payment_methods": {},
    });
    fs::create_dir(folder).expect("can be made");
    for (name, content) in [
        ("orders.json", format!("{{\"#1\": {ORDER}}}")),
        ("users.json", json!({"zoe": zoe}).to_string()),
        ("products.json", json!({}).to_string()),
        ("tools.json", tools().to_string()),
        ("wiki.md", POLICY.to_owned()),
    ] {
        fs::write(folder.join(name), content).expect("can be written");
    }
}

/// A task in which the agent must tell a user `output`.
pub(crate) fn task(user: &str, output: Option<&str>) -> Value {
    let outputs: Vec<&str> = output.into_iter().collect();
    json!({
        "id": user, "source": "shop", "prompt": [], "environment": "tau-retail",
        "setup": {"user": "model", "instruction": format!("You are {user}.")},
        "reference": {"gold_hash": UNCHANGED, "outputs": outputs}, "extra": {"kind": user},
    })
}

fn asker() -> Value {
    task("asker", Some("on its way"))
}

/// The agent says `###STOP###`. The environment receives it with a full stop after it, because the word alone would
/// mean that the user leaves.
fn tester() -> Value {
    task("tester", Some("###STOP###."))
}

fn failing(users: &[&str]) -> Vec<Value> {
    users.iter().map(|user| task(user, None)).collect()
}

/// Conversations that the agent learns by heart.
fn taught() -> Vec<Value> {
    let system = json!({"role": "system", "content": POLICY});
    let user = |text: &str| json!({"role": "user", "content": text});
    let agent = |text: &str| json!({"role": "assistant", "content": text});
    let arguments = json!({"order_id": "#1"}).to_string();
    let function = json!({"name": "get_order_details", "arguments": arguments});
    let call = json!({"id": "c", "type": "function", "function": function});
    let conversation = |messages: &[Value]| json!({"messages": messages, "tools": tools()});
    vec![
        conversation(&[
            system.clone(),
            user("Where is my order?"),
            json!({"role": "assistant", "content": "Which one is it?", "reasoning_content": "PONDERED"}),
            user("Number one."),
            json!({"role": "assistant", "content": "", "tool_calls": [call]}),
            json!({"role": "tool", "tool_call_id": "c", "content": ORDER}),
            agent("It is on its way."),
        ]),
        conversation(&[
            system,
            user("Are you a robot?"),
            agent("###STOP###"),
            user("I am still here."),
            agent("GOODBYE"),
            user("So am I."),
            agent("Fine."),
        ]),
    ]
}

fn write_rows(experiment: &Experiment, name: &str, rows: &[Value]) {
    let lines: Vec<String> = rows.iter().map(Value::to_string).collect();
    experiment.write(name, lines.join("\n"));
}

/// A run that teaches the agent to speak, in a few seconds.
fn speaking(users: &ChatEndpoint, conversations: &[Value]) -> Experiment {
    let settings = format!(
        "tasks = {{train = 'train.jsonl', validation = 'train.jsonl', test = 'test.jsonl', demonstrations = 'taught.jsonl'}}
        model.init.max_position_embeddings = 512
        dialogue = {{answer = 'final-turn', context = 512, max_observation_tokens = 200}}
        sft.steps = 150
        sft.optimizer = {{learning_rate = 5e-3, warmup_steps = 5}}
        rewards.success = 'reward-verdict.success >= 1'
        rewards.stack = [{{plugin = 'reward-verdict'}}]
        eval = {{tasks = 10, samples = 1, every = 0}}
        user = {{url = '{}', model = 'player', prompt = 'user.txt', stop = 'GOODBYE', retries = 1, backoff_ms = 0}}",
        users.url()
    );
    let experiment = Experiment::tiny()
        .without("tasks")
        .without("plugins")
        .without("rewards")
        .with_toml(&settings);
    write_rows(&experiment, "taught.jsonl", conversations);
    let prompt = "{instruction} When all is done, write {stop} and nothing else.";
    experiment.write(PROMPT, prompt);
    experiment
}

/// [`speaking`], in the store.
pub(crate) fn shop(users: &ChatEndpoint, train: &[Value], test: &[Value]) -> Experiment {
    let experiment =
        speaking(users, &taught()).with_toml("plugins.tau-retail.data.retail = 'retail'");
    lay_out(&experiment.path("retail"));
    write_rows(&experiment, "train.jsonl", train);
    write_rows(&experiment, "test.jsonl", test);
    experiment
}

fn eval(experiment: &Experiment, run: &RunFolder, further: &[&str]) -> Ended {
    let plugins = experiment.host().plugins().to_str().expect("a plain name");
    let own = ["eval", run.as_str(), "--plugins", plugins];
    experiment.host().run(own.iter().chain(further))
}

/// The greedy trajectory of a task of the test split, with its score, or the reason why it has none.
fn greedy(host: &Host, run: &RunFolder, plugins: &Path, task: &str) -> Value {
    let plugins = plugins.to_str().expect("a plain name");
    let own = ["rollout", run.as_str(), "--plugins", plugins];
    let played = host.run(
        own.iter()
            .chain(&["--task", task, "--temperature", "0", "--json"]),
    );
    played.succeeded().json()
}

/// The events of one kind.
fn events<'a>(trajectory: &'a Value, kind: &str) -> Vec<&'a Value> {
    let events = trajectory["events"].as_array().expect("a list");
    events.iter().filter_map(|event| event.get(kind)).collect()
}

/// The texts of simulated users after the prompt.
fn said_by_users(trajectory: &Value) -> Vec<&Value> {
    let users = events(trajectory, "user").into_iter();
    users.map(|message| &message["content"]).collect()
}

/// The text of the one sequence that training sees, in pieces: each with whether it counts in the loss.
fn pieces(run: &RunFolder, trajectory: &Value) -> Vec<(bool, String)> {
    let tokenizer = Tokenizer::load(&run.path().join("assets/tokenizer.json")).expect("was kept");
    let [sequence] = trajectory["sequences"]
        .as_array()
        .expect("a list")
        .as_slice()
    else {
        panic!("not one sequence: {trajectory}");
    };
    let sequence: TrainingSequence = serde_json::from_value(sequence.clone()).expect("a sequence");
    let tokens = sequence.masked().expect("it was sampled");
    let tokens: Vec<(bool, u32)> = (tokens.mask.as_slice().iter().copied())
        .zip(tokens.ids)
        .collect();
    tokens
        .chunk_by(|(one, _), (next, _)| one == next)
        .map(|piece| {
            let ids: Vec<u32> = piece.iter().map(|(_, id)| *id).collect();
            (piece[0].0, tokenizer.decode(&ids))
        })
        .collect()
}

#[test]
fn a_user_and_an_agent_talk_until_the_user_leaves() {
    let users = users();
    let mut alone = asker();
    alone["id"] = "alone".into();
    alone["setup"]["user"] = "solo".into();
    let shop = shop(&users, &[asker()], &[asker(), tester(), alone]).without("rl");
    let run = shop.train("run", &[]);
    // A run keeps its users' prompt.
    fs::remove_file(shop.path(PROMPT)).expect("was written");
    users.take_questions();
    asker_is_served(&shop, &run, &users);
    the_agents_word_ends_nothing(&shop, &run, &users);
    an_evaluation_says_who_played(&shop, &run);
}

fn asker_is_served(shop: &Experiment, run: &RunFolder, users: &ChatEndpoint) {
    let played = greedy(shop.host(), run, shop.host().plugins(), "asker");
    let trajectory = &played["trajectory"];
    let spoken = [
        (true, "<think>PONDERED</think>Which one is it?<|end|>"),
        (false, "<|user|>Number one.<|end|><|assistant|>"),
        (
            true,
            "<tool_call>{\"name\":\"get_order_details\",\"arguments\":{\"order_id\":\"#1\"}}</tool_call><|end|>",
        ),
    ];
    let pieces = pieces(run, trajectory);
    let (trained, prompt) = &pieces[0];
    assert!(!trained && prompt.contains(POLICY), "{prompt}");
    assert!(
        prompt.ends_with("<|end|><|user|>Where is my order?<|end|><|assistant|>"),
        "what the user says first ends the prompt: {prompt}"
    );
    for (piece, (trained, text)) in pieces[1..].iter().zip(spoken) {
        assert_eq!(*piece, (trained, text.to_owned()));
    }
    let [.., (false, order), last] = pieces.as_slice() else {
        panic!("an observation comes before the last words: {pieces:?}");
    };
    assert!(order.contains("PIGEON"), "{order}");
    assert_eq!(*last, (true, "It is on its way.<|end|>".to_owned()));
    assert_eq!(pieces.len(), 6);
    assert_eq!(said_by_users(trajectory), ["Number one."]);

    // The store ends when a user leaves, and the leaving text does not count as said.
    assert_eq!(trajectory["final_state"]["ended"], true);
    assert_eq!(trajectory["verdict"]["success"], true, "{trajectory}");
    assert_eq!(played["score"]["success"], true);
    assert_eq!(played["excluded"], Value::Null);

    let questions = users.take_questions();
    a_user_knows_what_was_said(&questions, &played);
}

fn a_user_knows_what_was_said(questions: &[Question], played: &Value) {
    let asked: Vec<Vec<(&str, &str)>> = questions.iter().map(Question::messages).collect();
    let [first, second, third] = asked.as_slice() else {
        panic!("the user has three turns: {asked:?}");
    };
    let ("system", told) = first[0] else {
        panic!("the instruction comes first: {first:?}");
    };
    assert!(told.contains("You are asker.") && told.contains("write GOODBYE and nothing"));
    let said = [
        ("assistant", "Where is my order?"),
        ("user", "Which one is it?"),
        ("assistant", "Number one."),
        ("user", "It is on its way."),
    ];
    assert_eq!(first.len(), 2, "someone greets, and nothing was said");
    assert_eq!(second[2..], said[..2]);
    assert_eq!(third[2..], said);
    for messages in [second, third] {
        assert_eq!(messages[..2], first[..]);
    }
    for question in questions {
        assert_eq!(question.line, "POST /v1/chat/completions HTTP/1.1");
        let keys = question.body.as_object().expect("an object").keys();
        let keys: BTreeSet<&str> = keys.map(String::as_str).collect();
        let known = ["max_tokens", "messages", "model", "seed", "temperature"];
        assert_eq!(keys, BTreeSet::from(known));
        assert_eq!(question.body["model"], "player");
        // The store's rules, a thought, a call, an observation and the reference: the user could have been told all
        // of these.
        for secret in [
            "POLICY",
            "PONDERED",
            "get_order_details",
            "#1",
            "PIGEON",
            UNCHANGED,
        ] {
            assert!(
                !question.body.to_string().contains(secret),
                "{secret}: {question:?}"
            );
        }
    }
    for secret in ["PONDERED", "get_order_details", "#1", "PIGEON", UNCHANGED] {
        assert!(played.to_string().contains(secret), "{secret}");
    }
}

fn the_agents_word_ends_nothing(shop: &Experiment, run: &RunFolder, users: &ChatEndpoint) {
    let played = greedy(shop.host(), run, shop.host().plugins(), "tester");
    let trajectory = &played["trajectory"];
    let turns = events(trajectory, "turn").into_iter();
    let turns: Vec<&Value> = turns.map(|turn| &turn["visible"]).collect();
    assert_eq!(turns, ["###STOP###", "GOODBYE", "Fine."]);
    assert_eq!(said_by_users(trajectory), ["I am still here.", "So am I."]);
    // The store received the word as the agent's, with the full stop, and the user received it unchanged.
    assert_eq!(trajectory["verdict"]["success"], true, "{trajectory}");
    assert_eq!(trajectory["final_state"]["ended"], true);
    let questions = users.take_questions();
    assert_eq!(questions.len(), 4);
    let last = questions[3].messages();
    let by_agent = last.iter().filter(|(role, _)| *role == "user").skip(1);
    let by_agent: Vec<&str> = by_agent.map(|(_, text)| *text).collect();
    assert_eq!(by_agent, ["###STOP###", "GOODBYE", "Fine."]);
}

fn an_evaluation_says_who_played(shop: &Experiment, run: &RunFolder) {
    let played = eval(shop, run, &["--tasks", "2", "--samples", "1", "--json"]);
    let evaluation = played.succeeded().json();
    let model = json!({"mode": "model", "model": "player"});
    assert_eq!(evaluation["users"], model);
    assert_eq!(evaluation["greedy"]["mean"], 1.0, "{evaluation}");
    assert_eq!(evaluation["excluded"], 0.0, "{evaluation}");
    let mixed = eval(shop, run, &["--tasks", "3", "--samples", "1", "--json"]);
    let mixed = mixed.succeeded().json();
    assert_eq!(mixed["users"], json!({"mode": "mixed", "model": "player"}));
    let shown = eval(shop, run, &["--tasks", "2", "--samples", "1"]);
    let shown = &shown.succeeded().stdout;
    assert!(shown.contains("users model player\n"), "{shown}");
}

#[test]
fn a_model_of_the_configuration_plays_users_and_its_answers_are_recorded() {
    let users = users();
    let settings = format!(
        "user = {{model = 'customer', prompt = 'user.txt', stop = 'GOODBYE'}}
        [models.customer]
        endpoint = {{url = '{}', model = 'player', retries = 1, backoff_ms = 0}}",
        users.url()
    );
    let shop = shop(&users, &[asker()], &[asker()])
        .without("rl")
        .without("user")
        .with_toml(&settings);
    let run = shop.train("run", &[]);
    users.take_questions();
    let record = run.path().join("models/customer.jsonl");
    fs::remove_file(&record).expect("the run has asked");

    let play = || greedy(shop.host(), &run, shop.host().plugins(), "asker");
    let played = play();
    assert_eq!(said_by_users(&played["trajectory"]), ["Number one."]);
    assert_eq!(played["score"]["success"], true, "{played}");
    assert_eq!(users.take_questions().len(), 3);
    let lines = fs::read_to_string(&record).expect("there are answers");
    assert_eq!(lines.lines().count(), 3);
    // The same trajectory again gets the recorded answers.
    let again = play();
    assert_eq!(said_by_users(&again["trajectory"]), ["Number one."]);
    assert_eq!(again["score"]["success"], true, "{again}");
    assert_eq!(users.take_questions(), []);

    let evaluation = eval(&shop, &run, &["--tasks", "1", "--samples", "1", "--json"]);
    let evaluation = evaluation.succeeded().json();
    let model = json!({"mode": "model", "model": "customer"});
    assert_eq!(evaluation["users"], model);

    shop.with_toml("user.model = 'custumer'")
        .try_train("other", &[])
        .refused_with(&["user.model = \"custumer\"", "did you mean `customer`?"]);
}

#[test]
fn a_user_who_fails_takes_a_trajectory_out_and_the_run_goes_on() {
    let users = users();
    let failing_at_once = ["gone", "ill", "blank", "shy"];
    let failing_later = ["later-gone", "later-ill", "later-blank"];
    let mut train = failing(&failing_at_once);
    train.push(asker());
    let mut test = failing(&failing_later);
    test.push(asker());
    let shop = shop(&users, &train, &test).with_toml(
        "rl.steps = 1
        rl.prompts_per_step = 5
        rl.group_size = 2
        rl.mini_batches = 1
        rl.max_dropped_share = 0.8
        rl.guards.max_excluded_share = 0.9
        rl.optimizer.learning_rate = 1e-6",
    );
    let run = shop.train("run", &["--control"]);
    a_step_tells_what_it_lost(&run);
    trajectories_are_scored_or_excluded(&run);
    every_line_says_who_played(&run);
    users_who_fail_later_are_no_score_either(&shop, &run);
}

const NO_ANSWER: &str = "the simulated user could not answer: the endpoint 127.0.0.1 gave no answer in 2 attempts: \
                         `127.0.0.1` closed the connection before its answer was complete";
const STATUS: &str = "the simulated user could not answer: the endpoint 127.0.0.1 failed 2 times, the last with status 500";
const NO_TEXT: &str = "the simulated user could not answer: its answer has no text";
const LEFT: &str = "the simulated user left before it began";

fn a_step_tells_what_it_lost(run: &RunFolder) {
    let steps = run.steps("rl");
    let [step] = steps.as_slice() else {
        panic!("not one step: {steps:?}");
    };
    assert_eq!(step["trajectories"], 10);
    assert_eq!(step["excluded"], 0.8, "{step}");
    assert_eq!(step["dropped_groups"], 4, "{step}");
    assert_eq!(
        step["excluded_reasons"],
        json!({NO_ANSWER: 2, STATUS: 2, NO_TEXT: 2, LEFT: 2})
    );
    // Counts only the trajectories that have a score.
    let kinds = step["success_by_kind"].as_object().expect("by kind");
    assert_eq!(kinds.keys().collect::<Vec<_>>(), ["asker"]);
}

fn trajectories_are_scored_or_excluded(run: &RunFolder) {
    let files = run.trajectories();
    let mut served = 0;
    for record in &files["rl-000001.jsonl"] {
        let trajectory = &record["trajectory"];
        if trajectory["task"] == "asker" {
            served += 1;
            assert!(record["excluded"].is_null(), "{record}");
            let pieces = pieces(run, trajectory);
            let ends = "<|user|>Where is my order?<|end|><|assistant|>";
            assert!(pieces[0].1.ends_with(ends), "{pieces:?}");
            let trained: String = pieces
                .iter()
                .filter(|piece| piece.0)
                .map(|p| &*p.1)
                .collect();
            let turns = events(trajectory, "turn").into_iter();
            let turns: String = turns
                .map(|turn| turn["text"].as_str().expect("a text"))
                .collect();
            assert_eq!(trained, turns, "the loss sees the agent's words alone");
        } else {
            assert!(record["excluded"].is_string(), "{record}");
            assert!(record["score"].is_null(), "{record}");
            assert_eq!(trajectory["finish"], "aborted", "{record}");
        }
    }
    assert_eq!(served, 2);
}

fn every_line_says_who_played(run: &RunFolder) {
    let model = json!({"mode": "model", "model": "player"});
    let control = fs::read_to_string(run.path().join("control/metrics.jsonl"));
    let control = control.expect("the control has metrics");
    let control = control
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"));
    let control: Vec<Value> = control.collect();
    let is_evaluation = |line: &&Value| line.get("split").is_some();
    assert_eq!(control.iter().filter(is_evaluation).count(), 1);
    for line in run.metrics().iter().chain(&control) {
        assert_eq!(line["users"], model, "{line}");
    }
}

fn users_who_fail_later_are_no_score_either(shop: &Experiment, run: &RunFolder) {
    for (task, reason) in [
        ("later-gone", NO_ANSWER),
        ("later-ill", STATUS),
        ("later-blank", NO_TEXT),
    ] {
        let played = greedy(shop.host(), run, shop.host().plugins(), task);
        let trajectory = &played["trajectory"];
        assert_eq!(events(trajectory, "turn").len(), 1, "{trajectory}");
        assert_eq!(said_by_users(trajectory), [""; 0]);
        assert_eq!(trajectory["finish"], "aborted", "{task}");
        assert_eq!(trajectory["final_state"]["ended"], false, "{task}");
        assert_eq!(
            (&played["excluded"], &played["score"]),
            (&json!(reason), &Value::Null)
        );
    }
    let measured = eval(shop, run, &["--samples", "1", "--json"]);
    let measured = measured.succeeded().json();
    assert_eq!(measured["greedy"]["tasks"], 1, "{measured}");
    assert_eq!(measured["greedy"]["mean"], 1.0, "{measured}");
    let kinds = measured["greedy_by_kind"].as_object().expect("by kind");
    assert_eq!(kinds.keys().collect::<Vec<_>>(), ["asker"]);
    assert!(
        measured["excluded"].as_f64() >= Some(3.0 / 8.0),
        "{measured}"
    );
}

#[test]
fn looking_at_tasks_before_a_run_asks_nobody() {
    let users = users();
    // Every task is opened, and the store does not know the last one.
    let mut wrong = asker();
    wrong["id"] = "wrong".into();
    wrong["setup"]["mood"] = "bad".into();
    let refused = shop(&users, &[asker()], &[tester(), wrong]);
    refused
        .try_train("run", &[])
        .refused_with(&["[tasks], test split: the row with id \"wrong\"", "mood"]);
    assert_eq!(users.take_questions(), []);

    // The tasks are valid, and there is nothing to learn from.
    let bare = shop(&users, &[asker()], &[tester()])
        .without("tasks")
        .with_toml("tasks = {train = 'train.jsonl', test = 'test.jsonl'}");
    bare.try_train("run", &[])
        .refused_with(&["[sft] needs demonstrations"]);
    assert_eq!(users.take_questions(), []);

    let unplayed = shop(&users, &[asker()], &[tester()]).without("user");
    unplayed.try_train("run", &[]).refused_with(&[
        "task asker wants a model to play its user",
        "add a table [user]",
    ]);
    assert_eq!(users.take_questions(), []);
}

#[test]
fn an_environment_that_answers_itself_leaves_its_user_nothing_to_say() {
    let users = users();
    let begins = json!({"role": "user", "content": "The count is 0."});
    let agent = |text: &str| json!({"role": "assistant", "content": text});
    let answered = json!({"role": "user", "content": "you said: Hello."});
    let add = json!({"name": "add", "parameters": {"type": "object", "properties": {"by": {"type": "integer"}}}});
    let conversation = json!({
        "messages": [begins, agent("Hello."), answered, agent("end")], "tools": [{"type": "function", "function": add}],
    });
    let task = json!({
        "id": "counter", "source": "counter", "prompt": [], "environment": "counter",
        "setup": {"user": "model", "instruction": "You are asker.", "tools": ["add"]}, "reference": {"count": 0},
    });
    let experiment = speaking(&users, &[conversation]).without("rl");
    for split in ["train.jsonl", "test.jsonl"] {
        write_rows(&experiment, split, std::slice::from_ref(&task));
    }
    let plugins = experiment.path("plugins");
    fs::create_dir(&plugins).expect("can be made");
    let built = Host::with_test_plugins().plugins().join("counter");
    copy(&built, &plugins.join("counter"));
    let built = experiment.host().plugins().join("reward-verdict");
    copy(&built, &plugins.join("reward-verdict"));
    let config = experiment.write("config.toml", experiment.text());
    let run = experiment.run("run");
    let host = experiment.host();
    let arguments: [&Path; 6] = [
        "train".as_ref(),
        &config,
        "--plugins".as_ref(),
        &plugins,
        "--run".as_ref(),
        run.path(),
    ];
    host.run(arguments).succeeded();

    let played = greedy(host, &run, &plugins, "counter");
    let trajectory = &played["trajectory"];
    assert_eq!(said_by_users(trajectory), ["you said: Hello."]);
    assert_eq!(events(trajectory, "turn").len(), 2, "{trajectory}");
    assert_eq!(trajectory["verdict"]["success"], true, "{trajectory}");
    assert_eq!(
        users.take_questions(),
        [],
        "neither to begin with nor to answer"
    );
}

/// An environment in Python.
const DESK: &str = "
from mcp.server.fastmcp import FastMCP


class Desk:
    def load_scenario(self, scenario):
        pass

    def save_scenario(self):
        return {'open': True}


api = Desk()
mcp = FastMCP(name='Desk')


@mcp.tool()
def look() -> str:
    return 'here'
";

#[test]
fn an_environment_in_python_hears_its_user_out() {
    let users = users();
    let user = |text: &str| json!({"role": "user", "content": text});
    let agent = |text: &str| json!({"role": "assistant", "content": text});
    let look = json!({"name": "Desk-look", "parameters": {"type": "object", "properties": {}}});
    let conversation = json!({
        "messages": [
            user("Where is my order?"), agent("Which one is it?"), user("Number one."), agent("It is on its way."),
        ],
        "tools": [{"type": "function", "function": look}],
    });
    let task = json!({
        "id": "asker", "source": "desk", "prompt": [], "environment": "desk",
        "setup": {"servers": {"Desk": null}, "user": "model", "instruction": "You are asker."},
        "reference": {"state": {"Desk": {"open": true}}},
    });
    let experiment = speaking(&users, &[conversation]).without("rl");
    let desk = experiment.write("Desk.py", DESK);
    let plugin = format!(
        "plugins.desk = {{plugin = 'python', environment.servers = '{}'}}",
        desk.display()
    );
    let experiment = experiment.with_toml(&plugin);
    for split in ["train.jsonl", "test.jsonl"] {
        write_rows(&experiment, split, std::slice::from_ref(&task));
    }
    let run = experiment.train("run", &[]);
    let host = experiment.host();
    let played = greedy(host, &run, host.plugins(), "asker");

    // Tools that do not exist, and a protocol that differs from the template's.
    let mut nothing = task.clone();
    nothing["tools"] = json!(["Desk-gone"]);
    write_rows(&experiment, "test.jsonl", &[nothing]);
    let refused = experiment
        .with_toml("dialogue.protocol = 'llama-3.1'")
        .try_train("none", &[]);
    for said in [
        "dialogue.protocol is llama-3.1, but the chat template small.jinja writes calls as hermes",
        "its `tools` are Desk-gone, and there is none of these; its environment has Desk-look",
    ] {
        assert!(refused.stderr.contains(said), "{refused}");
    }

    let trajectory = &played["trajectory"];
    assert_eq!(said_by_users(trajectory), ["Number one."], "{trajectory}");
    assert_eq!(trajectory["finish"], "answered", "{trajectory}");
    assert_eq!(trajectory["verdict"]["success"], true, "{trajectory}");
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir(to).expect("can be made");
    for entry in fs::read_dir(from).expect("was built") {
        let path = entry.expect("can be listed").path();
        let name = path.file_name().expect("has a name");
        fs::copy(&path, to.join(name)).expect("can be copied");
    }
}
