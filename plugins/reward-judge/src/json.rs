//! The judge's answer as JSON, read strictly: one object, and no key twice.

use std::collections::BTreeMap;
use std::fmt;

use rlf_plugin::serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use rlf_plugin::serde_json;

/// A JSON value in which no key occurs twice.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Json {
    Number(f64),
    Text(String),
    List(Vec<Json>),
    Object(Object),
    /// `null`, `true` or `false`.
    Other,
}

pub(crate) type Object = BTreeMap<String, Json>;

/// Reads an answer that consists of one JSON object, alone or in one fence, after a think block or not. The reason for
/// a refusal has no words of the answer.
pub(crate) fn read(answer: &str) -> Result<Object, String> {
    match serde_json::from_str(body(answer)) {
        Ok(Json::Object(object)) => Ok(object),
        Ok(_) => Err("it is JSON, but not an object".to_owned()),
        Err(error) => Err(format!("it is not exactly one JSON object ({error})")),
    }
}

/// The text after the think block, without its fence. Some servers remove the block's opening tag.
fn body(answer: &str) -> &str {
    let text = answer.trim();
    let thinks = !text.starts_with(['{', '`']);
    let after = text.split_once("</think>").filter(|_| thinks);
    let text = after.map_or(text, |(_, rest)| rest.trim());
    let fenced = text
        .strip_prefix("```")
        .and_then(|rest| rest.strip_suffix("```"));
    let Some(fenced) = fenced else { return text };
    fenced.strip_prefix("json").unwrap_or(fenced)
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyJson)
    }
}

struct AnyJson;

impl<'de> Visitor<'de> for AnyJson {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_f64<E>(self, number: f64) -> Result<Json, E> {
        Ok(Json::Number(number))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Json, E> {
        Ok(Json::Number(number as f64))
    }

    fn visit_u64<E>(self, number: u64) -> Result<Json, E> {
        Ok(Json::Number(number as f64))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Json, E> {
        Ok(Json::Other)
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Other)
    }

    fn visit_str<E>(self, text: &str) -> Result<Json, E> {
        Ok(Json::Text(text.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json, A::Error> {
        let mut object = Object::new();
        while let Some((key, value)) = entries.next_entry::<String, Json>()? {
            if object.insert(key, value).is_some() {
                return Err(de::Error::custom("a key occurs twice"));
            }
        }
        Ok(Json::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(answer: &str) -> Result<f64, String> {
        match read(answer)?.remove("a") {
            Some(Json::Number(number)) => Ok(number),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn one_object_alone_in_a_fence_or_after_a_think_block_is_read() {
        for answer in [
            r#"{"a": 1}"#,
            " \n{\"a\": 1.0}\n",
            "```json\n{\"a\": 1}\n```",
            "```\n{\"a\": 1}\n```",
            "<think>{\"a\": 2} or so</think>\n{\"a\": 1}",
            "the opening tag is missing</think>```json\n{\"a\": 1}```",
            "{\"a\": 1, \"b\": \"</think>\"}",
        ] {
            assert_eq!(number(answer), Ok(1.0), "{answer}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for answer in [
            "",
            "1",
            "[{\"a\": 1}]",
            "Sure: {\"a\": 1}",
            "{\"a\": 1} {\"a\": 1}",
            "{\"a\": 1}\nI hope this helps.",
            "```json\n{\"a\": 1}\n```\n```json\n{\"a\": 1}\n```",
            "```json\n{\"a\": 1}",
            "<think>never closed {\"a\": 1}",
            "<think>one</think><think>two</think>{\"a\": 1}",
            "{\"a\": 1, \"a\": 1}",
            "{\"a\": 1, \"b\": {\"c\": 1, \"c\": 2}}",
            "{\"a\": 1,}",
            "{\"a\": NaN}",
            "{\"a\": 1e999}",
            "{'a': 1}",
        ] {
            assert!(read(answer).is_err(), "{answer}");
        }
        let deep = format!("{{\"a\": {}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(read(&deep).is_err());
    }

    #[test]
    fn a_reason_has_no_words_of_the_answer() {
        for answer in [
            "{\"give full marks\": 1, \"give full marks\": 2}",
            "give full marks",
        ] {
            let why = read(answer).unwrap_err();
            assert!(!why.contains("marks"), "{why}");
        }
    }
}
