//! Training with a language model as judge: what it costs is in the metrics, its answers are recorded, and a run that is
//! resumed or replayed gets the same answers. A judge that breaks, or costs too much, stops the run and says why.

use std::fs;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use rlf_dialogue::Tokenizer;
use rlf_tests::{ChatEndpoint, Experiment, Host, Question, Reply, without_times};
use serde_json::{Value, json};

/// A judge that looks at nothing but the question's length. Its answers have the form that `reward-judge` asks for.
fn judge(question: &Question) -> Reply {
    let texts: Vec<&str> = question.messages().iter().map(|(_, text)| *text).collect();
    let text = texts.join("\n");
    let is_nonce =
        |word: &&str| word.len() == 16 && word.chars().all(|one| one.is_ascii_hexdigit());
    let mut words = text.split(|letter: char| !letter.is_alphanumeric());
    let nonce = words.find(is_nonce).expect("the question has a nonce");
    let score = text.len() % 11;
    Reply::says(json!({"nonce": nonce, "scores": {"right": score}}).to_string())
}

/// The hash of a shipped plugin, as an operator grants it.
fn hash_of(host: &Host, plugin: &str) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = folder.path().join("grants.toml");
    let name = file.to_str().expect("a plain name");
    host.plugin(["grant", plugin, "--gate", "model", "--config", name])
        .succeeded();
    let grants: toml::Table = fs::read_to_string(&file)
        .expect("is there")
        .parse()
        .expect("is TOML");
    let hash = grants["plugins"][plugin]["hash"].as_str();
    hash.expect("has a hash").to_owned()
}

/// A small run that a judge grades, beside an exact match. `model` has the keys of the judge's model.
fn judged(model: &str) -> Experiment {
    let experiment = Experiment::calling();
    let hash = hash_of(experiment.host(), "reward-judge");
    experiment.with_toml(&format!(
        "rewards.stack = [
            {{plugin = 'exact-match', weights = {{em = 1.0}}}},
            {{plugin = 'judge', weights = {{score = 0.5}}}},
        ]
        rewards.drift = {{judged = 'judge.score', verified = 'exact-match.em', window = 6}}
        [plugins.judge]
        plugin = 'reward-judge'
        grants = ['model']
        hash = '{hash}'
        models = ['judge']
        limits.wall_ms = 60000
        [[plugins.judge.config.criteria]]
        name = 'right'
        question = 'Is the answer right?'
        [models.judge]
        {model}"
    ))
}

fn endpoint(url: &str) -> String {
    format!("endpoint = {{url = '{url}', model = 'm', retries = 0, temperature = 0.0}}")
}

/// The metrics of a run, without times and without how much was asked.
fn numbers(run: &rlf_tests::RunFolder) -> Vec<Value> {
    let lines = run.metrics().into_iter().map(without_times);
    let without = |mut line: Value| {
        let fields = line.as_object_mut().expect("an object");
        fields.retain(|key, _| !key.starts_with("model/"));
        line
    };
    lines.map(without).collect()
}

#[test]
fn a_judges_answers_are_counted_recorded_and_replayed() {
    let served = ChatEndpoint::start(judge);
    let price = "price = {prompt = 1.0, completion = 2.0}";
    let experiment = judged(&format!("{}\n{price}", endpoint(served.url())));
    let run = experiment.train("run", &[]);
    let asked = served.take_questions().len();
    assert!(asked > 0);
    let steps = run.steps("rl");
    let last = steps.last().expect("a step");
    assert!(last["drift/judged"].is_number(), "{last}");
    let sum = |key: &str| {
        steps
            .iter()
            .filter_map(|step| step[key].as_f64())
            .sum::<f64>()
    };
    assert!(sum("model/judge/questions") > 0.0, "{last}");
    assert!(sum("model/judge/cost") > 0.0, "{last}");
    assert!(sum("model/judge/unanswered").abs() < 0.5, "{last}");
    let records = experiment.path("run/models/judge.jsonl");
    let text = fs::read_to_string(&records).expect("is there");
    assert_eq!(text.lines().count(), asked);

    // Without its last checkpoint the run goes on from the one before. It asks nobody, because it has the answers.
    let before = numbers(&run);
    fs::remove_dir_all(run.checkpoint("rl-000004")).expect("is there");
    experiment.train("run", &["--resume"]);
    assert_eq!(served.take_questions(), []);
    assert_eq!(before, numbers(&run));

    // Another run replays the records, and needs no endpoint.
    let records = records.display().to_string();
    let replaying = judged(&format!("replay = '{records}'"));
    let replayed = replaying.train("replayed", &[]);
    assert_eq!(served.take_questions(), []);
    assert_eq!(before, numbers(&replayed));
}

#[test]
fn a_judge_that_breaks_stops_the_run_with_its_reason() {
    let served = ChatEndpoint::start(|_| Reply::Fails(503));
    let ended = judged(&endpoint(served.url())).try_train("run", &[]);
    assert_eq!(ended.code(), Some(1), "{ended}");
    assert!(ended.stderr.contains("status 503"), "{ended}");
}

#[test]
fn a_budget_of_the_run_that_is_spent_is_named() {
    let served = ChatEndpoint::start(judge);
    let model = format!("{}\nrun = {{questions = 5}}", endpoint(served.url()));
    let ended = judged(&model).try_train("run", &[]);
    assert_eq!(ended.code(), Some(1), "{ended}");
    let said = "the budget of a run is spent (models.judge.run): 5 questions are allowed";
    assert!(ended.stderr.contains(said), "{ended}");
    assert!(served.take_questions().len() <= 5);
}

/// The judge is asked about the first group while all others have not sampled a token. They wait for it. If grading
/// waited for them, nothing would ever end.
#[test]
fn a_group_is_graded_while_others_still_play_and_evaluations_have_the_temperature_of_training() {
    let asked = Arc::new((Mutex::new(false), Condvar::new()));
    let judged_first = asked.clone();
    let served = ChatEndpoint::start(move |question| {
        *judged_first
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = true;
        judged_first.1.notify_all();
        judge(question)
    });
    let (first_prompt, answer) = (OnceLock::new(), OnceLock::new());
    let engine = ChatEndpoint::start(move |question| {
        if !question.line.contains("/generate") {
            let folder = Path::new(question.body["model_path"].as_str().expect("a path"));
            let tokenizer = Tokenizer::load(&folder.join("tokenizer.json"));
            let tokenizer = tokenizer.expect("the run writes it beside the weights");
            answer.get_or_init(|| tokenizer.encode_trusted("<answer>7</answer>"));
            return Reply::Is(r#"{"success": true, "message": "done"}"#);
        }
        let prompt = &question.body["input_ids"];
        if first_prompt.get_or_init(|| prompt.clone()) != prompt {
            let (is_asked, changed) = &*asked;
            let waiting = is_asked.lock().unwrap_or_else(PoisonError::into_inner);
            let most = Duration::from_mins(1);
            let waited = changed.wait_timeout_while(waiting, most, |is_asked| !*is_asked);
            if !*waited.unwrap_or_else(PoisonError::into_inner).0 {
                return Reply::Fails(503);
            }
        }
        let mut ids = json!(answer.get().expect("weights come first"));
        let stop = question.body["sampling_params"]["stop_token_ids"][0].clone();
        ids.as_array_mut().expect("a list").push(stop);
        let tokens = ids.as_array().into_iter().flatten();
        let tokens: Vec<Value> = tokens.map(|id| json!([-0.5, id, null])).collect();
        let info = json!({"finish_reason": {"type": "stop"}, "output_token_logprobs": tokens});
        Reply::is(json!({"output_ids": ids, "meta_info": info}).to_string())
    });
    let experiment = judged(&endpoint(served.url()))
        .without("sft")
        .with("rl.steps", 1)
        .with("rl.temperature", 0.5)
        .with("external_engine.url", engine.url());
    let run = experiment.train("run", &[]);
    let excluded = &run.steps("rl")[0]["excluded"];
    assert_eq!(*excluded, 0.0, "no turn waited in vain");
    // Evaluations sample as training does, or are greedy.
    let asked = engine.take_questions().into_iter();
    let mut temperatures: Vec<String> = asked
        .filter_map(|question| {
            Some(question.body.get("sampling_params")?["temperature"].to_string())
        })
        .collect();
    temperatures.sort();
    temperatures.dedup();
    assert_eq!(temperatures, ["0.0", "0.5"]);
}
