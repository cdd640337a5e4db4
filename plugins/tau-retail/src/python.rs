//! Values as Python writes them: `json.dumps` for text that the agent reads, `str` for text that is hashed.

use std::fmt::Write;

use rlf_plugin::serde_json::{Number, Value};

/// `json.dumps(value)`: keys in their order, `, ` and `: ` between, ASCII only.
pub(crate) fn dumps(value: &Value) -> String {
    let mut out = String::new();
    write_json(&mut out, value);
    out
}

fn write_json(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(truth) => out.push_str(if *truth { "true" } else { "false" }),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => write_json_text(out, text),
        Value::Array(items) => {
            out.push('[');
            for (position, item) in items.iter().enumerate() {
                out.push_str(separator(position));
                write_json(out, item);
            }
            out.push(']');
        }
        Value::Object(entries) => {
            out.push('{');
            for (position, (key, item)) in entries.iter().enumerate() {
                out.push_str(separator(position));
                write_json_text(out, key);
                out.push_str(": ");
                write_json(out, item);
            }
            out.push('}');
        }
    }
}

fn write_json_text(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            ' '..='~' => out.push(character),
            other => {
                for unit in other.encode_utf16(&mut [0; 2]) {
                    written(write!(out, "\\u{unit:04x}"));
                }
            }
        }
    }
    out.push('"');
}

/// `str` of the value after replacing every object by a tuple of pairs sorted by key, and every list by a tuple.
pub(crate) fn write_tuple(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("None"),
        Value::Bool(truth) => out.push_str(if *truth { "True" } else { "False" }),
        Value::Number(number) => write_number(out, number),
        Value::String(text) => write_text(out, text),
        Value::Array(items) => {
            out.push('(');
            for (position, item) in items.iter().enumerate() {
                out.push_str(separator(position));
                write_tuple(out, item);
            }
            out.push_str(closing(items.len()));
        }
        Value::Object(entries) => {
            let mut sorted: Vec<_> = entries.iter().collect();
            sorted.sort_unstable_by_key(|(key, _)| *key);
            out.push('(');
            for (position, (key, item)) in sorted.into_iter().enumerate() {
                out.push_str(separator(position));
                out.push('(');
                write_text(out, key);
                out.push_str(", ");
                write_tuple(out, item);
                out.push(')');
            }
            out.push_str(closing(entries.len()));
        }
    }
}

/// The text before an item.
pub(crate) fn separator(position: usize) -> &'static str {
    if position == 0 { "" } else { ", " }
}

/// The end of a tuple: a tuple of a single item has a comma.
pub(crate) fn closing(length: usize) -> &'static str {
    if length == 1 { ",)" } else { ")" }
}

/// `repr` of a string: in single quotes, unless it contains some and no double quotes.
pub(crate) fn write_text(out: &mut String, text: &str) {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    out.push(quote);
    for character in text.chars() {
        match character {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            quoted if quoted == quote => out.extend(['\\', quote]),
            shown if is_printable(shown) => out.push(shown),
            hidden => {
                let code = u32::from(hidden);
                written(match code {
                    0..=0xff => write!(out, "\\x{code:02x}"),
                    0x100..=0xffff => write!(out, "\\u{code:04x}"),
                    _ => write!(out, "\\U{code:08x}"),
                });
            }
        }
    }
    out.push(quote);
}

/// True if Python shows a character unescaped: all except separators, controls, format characters and unassigned
/// ones. The standard library's debug escapes follow the same categories. Combining marks are escaped only at the
/// start of a text, so a letter is put before them.
fn is_printable(character: char) -> bool {
    if character.is_ascii() {
        return matches!(character, ' '..='~');
    }
    let mut text = String::from("a");
    text.push(character);
    text.escape_debug().nth(1) == Some(character)
}

fn write_number(out: &mut String, number: &Number) {
    match number.as_f64() {
        Some(value) if number.is_f64() => write_float(out, value),
        _ => written(write!(out, "{number}")),
    }
}

/// `repr` of a float: the shortest digits that parse back to it, with an exponent below 1e-4 and from 1e16 on.
pub(crate) fn write_float(out: &mut String, value: f64) {
    if value.is_nan() {
        return out.push_str("nan");
    }
    if value.is_infinite() {
        return out.push_str(if value > 0.0 { "inf" } else { "-inf" });
    }
    if value == 0.0 || (1e-4..1e16).contains(&value.abs()) {
        let shown = value.to_string();
        out.push_str(&shown);
        return out.push_str(if shown.contains('.') { "" } else { ".0" });
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let (sign, exponent) = match exponent.strip_prefix('-') {
        Some(exponent) => ('-', exponent),
        None => ('+', exponent),
    };
    written(write!(out, "{digits}e{sign}{exponent:0>2}"));
}

/// Writing to a string cannot fail.
fn written(result: std::fmt::Result) {
    debug_assert!(result.is_ok());
}
