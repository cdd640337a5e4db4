//! FTRL's own numbers. All of them were computed with FTRL's published reward (`compute_solve_f1`,
//! `compute_solve_precision`, `compute_solve_rate` and `compute_solve_pr` of its verl fork, in this order) under Python
//! 3.11, with tools that repeat their argument, so that observations could be chosen.

use rlf_plugin::serde_json::{self, Map, Value, json};
use rlf_plugin::testing;

use super::{act, grade, say};

#[path = "../../../../tests/src/data.rs"]
mod data;

const STEPS: [&str; 4] = ["published", "precision", "solved", "solved-precision"];

fn numbers(value: &Value) -> Vec<f64> {
    let numbers = value.as_array().unwrap().iter();
    numbers.map(|number| number.as_f64().unwrap()).collect()
}

fn all_rewards_of_calls(reference: &Value, calls: &[(&str, &str)]) -> Vec<f64> {
    let grade = |step| {
        let score = grade(
            json!({ "step": step }),
            reference.clone(),
            act(testing::trajectory(), calls),
        );
        score.get("step").unwrap()
    };
    STEPS.map(grade).to_vec()
}

fn reward_of_text(reference: &Value, step: &str, text: &str) -> f64 {
    let score = grade(
        json!({ "step": step }),
        reference.clone(),
        say(testing::trajectory(), text),
    );
    score.get("step").unwrap()
}

#[test]
fn a_turn_is_worth_what_ftrl_pays_for_it() {
    for line in include_str!("published.jsonl").lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        let reference = json!({ "unsolved": case["unsolved"], "answer": case.get("answer") });
        let expected = numbers(&case["score"]);
        if let Some(calls) = case["calls"].as_array() {
            let calls: Vec<(&str, &str)> = calls
                .iter()
                .map(|call| (call[0].as_str().unwrap(), call[1].as_str().unwrap()))
                .collect();
            assert_eq!(all_rewards_of_calls(&reference, &calls), expected, "{line}");
        } else {
            let text = case["text"].as_str().unwrap();
            let rewards = STEPS.map(|step| reward_of_text(&reference, step, text));
            assert_eq!(rewards.to_vec(), expected, "{line}");
        }
    }
}

/// A tool's text about a sub-answer, in one of seven ways.
fn seen(way: usize, tool: &str, sub_answer: &str) -> String {
    match way % 7 {
        0 => sub_answer.to_owned(),
        1 => format!("The result is {}.", sub_answer.to_uppercase()),
        2 => format!("{{\"result\": {}}}", json!(sub_answer)),
        3 => format!("x{sub_answer}y"),
        4 => but_the_last(sub_answer),
        5 => sub_answer.replace(',', ""),
        _ => format!("an error occured when call {tool}: '{sub_answer}'"),
    }
}

fn but_the_last(text: &str) -> String {
    let mut chars = text.chars();
    chars.next_back();
    chars.as_str().to_owned()
}

/// The calls of one turn: tools of the row, in one of six patterns.
fn pattern(number: usize, row: &[(&str, &str)]) -> Vec<(String, String)> {
    let mut calls: Vec<(String, String)> = row
        .iter()
        .enumerate()
        .map(|(at, (tool, sub_answer))| ((*tool).to_owned(), seen(at + number, tool, sub_answer)))
        .collect();
    match number {
        1 => calls.reverse(),
        2 => {
            calls = calls
                .into_iter()
                .flat_map(|call| [call.clone(), call])
                .collect();
        }
        3 => calls.truncate(row.len().div_ceil(2)),
        4 => {
            for (at, call) in calls.iter_mut().enumerate() {
                row[(at + 1) % row.len()].0.clone_into(&mut call.0);
            }
        }
        5 => {
            let all: Vec<&str> = row.iter().map(|(_, sub_answer)| *sub_answer).collect();
            for call in &mut calls {
                call.1 = all.join(" / ");
            }
        }
        _ => {}
    }
    calls
}

#[test]
fn rows_of_ftrls_data_are_graded_as_ftrl_grades_them() {
    let Some(path) = data::data("ftrl-sample/sample.jsonl") else {
        return;
    };
    let rows = std::fs::read_to_string(path).unwrap();
    let golden: Vec<&str> = include_str!("sample.jsonl").lines().collect();
    assert_eq!(rows.lines().count(), golden.len());
    for (row, golden) in rows.lines().zip(golden) {
        let row: Value = serde_json::from_str(row).unwrap();
        let golden: Value = serde_json::from_str(golden).unwrap();
        let unsolved: Map<String, Value> =
            serde_json::from_str(row["unsolved_set"].as_str().unwrap()).unwrap();
        let answer = row["answer"].as_str().unwrap();
        let reference = json!({ "unsolved": unsolved, "answer": answer });
        let pairs: Vec<(&str, &str)> = unsolved
            .iter()
            .flat_map(|(tool, list)| {
                let list = list.as_array().unwrap().iter();
                list.map(|sub_answer| (tool.as_str(), sub_answer.as_str().unwrap()))
            })
            .collect();
        for number in 0..6 {
            let calls = pattern(number, &pairs);
            let calls: Vec<(&str, &str)> = calls.iter().map(|(a, b)| (&**a, &**b)).collect();
            let rewards = all_rewards_of_calls(&reference, &calls);
            assert_eq!(
                rewards,
                numbers(&golden["calls"][number]),
                "{answer}: {calls:?}"
            );
        }
        let texts = [
            String::new(),
            format!("The answer is {answer}.<|im_end|>"),
            answer.to_uppercase().replace(',', ""),
            format!("<think>{answer}</think> unknown"),
            "I cannot say.".to_owned(),
            but_the_last(answer),
        ];
        let solved: Map<String, Value> = unsolved
            .keys()
            .map(|tool| (tool.clone(), json!([])))
            .collect();
        for (left, unsolved) in [unsolved.clone(), solved].into_iter().enumerate() {
            let reference = json!({ "unsolved": unsolved, "answer": answer });
            let rewards: Vec<f64> = texts
                .iter()
                .map(|text| reward_of_text(&reference, "published", text))
                .collect();
            assert_eq!(rewards, numbers(&golden["texts"][left]), "{answer}");
        }
    }
}
