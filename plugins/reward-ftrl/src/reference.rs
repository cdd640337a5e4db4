//! The sub-answers and the answer that a task asks for.

use rlf_plugin::serde_json::{Map, Value};

use crate::matching::Matching;

/// A task's reference, prepared for the search.
#[derive(Debug, Clone)]
pub(crate) struct Reference {
    /// The text that the answer must contain; none if the task has no answer.
    pub(crate) answer: Option<String>,
    pub(crate) unsolved: Vec<Tool>,
    pub(crate) calls: Option<Vec<GoldCall>>,
}

/// Remaining sub-answers of one tool, in order; an observation must contain all parts of one.
#[derive(Debug, Clone)]
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) left: Vec<Vec<String>>,
}

/// A call that a solution makes.
#[derive(Debug, Clone)]
pub(crate) struct GoldCall {
    pub(crate) name: String,
    pub(crate) arguments: Map<String, Value>,
}

impl Reference {
    pub(crate) fn read(reference: &Value, matching: Matching) -> Result<Self, String> {
        let answer = match reference.get("answer") {
            None | Some(Value::Null) => None,
            Some(answer) => {
                let text = text(answer).ok_or("the reference's `answer` is not a text")?;
                let sought = matching.answer(&text);
                Some(sought.map_err(|why| format!("the reference's `answer`: {why}"))?)
            }
        };
        let Some(Value::Object(unsolved)) = reference.get("unsolved") else {
            return Err(
                "the reference lacks `unsolved`: an object from the names of tools to lists of sub-answers"
                    .to_owned(),
            );
        };
        let unsolved = unsolved.iter().map(|(name, list)| {
            let left = sub_answers(list, matching)
                .map_err(|why| format!("the reference's `unsolved.{name}`: {why}"))?;
            let name = name.clone();
            Ok(Tool { name, left })
        });
        Ok(Self {
            answer,
            unsolved: unsolved.collect::<Result<_, String>>()?,
            calls: gold_calls(reference.get("calls"))?,
        })
    }
}

fn sub_answers(list: &Value, matching: Matching) -> Result<Vec<Vec<String>>, String> {
    let list = list.as_array().ok_or("not a list of sub-answers")?;
    let parts = list.iter().map(|sub_answer| {
        let text = text(sub_answer).ok_or("a sub-answer that is not a text")?;
        matching.parts(&text)
    });
    parts.collect()
}

/// A text; a number becomes the text in which it is written.
fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

fn gold_calls(calls: Option<&Value>) -> Result<Option<Vec<GoldCall>>, String> {
    let Some(calls) = calls.filter(|calls| !calls.is_null()) else {
        return Ok(None);
    };
    let wrong = "the reference's `calls` is not a list of {\"name\": \"..\", \"arguments\": {..}}";
    let calls = calls.as_array().ok_or(wrong)?.iter().map(|call| {
        match (call.get("name"), call.get("arguments")) {
            (Some(Value::String(name)), Some(Value::Object(arguments))) => Ok(GoldCall {
                name: name.clone(),
                arguments: arguments.clone(),
            }),
            _ => Err(wrong.to_owned()),
        }
    });
    calls.collect::<Result<_, _>>().map(Some)
}
