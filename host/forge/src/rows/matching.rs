//! Text compared as FTRL's published reward compares it.

/// Lower case, without commas and without white space at the ends.
pub(crate) fn plain(text: &str) -> String {
    let text = text.to_lowercase().replace(',', "");
    text.trim().to_owned()
}

/// True if an output contains every part of an answer. `", "` separates the parts.
pub(crate) fn contains(output: &str, answer: &str) -> bool {
    plain_contains(&plain(output), answer)
}

/// Like [`contains`], for a text that is plain already.
pub(crate) fn plain_contains(plain_output: &str, answer: &str) -> bool {
    answer
        .split(", ")
        .all(|part| plain_output.contains(&plain(part)))
}

/// Minimum number of characters of each part of an answer. Shorter parts are found in most texts, such as 5 in 15.
const MIN_PART: usize = 3;

/// A part of the answer that is so short that texts contain it by chance, if there is one.
fn short_part(answer: &str) -> Option<String> {
    answer
        .split(", ")
        .map(plain)
        .find(|part| part.chars().count() < MIN_PART)
}

/// True if texts that do not state the answer may contain it by chance.
pub(crate) fn is_short(answer: &str) -> bool {
    short_part(answer).is_some()
}

/// The reason why nobody needs a tool to give this answer: it is found anywhere, or the question, in its plain form,
/// states it.
pub(crate) fn triviality(plain_question: &str, answer: &str) -> Option<String> {
    if let Some(short) = short_part(answer) {
        return Some(format!(
            "{answer:?} has the part {short:?}, which is shorter than {MIN_PART} characters and so is found in most texts"
        ));
    }
    plain_contains(plain_question, answer)
        .then(|| format!("the question states the answer {answer:?}"))
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
    }

    #[test]
    fn short_and_stated_answers_are_trivial() {
        assert!(is_short("5") && is_short("") && is_short("Rome, x"));
        assert!(!is_short("128") && !is_short("Rome"));
        assert_eq!(triviality("who wrote faust?", "Goethe"), None);
        for (answer, says) in [("57", "shorter than 3"), ("Faust", "the question states")] {
            let said = triviality("who wrote faust?", answer).expect("a reason");
            assert!(said.contains(says), "{said}");
        }
    }
}
