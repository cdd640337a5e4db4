//! Reading a specification from TOML or JSON, with the line of every place.

use std::path::Path;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::finding::{Finding, Kind};
use crate::model::Specification;

/// Maximum size of a file in bytes.
pub const MAX_FILE: usize = 1 << 20;
/// Maximum nesting of tables and lists in TOML. JSON has the limit of its parser, 128.
const MAX_NESTING: usize = 64;

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// TOML.
    Toml,
    /// JSON.
    Json,
}

impl Format {
    /// The format that a file's name says. None unless it ends in `.toml` or `.json`.
    pub fn from_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()? {
            "toml" => Some(Self::Toml),
            "json" => Some(Self::Json),
            _ => None,
        }
    }
}

/// Reads a specification. The error is a finding with its place.
pub fn read(text: &str, format: Format) -> Result<Specification, Finding> {
    if text.len() > MAX_FILE {
        return Err(Finding::new(
            Kind::TooLarge,
            "",
            format!("the file has {} bytes", text.len()),
            format!("use at most {MAX_FILE}"),
        ));
    }
    let unreadable = |place: String, message: String| {
        let mend = "correct it; docs/forge-specifications.md lists every key".to_owned();
        let mut finding = Finding::new(Kind::Unreadable, place, message, mend);
        finding.line = Lines::new(text, format).line(&finding.place);
        finding
    };
    match format {
        Format::Json if text.trim_start().starts_with(|first: char| first != '{') => {
            let what = "a specification is an object, with keys such as `name` and `entities`";
            let mut finding = unreadable(String::new(), what.to_owned());
            finding.line = Some(1);
            Err(finding)
        }
        Format::Json => {
            let mut reader = serde_json::Deserializer::from_str(text);
            let found = serde_path_to_error::deserialize(&mut reader);
            found
                .map_err(|error| {
                    let place = pointer(error.path());
                    let inner = error.into_inner();
                    let mut finding = unreadable(place, inner.to_string());
                    finding.line = Some(inner.line());
                    finding
                })
                .and_then(|found| {
                    reader
                        .end()
                        .map_err(|error| unreadable(String::new(), error.to_string()))?;
                    Ok(found)
                })
        }
        Format::Toml if is_deep(text) => Err(Finding::new(
            Kind::TooLarge,
            "",
            format!("tables and lists are nested more than {MAX_NESTING} deep"),
            "nest fewer",
        )),
        Format::Toml => {
            let table = toml::Table::deserialize(
                toml::de::Deserializer::parse(text)
                    .map_err(|error| syntax(text, &error, &unreadable))?,
            )
            .map_err(|error| syntax(text, &error, &unreadable))?;
            if let Some((place, number)) = not_finite(text) {
                let what = format!("{number} is no number that a state can have");
                return Err(unreadable(place, what));
            }
            serde_path_to_error::deserialize(table).map_err(|error| {
                let place = pointer(error.path());
                unreadable(place, error.into_inner().message().to_owned())
            })
        }
    }
}

/// True if TOML is nested too deeply for functions that recurse. Its parser only limits dotted keys and inline tables,
/// each for itself: a key of 80 parts can be in 80 inline tables. The document is taken apart level by level, because
/// dropping it whole would recurse too.
fn is_deep(text: &str) -> bool {
    let (document, _) = DeTable::parse_recoverable(text);
    let mut level = vec![DeValue::Table(document.into_inner())];
    let mut depth = 0;
    while !level.is_empty() {
        depth += 1;
        let mut below = Vec::new();
        for value in level {
            match value {
                DeValue::Table(table) => {
                    below.extend(table.into_iter().map(|(_, value)| value.into_inner()));
                }
                DeValue::Array(items) => below.extend(items.into_iter().map(Spanned::into_inner)),
                _ => {}
            }
        }
        level = below;
    }
    depth > MAX_NESTING
}

/// The place and the text of a number that is not finite, if there is one. JSON, and so a state, has no such numbers.
fn not_finite(text: &str) -> Option<(String, String)> {
    let document = DeTable::parse(text).ok()?;
    let mut level = vec![(String::new(), DeValue::Table(document.into_inner()))];
    while let Some((place, value)) = level.pop() {
        match value {
            DeValue::Table(table) => {
                level.extend(table.into_iter().map(|(key, value)| {
                    let key = key.get_ref().replace('~', "~0").replace('/', "~1");
                    (format!("{place}/{key}"), value.into_inner())
                }));
            }
            DeValue::Array(items) => {
                let items = items.into_iter().enumerate();
                level.extend(
                    items.map(|(index, item)| (format!("{place}/{index}"), item.into_inner())),
                );
            }
            DeValue::Float(number) => {
                let number = number.as_str();
                if !number.parse::<f64>().is_ok_and(f64::is_finite) {
                    return Some((place, number.to_owned()));
                }
            }
            _ => {}
        }
    }
    None
}

fn syntax(
    text: &str,
    error: &toml::de::Error,
    unreadable: &dyn Fn(String, String) -> Finding,
) -> Finding {
    let mut finding = unreadable(String::new(), error.message().to_owned());
    let lines = Lines::new(text, Format::Toml);
    finding.line = error.span().map(|span| lines.line_at(span.start));
    finding
}

/// The lines of the places of a file. The file is parsed once.
#[derive(Debug)]
pub struct Lines<'a> {
    /// None for JSON, and if the file is too large, nested too deeply or not TOML.
    document: Option<Spanned<DeTable<'a>>>,
    /// Positions of line breaks.
    breaks: Vec<usize>,
}

impl<'a> Lines<'a> {
    /// Parses a file.
    pub fn new(text: &'a str, format: Format) -> Self {
        let is_read = format == Format::Toml && text.len() <= MAX_FILE && !is_deep(text);
        let document = is_read.then(|| DeTable::parse(text).ok()).flatten();
        let breaks = text.match_indices('\n').map(|(at, _)| at).collect();
        Self { document, breaks }
    }

    /// The line of a place, from 1: that of the deepest part of the JSON pointer that exists. None for JSON.
    pub fn line(&self, pointer: &str) -> Option<usize> {
        let document = self.document.as_ref()?;
        let mut parts = pointer.split('/').skip(1);
        let (key, mut value) = document.get_ref().get_key_value(parts.next()?)?;
        let mut at = key.span().start;
        for part in parts {
            let part = part.replace("~1", "/").replace("~0", "~");
            let next = match value.get_ref() {
                DeValue::Table(table) => table
                    .get_key_value(part.as_str())
                    .map(|(key, value)| (key.span().start, value)),
                DeValue::Array(items) => part
                    .parse::<usize>()
                    .ok()
                    .and_then(|index| items.get(index))
                    .map(|value| (value.span().start, value)),
                _ => None,
            };
            let Some((start, found)) = next else { break };
            at = start;
            value = found;
        }
        Some(self.line_at(at))
    }

    fn line_at(&self, offset: usize) -> usize {
        1 + self.breaks.partition_point(|at| *at < offset)
    }
}

/// The JSON pointer of a path in a deserialized value.
fn pointer(path: &serde_path_to_error::Path) -> String {
    use serde_path_to_error::Segment;
    path.iter()
        .filter_map(|segment| match segment {
            Segment::Seq { index } => Some(format!("/{index}")),
            Segment::Map { key } => Some(format!("/{}", key.replace('~', "~0").replace('/', "~1"))),
            // The variant is a key of the file.
            Segment::Enum { variant } => Some(format!("/{variant}")),
            Segment::Unknown => None,
        })
        .collect()
}
