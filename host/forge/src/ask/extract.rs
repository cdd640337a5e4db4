//! The part of an answer that was asked for: without thoughts, out of code fences.

use serde_json::Value;

use super::error::Unusable;

/// The answer without the model's thoughts, for endpoints that do not separate the two.
pub fn spoken(text: &str) -> &str {
    match text.rsplit_once("</think>") {
        Some((_, spoken)) => spoken,
        None if text.trim_start().starts_with("<think>") => "",
        None => text,
    }
}

/// A block between code fences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block<'t> {
    /// The word after the opening fence, such as `toml`. It may be empty.
    pub language: &'t str,
    /// The text between the fences.
    pub text: &'t str,
}

/// All blocks between code fences. The last one may lack its closing fence.
pub fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut open: Option<(&str, &str, usize)> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let trimmed = line.trim();
        let ticks = trimmed.len() - trimmed.trim_start_matches('`').len();
        if ticks < 3 {
            continue;
        }
        let (fence, word) = trimmed.split_at(ticks);
        match open {
            None => open = Some((fence, word.trim(), at)),
            Some((opened, language, from)) if word.is_empty() && fence.len() >= opened.len() => {
                let text = &text[from..start];
                blocks.push(Block { language, text });
                open = None;
            }
            Some(_) => {}
        }
    }
    if let Some((_, language, from)) = open {
        let text = &text[from..];
        blocks.push(Block { language, text });
    }
    blocks
}

/// The longest block in one of these languages, or else the longest block without a language. Without any block, the
/// whole text.
pub fn block<'t>(text: &'t str, languages: &[&str]) -> &'t str {
    let all = blocks(text);
    let longest = |wanted: &dyn Fn(&Block<'_>) -> bool| {
        all.iter()
            .filter(|block| wanted(block))
            .max_by_key(|block| block.text.len())
            .map(|block| block.text)
    };
    let named = |block: &Block<'_>| {
        languages
            .iter()
            .any(|language| block.language.eq_ignore_ascii_case(language))
    };
    longest(&named)
        .or_else(|| longest(&|block| block.language.is_empty()))
        .unwrap_or(if all.is_empty() { text } else { "" })
}

/// The JSON in an answer: a block, the whole answer, or an object among words, from the first `{` to the last `}`.
/// Arrays are not looked for: all questions ask for objects, and the words around an object may contain `[1]`.
pub fn json(text: &str) -> Result<Value, Unusable> {
    let block = block(text, &["json", "jsonc", "json5"]);
    let inside = if block.trim().is_empty() { text } else { block };
    let whole = rlf_json::from_str::<Value>(inside.trim());
    let Err(error) = whole else {
        return whole.map_err(|error| Unusable::new(error.to_string()));
    };
    let object = inside.find('{').zip(inside.rfind('}'));
    let within = object.filter(|(first, last)| first < last);
    let found = within.and_then(|(first, last)| rlf_json::from_str(&inside[first..=last]).ok());
    found.ok_or_else(|| Unusable::new(format!("it is no JSON: {error}")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn thoughts_are_no_part_of_an_answer() {
        assert_eq!(spoken("<think>{\"a\": 1}</think>\n{}"), "\n{}");
        assert_eq!(spoken("<think>{\"a\": 1}"), "");
        assert_eq!(spoken("{}"), "{}");
    }

    #[test]
    fn a_block_is_found_by_its_language_among_others() {
        let text = "First\n```json\n{\"a\": 1}\n```\nand\n```toml\na = 1\n```\n```\nb\n```\n";
        assert_eq!(block(text, &["toml"]), "a = 1\n");
        assert_eq!(block(text, &["python"]), "b\n");
        assert_eq!(block("a = 1", &["toml"]), "a = 1");
        assert_eq!(block("```rust\nx\n```", &["toml"]), "");
        // Cut short, and a block that contains fences.
        assert_eq!(block("```toml\na = 1\n", &["toml"]), "a = 1\n");
        assert_eq!(
            block("````toml\n```\na\n```\n````\n", &["toml"]),
            "```\na\n```\n"
        );
    }

    #[test]
    fn json_is_found_in_fences_and_between_words() {
        for text in [
            "{\"a\": [1]}",
            "```json\n{\"a\": [1]}\n```",
            "```\n{\"a\": [1]}\n```\nThat is it.",
            "Here it is: {\"a\": [1]}. I hope it helps.",
            "As in [1], it is {\"a\": [1]}.",
        ] {
            assert_eq!(json(text).unwrap(), json!({"a": [1]}), "{text}");
        }
        assert_eq!(json("[1]").unwrap(), json!([1]));
        let broken = json("{\"a\": [1}").unwrap_err().to_string();
        assert!(broken.starts_with("it is no JSON: "), "{broken}");
    }
}
