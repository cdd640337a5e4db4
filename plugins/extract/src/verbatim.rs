//! The check that a text contains a value.

use rlf_plugin::serde_json::Value;

/// A text in which values are looked for, whatever their case and their white space.
pub(crate) struct FoldedText(String);

impl FoldedText {
    pub(crate) fn new(text: &str) -> Self {
        Self(fold(text))
    }

    /// True if the text contains the string, or all strings of a list. Other values need not be in it: a text may spell
    /// a number out.
    pub(crate) fn contains(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => self.0.contains(&fold(text)),
            Value::Array(items) => items.iter().all(|item| self.contains(item)),
            _ => true,
        }
    }
}

fn fold(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    // Upper case comes first: it unites letters that have several lower-case forms, such as the Greek sigma.
    words
        .join(" ")
        .chars()
        .flat_map(char::to_uppercase)
        .flat_map(char::to_lowercase)
        .collect()
}

#[cfg(test)]
mod tests {
    use rlf_plugin::serde_json::json;

    use super::FoldedText;

    #[test]
    fn case_and_white_space_make_no_difference_and_anything_else_does() {
        let text = FoldedText::new("The  Straße\nin New\u{a0}York, ΟΔΟΣ and οδός. Five of 12.");
        for value in [
            json!("new york"),
            json!("STRASSE IN"),
            json!("οδος and"),
            json!(["the", "New York", 7]),
            json!(5),
            json!(true),
            json!(null),
        ] {
            assert!(text.contains(&value), "{value}");
        }
        for value in [
            json!("newyork"),
            json!("York City"),
            json!(["the", "Paris"]),
        ] {
            assert!(!text.contains(&value), "{value}");
        }
    }
}
