//! The parser: from the text of a turn to calls and typed diagnostics.
//!
//! Every string gives a result, whatever its depth and size. In practice, the time is linear in the text's length.

use std::fmt;

use serde_json::{Map, Value};

use crate::protocol::{ProtocolSpec, THINK_CLOSE, THINK_OPEN};

/// Maximum length of a call, in bytes. A longer call is malformed, and its JSON is not read.
pub const MAX_CALL_BYTES: usize = 1 << 20;

/// The problem with a piece of a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Diagnostic {
    /// A call without content.
    Empty,
    /// The content is not one JSON object.
    BadJson,
    /// The object lacks the tool's name or the arguments.
    MissingField,
    /// The arguments are not a JSON object.
    BadArguments,
    /// The call is not closed.
    Unclosed,
    /// A think block is not closed. This is not a call, but nothing after it counts.
    UnclosedThink,
    /// A closing tag without its opening.
    StrayClose,
    /// No tool of that name is on offer.
    UnknownTool,
}

impl Diagnostic {
    /// Every diagnostic.
    pub const ALL: [Self; 8] = [
        Self::Empty,
        Self::BadJson,
        Self::MissingField,
        Self::BadArguments,
        Self::Unclosed,
        Self::UnclosedThink,
        Self::StrayClose,
        Self::UnknownTool,
    ];

    /// The name used in trajectories, logs and metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::BadJson => "bad-json",
            Self::MissingField => "missing-field",
            Self::BadArguments => "bad-arguments",
            Self::Unclosed => "unclosed",
            Self::UnclosedThink => "unclosed-think",
            Self::StrayClose => "stray-close",
            Self::UnknownTool => "unknown-tool",
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A call that cannot be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    /// The kind of problem.
    pub diagnostic: Diagnostic,
    /// The details, in words that the model is shown.
    pub detail: String,
}

/// A piece of a turn. The pieces in order are the whole turn.
#[derive(Debug, Clone, PartialEq)]
pub enum Part<'t> {
    /// Reasoning, without its tags.
    Think {
        /// The text inside.
        text: &'t str,
        /// True if it has its closing tag.
        closed: bool,
    },
    /// Text outside think blocks and calls.
    Text(&'t str),
    /// A closing think tag without its opening tag.
    StrayThinkClose(&'t str),
    /// A call or a malformed call, with its tags.
    Attempt {
        /// The text as written.
        text: &'t str,
        /// The tool's name and the arguments, or the problem.
        call: Result<(String, Value), Malformed>,
    },
}

/// A turn, parsed.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ParsedTurn<'t> {
    /// The pieces, in order.
    pub parts: Vec<Part<'t>>,
}

impl<'t> ParsedTurn<'t> {
    /// The text in think blocks. `None` if there is no think block.
    pub fn reasoning(&self) -> Option<String> {
        let thoughts = self.parts.iter().filter_map(|part| match part {
            Part::Think { text, .. } => Some(*text),
            _ => None,
        });
        thoughts
            .map(str::to_owned)
            .reduce(|all, next| all + "\n" + &next)
    }

    /// The text outside think blocks and calls, without white space at its ends.
    pub fn visible(&self) -> String {
        let texts = self.parts.iter().map(|part| {
            if let Part::Text(text) = part {
                text
            } else {
                ""
            }
        });
        texts.collect::<String>().trim().to_owned()
    }

    /// Calls and malformed calls, in order, with their text.
    pub fn attempts(
        &self,
    ) -> impl Iterator<Item = (&'t str, &Result<(String, Value), Malformed>)> + '_ {
        self.parts.iter().filter_map(|part| match part {
            Part::Attempt { text, call } => Some((*text, call)),
            _ => None,
        })
    }

    /// All problems, in order, each with its text.
    pub fn diagnostics(&self) -> impl Iterator<Item = (&'t str, Diagnostic)> + '_ {
        self.parts.iter().filter_map(|part| match part {
            Part::Attempt {
                text,
                call: Err(malformed),
            } => Some((*text, malformed.diagnostic)),
            Part::Think {
                text,
                closed: false,
            } => Some((*text, Diagnostic::UnclosedThink)),
            Part::StrayThinkClose(text) => Some((*text, Diagnostic::StrayClose)),
            _ => None,
        })
    }
}

/// Parses a turn. `in_think` says whether the generation prompt left a think block open;
/// `tools` are the names on offer.
pub fn parse<'t>(
    text: &'t str,
    in_think: bool,
    protocol: &ProtocolSpec,
    tools: &[impl AsRef<str>],
) -> ParsedTurn<'t> {
    let known = |name: &str| tools.iter().any(|tool| tool.as_ref() == name);
    Scanner::new(text, protocol, &known).parse(in_think)
}

/// Parses a turn as if every tool that it calls were on offer. It begins in a think block if it closes one first.
pub(crate) fn parse_any_tool<'t>(text: &'t str, protocol: &ProtocolSpec) -> ParsedTurn<'t> {
    let close = text.find(THINK_CLOSE);
    let in_think = close.is_some_and(|close| !text[..close].contains(THINK_OPEN));
    Scanner::new(text, protocol, &|_| true).parse(in_think)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tag {
    ThinkOpen,
    ThinkClose,
    Open,
    Close,
}

struct Scanner<'t, 'p> {
    text: &'t str,
    at: usize,
    protocol: &'p ProtocolSpec,
    known: &'p dyn Fn(&str) -> bool,
    /// Offset at which each tag was last found, so that no text is searched for it twice.
    next: [Option<usize>; 4],
    parts: Vec<Part<'t>>,
}

impl<'t, 'p> Scanner<'t, 'p> {
    fn new(text: &'t str, protocol: &'p ProtocolSpec, known: &'p dyn Fn(&str) -> bool) -> Self {
        Self {
            text,
            at: 0,
            protocol,
            known,
            next: [Some(0); 4],
            parts: Vec::new(),
        }
    }

    fn parse(mut self, in_think: bool) -> ParsedTurn<'t> {
        if in_think {
            self.think();
        }
        self.run();
        ParsedTurn { parts: self.parts }
    }
}

impl Scanner<'_, '_> {
    fn run(&mut self) {
        if self.protocol.bare && self.bare_calls() {
            return;
        }
        while self.at < self.text.len() {
            let Some((tag, at)) =
                self.next_of(&[Tag::ThinkOpen, Tag::ThinkClose, Tag::Open, Tag::Close])
            else {
                self.push_text(self.text.len());
                return;
            };
            self.push_text(at);
            let end = at + self.spelling(tag).len();
            self.at = end;
            match tag {
                Tag::ThinkOpen => self.think(),
                Tag::ThinkClose => self.parts.push(Part::StrayThinkClose(&self.text[at..end])),
                Tag::Open if self.protocol.close.is_some() => self.closed_call(at),
                Tag::Open => self.calls_to_the_end(at),
                Tag::Close => self.malformed(
                    at,
                    end,
                    Diagnostic::StrayClose,
                    "a closing tag without its opening tag".into(),
                ),
            }
        }
    }

    fn spelling(&self, tag: Tag) -> &'static str {
        match tag {
            Tag::ThinkOpen => THINK_OPEN,
            Tag::ThinkClose => THINK_CLOSE,
            Tag::Open => self.protocol.open,
            Tag::Close => self.protocol.close.unwrap_or_default(),
        }
    }

    /// The first of `tags` from here on.
    fn next_of(&mut self, tags: &[Tag]) -> Option<(Tag, usize)> {
        let mut first = None;
        for tag in tags {
            let spelling = self.spelling(*tag);
            if spelling.is_empty() {
                continue;
            }
            let known = &mut self.next[*tag as usize];
            if known.is_some_and(|at| at < self.at || at == 0) {
                *known = self.text[self.at..].find(spelling).map(|at| self.at + at);
            }
            if let Some(at) = *known
                && first.is_none_or(|(_, earliest)| at < earliest)
            {
                first = Some((*tag, at));
            }
        }
        first
    }

    fn push_text(&mut self, end: usize) {
        if self.at < end {
            self.parts.push(Part::Text(&self.text[self.at..end]));
        }
        self.at = end;
    }

    fn think(&mut self) {
        let close = self.next_of(&[Tag::ThinkClose]);
        let end = close.map_or(self.text.len(), |(_, at)| at);
        self.parts.push(Part::Think {
            text: &self.text[self.at..end],
            closed: close.is_some(),
        });
        self.at = close.map_or(end, |_| end + THINK_CLOSE.len());
    }

    fn malformed(&mut self, start: usize, end: usize, diagnostic: Diagnostic, detail: String) {
        let text = &self.text[start..end];
        self.parts.push(Part::Attempt {
            text,
            call: Err(Malformed { diagnostic, detail }),
        });
        self.at = end;
    }

    /// Reads one call up to its closing tag. The call begins at `start`, and its opening tag ends at the current
    /// position.
    fn closed_call(&mut self, start: usize) {
        let body = self.skip_space(self.at);
        let read = self.read_json(body);
        // A closing tag inside a JSON string is part of the string, so search after the value, if there is one.
        self.at = read.as_ref().map_or(body, |(_, end)| *end);
        let here = self.skip_space(self.at);
        let tag = self.next_of(&[Tag::Close, Tag::Open, Tag::ThinkOpen, Tag::ThinkClose]);
        let Some((Tag::Close, close)) = tag else {
            let end = tag.map_or(self.text.len(), |(_, at)| at);
            let missing = format!("the call is not closed with {}", self.spelling(Tag::Close));
            // Only the call's own text: the text after it is not part of the call.
            let end = if read.is_ok() { self.at } else { end };
            return self.malformed(start, end, Diagnostic::Unclosed, missing);
        };
        let end = close + self.spelling(Tag::Close).len();
        match read {
            _ if close == body => {
                self.malformed(start, end, Diagnostic::Empty, "the call is empty".into());
            }
            Ok(_) if close != here => {
                let detail = "there is more than one JSON object in the call".into();
                self.malformed(start, end, Diagnostic::BadJson, detail);
            }
            Ok((value, _)) => {
                let call = self.check(value);
                self.parts.push(Part::Attempt {
                    text: &self.text[start..end],
                    call,
                });
                self.at = end;
            }
            Err(detail) => self.malformed(start, end, Diagnostic::BadJson, detail),
        }
    }

    /// Reads calls to the end of the turn. The first begins at `start`, and its opening tag ends at the current
    /// position.
    fn calls_to_the_end(&mut self, mut start: usize) {
        let mut found = false;
        loop {
            let body = self.skip_space(self.at);
            if body == self.text.len() {
                if !found {
                    let detail = "the call is empty".into();
                    self.malformed(start, body, Diagnostic::Empty, detail);
                }
                self.at = body;
                return;
            }
            match self.read_json(body) {
                Ok((value, end)) => {
                    let call = self.check(value);
                    self.parts.push(Part::Attempt {
                        text: &self.text[start..end],
                        call,
                    });
                    found = true;
                    self.at = self.skip_separator(end);
                    start = self.at;
                }
                Err(detail) => {
                    return self.malformed(start, self.text.len(), Diagnostic::BadJson, detail);
                }
            }
        }
    }

    /// Reads a turn that has only calls, without an opening tag.
    fn bare_calls(&mut self) -> bool {
        let start = self.skip_space(self.at);
        let Some(object) = self.text[start..].strip_prefix('{') else {
            return false;
        };
        let name = object
            .trim_start()
            .strip_prefix('"')
            .and_then(|n| n.strip_prefix(self.protocol.name));
        if !name.is_some_and(|rest| rest.starts_with('"')) {
            return false;
        }
        self.at = start;
        self.calls_to_the_end(start);
        true
    }

    fn skip_space(&self, at: usize) -> usize {
        self.text.len() - self.text[at..].trim_start().len()
    }

    fn skip_separator(&self, at: usize) -> usize {
        let at = self.skip_space(at);
        match self.protocol.separator {
            Some(separator) if self.text[at..].starts_with(separator) => at + separator.len_utf8(),
            _ => at,
        }
    }

    /// Reads one JSON value and the offset of its end.
    fn read_json(&self, at: usize) -> Result<(Value, usize), String> {
        let mut end = self.text.len().min(at.saturating_add(MAX_CALL_BYTES));
        while !self.text.is_char_boundary(end) {
            end -= 1;
        }
        match rlf_json::first(&self.text[at..end]) {
            Some(Ok((value, length))) => Ok((value, at + length)),
            Some(Err(_)) if end < self.text.len() => Err(format!(
                "the call is not valid JSON within {MAX_CALL_BYTES} bytes"
            )),
            Some(Err(error)) => Err(format!("the call is not valid JSON: {error}")),
            None => Err("the call is not valid JSON: nothing is there".into()),
        }
    }

    fn check(&self, value: Value) -> Result<(String, Value), Malformed> {
        let wrong = |diagnostic, detail: String| Err(Malformed { diagnostic, detail });
        let Value::Object(mut members) = value else {
            return wrong(
                Diagnostic::BadJson,
                "the call must be one JSON object".into(),
            );
        };
        let (name_key, arguments_key) = (self.protocol.name, self.protocol.arguments);
        let Some(Value::String(name)) = members.remove(name_key) else {
            return wrong(
                Diagnostic::MissingField,
                format!("the call needs \"{name_key}\", the tool's name as a string"),
            );
        };
        let Some(arguments) = members.remove(arguments_key) else {
            return wrong(
                Diagnostic::MissingField,
                format!("the call needs \"{arguments_key}\", a JSON object"),
            );
        };
        if !arguments.is_object() {
            let detail = match rounded(&arguments) {
                Some(error) => format!("\"{arguments_key}\": {error}"),
                None => format!("\"{arguments_key}\" must be a JSON object"),
            };
            return wrong(Diagnostic::BadArguments, detail);
        }
        if !(self.known)(&name) {
            let shown: String = name.chars().take(64).collect();
            return wrong(
                Diagnostic::UnknownTool,
                format!("there is no tool \"{shown}\""),
            );
        }
        Ok((name, arguments))
    }
}

/// The reason why arguments are a text, if that is an integer of more than 64 bits in them. An endpoint's arguments stay a
/// text if they cannot be read without loss.
fn rounded(arguments: &Value) -> Option<serde_json::Error> {
    let text = arguments.as_str()?;
    let object = serde_json::from_str::<Map<String, Value>>(text);
    object.ok().and(rlf_json::check(text.as_bytes()).err())
}
