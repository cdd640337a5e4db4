//! Questions with answers: `question, answer`, the form of HotpotQA, MuSiQue and GSM8K.

use rlf_dialogue::{Message, Role, Task};
use serde_json::Value;

use crate::error::RowError;
use crate::field::{Row, is_answerable, number_or_text};

pub(super) fn task(mut row: Row, stem: &str, line: usize) -> Result<Task, RowError> {
    let Some(Value::String(question)) = row.remove("question") else {
        return Err(RowError::field("question", "it must be text"));
    };
    let answer = ["answer", "golden_answers", "answers"]
        .iter()
        .find_map(|key| row.remove(*key));
    let answer = answer.filter(is_answerable);
    let answer = answer.ok_or_else(|| RowError::Missing {
        field: "answer".into(),
        hint: " or empty",
    })?;
    let reference = match answer {
        Value::String(text) => match (text.rsplit_once("####"), row.remove("answer_aliases")) {
            // GSM8K: the working, then the number.
            (Some((_, number)), _) => Value::String(number.trim().replace(',', "")),
            (None, Some(Value::Array(aliases))) if !aliases.is_empty() => Value::Array(
                std::iter::once(Value::String(text))
                    .chain(aliases)
                    .collect(),
            ),
            _ => Value::String(text),
        },
        other => other,
    };
    let id = ["id", "_id"]
        .iter()
        .find_map(|key| number_or_text(row.remove(*key).as_ref()));
    let source = ["source", "data_source"]
        .iter()
        .find_map(|key| number_or_text(row.remove(*key).as_ref()));
    // The search tool has to find the passages.
    for given in ["context", "paragraphs"] {
        row.remove(given);
    }
    if let Some(kind) = row.get("type").filter(|kind| kind.is_string()).cloned() {
        row.entry("kind").or_insert(kind);
    }
    Ok(Task {
        id: id.unwrap_or_else(|| format!("{stem}-{line}")),
        source: source.unwrap_or_else(|| stem.to_owned()),
        prompt: vec![Message::text(Role::User, question)],
        tools: None,
        reference,
        environment: None,
        setup: Value::Null,
        extra: row,
    })
}
