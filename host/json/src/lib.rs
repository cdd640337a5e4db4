//! Reads JSON from outside without losing digits.
//!
//! `serde_json` reads an integer of more than 64 bits as the nearest floating-point number. A tool would then be called
//! with another argument than the model wrote, and two different states would be equal. This crate refuses such JSON.
//! It must not know anything else of the system: every crate that reads JSON of a model, a plugin or a file may depend
//! on it.
//!
//! ```
//! let value: serde_json::Value = rlf_json::from_str("[18446744073709551615]")?;
//! assert_eq!(value[0], u64::MAX);
//! assert!(rlf_json::from_str::<serde_json::Value>("[18446744073709551616]").is_err());
//! # Ok::<(), serde_json::Error>(())
//! ```

use serde::de::{DeserializeOwned, Error as _};
use serde_json::{Error, Value};

/// Parses JSON like `serde_json::from_str`, but refuses integers of more than 64 bits.
pub fn from_str<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    from_slice(text.as_bytes())
}

/// Like [`from_str`], for bytes.
pub fn from_slice<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Error> {
    let value = serde_json::from_slice(bytes)?;
    check(bytes).map(|()| value)
}

/// Parses the value at the start of `text`. Returns it with the offset of its end, in bytes, or `None` if `text` is
/// blank.
pub fn first(text: &str) -> Option<Result<(Value, usize), Error>> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter();
    let value = match values.next()? {
        Ok(value) => value,
        Err(error) => return Some(Err(error)),
    };
    let end = values.byte_offset();
    Some(check(&text.as_bytes()[..end]).map(|()| (value, end)))
}

/// Refuses valid JSON with an integer of more than 64 bits.
pub fn check(json: &[u8]) -> Result<(), Error> {
    let mut at = 0;
    while let Some(byte) = json.get(at) {
        match byte {
            b'"' => at += text_len(&json[at..]),
            b'-' | b'0'..=b'9' => {
                let is_part =
                    |byte: &&u8| matches!(byte, b'0'..=b'9' | b'+' | b'-' | b'.' | b'e' | b'E');
                let start = at;
                let literal = &json[at..];
                let literal = &literal[..literal.iter().take_while(is_part).count()];
                at += literal.len();
                let literal = str::from_utf8(literal).unwrap_or_default();
                let is_integer = !literal.contains(['.', 'e', 'E']);
                if is_integer && literal.parse::<i64>().is_err() && literal.parse::<u64>().is_err()
                {
                    let shown: String = literal.chars().take(40).collect();
                    let (line, column) = place(json, start);
                    // The end of the text becomes the line and the column of the error.
                    return Err(Error::custom(format!(
                        "the integer {shown} has more than 64 bits and would be rounded (write it as a text) \
                         at line {line} column {column}"
                    )));
                }
            }
            _ => at += 1,
        }
    }
    Ok(())
}

/// Line and column of the byte at `at`, both from 1, counted like those of `serde_json`'s errors.
fn place(json: &[u8], at: usize) -> (usize, usize) {
    let lines = json[..at].split(|byte| *byte == b'\n');
    let (line, before) = lines.enumerate().last().unwrap_or_default();
    (line + 1, before.len() + 1)
}

/// Length in bytes of the string literal at the start of `json`, its quotes included.
fn text_len(json: &[u8]) -> usize {
    let mut at = 1;
    while let Some(byte) = json.get(at) {
        match byte {
            b'"' => return at + 1,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    json.len()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn integers_are_exact_or_refused() {
        let read = |text: &str| from_str::<Value>(text);
        let kept = "[-9223372036854775808, 18446744073709551615, 1e30, 1.5, -0, \"99999999999999999999\\\"\"]";
        assert_eq!(
            read(kept).unwrap(),
            json!([
                i64::MIN,
                u64::MAX,
                1e30,
                1.5,
                -0.0,
                "99999999999999999999\""
            ])
        );
        for (text, literal) in [
            ("18446744073709551616", "18446744073709551616"),
            (
                "{\"a\\\\\": [\"5\", -9223372036854775809]}",
                "-9223372036854775809",
            ),
            ("[1.5,36893488147419103232,2]", "36893488147419103232"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(&format!("{literal} has more")), "{error}");
        }
        let error = read("{\"a\": 1,\n \"b\": 18446744073709551616}").unwrap_err();
        assert_eq!((error.line(), error.column()), (2, 7));
        assert_eq!(
            error.to_string(),
            "the integer 18446744073709551616 has more than 64 bits and would be rounded (write it as a text) \
             at line 2 column 7"
        );
        assert!(read("[1").unwrap_err().is_eof());
        assert_eq!(first(" [5] [").unwrap().unwrap(), (json!([5]), 4));
        assert!(first("[18446744073709551616] [").unwrap().is_err());
        assert!(first(" ").is_none());
        assert!(read("\"\\").is_err());
    }
}
