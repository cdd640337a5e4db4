//! Writes values as Python does (`json.dumps`, `str`, `repr`), because chat templates were written against Python.

use std::fmt::Write as _;

use minijinja::value::{Kwargs, ValueKind};
use minijinja::{Error, ErrorKind, Value};

/// A style of JSON: the arguments that transformers' `tojson` filter passes to `json.dumps`.
#[derive(Debug, Clone)]
struct JsonStyle {
    item: String,
    key: String,
    indent: Option<String>,
    ensure_ascii: bool,
    sort_keys: bool,
}

/// The `tojson` filter of transformers: `json.dumps(x, ensure_ascii=False)`, not escaped for HTML.
pub(crate) fn tojson(value: &Value, arguments: &Kwargs) -> Result<String, Error> {
    let ensure_ascii = arguments
        .get::<Option<bool>>("ensure_ascii")?
        .unwrap_or(false);
    let sort_keys = arguments.get::<Option<bool>>("sort_keys")?.unwrap_or(false);
    let indent = match arguments.get::<Option<Value>>("indent")? {
        None => None,
        Some(value) if value.is_none() => None,
        Some(value) if value.as_str().is_some() => value.as_str().map(str::to_owned),
        Some(value) => Some(" ".repeat(usize::try_from(value)?.min(64))),
    };
    // Python's default: no space after a comma that a line break follows.
    let (mut item, mut key) = (
        if indent.is_some() { "," } else { ", " }.to_owned(),
        ": ".to_owned(),
    );
    if let Some(separators) = arguments.get::<Option<Value>>("separators")?
        && !separators.is_none()
    {
        item = separators.get_item_by_index(0)?.to_string();
        key = separators.get_item_by_index(1)?.to_string();
    }
    arguments.assert_all_used()?;
    let style = JsonStyle {
        item,
        key,
        indent,
        ensure_ascii,
        sort_keys,
    };
    let mut out = String::new();
    write_json(value, &style, 0, &mut out)?;
    Ok(out)
}

fn write_json(
    value: &Value,
    style: &JsonStyle,
    depth: usize,
    out: &mut String,
) -> Result<(), Error> {
    match value.kind() {
        ValueKind::None => out.push_str("null"),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => out.push_str(&number(value)),
        ValueKind::String => write_json_string(value.as_str().unwrap_or_default(), style, out),
        ValueKind::Seq | ValueKind::Iterable => {
            let items: Vec<Value> = value.try_iter()?.collect();
            write_items('[', ']', &items, style, depth, out, |item, out| {
                write_json(item, style, depth + 1, out)
            })?;
        }
        ValueKind::Map => {
            let mut members = Vec::new();
            for key in value.try_iter()? {
                let member = value.get_item(&key)?;
                members.push((json_key(&key)?, member));
            }
            if style.sort_keys {
                members.sort_by(|a, b| a.0.cmp(&b.0));
            }
            write_items(
                '{',
                '}',
                &members,
                style,
                depth,
                out,
                |(key, member), out| {
                    write_json_string(key, style, out);
                    out.push_str(&style.key);
                    write_json(member, style, depth + 1, out)
                },
            )?;
        }
        kind => {
            return Err(Error::new(
                ErrorKind::InvalidOperation,
                format!("tojson: {kind} is not JSON serializable"),
            ));
        }
    }
    Ok(())
}

fn write_items<T>(
    open: char,
    close: char,
    items: &[T],
    style: &JsonStyle,
    depth: usize,
    out: &mut String,
    mut write: impl FnMut(&T, &mut String) -> Result<(), Error>,
) -> Result<(), Error> {
    let line = |out: &mut String, depth: usize| {
        if let Some(indent) = &style.indent {
            out.push('\n');
            (0..depth).for_each(|_| out.push_str(indent));
        }
    };
    out.push(open);
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.push_str(&style.item);
        }
        line(out, depth + 1);
        write(item, out)?;
    }
    if !items.is_empty() {
        line(out, depth);
    }
    out.push(close);
    Ok(())
}

fn json_key(key: &Value) -> Result<String, Error> {
    match key.kind() {
        ValueKind::String => Ok(key.as_str().unwrap_or_default().to_owned()),
        ValueKind::None => Ok("null".into()),
        ValueKind::Bool => Ok(if key.is_true() { "true" } else { "false" }.into()),
        ValueKind::Number => Ok(number(key)),
        kind => Err(Error::new(
            ErrorKind::InvalidOperation,
            format!("tojson: keys must be strings or numbers, not {kind}"),
        )),
    }
}

fn write_json_string(text: &str, style: &JsonStyle, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if (c as u32) < 0x20 => push_escape(c as u16, out),
            // The planes for private use contain the marks that keep untrusted text apart.
            c if style.ensure_ascii && !c.is_ascii() && (c as u32) < 0xf_0000 => {
                let mut units = [0; 2];
                c.encode_utf16(&mut units)
                    .iter()
                    .for_each(|unit| push_escape(*unit, out));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

fn push_escape(unit: u16, out: &mut String) {
    write!(out, "\\u{unit:04x}").expect("writing to a String cannot fail");
}

fn number(value: &Value) -> String {
    if value.is_integer() {
        return value.to_string();
    }
    f64::try_from(value.clone()).map_or_else(|_| value.to_string(), float_repr)
}

/// Python's `repr(float)`: the shortest digits that read back as the same number, in scientific
/// notation from 1e16 on and below 1e-4 (CPython, `float_repr_style = 'short'`).
pub(crate) fn float_repr(x: f64) -> String {
    if x.is_nan() {
        return "NaN".into();
    }
    if x.is_infinite() {
        return if x > 0.0 { "Infinity" } else { "-Infinity" }.into();
    }
    let scientific = format!("{x:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..16).contains(&exponent) {
        let plain = format!("{x}");
        return if plain.contains('.') {
            plain
        } else {
            plain + ".0"
        };
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// Writes Python's `str(x)`, which is what `{{ x }}` prints.
pub(crate) fn write_str(value: &Value, out: &mut String) -> Result<(), Error> {
    match value.kind() {
        ValueKind::Undefined => Ok(()),
        ValueKind::String => {
            out.push_str(value.as_str().unwrap_or_default());
            Ok(())
        }
        _ => write_repr(value, out),
    }
}

fn write_repr(value: &Value, out: &mut String) -> Result<(), Error> {
    match value.kind() {
        ValueKind::None => out.push_str("None"),
        ValueKind::Bool => out.push_str(if value.is_true() { "True" } else { "False" }),
        ValueKind::Number => out.push_str(&match number(value) {
            text if text == "NaN" => "nan".to_owned(),
            text => text.replace("Infinity", "inf"),
        }),
        ValueKind::String => write_string_repr(value.as_str().unwrap_or_default(), out),
        ValueKind::Seq | ValueKind::Iterable => {
            let (open, close) = if value.is_tuple() {
                ('(', ')')
            } else {
                ('[', ']')
            };
            out.push(open);
            let items: Vec<Value> = value.try_iter()?.collect();
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                write_repr(item, out)?;
            }
            if value.is_tuple() && items.len() == 1 {
                out.push(',');
            }
            out.push(close);
        }
        ValueKind::Map => {
            out.push('{');
            for (index, key) in value.try_iter()?.enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                write_repr(&key, out)?;
                out.push_str(": ");
                write_repr(&value.get_item(&key)?, out)?;
            }
            out.push('}');
        }
        _ => write!(out, "{value}").expect("writing to a String cannot fail"),
    }
    Ok(())
}

fn write_string_repr(text: &str, out: &mut String) {
    let quote = if text.contains('\'') && !text.contains('"') {
        '"'
    } else {
        '\''
    };
    out.push(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => {
                out.push('\\');
                out.push(c);
            }
            c if (c as u32) < 0x20 || c as u32 == 0x7f => {
                write!(out, "\\x{:02x}", c as u32).expect("writing to a String cannot fail");
            }
            c => out.push(c),
        }
    }
    out.push(quote);
}

/// The fixed date of `strftime_now`, so that a prompt is the same on every day:
/// Wednesday, 1 January 2025, midnight.
pub(crate) fn strftime_fixed(format: &str) -> String {
    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('Y') => out.push_str("2025"),
            Some('y') => out.push_str("25"),
            Some('m' | 'd') => out.push_str("01"),
            Some('-') => {
                out.push_str(match chars.next() {
                    Some('d' | 'm') => "1",
                    _ => "0",
                });
            }
            Some('B') => out.push_str("January"),
            Some('b' | 'h') => out.push_str("Jan"),
            Some('A') => out.push_str("Wednesday"),
            Some('a') => out.push_str("Wed"),
            Some('j') => out.push_str("001"),
            Some('H' | 'M' | 'S') => out.push_str("00"),
            Some('I') => out.push_str("12"),
            Some('p') => out.push_str("AM"),
            Some('F') => out.push_str("2025-01-01"),
            Some('T') => out.push_str("00:00:00"),
            Some('%') | None => out.push('%'),
            Some(other) => {
                out.push('%');
                out.push(other);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::float_repr;

    /// Made by `repr(x)` in CPython 3.13.
    #[test]
    fn floats_are_written_as_python_writes_them() {
        for (x, expected) in [
            (0.0, "0.0"),
            (-0.0, "-0.0"),
            (1.0, "1.0"),
            (0.1, "0.1"),
            (1e15, "1000000000000000.0"),
            (1e16, "1e+16"),
            (1.5e16, "1.5e+16"),
            (123_456_789_012_345_680.0, "1.2345678901234568e+17"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (1.5e-7, "1.5e-07"),
            (1e100, "1e+100"),
            (2.5e-310, "2.5e-310"),
            (0.1 + 0.2, "0.30000000000000004"),
        ] {
            assert_eq!(float_repr(x), expected);
        }
    }
}
