//! verl's and Search-R1's rows: `data_source, prompt, ability, reward_model, extra_info`.

use rlf_dialogue::{Message, Role, Task};
use serde_json::Value;

use crate::conversation::RawMessage;
use crate::error::RowError;
use crate::field::{Row, is_answerable, number_or_text};

pub(super) fn task(mut row: Row, stem: &str, line: usize) -> Result<Task, RowError> {
    let prompt = match row.remove("prompt") {
        Some(Value::Array(messages)) if !messages.is_empty() => {
            let message = |(at, value): (usize, &Value)| {
                let message = RawMessage::from_openai(value, format!("prompt[{at}]"))?;
                Ok(message.split_leading_reasoning().into_message())
            };
            messages
                .iter()
                .enumerate()
                .map(message)
                .collect::<Result<_, RowError>>()?
        }
        Some(Value::String(text)) => vec![Message::text(Role::User, text)],
        _ => {
            return Err(RowError::field(
                "prompt",
                "a list of messages {role, content} is missing",
            ));
        }
    };
    let reference = row
        .get_mut("reward_model")
        .and_then(|model| model.get_mut("ground_truth"));
    let reference = reference
        .map(Value::take)
        .filter(is_answerable)
        .ok_or_else(|| RowError::Missing {
            field: "reward_model.ground_truth".into(),
            hint: " or empty",
        })?;
    let mut extra = match row.remove("extra_info") {
        Some(Value::Object(extra)) => extra,
        _ => Row::new(),
    };
    let id = match (
        number_or_text(row.get("id")),
        number_or_text(extra.get("index")),
    ) {
        (Some(id), _) => id,
        (None, Some(index)) => number_or_text(extra.get("split"))
            .map_or(index.clone(), |split| format!("{split}-{index}")),
        (None, None) => format!("{stem}-{line}"),
    };
    if let Some(ability) = row.remove("ability") {
        extra.insert("ability".into(), ability);
    }
    let source =
        number_or_text(row.get("data_source")).ok_or_else(|| RowError::missing("data_source"))?;
    Ok(Task {
        id,
        source,
        prompt,
        tools: None,
        reference,
        environment: None,
        setup: Value::Null,
        extra,
    })
}
