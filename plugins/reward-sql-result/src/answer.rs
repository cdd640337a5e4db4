//! The query in an answer.

/// The last block fenced as `sql`; without one, the last block fenced without a language; without any, the whole
/// answer. None if that is blank.
pub(crate) fn query(answer: &str) -> Option<&str> {
    let blocks = blocks(answer);
    let last = |wanted: fn(&str) -> bool| {
        let mut fitting = blocks.iter().filter(|(language, _)| wanted(language));
        fitting.next_back().map(|(_, text)| *text)
    };
    let text = last(is_sql)
        .or_else(|| last(str::is_empty))
        .unwrap_or(answer)
        .trim();
    (!text.is_empty()).then_some(text)
}

/// Fenced blocks: their language and their text. A block without an end continues to the end of the answer.
fn blocks(answer: &str) -> Vec<(&str, &str)> {
    let fenced = answer.split("```").skip(1).step_by(2);
    fenced.map(block).collect()
}

fn block(text: &str) -> (&str, &str) {
    match text.split_once('\n') {
        Some((first, rest)) if !first.trim().contains(char::is_whitespace) => (first.trim(), rest),
        // A block on one line: the first word is a language only if it is a known one.
        _ => match text.split_once(char::is_whitespace) {
            Some((language, query)) if is_sql(language) => (language, query),
            _ => ("", text),
        },
    }
}

fn is_sql(language: &str) -> bool {
    let known = ["sql", "sqlite", "sqlite3"];
    known.iter().any(|name| language.eq_ignore_ascii_case(name))
}
