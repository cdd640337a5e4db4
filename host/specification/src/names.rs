//! Names: which are allowed, and the one that was probably meant.

/// Python's keywords in lower case, and the functions and types that generated Python uses.
const PYTHON_WORDS: [&str; 47] = [
    "all", "and", "any", "as", "assert", "async", "await", "bool", "break", "class", "continue",
    "def", "del", "dict", "elif", "else", "except", "false", "finally", "float", "for", "from",
    "global", "if", "import", "in", "int", "is", "lambda", "len", "list", "max", "min", "nonlocal",
    "not", "or", "pass", "raise", "return", "str", "sum", "true", "try", "type", "while", "with",
    "yield",
];

/// Further words that cannot be names: they mean something in expressions or in the exported Python file.
const RESERVED: [&str; 38] = [
    "abs",
    "api",
    "chr",
    "const",
    "copy",
    "datetime",
    "function",
    "getattr",
    "isinstance",
    "json",
    "let",
    "load_scenario",
    "loop",
    "math",
    "mcp",
    "model",
    "model_copy",
    "model_dump",
    "model_fields_set",
    "namespace",
    "next",
    "null",
    "object",
    "ord",
    "package",
    "print",
    "save_scenario",
    "scenario",
    "schema",
    "self",
    "set",
    "setattr",
    "sorted",
    "sorted_by",
    "state",
    "validate",
    "var",
    "void",
];

/// Words with a capital that cannot be names of environments: the exported Python file uses them.
const RESERVED_ENVIRONMENTS: [&str; 15] = [
    "Annotated",
    "BaseModel",
    "Dict",
    "Exception",
    "False",
    "FastMCP",
    "Field",
    "INITIAL",
    "List",
    "Literal",
    "None",
    "Optional",
    "OverflowError",
    "True",
    "ValueError",
];

/// Characters that show nothing or that reorder text: those that control, format and join others. The variation
/// selectors of emoji (U+FE0E, U+FE0F) are not among them. The exported Python file has the same list.
const INVISIBLE: [(char, char); 19] = [
    ('\u{0}', '\u{1f}'),
    ('\u{7f}', '\u{9f}'),
    ('\u{ad}', '\u{ad}'),
    ('\u{34f}', '\u{34f}'),
    ('\u{61c}', '\u{61c}'),
    ('\u{115f}', '\u{1160}'),
    ('\u{17b4}', '\u{17b5}'),
    ('\u{180b}', '\u{180f}'),
    ('\u{200b}', '\u{200f}'),
    ('\u{2028}', '\u{202e}'),
    ('\u{2060}', '\u{206f}'),
    ('\u{3164}', '\u{3164}'),
    ('\u{fe00}', '\u{fe0d}'),
    ('\u{feff}', '\u{feff}'),
    ('\u{ffa0}', '\u{ffa0}'),
    ('\u{fff0}', '\u{fffb}'),
    ('\u{1bca0}', '\u{1bca3}'),
    ('\u{1d173}', '\u{1d17a}'),
    ('\u{e0000}', '\u{e0fff}'),
];

/// True if a character shows nothing, or reorders the text around it. Spaces can be seen; tabs and line breaks count.
pub fn is_invisible(character: char) -> bool {
    let mut ranges = INVISIBLE.iter();
    ranges.any(|(first, last)| (*first..=*last).contains(&character))
}

/// True if a text can be a key: it is not empty, and everything in it can be seen.
pub(crate) fn can_be_key(text: &str) -> bool {
    !text.is_empty() && !text.chars().any(is_invisible)
}

/// The message about a text that cannot be a key.
pub(crate) const NO_KEY: &str = "a key cannot be empty or have invisible characters";

/// True if a text is a keyword of Python in lower case, or a function or type that generated Python uses.
pub fn is_python_word(text: &str) -> bool {
    PYTHON_WORDS.contains(&text)
}

/// Maximum length of a name.
pub(crate) const MAX_NAME: usize = 40;

/// Finds the reason why a text cannot be the name of an entity, parameter or operation.
pub fn problem(name: &str) -> Option<String> {
    let mut characters = name.chars();
    let starts = characters
        .next()
        .is_some_and(|first| first.is_ascii_lowercase());
    let rest = characters.all(|one| one.is_ascii_lowercase() || one.is_ascii_digit() || one == '_');
    if !starts || !rest || name.len() > MAX_NAME {
        return Some(format!(
            "`{name}` is not a valid name: use at most {MAX_NAME} lower-case letters, digits and `_`, starting with a letter"
        ));
    }
    (is_python_word(name) || RESERVED.contains(&name))
        .then(|| format!("`{name}` is a reserved word"))
}

/// Finds the reason why a text cannot be the name of an environment.
pub(crate) fn environment_problem(name: &str) -> Option<String> {
    let mut characters = name.chars();
    let starts = characters
        .next()
        .is_some_and(|first| first.is_ascii_uppercase());
    let fits = starts && characters.all(|one| one.is_ascii_alphanumeric()) && name.len() <= 20;
    if !fits {
        return Some(format!(
            "`{name}` is no name of an environment: use a capital letter, then letters and digits, at most 20"
        ));
    }
    RESERVED_ENVIRONMENTS
        .contains(&name)
        .then(|| format!("`{name}` is a reserved word"))
}

/// True if a text has another one as a word, or words, of its own.
pub fn has_word(text: &str, word: &str) -> bool {
    let is_boundary = |one: Option<char>| one.is_none_or(|one| !one.is_alphanumeric());
    text.match_indices(word).any(|(at, _)| {
        is_boundary(text[..at].chars().next_back())
            && is_boundary(text[at + word.len()..].chars().next())
    })
}

/// Suggests what to write instead of a name that does not exist.
pub(crate) fn suggestion<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let mut known: Vec<&str> = known.collect();
    let near = known
        .iter()
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), *candidate))
        .filter(|(distance, candidate)| *distance * 3 <= candidate.len().max(name.len()) + 1)
        .min_by_key(|(distance, _)| *distance);
    if let Some((_, near)) = near {
        return format!("did you mean `{near}`?");
    }
    known.sort_unstable();
    known.dedup();
    if known.is_empty() {
        "there are none".to_owned()
    } else {
        format!("there are {}", known.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_in_no_key() {
        for key in ["B1", "DOC-", "Z\u{fc}rich 7", "\u{2764}\u{fe0f}"] {
            assert!(can_be_key(key), "{key}");
        }
        for key in [
            "",
            "a\0",
            "a\u{200b}",
            "\u{202e}a",
            "a\n",
            "\u{e0041}",
            "\u{feff}",
        ] {
            assert!(!can_be_key(key), "{key:?}");
        }
    }

    #[test]
    fn the_exported_file_has_the_same_invisible_characters() {
        let python = include_str!("python/runtime.py");
        for (first, last) in INVISIBLE {
            let (first, last) = (u32::from(first), u32::from(last));
            let range = format!("(0x{first:x}, 0x{last:x}),");
            assert!(python.contains(&range), "{range}");
        }
        assert!(python.contains(NO_KEY));
    }
}
