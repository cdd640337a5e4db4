//! Splitting a long text.

/// Splits a text into as few parts as its length allows: each has at most `max_chars` characters, and together they are
/// the text. Parts have about the same length, and end with a paragraph, a line or a word if one ends nearby.
///
/// `None` if there would be more than `max_parts`.
pub(crate) fn split(text: &str, max_chars: usize, max_parts: usize) -> Option<Vec<&str>> {
    let (max_chars, mut left) = (max_chars.max(1), text.chars().count());
    let count = left.div_ceil(max_chars).max(1);
    if count > max_parts {
        return None;
    }
    let mut rest = text;
    let mut parts = Vec::with_capacity(count);
    for after in (1..count).rev() {
        let even = left.div_ceil(after + 1);
        let slack = even / 8;
        // The parts after this one must have room for the rest.
        let least = left.saturating_sub(after * max_chars).max(even - slack);
        let most = max_chars.min(even + slack);
        let (part, remaining) = rest.split_at(end_of_part(rest, least, even, most));
        left -= part.chars().count();
        parts.push(part);
        rest = remaining;
    }
    parts.push(rest);
    Some(parts)
}

/// The byte offset at which to cut: where a paragraph, a line or a word ends, `least` to `most` characters from the
/// start. Otherwise after `even` characters.
fn end_of_part(text: &str, least: usize, even: usize, most: usize) -> usize {
    let offset = |characters: usize| {
        text.char_indices()
            .nth(characters)
            .map_or(text.len(), |(offset, _)| offset)
    };
    let (from, to) = (offset(least), offset(most));
    let window = &text[from..to];
    let after_break = |mark: &str| window.rfind(mark).map(|found| found + mark.len());
    after_break("\n\n")
        .or_else(|| after_break("\n"))
        .or_else(|| after_space(window))
        .map_or_else(|| offset(even), |end| from + end)
}

/// The offset behind the last white space.
fn after_space(window: &str) -> Option<usize> {
    let (offset, space) = window.char_indices().rfind(|(_, c)| c.is_whitespace())?;
    Some(offset + space.len_utf8())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::split;

    #[test]
    fn a_part_ends_with_a_paragraph_a_line_or_a_word() {
        let text = "aaaa aaaa aaaa\n\nbbbb bbbb bbbb b";
        assert_eq!(
            split(text, 20, 8).unwrap(),
            ["aaaa aaaa aaaa\n\n", "bbbb bbbb bbbb b"]
        );
        assert_eq!(
            split("aaa aaa aaa\nbbb bbb bbb", 20, 8).unwrap(),
            ["aaa aaa aaa\n", "bbb bbb bbb"]
        );
        assert_eq!(
            split("aaa aaa aaaa bbb bbb bbbb", 20, 8).unwrap(),
            ["aaa aaa aaaa ", "bbb bbb bbbb"]
        );
    }

    #[test]
    fn parts_have_about_the_same_length_even_if_a_paragraph_ends_earlier() {
        assert_eq!(
            split("aaaa\n\nbbb bbbbbbbbbb", 16, 8).unwrap(),
            ["aaaa\n\nbbb ", "bbbbbbbbbb"]
        );
    }

    #[test]
    fn a_text_that_needs_too_many_parts_is_refused() {
        assert_eq!(split(&"a".repeat(16), 8, 2).unwrap().len(), 2);
        assert_eq!(split(&"a".repeat(17), 8, 2), None);
    }

    proptest! {
        #[test]
        fn parts_are_the_text_and_as_few_as_its_length_allows(
            text in "[aß \n]{0,200}",
            max_chars in 1_usize..50,
        ) {
            let parts = split(&text, max_chars, usize::MAX).unwrap();
            prop_assert_eq!(parts.concat(), text.as_str());
            prop_assert!(parts.iter().all(|part| part.chars().count() <= max_chars));
            prop_assert_eq!(parts.len(), text.chars().count().div_ceil(max_chars).max(1));
        }
    }
}
