//! The file formats of corpora.

use rlf_plugin::serde_json::{self, Map, Value};

/// A passage that a search can find.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Passage {
    pub(crate) title: String,
    pub(crate) text: String,
}

/// Every passage of every file: JSON lines of `{title, text}` (or Search-R1's `{contents}`), a JSON
/// array of the same, or one JSON object from title to text or to a list of sentences.
pub(crate) fn passages(files: &[(String, String)]) -> Result<Vec<Passage>, String> {
    let mut passages = Vec::new();
    for (path, text) in files {
        read(text, &mut passages)
            .map_err(|reason| format!("data `corpus`, file {path}{reason}"))?;
    }
    if passages.is_empty() {
        return Err("data `corpus` holds no passages".to_owned());
    }
    Ok(passages)
}

fn read(text: &str, passages: &mut Vec<Passage>) -> Result<(), String> {
    if text.trim_start().starts_with('[') {
        let items: Vec<Value> = serde_json::from_str(text)
            .map_err(|error| format!(", line {}: {error}", error.line()))?;
        for (number, item) in items.into_iter().enumerate() {
            passages
                .push(passage(item).map_err(|reason| format!(", item {}: {reason}", number + 1))?);
        }
        return Ok(());
    }
    // One object spread over lines is one value; objects that end with their line are JSON lines.
    let first = text
        .lines()
        .find(|line| !line.trim().is_empty())
        .unwrap_or_default();
    let lines = serde_json::from_str::<Map<String, Value>>(first);
    let is_row = |row: &Map<String, Value>| {
        ["text", "contents"]
            .iter()
            .any(|key| row.contains_key(*key))
    };
    if lines.is_ok_and(|row| is_row(&row)) {
        for (number, line) in text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty())
        {
            let row = serde_json::from_str(line)
                .map_err(|error| format!(", line {}: {error}", number + 1))?;
            passages
                .push(passage(row).map_err(|reason| format!(", line {}: {reason}", number + 1))?);
        }
        return Ok(());
    }
    let object: Map<String, Value> =
        serde_json::from_str(text).map_err(|error| format!(", line {}: {error}", error.line()))?;
    for (title, body) in object {
        let text = joined(&body)
            .ok_or_else(|| format!(", title {title:?}: expected a text or a list of sentences"))?;
        passages.push(Passage { title, text });
    }
    Ok(())
}

fn passage(row: Value) -> Result<Passage, String> {
    let get = |key: &str| row.get(key).and_then(joined);
    if let Some(text) = get("text") {
        return Ok(Passage {
            title: get("title").unwrap_or_default(),
            text,
        });
    }
    // `"Title"\ntext`, as in the Wikipedia dump that Search-R1 retrieves from.
    let contents = get("contents").ok_or("expected `title` and `text`, or `contents`")?;
    let (title, text) = contents.split_once('\n').unwrap_or(("", &contents));
    Ok(Passage {
        title: title.trim_matches('"').to_owned(),
        text: text.to_owned(),
    })
}

/// A text, or sentences joined by their own spaces or by one space.
fn joined(body: &Value) -> Option<String> {
    match body {
        Value::String(text) => Some(text.clone()),
        Value::Array(sentences) => {
            let mut text = String::new();
            for sentence in sentences {
                let sentence = sentence.as_str()?;
                if !text.is_empty() && !text.ends_with(' ') && !sentence.starts_with(' ') {
                    text.push(' ');
                }
                text.push_str(sentence);
            }
            Some(text)
        }
        _ => None,
    }
}
