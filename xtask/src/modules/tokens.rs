//! Rust source as words and marks, without comments.

/// A piece of source code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    /// Counted from 1.
    pub(super) line: usize,
}

/// The kinds of token that the lint tells apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An identifier, a keyword or a number.
    Word(String),
    /// The content of a string literal, with its escapes as they are written.
    Text(String),
    /// `::`
    Path,
    /// Any other character.
    Mark(char),
}

/// Splits `source` into tokens. Comments, lifetimes and character literals are left out.
pub(super) fn split(source: &str) -> Vec<Token> {
    let mut scanner = Scanner {
        rest: source,
        line: 1,
        tokens: Vec::new(),
    };
    while let Some(first) = scanner.rest.chars().next() {
        scanner.step(first);
    }
    scanner.tokens
}

struct Scanner<'text> {
    rest: &'text str,
    line: usize,
    tokens: Vec<Token>,
}

impl<'text> Scanner<'text> {
    fn step(&mut self, first: char) {
        let rest = self.rest;
        if first.is_whitespace() {
            self.take(rest.len() - rest.trim_start().len());
        } else if rest.starts_with("//") {
            self.take(rest.find('\n').unwrap_or(rest.len()));
        } else if rest.starts_with("/*") {
            self.take(block_comment(rest));
        } else if let Some((start, length)) = string(rest) {
            let line = self.line;
            let text = self.take(length);
            let text = text[start..].trim_end_matches(['"', '#']).to_owned();
            self.tokens.push(Token {
                kind: Kind::Text(text),
                line,
            });
        } else if first == '\'' {
            let length = character(rest);
            self.take(length);
        } else if first.is_alphanumeric() || first == '_' {
            let rest = rest.strip_prefix("r#").unwrap_or(rest);
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
            let word = rest[..end.unwrap_or(rest.len())].to_owned();
            self.take(word.len() + self.rest.len() - rest.len());
            self.push(Kind::Word(word));
        } else if rest.starts_with("::") {
            self.take(2);
            self.push(Kind::Path);
        } else {
            self.take(first.len_utf8());
            self.push(Kind::Mark(first));
        }
    }

    fn take(&mut self, length: usize) -> &'text str {
        let (taken, rest) = self.rest.split_at(length);
        self.line += taken.matches('\n').count();
        self.rest = rest;
        taken
    }

    fn push(&mut self, kind: Kind) {
        let line = self.line;
        self.tokens.push(Token { kind, line });
    }
}

/// Length of the block comment at the start of `text`; comments nest.
fn block_comment(text: &str) -> usize {
    let mut depth = 0;
    let mut at = 0;
    while at < text.len() {
        let rest = &text.as_bytes()[at..];
        if rest.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    text.len()
}

/// The offset of the content of the string literal at the start of `text`, and the literal's length.
fn string(text: &str) -> Option<(usize, usize)> {
    let after_prefix = text.trim_start_matches(['b', 'c']);
    let prefix = text.len() - after_prefix.len();
    if prefix > 1 {
        return None;
    }
    if let Some(raw) = after_prefix.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        let content = raw[hashes..].strip_prefix('"')?;
        let start = text.len() - content.len();
        let close = format!("\"{}", "#".repeat(hashes));
        let end = content
            .find(&close)
            .map_or(text.len(), |end| start + end + close.len());
        return Some((start, end));
    }
    let content = after_prefix.strip_prefix('"')?;
    let start = text.len() - content.len();
    let mut escaped = false;
    for (at, c) in content.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some((start, start + at + 1)),
            _ => {}
        }
    }
    Some((start, text.len()))
}

/// Length of the character literal, or of the lifetime's quote, at the start of `text`.
fn character(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), Some((at, escaped))) => {
            let after = at + escaped.len_utf8();
            text[after..]
                .find('\'')
                .map_or(text.len(), |end| after + end + 1)
        }
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(source: &str) -> Vec<String> {
        split(source)
            .into_iter()
            .filter_map(|token| match token.kind {
                Kind::Word(word) => Some(word),
                _ => None,
            })
            .collect()
    }

    #[test]
    fn comments_and_strings_hold_no_words() {
        assert_eq!(words("a // b\nc /* d /* e */ f */ g"), ["a", "c", "g"]);
        assert_eq!(words(r#"a "b \" c" d"#), ["a", "d"]);
        assert_eq!(words("a r\"b\\\" c"), ["a", "c"]);
        assert_eq!(words("a br##\"b \"# c\"## d"), ["a", "d"]);
        assert_eq!(words("r#type bar rest"), ["type", "bar", "rest"]);
    }

    #[test]
    fn characters_are_not_taken_for_lifetimes() {
        assert_eq!(
            words(r#"a '"' b '\'' c '\u{1F600}' d"#),
            ["a", "b", "c", "d"]
        );
        assert_eq!(
            words("fn f<'a>(x: &'a str)"),
            ["fn", "f", "a", "x", "a", "str"]
        );
        assert_eq!(words("b'\"' x"), ["b", "x"]);
    }

    #[test]
    fn lines_are_counted_through_everything() {
        let last = split("/*\n*/ \"\n\" // x\n  last").pop().unwrap();
        assert_eq!(last.line, 4);
        assert_eq!(last.kind, Kind::Word("last".to_owned()));
    }
}
