//! Articles and singulars of English words, by their letters. Only words that we write need to be right.

/// Words with `a` or `an` before them, by the sound at their beginning.
pub(crate) fn with_article(words: &str) -> String {
    let small = words.to_lowercase();
    let starts = |all: &[&str]| all.iter().any(|start| small.starts_with(start));
    let is_vowel = starts(&["a", "e", "i", "o", "u"]);
    let sounds_consonant =
        starts(&["uni", "use", "usu", "uti", "eu", "one"]) && !small.starts_with("unin");
    let sounds_vowel = starts(&["hour", "honest", "heir"]);
    if sounds_vowel || is_vowel && !sounds_consonant {
        format!("an {words}")
    } else {
        format!("a {words}")
    }
}

/// True if words name several things: `seats`, but not `status`.
pub(crate) fn is_plural(words: &str) -> bool {
    let is_same = ["ss", "us", "is", "series", "species"]
        .iter()
        .any(|end| words.ends_with(end));
    words == "ids" || words.len() > 3 && words.ends_with('s') && !is_same
}

/// One of several things: `copies` is `copy`.
pub(crate) fn singular(words: &str) -> String {
    if !is_plural(words) {
        return words.to_owned();
    }
    let ends = |all: &[&str]| all.iter().any(|end| words.ends_with(end));
    let without = |letters: usize| words[..words.len() - letters].to_owned();
    if words.len() > 4 && words.ends_with("ies") && !ends(&["movies", "cookies", "calories"]) {
        return without(3) + "y";
    }
    let adds_e = ends(&["ches", "shes", "sses", "xes", "zzes", "statuses", "bonuses"]);
    if adds_e && !ends(&["caches", "headaches", "niches"]) {
        return without(2);
    }
    without(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn articles_follow_the_sound() {
        for words in [
            "a bicycle",
            "an item",
            "an hour",
            "an honest answer",
            "a university",
            "a user",
            "a usual amount",
            "a utility bill",
            "an uninsured car",
            "an umbrella",
            "a European",
            "a one-way ticket",
            "an order",
            "an open amount",
            "a house",
            "a ",
        ] {
            let (_, word) = words.split_once(' ').unwrap();
            assert_eq!(with_article(word), words);
        }
    }

    #[test]
    fn singulars_have_the_letters_of_the_word() {
        for (many, one) in [
            ("copies", "copy"),
            ("seats", "seat"),
            ("free seats", "free seat"),
            ("ids", "id"),
            ("boxes", "box"),
            ("taxes", "tax"),
            ("branches", "branch"),
            ("dishes", "dish"),
            ("classes", "class"),
            ("addresses", "address"),
            ("statuses", "status"),
            ("courses", "course"),
            ("warehouses", "warehouse"),
            ("caches", "cache"),
            ("movies", "movie"),
            ("pies", "pie"),
        ] {
            assert!(is_plural(many), "{many}");
            assert_eq!(singular(many), one);
            assert_eq!(singular(one), one);
        }
        for same in ["status", "analysis", "gas", "series", "s", ""] {
            assert!(!is_plural(same), "{same}");
            assert_eq!(singular(same), same);
        }
    }
}
