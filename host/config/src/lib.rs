//! Parses TOML files into checked types.
//!
//! A configuration is parsed once, into types that refuse unknown keys (`#[serde(deny_unknown_fields)]`). This crate
//! turns serde's description of a mistake into a message that names the file, the line and the key, and suggests the
//! nearest known key. It must not know any particular configuration.
//!
//! | looking for | module |
//! |---|---|
//! | reading and checking a file | this one: [`load`], [`parse`], [`ConfigError`] |
//! | the line of a key | `lines`: [`Lines`], [`Setting`] |
//! | durations in `_ms` keys | [`milliseconds`] |
//!
//! ```
//! #[derive(serde::Deserialize, Debug)]
//! #[serde(deny_unknown_fields)]
//! struct Rollout {
//!     max_turns: u32,
//! }
//! let error = rlf_config::parse::<Rollout>("max_turn = 6\n", "demo.toml").unwrap_err();
//! assert_eq!(
//!     error.to_string(),
//!     "demo.toml:1:1: unknown key `max_turn`; did you mean `max_turns`?"
//! );
//! ```

mod lines;
pub mod milliseconds;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

pub use lines::{Lines, Setting};

/// The reason why a configuration file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file that was asked for.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file is not TOML, or does not fit the type.
    #[error("{origin}:{line}:{column}: {message}")]
    Invalid {
        /// The file, or the name of another source.
        origin: String,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// The mistake, and how to correct it.
        message: String,
    },
}

/// Reads and checks the file at `path`.
pub fn load<T: DeserializeOwned>(path: &Path) -> Result<T, ConfigError> {
    parse(&read(path)?, &path.display().to_string())
}

/// Reads the file at `path` as text. It must be a regular file of at most 16 MiB.
pub fn read(path: &Path) -> Result<String, ConfigError> {
    rlf_files::read_text(path, rlf_files::MAX_TEXT_BYTES).map_err(|source| ConfigError::Read {
        path: path.to_owned(),
        source,
    })
}

/// Parses and checks `text`. `origin` names it in messages.
pub fn parse<T: DeserializeOwned>(text: &str, origin: &str) -> Result<T, ConfigError> {
    toml::from_str(text).map_err(|error| invalid(text, origin, &error))
}

fn invalid(text: &str, origin: &str, error: &toml::de::Error) -> ConfigError {
    let offset = error.span().map_or(0, |span| span.start.min(text.len()));
    let (line, column) = position(text, offset);
    let message = explain(error.message());
    ConfigError::Invalid {
        origin: origin.to_owned(),
        line,
        column,
        message,
    }
}

/// The known name nearest to `name`, if one is similar enough.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .filter(|(distance, candidate)| *distance * 3 <= candidate.len().max(name.len()) + 1)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

fn line_of(text: &str, offset: usize) -> usize {
    position(text, offset).0
}

fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    (
        before.matches('\n').count() + 1,
        before[line_start..].chars().count() + 1,
    )
}

/// Explains serde's message about an unknown field or variant, with a suggestion.
fn explain(message: &str) -> String {
    let Some((kind, rest)) = ["field", "variant"].iter().find_map(|kind| {
        message
            .strip_prefix(&format!("unknown {kind} `"))
            .map(|rest| (*kind, rest))
    }) else {
        return in_words(message);
    };
    let mut quoted = rest.split('`');
    let name = quoted.next().unwrap_or_default();
    let known: Vec<&str> = quoted.skip(1).step_by(2).collect();
    let what = if kind == "field" { "key" } else { "value" };
    let mut explained = format!("unknown {what} `{name}`");
    match nearest(name, known.iter().copied()) {
        Some(candidate) => {
            let _ = write!(explained, "; did you mean `{candidate}`?");
        }
        None if known.is_empty() => explained.push_str("; none is allowed here"),
        None => {
            let _ = write!(explained, "; known here: {}", known.join(", "));
        }
    }
    explained
}

/// Replaces the Rust type at the end of serde's message by words.
fn in_words(message: &str) -> String {
    let named = message.rsplit_once("expected ");
    let Some((before, wanted)) = named else {
        return message.to_owned();
    };
    let wanted = match wanted.trim_end() {
        "u64" | "usize" if message.starts_with("invalid value") => "a whole number of at least 0",
        "u8" if message.starts_with("invalid value") => "a whole number from 0 to 255",
        "u16" if message.starts_with("invalid value") => "a whole number from 0 to 65535",
        "u32" if message.starts_with("invalid value") => "a whole number from 0 to 4294967295",
        "u8" | "u16" | "u32" | "u64" | "usize" | "i32" | "i64" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        wanted if wanted.starts_with("struct ") => "a table",
        _ => return message.to_owned(),
    };
    format!("{before}expected {wanted}")
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Outer {
        rollout: Inner,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Inner {
        max_turns: u32,
        device: Option<Device>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Device {
        Cpu,
        Cuda,
    }

    fn message(text: &str) -> String {
        parse::<Outer>(text, "c.toml").unwrap_err().to_string()
    }

    #[test]
    fn an_unknown_key_is_named_with_its_place_and_the_nearest_known_one() {
        assert_eq!(
            message("[rollout]\nmax_turns = 3\nmax_tunrs = 4\n"),
            "c.toml:3:1: unknown key `max_tunrs`; did you mean `max_turns`?"
        );
    }

    #[test]
    fn a_key_that_resembles_nothing_lists_what_is_known() {
        assert_eq!(
            message("[rollout]\nmax_turns = 3\nzzz = 4\n"),
            "c.toml:3:1: unknown key `zzz`; known here: max_turns, device"
        );
    }

    #[test]
    fn an_unknown_value_of_an_enum_is_explained_too() {
        assert_eq!(
            message("[rollout]\nmax_turns = 3\ndevice = \"cdua\"\n"),
            "c.toml:3:10: unknown value `cdua`; did you mean `cuda`?"
        );
    }

    #[test]
    fn a_configuration_that_would_never_end_is_refused() {
        let error = load::<Outer>(Path::new("/dev/zero"))
            .unwrap_err()
            .to_string();
        assert!(
            error.starts_with("cannot read /dev/zero: it is a device"),
            "{error}"
        );
    }

    #[test]
    fn the_wanted_type_is_said_in_words() {
        assert_eq!(
            message("[rollout]\nmax_turns = \"x\"\n"),
            "c.toml:2:13: invalid type: string \"x\", expected a whole number"
        );
        assert_eq!(
            message("[rollout]\nmax_turns = -1\n"),
            "c.toml:2:13: invalid value: integer `-1`, expected a whole number from 0 to 4294967295"
        );
        assert_eq!(
            message("rollout = 3"),
            "c.toml:1:11: invalid type: integer `3`, expected a table"
        );
        let list = parse::<std::collections::BTreeMap<String, Vec<u8>>>("a = 3", "c.toml");
        let message = list.unwrap_err().to_string();
        assert!(message.ends_with("expected a list"), "{message}");
    }

    #[test]
    fn a_wrong_type_and_broken_toml_name_their_line() {
        assert!(message("[rollout]\nmax_turns = \"x\"\n").starts_with("c.toml:2:13: invalid type"));
        assert!(message("[rollout\n").starts_with("c.toml:1:"));
    }
}
