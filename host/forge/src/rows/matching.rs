//! Text compared as FTRL's published reward compares it.

/// Lower case, without commas and without white space at the ends.
pub(crate) fn plain(text: &str) -> String {
    let text = text.to_lowercase().replace(',', "");
    text.trim().to_owned()
}

/// Whether an output contains every part of an answer. `", "` separates the parts.
pub(crate) fn contains(output: &str, answer: &str) -> bool {
    contains_parts(&plain(output), answer)
}

/// Like [`contains`], for a text that is plain already.
pub(crate) fn contains_parts(plain_output: &str, answer: &str) -> bool {
    answer
        .split(", ")
        .all(|part| plain_output.contains(&plain(part)))
}

/// The least number of characters of each part of an answer. Shorter ones are found in most texts: 5 in 15.
pub(crate) const MIN_PART: usize = 3;

/// The reason why an answer would be found in texts that do not state it. None if it would not.
pub(crate) fn is_trivial(answer: &str) -> Option<String> {
    let short = answer
        .split(", ")
        .map(plain)
        .find(|part| part.chars().count() < MIN_PART)?;
    Some(format!(
        "{answer:?} has the part {short:?}, which is shorter than {MIN_PART} characters and so is found in most texts"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_compared_as_ftrl_compares_them() {
        assert!(contains("It is 1,024 GB", "1024"));
        assert!(contains("ROME in italy", "Rome, Italy"));
        assert!(!contains("Rome", "Rome, Italy"));
        assert!(contains("15", "5"));
        assert!(is_trivial("5").is_some() && is_trivial("").is_some());
        assert!(is_trivial("Rome, x").is_some());
        assert!(is_trivial("128").is_none() && is_trivial("Rome").is_none());
    }
}
