//! Decides whether a text contains another. Both ways normalise the texts and search one inside the other; in the
//! strict way, normalised texts are words with a space around each.

use rlf_plugin::serde::Deserialize;
use rlf_plugin::serde_json::{self, Value};
use rlf_plugin::{CallResult, Content, Ended, MalformedCall, ModelTurn};

use crate::words::words;

/// The marks that FTRL's check searches for in a turn that made no call.
const TAGS: [&str; 3] = ["<tool_call>", "</tool_call>", "<tool_parsed_response>"];

#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(rename_all = "kebab-case", crate = "rlf_plugin::serde")]
pub(crate) enum Matching {
    #[default]
    Published,
    Strict,
}

impl Matching {
    fn normalize(self, text: &str) -> String {
        match self {
            Self::Published => strip(&text.to_lowercase().replace(',', "")).to_owned(),
            Self::Strict => spaced(&words(text)),
        }
    }

    /// The parts of a sub-answer; an observation must contain all of them.
    pub(crate) fn parts(self, sub_answer: &str) -> Result<Vec<String>, String> {
        let parts = sub_answer.split(", ").map(|part| self.normalize(part));
        match self {
            Self::Published => Ok(parts.collect()),
            Self::Strict => {
                let parts: Vec<String> = parts.filter(|part| !part.is_empty()).collect();
                if parts.is_empty() {
                    Err(without_words(sub_answer))
                } else {
                    Ok(parts)
                }
            }
        }
    }

    /// The text that the model's answer must contain.
    pub(crate) fn answer(self, answer: &str) -> Result<String, String> {
        let sought = self.normalize(answer);
        if self == Self::Strict && sought.is_empty() {
            return Err(without_words(answer));
        }
        Ok(sought)
    }

    /// The text that a call showed, in which sub-answers are searched; none if nothing may be found.
    pub(crate) fn observed(self, outcome: &CallResult) -> Option<String> {
        let observation = outcome.observation.as_ref();
        let content = observation.map_or(&[][..], |observation| &observation.content);
        let texts: Vec<&str> = content.iter().filter_map(text).collect();
        match self {
            Self::Published => Some(self.normalize(&texts.join("\n"))),
            Self::Strict => {
                let failed = observation.is_none_or(|observation| observation.failed);
                if failed || outcome.ended != Ended::Ok {
                    return None;
                }
                let words: Vec<String> = texts.iter().flat_map(|text| words(&read(text))).collect();
                Some(spaced(&words))
            }
        }
    }

    /// True if a turn without a good call is empty.
    pub(crate) fn is_empty(self, turn: &ModelTurn) -> bool {
        match self {
            Self::Published => spoken(turn).is_empty(),
            Self::Strict => turn.visible.trim().is_empty() && !turn.malformed.iter().any(is_call),
        }
    }

    /// True if a turn without a good call contains a failed attempt at one.
    pub(crate) fn is_broken(self, turn: &ModelTurn) -> bool {
        let tagged = || TAGS.iter().any(|tag| turn.text.contains(tag));
        turn.malformed.iter().any(is_call) || (self == Self::Published && tagged())
    }

    /// True if a turn without any call contains the answer; `taken` is the answer that the host took, if it is in
    /// this turn.
    pub(crate) fn is_right(self, turn: &ModelTurn, taken: Option<&str>, sought: &str) -> bool {
        match self {
            Self::Published => self.normalize(spoken(turn)).contains(sought),
            Self::Strict => taken.is_some_and(|answer| self.normalize(answer).contains(sought)),
        }
    }
}

/// Text that the parser could not read is a call, unless it is about the tags of reasoning.
fn is_call(malformed: &MalformedCall) -> bool {
    malformed.diagnostic != "unclosed-think" && malformed.text != "</think>"
}

fn without_words(text: &str) -> String {
    format!(
        "{text:?} has neither word nor number, so that strict matching could never find it; set matching = \"published\" or \
         leave the task out"
    )
}

fn text(content: &Content) -> Option<&str> {
    match content {
        Content::Text(text) | Content::Structured(text) => Some(text),
        Content::Image(_) | Content::Audio(_) | Content::File(_) => None,
    }
}

/// A turn as FTRL reads it: all of it except the tokens that end it.
fn spoken(turn: &ModelTurn) -> &str {
    let end = |text: &'_ str, token| {
        strip(text).len()
            - if strip(text).ends_with(token) {
                str::len(token)
            } else {
                0
            }
    };
    let text = strip(&turn.text);
    let text = strip(&text[..end(text, "<|endoftext|>")]);
    strip(&text[..end(text, "<|im_end|>")])
}

/// Python's `str.strip()`, which removes four separators more than Unicode's white space.
fn strip(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c))
}

/// Every word with a space on both sides, so that a search finds whole words only.
fn spaced(words: &[String]) -> String {
    if words.is_empty() {
        return String::new();
    }
    format!(" {} ", words.join(" "))
}

/// The names and values of JSON as one text, without JSON's quotes and escapes; other text unchanged.
fn read(text: &str) -> String {
    let begins = text.trim_start().starts_with(['{', '[', '"']);
    match serde_json::from_str::<Value>(text) {
        Ok(value) if begins => {
            let mut read = String::new();
            append(&value, &mut read);
            read
        }
        _ => text.to_owned(),
    }
}

fn append(value: &Value, read: &mut String) {
    match value {
        Value::Null => {}
        Value::Bool(truth) => read.push_str(if *truth { "true" } else { "false" }),
        Value::Number(number) => read.push_str(&number.to_string()),
        Value::String(text) => read.push_str(text),
        Value::Array(items) => items.iter().for_each(|item| append(item, read)),
        Value::Object(fields) => {
            for (name, value) in fields {
                read.push_str(name);
                read.push('\n');
                append(value, read);
            }
        }
    }
    read.push('\n');
}
