//! Counts the words of a text.

use rlf_plugin::serde_json::{Value, json};
use rlf_plugin::{plugin, tool};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Count {
    /// The text
    text: String,
    /// How many of the longest words to return, 1 to 10
    longest: usize,
}

// The model reads the name, the comment and the schema of the struct.
/// Counts the words of a text and returns the longest ones.
#[tool(pure)]
fn count(Count { text, longest }: Count) -> Result<Value, String> {
    if !(1..=10).contains(&longest) {
        // The model reads this, and can correct its call. A panic is a bug.
        return Err("longest is 1 to 10".into());
    }
    let mut words: Vec<&str> = text.split_whitespace().collect();
    let count = words.len();
    words.sort_by_key(|word| (std::cmp::Reverse(word.chars().count()), *word));
    words.dedup();
    words.truncate(longest);
    Ok(json!({ "words": count, "longest": words }))
}

plugin!(tools: [count]);

#[cfg(test)]
mod tests {
    use rlf_plugin::serde_json::json;
    use rlf_plugin::testing;

    #[test]
    fn a_wrong_number_is_a_failure_that_says_why() {
        let arguments = json!({ "text": "a red fox", "longest": 11 });
        let counted = testing::call::<super::Plugin>("count", arguments).unwrap();
        assert!(counted.failed);
        assert_eq!(testing::text(&counted), "longest is 1 to 10");
    }
}
