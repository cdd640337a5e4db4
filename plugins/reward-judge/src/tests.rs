//! The promises of the reward, seen from outside: a configuration, a group and a scripted judge give scores.

mod answers;
mod configuration;
mod gallery;
mod looks;
mod material;
mod pairwise;
mod properties;
mod ranking;
mod retries;
mod scores;
mod scripted;

use rlf_plugin::model::{Answer, Question};
use rlf_plugin::serde_json::{Value, json};
use rlf_plugin::{
    Error, Grading, RewardPlugin as _, Score, Task, Trajectory, error_message, testing,
};

use crate::Plugin;

/// A rubric of one criterion.
fn accuracy() -> Value {
    json!([{ "name": "accuracy", "question": "Is the answer right?" }])
}

/// A configuration with one criterion and these keys.
fn config(keys: Value) -> Value {
    let mut config = json!({ "criteria": accuracy() });
    for (key, value) in keys.as_object().unwrap() {
        config[key] = value.clone();
    }
    config
}

/// The score of each trajectory, or the text of its error.
fn grade(config: Value, task: &Task, group: &[Trajectory]) -> Vec<Result<Score, String>> {
    grade_with_seed(config, task, group, 0)
}

fn grade_with_seed(
    config: Value,
    task: &Task,
    group: &[Trajectory],
    seed: u64,
) -> Vec<Result<Score, String>> {
    testing::init_reward::<Plugin>(config).unwrap();
    let grading = Grading {
        split: "test".to_owned(),
        step: 0,
        steps: 0,
        seed,
    };
    let scores = Plugin::grade(task, group, &grading).unwrap();
    assert_eq!(scores.len(), group.len());
    let told = |error: Error| error_message(&error).to_owned();
    scores
        .into_iter()
        .map(|score| score.map_err(told))
        .collect()
}

/// The answers of a group, each from a trajectory of its own.
fn group(answers: &[&str]) -> Vec<Trajectory> {
    let one = |answer: &&str| testing::trajectory().answered(answer);
    answers.iter().map(one).collect()
}

/// The value of `score` of each trajectory.
fn values(scores: &[Result<Score, String>]) -> Vec<f64> {
    let value = |score: &Result<Score, String>| score.as_ref().unwrap().get("score").unwrap();
    scores.iter().map(value).collect()
}

fn metric(score: &Result<Score, String>, name: &str) -> Option<f64> {
    let metrics = &score.as_ref().unwrap().metrics;
    metrics
        .iter()
        .find(|metric| metric.name == name)
        .map(|metric| metric.value)
}

/// Answers questions with the JSON that the function makes; the nonce is added.
fn answer_with(mut object: impl FnMut(&Question) -> Value + 'static) {
    testing::answer_questions_with(move |question| {
        let mut object = object(question);
        object["nonce"] = json!(nonce(question));
        Ok(Answer::text(object.to_string()))
    });
}

/// Gives this score on `accuracy`.
fn accuracy_is(score: impl Into<Value>) -> Value {
    json!({ "scores": { "accuracy": score.into() } })
}

fn system(question: &Question) -> &str {
    &question.messages[0].text
}

fn user(question: &Question) -> &str {
    &question.messages[1].text
}

/// The nonce that the system message names.
fn nonce(question: &Question) -> String {
    let (_, rest) = system(question).split_once("<<<data ").unwrap();
    rest.split_once(':').unwrap().0.to_owned()
}

/// The lines of a block, without the marks.
fn block(question: &Question, name: &str) -> Option<String> {
    let nonce = nonce(question);
    let (_, rest) = user(question).split_once(&format!("<<<data {nonce}: {name}>>>\n"))?;
    let (text, _) = rest.split_once(&format!("<<<end {nonce}>>>\n"))?;
    let lines = text
        .lines()
        .map(|line| line.strip_prefix("| ").unwrap_or(line));
    Some(lines.collect::<Vec<_>>().join("\n"))
}
