//! The nonce of a question: a code in its delimiters that no untrusted text contains.

use crate::seeded::{Hash, Random};

/// Draws a nonce of 16 hexadecimal digits for texts that are already fixed. `question` tells apart questions about the
/// same texts.
pub(crate) fn draw(seed: u64, question: u64, texts: &[&str]) -> String {
    let hash = Hash::new(seed).text(&question.to_string());
    let add = |hash: Hash, text: &&str| hash.text(text);
    first_absent(texts.iter().fold(hash, add).finish(), texts)
}

/// The first code of a sequence that occurs in no text. Texts contain finitely many codes, so there is one.
fn first_absent(start: u64, texts: &[&str]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| text.to_ascii_lowercase()).collect();
    let mut codes = Random::new(start);
    loop {
        let code = format!("{:016x}", codes.next());
        if !texts.iter().any(|text| text.contains(&code)) {
            return code;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_that_a_text_contains_is_drawn_again() {
        let first = first_absent(5, &["nothing"]);
        let second = first_absent(5, &[&format!("my {first}.")]);
        assert_ne!(first, second);
        let third = first_absent(
            5,
            &[&first.to_ascii_uppercase(), &format!("{second}{second}")],
        );
        assert!(![first, second].contains(&third), "{third}");
    }

    #[test]
    fn seed_question_and_text_decide_the_nonce() {
        let nonce = draw(1, 0, &["text"]);
        assert_eq!(nonce, draw(1, 0, &["text"]));
        assert_eq!(nonce.len(), 16);
        let others = [
            draw(2, 0, &["text"]),
            draw(1, 1, &["text"]),
            draw(1, 0, &["texts"]),
        ];
        assert!(!others.contains(&nonce));
    }
}
