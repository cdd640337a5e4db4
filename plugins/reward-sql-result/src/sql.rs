//! The part of SQLite's lexical rules that shows where a statement ends and which text is outside parentheses.

/// A word, or any other single character, outside comments and literals.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Token<'a> {
    Word(&'a str),
    Mark(char),
    /// A string, a quoted name or a blob's digits.
    Quoted,
}

/// True if the result is ordered: ORDER BY outside all parentheses. Inside parentheses it belongs to a subquery, a
/// common table expression, a window or an aggregate function.
pub(crate) fn orders(sql: &str) -> bool {
    let mut depth = 0_usize;
    let mut after_order = false;
    for token in Tokens(sql) {
        match token {
            Token::Mark('(') => depth += 1,
            Token::Mark(')') => depth = depth.saturating_sub(1),
            Token::Word(word) if depth == 0 && after_order && word.eq_ignore_ascii_case("by") => {
                return true;
            }
            _ => {}
        }
        after_order = matches!(token, Token::Word(word) if word.eq_ignore_ascii_case("order"));
    }
    false
}

/// True if anything except semicolons and comments follows the first semicolon.
pub(crate) fn is_several(sql: &str) -> bool {
    let mut ended = false;
    for token in Tokens(sql) {
        if token == Token::Mark(';') {
            ended = true;
        } else if ended {
            return true;
        }
    }
    false
}

struct Tokens<'a>(&'a str);

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        loop {
            let rest = self.0.trim_start();
            let first = rest.chars().next()?;
            let end_of = |mark: &str, from: usize| {
                rest[from..]
                    .find(mark)
                    .map_or(rest.len(), |at| from + at + mark.len())
            };
            let (length, token) = if rest.starts_with("--") {
                (end_of("\n", 2), None)
            } else if rest.starts_with("/*") {
                (end_of("*/", 2), None)
            } else if matches!(first, '\'' | '"' | '`') {
                (quoted(rest, first), Some(Token::Quoted))
            } else if first == '[' {
                (end_of("]", 1), Some(Token::Quoted))
            } else if is_word(first) {
                let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
                (length, Some(Token::Word(&rest[..length])))
            } else {
                (first.len_utf8(), Some(Token::Mark(first)))
            };
            self.0 = &rest[length..];
            if token.is_some() {
                return token;
            }
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '$') || !c.is_ascii()
}

/// Length of the literal at the start of `text`; a doubled mark is one of its characters.
fn quoted(text: &str, mark: char) -> usize {
    let mut chars = text.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c == mark && chars.next_if(|(_, next)| *next == mark).is_none() {
            return at + 1;
        }
    }
    text.len()
}
