//! Keeps untrusted text from becoming control tokens.
//!
//! Text of a tool, a data set, a user or the model must never become a control token. But templates inspect it
//! (`startswith`, `split('</think>')`, `strip`), so it cannot be hidden from them. Each text is therefore rendered
//! unchanged, with one exception: where it spells a control token or a tag of the protocol, a *mark* breaks the
//! spelling. A mark is a private-use character that occurs in no text of that rendering.
//!
//! The result is encoded in three steps. The first finds added tokens, and can only find the template's own. The second
//! removes the marks. The third encodes the text between two added tokens with [`Tokenizer::encode_untrusted`]. So text
//! without control tokens is rendered and encoded exactly as transformers would.

use std::borrow::Cow;
use std::collections::HashSet;

use aho_corasick::AhoCorasick;

use crate::protocol::{ProtocolSpec, THINK_CLOSE, THINK_OPEN};
use crate::template::{ChatTemplate, RenderInput, TemplateError};
use crate::tokenizer::{Piece, Tokenizer, TokenizerError};

/// A rendering in which `mark` breaks untrusted spellings of control tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GuardedText {
    text: String,
    mark: char,
}

impl GuardedText {
    /// The text without marks.
    pub(crate) fn plain(&self) -> Cow<'_, str> {
        strip(&self.text, self.mark)
    }

    /// The ids, with added tokens only where the template wrote them.
    pub(crate) fn encode(&self, tokenizer: &Tokenizer) -> Vec<u32> {
        let mut ids = Vec::with_capacity(self.text.len() / 3 + 1);
        for piece in tokenizer.pieces(&self.text) {
            match piece {
                Piece::Added(id) => ids.push(id),
                Piece::Plain(text) => {
                    tokenizer.encode_untrusted_into(&strip(text, self.mark), &mut ids);
                }
            }
        }
        ids
    }

    /// The rest after the first `bytes` bytes of the text without marks.
    pub(crate) fn after(&self, bytes: usize) -> Self {
        let mut left = bytes;
        let at = self.text.char_indices().find(|(_, c)| {
            if left == 0 {
                return true;
            }
            if *c != self.mark {
                left = left.saturating_sub(c.len_utf8());
            }
            false
        });
        let text = at.map_or("", |(at, _)| &self.text[at..]);
        Self {
            text: text.to_owned(),
            mark: self.mark,
        }
    }

    /// The rest after the first of `ends` that follows the last `anchor`, both as the template wrote them.
    pub(crate) fn after_turn(&self, anchor: &str, ends: &[&str]) -> Option<Self> {
        let from = self.text.rfind(anchor)? + anchor.len();
        let end = |end: &&str| self.text[from..].find(*end).map(|at| from + at + end.len());
        let at = ends.iter().filter_map(end).min()?;
        Some(Self {
            text: self.text[at..].to_owned(),
            mark: self.mark,
        })
    }

    /// True if the generation prompt leaves a think block open. It is the text after the last of `ends`.
    pub(crate) fn ends_in_think(&self, ends: &[&str]) -> bool {
        let end = |end: &&str| self.text.rfind(*end).map(|at| at + end.len());
        let from = ends.iter().filter_map(end).max().unwrap_or(0);
        let tail = &self.text[from..];
        tail.rfind(THINK_OPEN) > tail.rfind(THINK_CLOSE)
    }
}

fn strip(text: &str, mark: char) -> Cow<'_, str> {
    if text.contains(mark) {
        Cow::Owned(text.replace(mark, ""))
    } else {
        Cow::Borrowed(text)
    }
}

/// Finds and breaks every spelling that untrusted text must not have.
#[derive(Debug)]
pub(crate) struct ControlTokenGuard {
    /// Added tokens and the protocol's tags.
    spellings: Vec<String>,
    finder: AhoCorasick,
    longest: usize,
    /// A text that ends in one of these could become a spelling with the text after it.
    beginnings: HashSet<String>,
    /// A text that begins with one of these could become a spelling with the text before it.
    endings: HashSet<String>,
    /// The tags that are escaped visibly in observations.
    tags: AhoCorasick,
}

impl ControlTokenGuard {
    pub(crate) fn new(
        tokenizer: &Tokenizer,
        protocol: &ProtocolSpec,
    ) -> Result<Self, TokenizerError> {
        let fail = |error: aho_corasick::BuildError| TokenizerError::NotByteLevel {
            origin: "in use".into(),
            found: format!("one with unusable added tokens ({error})"),
        };
        let mut spellings: Vec<String> = tokenizer
            .added_tokens()
            .filter(|(id, _)| tokenizer.is_forbidden(*id))
            .map(|(_, token)| token.to_owned())
            .chain(protocol.tags().map(str::to_owned))
            .collect();
        spellings.sort();
        spellings.dedup();
        let cuts = |text: &String| -> Vec<usize> {
            text.char_indices().map(|(at, _)| at).skip(1).collect()
        };
        let mut beginnings = HashSet::new();
        let mut endings = HashSet::new();
        for spelling in &spellings {
            for at in cuts(spelling) {
                beginnings.insert(spelling[..at].to_owned());
                endings.insert(spelling[at..].to_owned());
            }
        }
        let tag = |text: &&String| text.starts_with('<') && text.ends_with('>');
        Ok(Self {
            finder: AhoCorasick::new(&spellings).map_err(fail)?,
            longest: spellings.iter().map(String::len).max().unwrap_or(0),
            beginnings,
            endings,
            tags: AhoCorasick::new(spellings.iter().filter(tag)).map_err(fail)?,
            spellings,
        })
    }

    /// Renders a conversation, with a mark in every place where untrusted text spells a control token.
    pub(crate) fn render(
        &self,
        template: &ChatTemplate,
        input: &RenderInput,
    ) -> Result<GuardedText, TemplateError> {
        // A mark must not occur in any text. The first one almost never does.
        let mut mark = '\u{f0000}';
        loop {
            let clash = std::cell::Cell::new(template.source().contains(mark));
            let text = template.render_with(input, |text| {
                if text.contains(mark) {
                    clash.set(true);
                }
                self.break_spellings(text, mark)
            })?;
            if !clash.get() {
                return Ok(GuardedText { text, mark });
            }
            mark = match mark as u32 + 1 {
                0xf_fffe => '\u{100000}',
                0x10_fffe => return Err(TemplateError::NoMark),
                next => char::from_u32(next).ok_or(TemplateError::NoMark)?,
            };
        }
    }

    fn break_spellings(&self, text: &str, mark: char) -> String {
        let mut out = String::with_capacity(text.len() + mark.len_utf8());
        if self.could_end_a_spelling(text) {
            out.push(mark);
        }
        insert_after_first(&self.finder, text, mark, &mut out);
        if self.could_begin_a_spelling(text) {
            out.push(mark);
        }
        out
    }

    fn could_begin_a_spelling(&self, text: &str) -> bool {
        let tails = text.char_indices().rev().map(|(at, _)| &text[at..]);
        tails
            .take_while(|tail| tail.len() < self.longest)
            .any(|tail| self.beginnings.contains(tail))
    }

    /// True if `text` could end a spelling that the text before it begins. It may also be the middle of one.
    fn could_end_a_spelling(&self, text: &str) -> bool {
        let heads = text
            .char_indices()
            .map(|(at, c)| &text[..at + c.len_utf8()]);
        heads
            .take_while(|head| head.len() < self.longest)
            .any(|head| self.endings.contains(head))
            || (!text.is_empty()
                && text.len() < self.longest
                && self.spellings.iter().any(|spelling| {
                    spelling
                        .char_indices()
                        .skip(1)
                        .any(|(at, _)| spelling[at..].starts_with(text))
                }))
    }

    /// Escapes every tag in an observation's own text visibly: `</tool_response>` becomes `<\/tool_response>`.
    pub(crate) fn escape_tags(&self, text: String) -> String {
        if !self.tags.is_match(&text) {
            return text;
        }
        let mut out = String::with_capacity(text.len() + 8);
        insert_after_first(&self.tags, &text, '\\', &mut out);
        out
    }
}

/// Copies `text` with `c` after the first character of each match, overlapping ones included.
fn insert_after_first(finder: &AhoCorasick, text: &str, c: char, out: &mut String) {
    let mut done = 0;
    let mut places: Vec<usize> = finder
        .find_overlapping_iter(text)
        .map(|found| {
            found.start()
                + text[found.start()..]
                    .chars()
                    .next()
                    .map_or(0, char::len_utf8)
        })
        .collect();
    places.sort_unstable();
    places.dedup();
    for place in places {
        out.push_str(&text[done..place]);
        out.push(c);
        done = place;
    }
    out.push_str(&text[done..]);
}
