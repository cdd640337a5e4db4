//! The tokens of calls: which ones name a tool, and which ones are its arguments.
//!
//! Supervised training can weigh them. The idea that few tokens of a call decide whether it is right is that of TL-Training
//! (Ye et al. 2024, arXiv:2412.15495). Its weights adapt while it trains, and these are fixed.

use std::ops::Range;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::{Deserializer, StreamDeserializer, de::StrRead};

use crate::dialogue::Dialogue;
use crate::parser::{self, Part};
use crate::trajectory::{CallToken, MaskedTokens};

impl Dialogue {
    /// The part of a call that each token of a sequence belongs to. Only tokens of the loss mask belong to one. A token at the
    /// end of a part may hold text beside it, such as the quotation mark after a name.
    pub fn call_tokens(&self, tokens: &MaskedTokens) -> Vec<CallToken> {
        let mut kinds = vec![CallToken::Outside; tokens.ids.len()];
        let mask = tokens.mask.as_slice();
        let mut start = 0;
        for turn in mask.chunk_by(|a, b| a == b) {
            let range = start..start + turn.len();
            start = range.end;
            if turn[0] {
                self.mark_turn(&tokens.ids[range.clone()], &mut kinds[range]);
            }
        }
        kinds
    }

    fn mark_turn(&self, ids: &[u32], kinds: &mut [CallToken]) {
        let tokenizer = self.tokenizer();
        let text = tokenizer.decode(ids);
        let lens = ids.iter().map(|id| tokenizer.byte_len(*id));
        if lens.clone().sum::<usize>() != text.len() {
            // Bytes that are not UTF-8: nobody knows where the tokens are in the text.
            return;
        }
        // Each token's end, and its number.
        let mut tokens = (lens.scan(0, |end, len| {
            *end += len;
            Some(*end)
        }))
        .enumerate()
        .peekable();
        let spec = self.protocol().spec();
        let parsed = parser::parse_any_tool(&text, spec);
        for part in &parsed.parts {
            let Part::Attempt {
                text: call,
                call: Ok(_),
            } = part
            else {
                continue;
            };
            // A part is a piece of the text.
            let call_at = call.as_ptr() as usize - text.as_ptr() as usize;
            for (key, value) in members(call) {
                let kind = match key {
                    key if key == spec.name => CallToken::Name,
                    key if key == spec.arguments => CallToken::Arguments,
                    _ => continue,
                };
                // Parts and members are in the order of the text.
                let (first, last) = (call_at + value.start, call_at + value.end);
                while tokens.next_if(|(_, end)| *end <= first).is_some() {}
                while let Some((token, end)) = tokens.peek().copied().filter(|_| first < last) {
                    kinds[token] = kind;
                    if end >= last {
                        // It may hold the beginning of the next member, too.
                        break;
                    }
                    tokens.next();
                }
            }
        }
    }
}

/// The members of the JSON object in the text of a valid call: each key, and where its value is. A text's quotation marks are
/// left out.
fn members(call: &str) -> Vec<(String, Range<usize>)> {
    let mut members = Vec::new();
    let Some(open) = call.find('{') else {
        return members;
    };
    let mut at = open;
    // A member begins after `{` or `,`.
    while call[at..].starts_with(['{', ',']) {
        at += 1;
        let Some((key, key_end)) = next::<String>(call, at) else {
            break;
        };
        let Some(colon) = call[key_end..].find(':').map(|colon| key_end + colon) else {
            break;
        };
        let value = call.len() - call[colon + 1..].trim_start().len();
        let Some((IgnoredAny, end)) = next(call, value) else {
            break;
        };
        at = call.len() - call[end..].trim_start().len();
        let quoted = usize::from(call[value..].starts_with('"'));
        members.push((key, value + quoted..end - quoted));
    }
    members
}

/// The JSON value that begins at `at`, after white space, and its end.
fn next<T: DeserializeOwned>(text: &str, at: usize) -> Option<(T, usize)> {
    let mut values: StreamDeserializer<'_, StrRead<'_>, T> =
        Deserializer::from_str(&text[at..]).into_iter();
    let value = values.next()?.ok()?;
    Some((value, at + values.byte_offset()))
}

#[cfg(test)]
mod tests {
    use super::members;

    #[test]
    fn members_are_found_whatever_their_values_hold() {
        let call =
            r#"<c> { "a\"b" : {"name": "no", "x": [1, "}"]} ,"name":"look up","n": -1.5e3 }</c>"#;
        let found: Vec<(String, &str)> = members(call)
            .into_iter()
            .map(|(key, value)| (key, &call[value]))
            .collect();
        let wanted = [
            ("a\"b", r#"{"name": "no", "x": [1, "}"]}"#),
            ("name", "look up"),
            ("n", "-1.5e3"),
        ];
        assert_eq!(found, wanted.map(|(key, value)| (key.to_owned(), value)));
        assert!(members("no object").is_empty());
        assert!(members("{}").is_empty());
    }
}
