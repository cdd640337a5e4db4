//! Makes a guest's text safe before a person or a model sees it. It applies the sandbox's
//! [`safe_text`](rlf_sandbox::safe_text) to every string, and copies only strings that change.
//!
//! Special tokens of a chat template are not handled here: `rlf-dialogue` encodes untrusted text with all of them
//! disabled.

use serde_json::Value;

/// Returns text that cannot control a terminal or mislead a reader.
pub fn make_string_safe(text: String) -> String {
    // Most tool output is printable ASCII, newlines and tabs.
    if text
        .bytes()
        .all(|b| matches!(b, b' '..=b'~' | b'\n' | b'\t'))
    {
        return text;
    }
    rlf_sandbox::safe_text(text.as_bytes())
}

/// Makes every string of a JSON value safe, keys included.
pub fn make_value_safe(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(make_string_safe(text)),
        Value::Array(items) => items.into_iter().map(make_value_safe).collect(),
        Value::Object(members) => members
            .into_iter()
            .map(|(key, member)| (make_string_safe(key), make_value_safe(member)))
            .collect(),
        scalar => scalar,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_terminal_would_obey_is_made_visible() {
        assert_eq!(
            make_string_safe("Zürich\n\t– 日本".into()),
            "Zürich\n\t– 日本"
        );
        assert_eq!(make_string_safe("a\u{1b}[2Jb".into()), "a\u{241b}[2Jb");
    }

    #[test]
    fn structured_results_are_made_safe_in_keys_and_values() {
        let value = json!({"k\u{1b}": ["\u{202e}", 1, {"x": "plain"}]});
        assert_eq!(
            make_value_safe(value),
            json!({"k\u{241b}": ["\u{fffd}", 1, {"x": "plain"}]})
        );
    }
}
