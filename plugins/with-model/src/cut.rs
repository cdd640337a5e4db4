//! Shortening a text.

/// At most this many characters of the text, cut after a whole word if there is one, and marked with ` ...`.
pub fn cut(text: &str, characters: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(characters) else {
        return text.to_owned();
    };
    let kept = &text[..end];
    let kept = kept
        .rfind(char::is_whitespace)
        .map_or(kept, |space| &kept[..space]);
    format!("{} ...", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn a_longer_text_is_cut_after_a_word_and_marked() {
        assert_eq!(cut("one two", 7), "one two");
        assert_eq!(cut("one two", 6), "one ...");
        assert_eq!(cut("one  two", 6), "one ...");
        assert_eq!(cut("äöüß", 2), "äö ...");
        assert_eq!(cut("one", 0), " ...");
    }
}
