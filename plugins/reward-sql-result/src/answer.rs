//! The query in an answer.

/// The last block fenced as `sql`; where there is none, the last one fenced without a language; where there is none,
/// all of it. None where that is blank.
pub(crate) fn query(answer: &str) -> Option<&str> {
    let blocks = blocks(answer);
    let last = |wanted: fn(&str) -> bool| {
        let mut fitting = blocks.iter().filter(|(language, _)| wanted(language));
        fitting.next_back().map(|(_, text)| *text)
    };
    let is_sql = |language: &str| {
        ["sql", "sqlite", "sqlite3"]
            .iter()
            .any(|name| language.eq_ignore_ascii_case(name))
    };
    let text = last(is_sql)
        .or_else(|| last(str::is_empty))
        .unwrap_or(answer)
        .trim();
    (!text.is_empty()).then_some(text)
}

/// Fenced blocks: their language and what is in them. One that does not end goes to the end.
fn blocks(answer: &str) -> Vec<(&str, &str)> {
    let mut blocks = Vec::new();
    let mut open: Option<(&str, usize)> = None;
    let mut at = 0;
    for line in answer.split_inclusive('\n') {
        let next = at + line.len();
        if let Some(rest) = line.trim_start().strip_prefix("```") {
            match open.take() {
                Some((language, start)) => blocks.push((language, &answer[start..at])),
                None => match rest.find("```") {
                    // A block in one line.
                    Some(end) => blocks.push(one_line(&rest[..end])),
                    None => open = Some((rest.trim(), next)),
                },
            }
        } else if let (Some((language, start)), Some(end)) = (open, line.find("```")) {
            blocks.push((language, &answer[start..at + end]));
            open = None;
        }
        at = next;
    }
    if let Some((language, start)) = open {
        blocks.push((language, &answer[start..]));
    }
    blocks
}

fn one_line(text: &str) -> (&str, &str) {
    match text.split_once(char::is_whitespace) {
        Some((language, query)) if language.eq_ignore_ascii_case("sql") => (language, query),
        _ => ("", text),
    }
}
