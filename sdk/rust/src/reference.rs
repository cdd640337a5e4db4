//! The forms in which data sets write correct answers.

use std::fmt;

use serde_json::Value;

/// The reason why a reference names no answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReferenceError {
    /// The reference is not JSON.
    NotJson(String),
    /// The reference is JSON in a form without an answer.
    Form(String),
    /// The reference is a list without answers.
    Empty,
}

impl fmt::Display for ReferenceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotJson(error) => write!(f, "the task's reference is not JSON: {error}"),
            Self::Form(found) => write!(
                f,
                "the task's reference is {found}; expected a string, a number, a list of them, or an \
                 object with one under `target`, `answer`, `answers` or `ground_truth`"
            ),
            Self::Empty => f.write_str("the task's reference lists no answers"),
        }
    }
}

impl std::error::Error for ReferenceError {}

/// Keys under which data sets keep the answer: Search-R1 (`target`, within `ground_truth`), SQuAD
/// (`answers`, `text`), most others (`answer`).
const KEYS: [&str; 5] = ["target", "answer", "answers", "ground_truth", "text"];

/// Every answer that a reference accepts: a string, number or boolean, a list of them, or an object
/// that holds one of these under `target`, `answer`, `answers`, `ground_truth` or `text`.
pub fn accepted_answers(reference: &Value) -> Result<Vec<String>, ReferenceError> {
    let mut answers = Vec::new();
    collect(reference, &mut answers)?;
    if answers.is_empty() {
        Err(ReferenceError::Empty)
    } else {
        Ok(answers)
    }
}

fn collect(reference: &Value, answers: &mut Vec<String>) -> Result<(), ReferenceError> {
    match reference {
        Value::String(text) => answers.push(text.clone()),
        Value::Number(number) => answers.push(number.to_string()),
        Value::Bool(truth) => answers.push(if *truth { "yes" } else { "no" }.to_owned()),
        Value::Array(items) => return items.iter().try_for_each(|item| collect(item, answers)),
        Value::Object(object) => match KEYS.iter().find_map(|key| object.get(*key)) {
            Some(inner) => return collect(inner, answers),
            None => {
                return Err(ReferenceError::Form(format!(
                    "an object with the keys {:?}",
                    keys(object)
                )));
            }
        },
        Value::Null => return Err(ReferenceError::Form("null".to_owned())),
    }
    Ok(())
}

fn keys(object: &serde_json::Map<String, Value>) -> Vec<&str> {
    object.keys().map(String::as_str).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_form_that_data_sets_use_is_read() {
        for (reference, expected) in [
            (json!("Paris"), vec!["Paris"]),
            (json!(42), vec!["42"]),
            (json!(true), vec!["yes"]),
            (
                json!(["Paris", "City of Paris"]),
                vec!["Paris", "City of Paris"],
            ),
            (json!({ "target": ["a", "b"] }), vec!["a", "b"]),
            (
                json!({ "style": "rule", "ground_truth": { "target": "a" } }),
                vec!["a"],
            ),
            (json!({ "answer": "a", "working": "b" }), vec!["a"]),
            (
                json!({ "answers": { "text": ["a"], "answer_start": [3] } }),
                vec!["a"],
            ),
        ] {
            assert_eq!(
                accepted_answers(&reference).unwrap(),
                expected,
                "{reference}"
            );
        }
    }

    #[test]
    fn a_reference_without_an_answer_says_what_was_expected() {
        assert_eq!(accepted_answers(&json!([])), Err(ReferenceError::Empty));
        let error = accepted_answers(&json!({ "solution": 1 }))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("solution") && error.contains("`target`"),
            "{error}"
        );
    }
}
